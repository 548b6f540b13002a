// Keeps a page true: what changes on the farm changes in its fields. Pages are whole without it.
import { follow } from "./events.js";
import { renew } from "./why.js";

const page = document.querySelector("[data-page]");
const link = document.getElementById("link-state");
const told = document.getElementById("told");
let greeted = false;

function fields(within, values) {
  for (const [name, value] of Object.entries(values)) {
    for (const field of within.querySelectorAll(`[data-field="${name}"]`)) {
      if (name === "progress") { field.value = value; continue; }
      const text = String(value);
      if (name === "state") { field.dataset.state = text; }
      const place = field.querySelector("bdi") ?? field;
      if (place.textContent !== text) { place.textContent = text; }
      if (place.title) { place.title = text; }
    }
  }
}

function count(value) {
  if (value >= 1e9) return `${(value / 1e9).toFixed(1)} G`;
  if (value >= 1e6) return `${(value / 1e6).toFixed(1)} M`;
  if (value >= 1e4) return `${(value / 1e3).toFixed(0)} k`;
  return value.toFixed(0);
}

function jobValues(job) {
  const share = Math.floor((job.units_committed * 100) / Math.max(job.units, 1));
  return {
    state: job.state,
    progress: share,
    percent: `${share} %`,
    frames: `${job.frames_done}/${job.frames}`,
    units: `${job.units_committed} of ${job.units}`,
    leased: job.units_leased,
    priority: job.priority,
    note: job.note,
  };
}

function standing(state) {
  if (state === "resolving") return ["finishing", 99, "being finished"];
  if (state.open) {
    const { committed, units } = state.open;
    const share = Math.floor((committed * 100) / Math.max(units, 1));
    return [committed ? "open" : "waiting", share, `${committed} of ${units} units`];
  }
  if (state.finishing) {
    return ["finishing", 99, `finishing: ${state.finishing.done} of ${state.finishing.pieces}`];
  }
  if (state.failed !== undefined) return ["failed", 0, `failed: ${state.failed}`];
  const files = state.done.map((file) => file.format).join(", ");
  return ["done", 100, files];
}

// What the page does not list is offered, not pushed in: nothing moves under the pointer.
const unlisted = new Set();
function offer(kind) {
  const news = document.getElementById("news");
  if (!news || unlisted.size === 0) return;
  news.hidden = false;
  news.href = location.href;
  news.textContent = kind === "reload" ? "Changed: show it anew" : `${unlisted.size} new: show`;
}

function onJobs({ jobs, gone }) {
  const list = document.getElementById("jobs");
  const first = !new URLSearchParams(location.search).get("cursor");
  for (const job of jobs) {
    const rows = document.querySelectorAll(`[data-job="${CSS.escape(job.job)}"]`);
    for (const row of rows) {
      const before = row.querySelector('[data-field="state"]')?.textContent;
      fields(row, jobValues(job));
      if (row === page) { renew(page.dataset); }
      if (page?.dataset.page === "job" && before && before !== job.state) {
        told.textContent = `${job.name} is ${job.state}`;
        // Other actions belong to another state.
        if (["done", "failed", "cancelled"].includes(job.state)) { location.reload(); }
      }
    }
    if (list && first && rows.length === 0 && job.state === "queued") { unlisted.add(job.job); }
  }
  for (const id of gone) {
    unlisted.delete(id);
    for (const row of document.querySelectorAll(`tr[data-job="${CSS.escape(id)}"]`)) {
      row.classList.add("gone");
      row.querySelector("input")?.remove();
    }
  }
  offer();
}

