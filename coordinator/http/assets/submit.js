// The page of a new job: files are hashed and brought to the farm, the scene is looked at, its
// first frame is tried small, and the job is submitted.
import { choose, dropped } from "./files.js";
import { follow } from "./events.js";
import { ask } from "./ask.js";
import { hash, upload } from "./upload.js";

const part = (id) => document.getElementById(id);
const form = part("job");
const field = (name) => form.elements.namedItem(name);

// Longer edge of a preview in pixels, and its samples.
const PREVIEW_EDGE = 480;
const PREVIEW_SPP = 16;

// The files of the scene as a job lists them, the scene file first.
let assets = [];
let environment = null;
let deviceBytes = 0;
let report = null;
// Counts drops, so that what an earlier one still does is let be.
let turn = 0;
let preview = null;

function wrong(error) {
  const place = part("problem");
  place.hidden = !error;
  place.textContent = error?.message ?? "";
}

function mebibytes(count) {
  return `${(count / 2 ** 20).toFixed(1)} MiB`;
}

async function take(files) {
  turn += 1;
  wrong(null);
  form.hidden = true;
  part("about").hidden = true;
  const { scenes, map, rest } = choose(files);
  part("which").hidden = scenes.length < 2;
  if (scenes.length === 0) {
    wrong(new Error("There is no .glb or .gltf among these files."));
    return;
  }
  part("scene").replaceChildren(...scenes.map(({ path }) => new Option(path, path)));
  part("scene").onchange = () => {
    const path = part("scene").value;
    turn += 1;
    bring([...scenes].sort((a, b) => (b.path === path) - (a.path === path)), map, rest);
  };
  await bring(scenes, map, rest);
}

// Brings the files of one scene to the farm, and looks at it.
async function bring([main], map, rest) {
  const mine = turn;
  const all = main.path.toLowerCase().endsWith(".glb") && !map
    ? [main] : [main, ...rest, ...(map ? [map] : [])];
  const total = all.reduce((sum, { file }) => sum + 2 * file.size, 0);
  let before = 0;
  const told = (words) => (now) => {
    if (turn !== mine) return;
    part("sent").value = (before + now) / Math.max(total, 1);
    part("sending").textContent = `${words}: ${mebibytes(now)}`;
  };
  part("sent").hidden = false;
  try {
    const found = [];
    for (const { file, path } of all) {
      const name = await hash(file, told(`reading ${path}`));
      before += file.size;
      found.push({ path, hash: name, length: file.size });
      await upload(file, name, told(`sending ${path}`));
      before += file.size;
      if (turn !== mine) return;
    }
    assets = found;
    environment = map ? { map: { path: map.path } } : null;
    field("environment").replaceChildren(
      ...(map ? [new Option(map.path, "map")] : []), new Option("the scene's own", "auto"),
      new Option("white", "white"), new Option("none", "none"));
    part("sending").textContent = `${found.length} file${found.length > 1 ? "s" : ""}, `
      + `${mebibytes(total / 2)}: here. The scene is being read.`;
    const seen = await ask("POST", "/inspect", job({ name: "look", spp: 1 }));
    if (turn !== mine) return;
    part("sending").textContent = `${found.length} file${found.length > 1 ? "s" : ""}, `
      + `${mebibytes(total / 2)}.`;
    show(seen);
  } catch (error) {
    if (turn === mine) {
      part("sending").textContent = "";
      wrong(error);
    }
  }
  part("sent").hidden = true;
}

