// Adds the lines that come to a page's log. The page is whole without it.
const MOST = 500;
const box = document.getElementById("log-lines");
const list = box?.querySelector("ol");
let source;
let last = "";

function piece(name, kind, text) {
  const made = document.createElement(name);
  if (kind) { made.className = kind; }
  made.textContent = text;
  return made;
}

function place({ frame, unit }) {
  if (frame === null) return "";
  const digits = (number, count) => String(number).padStart(count, "0");
  return `f${digits(frame, 4)}${unit === null ? "" : `/u${digits(unit, 5)}`} `;
}

// As the server writes it.
function row(line) {
  const made = document.createElement("li");
  made.dataset.severity = line.severity;
  const when = new Date(line.at_millis).toISOString().slice(0, 19).replace("T", " ");
  made.append(
    piece("time", "", `${when}Z`), " ", piece("span", "severity", line.severity), " ",
    piece("bdi", "", line.node), ` ${line.source} ${place(line)}`,
    piece("bdi", "text", line.text),
  );
  return made;
}

function add({ lines }) {
  if (!lines.length) return;
  box.hidden = false;
  document.getElementById("log-empty").hidden = true;
  const atEnd = box.scrollTop + box.clientHeight >= box.scrollHeight - 8;
  list.append(...lines.map(row));
  while (list.children.length > MOST) { list.firstElementChild.remove(); }
  if (atEnd) { box.scrollTop = box.scrollHeight; }
}

function stop() {
  source?.close();
  source = undefined;
}

function start() {
  if (source || !box?.dataset.follow) return;
  const address = new URL(box.dataset.follow, location.href);
  if (last) { address.searchParams.set("after", last); }
  source = new EventSource(address);
  source.addEventListener("lines", (event) => {
    last = event.lastEventId;
    add(JSON.parse(event.data));
  });
  source.addEventListener("end", () => {
    delete box.dataset.follow;
    stop();
  });
}

// A page that nobody sees follows nothing.
document.addEventListener("visibilitychange", () => (document.hidden ? stop() : start()));
window.addEventListener("pagehide", stop);
window.addEventListener("pageshow", (event) => { if (event.persisted) { start(); } });
if (box) {
  box.scrollTop = box.scrollHeight;
  if (!document.hidden) { start(); }
}
