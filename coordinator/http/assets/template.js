// The page of templates: parameters become fields, files are brought to the farm, the jobs are
// shown, and submitted.
import { ask } from "./ask.js";
import { hash, upload } from "./upload.js";

const part = (id) => document.getElementById(id);
const form = part("values");
const field = (name) => form.elements.namedItem(name);
// Jobs that are shown of a plan.
const SHOWN = 200;

// What is submitted from: the text of a file, or the name of a preset.
let source = null;
let outline = null;
// Files that were chosen, by their paths beside the template, and what is known of their bytes.
let chosen = new Map();
const known = new Map();
let turn = 0;

function wrong(error) {
  const place = part("problem");
  place.hidden = !error;
  place.textContent = error?.message ?? "";
  if (error) place.scrollIntoView({ block: "nearest" });
}

// One question about templates at a time: the farm takes no second one of the same person.
let last = Promise.resolve();
function inTurn(what) {
  last = last.then(what, what);
  return last;
}

function size(count) {
  const mebibytes = count / 2 ** 20;
  return mebibytes < 1 ? `${Math.ceil(count / 2 ** 10)} KiB` : `${mebibytes.toFixed(1)} MiB`;
}

// A field for a parameter.
function input(of) {
  const name = `set:${of.name}`;
  if (of.choices.length && !of.list) {
    const select = document.createElement("select");
    select.append(...of.choices.map((value) => new Option(value, value)));
    select.value = of.default ?? of.choices[0];
    return Object.assign(select, { name });
  }
  const made = Object.assign(document.createElement("input"), { name });
  if (of.kind === "switch" && !of.list) {
    made.type = "checkbox";
    made.checked = of.default === "true";
    return made;
  }
  if ((of.kind === "integer" || of.kind === "number") && !of.list) {
    made.type = "number";
    made.step = of.kind === "integer" ? "1" : "any";
    if (of.min !== null) made.min = of.min;
    if (of.max !== null) made.max = of.max;
  }
  made.value = of.default ?? "";
  made.required = of.default === null;
  if (of.kind === "file") {
    made.placeholder = "path beside the template";
    made.setAttribute("list", "chosen");
  }
  return made;
}

function label(of) {
  const made = document.createElement("label");
  const field = input(of);
  const words = of.help ? `${of.name}: ${of.help} ` : `${of.name} `;
  made.append(...(field.type === "checkbox" ? [field, ` ${words}`] : [words, field]));
  return made;
}

// The values that are set: those that differ from their defaults.
function values() {
  const set = {};
  for (const of of outline?.parameters ?? []) {
    const made = field(`set:${of.name}`);
    const value = made.type === "checkbox" ? String(made.checked) : made.value.trim();
    const before = made.type === "checkbox" ? of.default ?? "false" : of.default;
    if (value !== (before ?? "") || (of.default === null && value !== "")) set[of.name] = value;
  }
  return set;
}

function body(files = []) {
  const name = field("name").value.trim();
  return { ...source, set: values(), files, ...(name ? { name } : {}) };
}

async function begin(from) {
  turn += 1;
  const mine = turn;
  wrong(null);
  source = from;
  form.hidden = true;
  part("plan").hidden = true;
  delete form.dataset.batch;
  if (!from) return;
  try {
    const seen = await inTurn(() => ask("POST", "/templates/outline", { ...from }));
    if (turn !== mine) return;
    outline = seen;
    part("about").textContent = outline.name;
    part("description").textContent = outline.description;
    part("parameters").replaceChildren(...outline.parameters.map(label));
    form.hidden = false;
    wanted(outline);
    part("about").focus();
  } catch (error) {
    if (turn === mine) wrong(error);
  }
}

// Shows the files that jobs name, which of them were chosen, and what is wrong with the values.
function wanted({ files, problem }) {
  const takes = outline.parameters.some(({ kind }) => kind === "file");
  part("files-wanted").hidden = files.length === 0 && !takes;
  part("missing").textContent = problem ?? "";
  part("wanted").replaceChildren(...files.map((path) => {
    const item = document.createElement("li");
    item.textContent = chosen.has(path) ? `${path}: here` : path;
    return item;
  }));
}

// Paths as they are beside the template: where the named files lie.
function choose(files) {
  const paths = files.map((file) => ({ file, path: file.webkitRelativePath || file.name }));
  const visible = paths.filter(({ path }) => !/(^|\/)\./.test(path));
  // A folder's own name is not a part of what the template says.
  for (const { file, path } of visible) {
    chosen.set(file.webkitRelativePath ? path.slice(path.indexOf("/") + 1) : path, file);
  }
  part("chosen").replaceChildren(...[...chosen.keys()].map((path) => new Option(path, path)));
  // One scene is what a parameter for one file means that names none of the chosen.
  const scenes = [...chosen.keys()].filter((path) => /\.(gltf|glb)$/i.test(path));
  const places = outline.parameters.filter(({ kind, list }) => kind === "file" && !list);
  if (scenes.length === 1 && places.length === 1) {
    const place = field(`set:${places[0].name}`);
    if (!chosen.has(place.value)) [place.value] = scenes;
  }
  look().catch(wrong);
}

// Asks which files are named with the values that are set.
async function look() {
  const seen = await inTurn(() => ask("POST", "/templates/outline", body()));
  wanted(seen);
  return seen;
}

