// The scrub bar of a film: finished frames one after the other, by hand or played at the film's
// rate. Pictures are the farm's own; those nearby are fetched ahead.
const film = document.getElementById("film");
const part = (id) => document.getElementById(id);
const AHEAD = 6;

const kept = new Map();
let playing = null;

function numbers() {
  const done = document.querySelectorAll(".frames [data-frame] img");
  return [...done].map((image) => ({
    frame: image.closest("[data-frame]").dataset.frame,
    source: image.src,
  }));
}

function fetched(source) {
  let image = kept.get(source);
  if (!image) {
    image = new Image();
    image.src = source;
    kept.set(source, image);
    // The oldest go: a film is longer than memory.
    if (kept.size > 64) kept.delete(kept.keys().next().value);
  }
  return image;
}

function show(position) {
  const all = numbers();
  film.hidden = all.length < 2;
  if (film.hidden) return;
  const bar = part("scrub");
  bar.max = all.length - 1;
  const at = Math.min(Math.max(position, 0), all.length - 1);
  bar.value = at;
  bar.setAttribute("aria-valuetext", `frame ${all[at].frame}`);
  part("scrub-is").textContent = all[at].frame;
  const picture = part("film-picture");
  picture.src = all[at].source;
  picture.alt = `Frame ${all[at].frame}`;
  for (let next = 1; next <= AHEAD; next += 1) fetched(all[(at + next) % all.length].source);
}

// One step of playing. A frame that is not here yet is waited for.
function step() {
  const all = numbers();
  const next = (Number(part("scrub").value) + 1) % Math.max(all.length, 1);
  if (all[next] && !fetched(all[next].source).complete) return;
  show(next);
}

function play() {
  if (playing) {
    clearInterval(playing);
    playing = null;
  } else {
    playing = setInterval(step, 1000 / Math.min(Math.max(Number(film.dataset.fps), 1), 60));
  }
  part("play").textContent = playing ? "Pause" : "Play";
}

if (film) {
  part("scrub").addEventListener("input", () => show(Number(part("scrub").value)));
  part("play").addEventListener("click", play);
  // More frames come while the page is open.
  const more = new MutationObserver(() => show(Number(part("scrub").value)));
  more.observe(document.getElementById("frames"), { childList: true, subtree: true });
  show(0);
}
