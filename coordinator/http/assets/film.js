// The scrub bar of a film: all finished frames one after the other, by hand or played at the film's
// rate. Pictures are the farm's own; those nearby are fetched ahead.
import { ask } from "./ask.js";

const film = document.getElementById("film");
const part = (id) => document.getElementById(id);
const AHEAD = 6;
// Frames that are asked for at a time.
const LIST = 4096;

// The finished frames that a browser can show, in order, each as its number and its picture.
let all = [];
// What is shown stays, also where frames before it are finished later.
let shown = null;
const kept = new Map();
let playing = null;

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
  film.hidden = all.length < 2;
  if (film.hidden) return;
  const bar = part("scrub");
  bar.max = all.length - 1;
  const at = Math.min(Math.max(position, 0), all.length - 1);
  const { number, source } = all[at];
  shown = number;
  bar.value = at;
  bar.setAttribute("aria-valuetext", `frame ${number}`);
  part("scrub-is").textContent = number;
  const picture = part("film-picture");
  if (picture.getAttribute("src") !== source) picture.src = source;
  picture.alt = `Frame ${number}`;
  for (let next = 1; next <= AHEAD; next += 1) fetched(all[(at + next) % all.length].source);
}

// One step of playing. A frame that is not here yet is waited for.
function step() {
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

// Takes finished frames into the film.
function learn(frames) {
  const known = new Map(all.map((frame) => [frame.number, frame]));
  for (const { frame: number, state } of frames) {
    const picture = state.done?.find((file) => ["png", "jpg", "jpeg"].includes(file.format));
    const source = `/api/v1/jobs/${film.dataset.job}/frames/${number}/files/${picture?.format}`;
    if (picture) known.set(number, { number, source });
  }
  all = [...known.values()].sort((one, other) => one.number - other.number);
  show(Math.max(all.findIndex(({ number }) => number === shown), 0));
}

// Reads which frames are finished, also those that the page does not list.
async function read() {
  for (let from = 0; ; ) {
    const path = `/jobs/${film.dataset.job}/frames?from=${from}&most=${LIST}`;
    const frames = await ask("GET", path);
    learn(frames);
    from += frames.length;
    if (frames.length < LIST) return;
  }
}

if (film) {
  part("scrub").addEventListener("input", () => show(Number(part("scrub").value)));
  part("play").addEventListener("click", play);
  // More frames come while the page is open.
  document.addEventListener("frames", ({ detail: { frames, more } }) => {
    const { job } = film.dataset;
    learn(frames.filter((one) => one.job === job).map((one) => one.frame));
    if (more.includes(job)) read();
  });
  read();
}