// The files that are sent: those that are named, and what lies beside a scene that names others.
function sent(files) {
  const paths = new Set(files);
  for (const path of files) {
    if (!path.toLowerCase().endsWith(".gltf") && !path.toLowerCase().endsWith(".cu")) continue;
    const folder = path.slice(0, path.lastIndexOf("/") + 1);
    for (const other of chosen.keys()) {
      if (other.startsWith(folder)) paths.add(other);
    }
  }
  return [...paths];
}

// Brings the files to the farm. Resolves to the body of a request with all of it.
async function bring() {
  const seen = await look();
  if (seen.problem) throw new Error(seen.problem);
  const missing = seen.files.filter((path) => !chosen.has(path));
  if (missing.length) {
    part("files-wanted").hidden = false;
    throw new Error(`Choose ${missing.slice(0, 5).join(", ")}${missing.length > 5 ? " …" : ""}.`);
  }
  const paths = sent(seen.files).filter((path) => path !== "");
  const total = paths.reduce((sum, path) => sum + 2 * chosen.get(path).size, 0);
  let before = 0;
  const told = (words) => (now) => {
    part("sent").value = (before + now) / Math.max(total, 1);
    part("sending").textContent = `${words}: ${size(now)}`;
  };
  part("sent").hidden = paths.length === 0;
  const files = [];
  try {
    for (const path of paths) {
      const file = chosen.get(path);
      if (!known.has(file)) known.set(file, await hash(file, told(`reading ${path}`)));
      before += file.size;
      await upload(file, known.get(file), told(`sending ${path}`));
      before += file.size;
      files.push({ path, hash: known.get(file), length: file.size });
    }
  } finally {
    part("sent").hidden = true;
    part("sending").textContent = "";
  }
  return body(files);
}

function cell(kind, text) {
  const made = document.createElement(kind);
  if (kind === "th") made.scope = "row";
  made.textContent = text;
  return made;
}

async function check() {
  wrong(null);
  part("plan").hidden = true;
  const wanted = await bring();
  const plan = await inTurn(() => ask("POST", "/templates/plan", wanted));
  const count = plan.jobs.length;
  const files = `${plan.files} file${plan.files === 1 ? "" : "s"}, ${size(plan.bytes)}`;
  part("sum").textContent = `${count} job${count === 1 ? "" : "s"} with ${files}`
    + `${count > SHOWN ? `; the first ${SHOWN} are shown` : ""}.`;
  part("notes").replaceChildren(...plan.notes.map((note) => cell("li", note)));
  part("jobs").replaceChildren(...plan.jobs.slice(0, SHOWN).map((job) => {
    const row = document.createElement("tr");
    const waits = job.after.slice(0, 3).join(", ")
      + `${job.after.length > 3 ? ` and ${job.after.length - 3} more` : ""}`;
    row.append(cell("th", job.name), cell("td", job.kind), cell("td", job.frames),
      cell("td", waits || "–"));
    return row;
  }));
  part("plan").hidden = false;
  part("plan-title").focus();
}

async function submit() {
  wrong(null);
  const wanted = await bring();
  // The name is made here, so that a second press or a lost answer makes no second batch.
  const random = [...crypto.getRandomValues(new Uint8Array(4))];
  form.dataset.batch ||= `${field("name").value.trim() || outline.name}-`
    + random.map((byte) => byte.toString(16).padStart(2, "0")).join("");
  try {
    const place = `/batches/${encodeURIComponent(form.dataset.batch)}`;
    const { batch } = await inTurn(() => ask("PUT", place, wanted));
    location.assign(`/jobs?batch=${encodeURIComponent(batch)}`);
  } catch (error) {
    if (error.status !== undefined) delete form.dataset.batch;
    throw error;
  }
}

async function publish() {
  wrong(null);
  if (!source.template) throw new Error("It is a preset already.");
  const name = prompt("Name of the preset", outline.name);
  if (!name) return;
  await ask("PUT", `/presets/${encodeURIComponent(name)}`, { template: source.template });
  location.reload();
}

// Does something with all buttons out of reach meanwhile.
async function busy(what) {
  const buttons = [...form.querySelectorAll("button")];
  for (const button of buttons) button.disabled = true;
  try {
    await what();
  } catch (error) {
    wrong(error);
  }
  for (const button of buttons) button.disabled = false;
}

part("preset")?.addEventListener("change", ({ target }) => {
  part("template").value = "";
  begin(target.value ? { preset: target.value } : null);
});
part("template").addEventListener("change", async ({ target }) => {
  if (part("preset")) part("preset").value = "";
  const [file] = target.files;
  if (file) begin({ template: await file.text() });
});
for (const name of ["files", "folder"]) {
  part(name).addEventListener("change", ({ target }) => choose([...target.files]));
}
part("parameters").addEventListener("change", () => {
  delete form.dataset.batch;
  look().catch(wrong);
});
part("check").addEventListener("click", () => { if (form.reportValidity()) busy(check); });
part("publish")?.addEventListener("click", () => busy(publish));
form.addEventListener("submit", (event) => {
  event.preventDefault();
  busy(submit);
});
for (const button of document.querySelectorAll("[data-remove]")) {
  button.addEventListener("click", async () => {
    const name = button.dataset.remove;
    if (!confirm(`Take the preset ${name} away? Jobs that were made of it stay.`)) return;
    try {
      await ask("DELETE", `/presets/${encodeURIComponent(name)}`);
      location.reload();
    } catch (error) {
      wrong(error);
    }
  });
}