function show(seen) {
  report = seen.report;
  deviceBytes = seen.device_bytes;
  part("about").hidden = false;
  part("report").replaceChildren(...seen.lines.flatMap(({ name, value }) => {
    const [term, text] = [document.createElement("dt"), document.createElement("dd")];
    term.textContent = name;
    text.textContent = value;
    if (name === "warning") text.className = "warning";
    return [term, text];
  }));
  const stem = assets[0].path.replace(/^.*\//, "").replace(/\.[^.]*$/, "");
  field("name").value = stem.replace(/[^A-Za-z0-9._-]+/g, "_").replace(/^[.-]+/, "") || "job";
  field("camera").replaceChildren(
    new Option(report.cameras.length ? "the scene's first" : "chosen to show everything", ""),
    ...report.cameras.map(({ index, name }) => new Option(`#${index} ${name}`, index)));
  sized();
  const film = report.animations.find(({ played }) => played);
  part("film").hidden = !film;
  if (film) {
    const rate = film.rates[0] ?? 24;
    field("fps").value = Math.round(rate * 1000) / 1000;
    field("frames").value = `0-${Math.max(Math.ceil(film.length_secs * rate - 0.02), 0)}`;
  } else {
    field("frames").value = "0";
  }
  form.hidden = false;
  part("about-title").focus();
}

// A frame has the shape that its camera says.
function sized() {
  const chosen = report.cameras[Number(field("camera").value || 0)];
  const aspect = chosen?.aspect ?? 16 / 9;
  field("width").value = aspect >= 1 ? 1920 : Math.max(Math.round(1920 * aspect), 1);
  field("height").value = aspect >= 1 ? Math.max(Math.round(1920 / aspect), 1) : 1920;
}

// The job of the form; `other` is what is not the form's.
function job(other = {}) {
  const camera = field("camera").value;
  const formats = ["exr", "png"].filter((name) => field(name).checked);
  const number = (name, without) => Number(field(name).value || without);
  const render = {
    scene: assets[0].path,
    files: assets,
    width: number("width", 64),
    height: number("height", 64),
    frames: field("frames").value.trim() || "0",
    fps: number("fps", 24),
    spp: number("spp", 1),
    denoise: field("denoise").checked,
    formats: formats.length ? formats : ["exr"],
    tone_map: field("tone_map").value,
    exposure: formats.includes("png") ? number("exposure", 0) : 0,
  };
  if (camera !== "") render.camera = { Index: Number(camera) };
  const lights = { map: { Map: environment?.map }, white: { Constant: [1, 1, 1] }, none: "None" };
  render.environment = lights[field("environment").value] ?? "Auto";
  const { name = field("name").value.trim(), ...changed } = other;
  const spec = { name, device_bytes: deviceBytes, render: { ...render, ...changed } };
  if (field("priority").value !== "") spec.priority = number("priority", 50);
  if (field("pool").value.trim()) spec.pool = field("pool").value.trim();
  const begins = Date.parse(field("not_before").value);
  if (begins > 0) spec.not_before = Math.floor(begins / 1000);
  return spec;
}

// Ends the preview that is there, and forgets it: nobody else needs it.
async function dropPreview() {
  const old = preview;
  preview = null;
  if (!old) return;
  for (const change of ["cancel", "forget"]) {
    await ask("POST", "/jobs/change", { change, jobs: [old] }).catch(() => null);
  }
}

async function look() {
  wrong(null);
  await dropPreview();
  const [width, height] = [Number(field("width").value), Number(field("height").value)];
  const scale = Math.min(PREVIEW_EDGE / Math.max(width, height, 1), 1);
  const edge = (pixels) => Math.max(Math.round(pixels * scale), 1);
  const id = crypto.randomUUID();
  const small = job({
    name: `${field("name").value.trim().slice(0, 100)}-preview`,
    width: edge(width),
    height: edge(height),
    frames: field("frames").value.split(/[,x-]/)[0].trim() || "0",
    spp: PREVIEW_SPP,
    denoise: true,
    formats: ["png"],
    exposure: Number(field("exposure").value || 0),
  });
  small.priority = 100;
  delete small.not_before;
  part("preview").hidden = false;
  part("preview-picture").hidden = true;
  part("preview-state").textContent = "Sent. Waiting for a node.";
  try {
    await ask("PUT", `/jobs/${id}`, small);
    preview = id;
  } catch (error) {
    part("preview").hidden = true;
    wrong(error);
  }
}

function onFrames({ frames }) {
  for (const { job: of, frame } of frames) {
    if (of !== preview) continue;
    const { state } = frame;
    if (state.done) {
      part("preview-picture").src = `/api/v1/jobs/${of}/frames/${frame.frame}/files/png`;
      part("preview-picture").hidden = false;
      part("preview-state").textContent = `${PREVIEW_SPP} samples per pixel, denoised.`;
    } else if (state.open) {
      const { committed, units } = state.open;
      part("preview-state").textContent = `${committed} of ${units} units.`;
    }
  }
}

function onJobs({ jobs }) {
  for (const { job: id, state, note } of jobs) {
    if (id !== preview || part("preview-picture").hidden === false) continue;
    if (state === "failed") part("preview-state").textContent = `It failed: ${note}`;
    else if (note) part("preview-state").textContent = note;
  }
}

async function submit(event) {
  event.preventDefault();
  wrong(null);
  if (!field("exr").checked && !field("png").checked) {
    wrong(new Error("Choose EXR, PNG or both."));
    return;
  }
  part("submit").disabled = true;
  try {
    // The id is made here, so that a second press or a lost answer makes no second job.
    form.dataset.id ||= crypto.randomUUID();
    const { job: id } = await ask("PUT", `/jobs/${form.dataset.id}`, job());
    await dropPreview();
    location.assign(`/jobs/${id}`);
  } catch (error) {
    if (error.status !== undefined) delete form.dataset.id;
    wrong(error);
  }
  part("submit").disabled = false;
}

for (const name of ["files", "folder"]) {
  part(name).addEventListener("change", (event) => {
    const files = [...event.target.files];
    if (files.length) {
      take(files.map((file) => ({ file, path: file.webkitRelativePath || file.name })));
    }
  });
}
const place = document.documentElement;
for (const kind of ["dragenter", "dragover"]) {
  place.addEventListener(kind, (event) => {
    event.preventDefault();
    part("drop").classList.add("over");
  });
}
place.addEventListener("dragleave", (event) => {
  if (!event.relatedTarget) part("drop").classList.remove("over");
});
place.addEventListener("drop", (event) => {
  event.preventDefault();
  part("drop").classList.remove("over");
  dropped(event.dataTransfer).then((files) => files.length && take(files), wrong);
});
field("camera").addEventListener("change", sized);
part("try").addEventListener("click", () => { if (form.reportValidity()) look(); });
form.addEventListener("submit", submit);
follow((kind, data) => ({ frames: onFrames, jobs: onJobs })[kind]?.(data));
