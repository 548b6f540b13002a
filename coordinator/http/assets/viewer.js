// Shows a frame's linear pixels: of its file, or of live tiles while it is rendered. Exposure, tone
// map and layer are turned here, and nothing is asked of the farm again.
import { checked } from "./ask.js";
import { layers, read } from "./exr.js";
import { LivePicture, follow } from "./tiles.js";
import { encoder, ready } from "./tone.js";

const viewer = document.getElementById("viewer");
const part = (id) => document.getElementById(id);

// Values that are no light are shown without exposure and tone map, over their own range.
const LIGHT = /^(picture|beauty|albedo|emission|.*(direct|indirect|diffuse|specular|light).*)$/;
// Wait before a lost stream is asked for again.
const AGAIN_MILLIS = 2000;
// Readers of the screen hear that often how far the picture is.
const TOLD_EVERY_MILLIS = 10_000;

let picture = null;
// What the picture is compared with.
let other = null;
let found = [];
let marked = [0, 0];

function chosen() {
  return found[part("layer")?.selectedIndex ?? 0] ?? found[0];
}

function rangeOf(planes) {
  let [least, most] = [Infinity, -Infinity];
  for (const plane of planes) {
    for (const value of plane) {
      if (!Number.isFinite(value)) continue;
      if (value < least) least = value;
      if (value > most) most = value;
    }
  }
  return most > least ? [least, most] : [0, 1];
}

// Planes of the chosen layer. The other picture may lack it.
function planesOf(source, layer) {
  return layer.channels.map((name) => source.planes[name] ?? source.planes[name.at(-1)]
    ?? new Float32Array(source.width * source.height));
}

// Distances between the pixels of the two pictures.
function difference(layer) {
  const theirs = planesOf(other, layer);
  return planesOf(picture, layer).map((plane, at) => plane.map(
    (value, pixel) => Math.abs(value - theirs[at][pixel])));
}

// Draws a part of the picture, or of the one that it is compared with.
function paint(context, { left, top, right, bottom }, source = picture) {
  if (right <= left) return;
  const image = context.createImageData(right - left, bottom - top);
  const layer = chosen();
  const isDifference = other && part("how").value === "difference";
  const planes = isDifference ? difference(layer) : planesOf(source, layer);
  const [r, g, b] = planes.length === 3 ? planes : [planes[0], planes[0], planes[0]];
  const gain = 2 ** Number(part("exposure").value);
  const encode = encoder(part("tone").value);
  const isLight = planes.length === 3 && LIGHT.test(layer.name);
  const [least, most] = isLight ? [0, 1] : rangeOf(planes);
  const scale = 255 / (most - least);
  const rgb = [0, 0, 0];
  let to = 0;
  for (let y = top; y < bottom; y += 1) {
    const end = y * picture.width + right;
    for (let at = y * picture.width + left; at < end; at += 1, to += 4) {
      if (isLight) {
        rgb[0] = r[at] * gain;
        rgb[1] = g[at] * gain;
        rgb[2] = b[at] * gain;
        encode(rgb);
        image.data[to] = rgb[0];
        image.data[to + 1] = rgb[1];
        image.data[to + 2] = rgb[2];
      } else {
        image.data[to] = (r[at] - least) * scale;
        image.data[to + 1] = (g[at] - least) * scale;
        image.data[to + 2] = (b[at] - least) * scale;
      }
      image.data[to + 3] = 255;
    }
  }
  context.putImageData(image, left, top);
}

// All that there is of the picture: the whole, or tiles.
function places() {
  if (picture.tiles) return picture.tiles.values();
  return [{ left: 0, top: 0, right: picture.width, bottom: picture.height }];
}

function draw() {
  if (!picture) return;
  const canvas = part("canvas");
  const context = canvas.getContext("2d");
  for (const place of places()) paint(context, place);
  if (other && part("how").value === "split") {
    const { width, height } = picture;
    const left = Math.round((Number(part("split").value) / 100) * width);
    paint(context, { left, top: 0, right: width, bottom: height }, other);
  }
  if (!picture.tiles) canvas.dataset.drawn = chosen().name;
  canvas.dataset.tone = part("tone").value;
  zoom();
}

function zoom() {
  const value = part("zoom").value;
  const canvas = part("canvas");
  part("stage").dataset.zoom = value;
  canvas.style.width = value === "fit" ? "" : `${canvas.width * Number(value)}px`;
}

function say(x, y) {
  if (!picture) return;
  marked = [
    Math.min(Math.max(x, 0), picture.width - 1),
    Math.min(Math.max(y, 0), picture.height - 1),
  ];
  const at = marked[1] * picture.width + marked[0];
  const values = chosen().channels.map((name) => {
    const short = name.slice(name.lastIndexOf(".") + 1);
    return `${short} ${picture.planes[name][at].toPrecision(5)}`;
  });
  part("under").textContent = `x ${marked[0]}, y ${marked[1]}: ${values.join("  ")}`;
}

function pointed(event) {
  const canvas = part("canvas");
  const box = canvas.getBoundingClientRect();
  const x = Math.floor(((event.clientX - box.left) / box.width) * canvas.width);
  const y = Math.floor(((event.clientY - box.top) / box.height) * canvas.height);
  if (x >= 0 && y >= 0 && x < canvas.width && y < canvas.height) say(x, y);
}

function moved(event) {
  const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  const step = steps[event.key];
  if (!step) return;
  event.preventDefault();
  const by = event.shiftKey ? 10 : 1;
  say(marked[0] + step[0] * by, marked[1] + step[1] * by);
}