function onFrames({ frames, more }) {
  document.dispatchEvent(new CustomEvent("frames", { detail: { frames, more } }));
  if (!page?.dataset.job) return;
  const { job, frame: shown } = page.dataset;
  for (const { job: of, frame } of frames) {
    if (of !== job) continue;
    const [word, share, text] = standing(frame.state);
    if (page.dataset.page === "frame") {
      if (String(frame.frame) !== shown) continue;
      if (word === "done") { location.reload(); return; }
      const state = page.querySelector(".state");
      state.dataset.state = word;
      state.textContent = text;
      continue;
    }
    const cell = page.querySelector(`[data-frame="${frame.frame}"]`);
    if (!cell) continue;
    cell.dataset.state = word;
    cell.querySelector("progress").value = share;
    cell.querySelector(".what").textContent = text;
    const picture = word === "done"
      && frame.state.done.find((file) => ["png", "jpg", "jpeg"].includes(file.format));
    if (picture && !cell.querySelector("img")) {
      const image = document.createElement("img");
      image.alt = `Frame ${frame.frame}`;
      image.src = `/api/v1/jobs/${job}/frames/${frame.frame}/files/${picture.format}`;
      cell.querySelector("a").prepend(image);
    }
  }
  if (more.includes(job) && page.dataset.page === "job") { refresh(job); }
}

// Reads the page's frames again, where more changed than an event lists.
async function refresh(job) {
  const { from, most } = document.getElementById("frames").dataset;
  const answer = await fetch(`/api/v1/jobs/${job}/frames?from=${from}&most=${most}`);
  if (!answer.ok) return;
  const frames = (await answer.json()).map((frame) => ({ job, frame }));
  onFrames({ frames, more: [] });
}

function onNodes({ nodes, gone }) {
  for (const node of nodes) {
    const rows = document.querySelectorAll(`[data-node="${CSS.escape(node.node)}"]`);
    for (const row of rows) {
      if (row === page) { renew(page.dataset); }
      fields(row, {
        state: node.state,
        units: node.units_leased,
        committed: node.units_committed,
        rate: count(node.samples_per_second),
        busy: node.busy === null ? "–" : `${Math.round(node.busy * 100)} %`,
        note: node.note,
      });
    }
    if (document.getElementById("nodes") && rows.length === 0) { unlisted.add(node.node); }
  }
  for (const id of gone) {
    document.querySelector(`tr[data-node="${CSS.escape(id)}"]`)?.classList.add("gone");
  }
  offer();
}

function onHello({ resumed }) {
  // What happened while nobody listened is read with the page.
  if (greeted && !resumed) { location.reload(); }
  greeted = true;
}

function onState(state) {
  link.hidden = state === "open";
  link.textContent = state === "closed" ? "signed out, or the farm is gone" : "connecting …";
}

const handlers = { jobs: onJobs, frames: onFrames, nodes: onNodes, hello: onHello, state: onState };
follow((kind, data) => handlers[kind]?.(data));

function ago(secs) {
  if (secs < 120) return `${secs} s ago`;
  if (secs < 7200) return `${Math.floor(secs / 60)} min ago`;
  if (secs < 172800) return `${Math.floor(secs / 3600)} h ago`;
  return `${Math.floor(secs / 86400)} days ago`;
}

function age() {
  const now = Math.floor(Date.now() / 1000);
  for (const time of document.querySelectorAll("time[data-at]")) {
    const at = Number(time.dataset.at);
    time.textContent = ago(Math.max(now - at, 0));
    time.title = new Date(at * 1000).toLocaleString();
  }
}
age();
setInterval(age, 30_000);

// Ticked jobs, and a question before what cannot be undone.
const boxes = () => [...document.querySelectorAll('input[name="job"][type="checkbox"]')];
const ticked = document.getElementById("ticked");
function tick() {
  const number = boxes().filter((box) => box.checked).length;
  ticked.textContent = number ? `${number} ticked` : "Tick jobs to change them.";
}
document.getElementById("tick-all")?.addEventListener("change", (event) => {
  for (const box of boxes()) { box.checked = event.target.checked; }
  tick();
});
if (ticked) { document.addEventListener("change", tick); }

const questions = {
  cancel: "Cancel? Finished frames are kept.",
  forget: "Forget, and delete the frames?",
  leave: "Drain the node and let it end?",
  remove: "Remove for good?",
  revoke: "Revoke this token?",
  deny: "Shut this identity out?",
};
for (const form of document.querySelectorAll("form[data-confirm]")) {
  form.addEventListener("submit", (event) => {
    const question = questions[event.submitter?.value];
    if (question && !window.confirm(question)) { event.preventDefault(); }
  });
}