// The page is loaded again when the frame is finished: how it was shown stays.
const SHOWN = ["exposure", "tone", "zoom"];
function keep() {
  const values = SHOWN.map((id) => part(id).value);
  sessionStorage.setItem(`shown ${location.pathname}`, JSON.stringify(values));
}

function restore() {
  const kept = JSON.parse(sessionStorage.getItem(`shown ${location.pathname}`) ?? "[]");
  SHOWN.forEach((id, at) => { if (kept[at] !== undefined) part(id).value = kept[at]; });
  part("exposure-is").textContent = part("exposure").value;
}

function show(what) {
  picture = what;
  part("canvas").width = picture.width;
  part("canvas").height = picture.height;
}

async function load() {
  const answer = await checked(await fetch(viewer.dataset.source));
  const whole = await read(await answer.arrayBuffer());
  found = layers(whole.planes);
  if (found.length === 0) throw new Error("the file has no layer that can be shown");
  part("layer").replaceChildren(...found.map(({ name }) => new Option(name, name)));
  const first = found.findIndex(({ name }) => name === "picture");
  part("layer").selectedIndex = Math.max(first, 0);
  show(whole);
  draw();
  say(picture.width >> 1, picture.height >> 1);
}

// Loads the frame that this one is compared with: its number, or JOB/NUMBER.
async function compare() {
  const text = part("with").value.trim();
  other = null;
  part("compared").hidden = !text;
  part("canvas").dataset.compared = "";
  if (text) {
    const [, named, frame] = text.match(/^(?:(.*)\/)?(\d+)$/) ?? [];
    if (!frame) throw new Error("give a frame's number, or JOB/NUMBER");
    const job = named ?? viewer.closest("[data-job]").dataset.job;
    const path = `/api/v1/jobs/${encodeURIComponent(job)}/frames/${frame}/files/exr`;
    const answer = await checked(await fetch(path));
    const loaded = await read(await answer.arrayBuffer());
    if (loaded.width !== picture.width || loaded.height !== picture.height) {
      throw new Error(`that frame has ${loaded.width} × ${loaded.height} pixels`);
    }
    other = loaded;
    part("canvas").dataset.compared = text;
  }
  draw();
}

function wrong(error) {
  part("under").textContent = error.message;
}

// Tiles that have come and are not drawn yet.
let fresh = [];
let toldAt = 0;

function drawFresh() {
  const context = part("canvas").getContext("2d");
  for (const place of fresh) paint(context, place);
  fresh = [];
  const [count, all] = [picture.tiles.size, Number(part("arrived").dataset.tiles)];
  part("canvas").dataset.tiles = count;
  const text = `${count} of ${all} tiles`;
  const later = "; those from before you came appear when the frame is finished";
  const others = count < all ? later : "";
  part("arrived").textContent = text + others;
  if (performance.now() - toldAt > TOLD_EVERY_MILLIS) {
    toldAt = performance.now();
    part("told").textContent = text;
  }
}

const onTiles = {
  begun(width, height) {
    if (picture) return;
    found = [{ name: "picture", channels: ["R", "G", "B"] }];
    show(new LivePicture(width, height));
    zoom();
  },
  came(view) {
    const place = picture.add(view);
    if (!place) return;
    if (fresh.length === 0) requestAnimationFrame(drawFresh);
    fresh.push(place);
  },
};

// Resolves when somebody looks at the page.
function seen() {
  if (document.visibilityState === "visible") return Promise.resolve();
  return new Promise((resolve) => {
    document.addEventListener("visibilitychange", resolve, { once: true });
  }).then(seen);
}

// Follows the live tiles while somebody looks at the page, until there are no more.
async function watch() {
  for (;;) {
    await seen();
    const stop = new AbortController();
    const hide = () => { if (document.visibilityState !== "visible") stop.abort(); };
    document.addEventListener("visibilitychange", hide);
    try {
      if (await follow(viewer.dataset.live, onTiles, stop.signal)) break;
    } catch (error) {
      // A connection that is lost, or was given up, is a TypeError or an AbortError.
      if (!(error instanceof TypeError) && error.name !== "AbortError") throw error;
    } finally {
      document.removeEventListener("visibilitychange", hide);
    }
    await new Promise((resolve) => { setTimeout(resolve, AGAIN_MILLIS); });
  }
  // If the frame is finished, its page has its file now.
  const page = await (await fetch(location.href)).text();
  if (page.includes("data-source=")) location.reload();
  else part("arrived").textContent += ". No more of them will come.";
}

if (viewer) {
  restore();
  // A map that was chosen before may need its table.
  ready(part("tone").value).then(draw, wrong);
  part("layer")?.addEventListener("change", () => { draw(); say(...marked); });
  part("tone").addEventListener("change", () => {
    keep();
    ready(part("tone").value).then(draw, wrong);
  });
  part("with")?.addEventListener("change", () => compare().catch(wrong));
  part("split")?.addEventListener("input", () => requestAnimationFrame(draw));
  part("how")?.addEventListener("change", draw);
  part("zoom").addEventListener("change", () => { keep(); zoom(); });
  part("exposure").addEventListener("input", () => {
    part("exposure-is").textContent = part("exposure").value;
    keep();
    requestAnimationFrame(draw);
  });
  part("canvas").addEventListener("pointermove", pointed);
  part("stage").addEventListener("keydown", moved);
  (viewer.dataset.live ? watch() : load()).catch((error) => {
    part("under").textContent = `The picture cannot be shown: ${error.message}`;
  });
}
