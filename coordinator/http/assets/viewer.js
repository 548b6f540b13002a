// Shows a frame's linear pixels: the file itself is read, and exposure, tone map and layer are
// turned here. Nothing is asked of the farm again.
import { layers, read } from "./exr.js";
import { encoder, ready } from "./tone.js";

const viewer = document.getElementById("viewer");
const part = (id) => document.getElementById(id);

// Values that are no light are shown without exposure and tone map, over their own range.
const LIGHT = /^(picture|beauty|albedo|emission|.*(direct|indirect|diffuse|specular|light).*)$/;

let picture = null;
let found = [];
let marked = [0, 0];

function chosen() {
  return found[part("layer").selectedIndex] ?? found[0];
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

function draw() {
  if (!picture) return;
  const { width, height } = picture;
  const canvas = part("canvas");
  const context = canvas.getContext("2d");
  const image = context.createImageData(width, height);
  const layer = chosen();
  const planes = layer.channels.map((name) => picture.planes[name]);
  const [r, g, b] = planes.length === 3 ? planes : [planes[0], planes[0], planes[0]];
  const gain = 2 ** Number(part("exposure").value);
  const encode = encoder(part("tone").value);
  const isLight = planes.length === 3 && LIGHT.test(layer.name);
  const [least, most] = isLight ? [0, 1] : rangeOf(planes);
  const scale = 255 / (most - least);
  const rgb = [0, 0, 0];
  for (let at = 0, to = 0; at < width * height; at += 1, to += 4) {
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
  context.putImageData(image, 0, 0);
  canvas.dataset.drawn = layer.name;
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

async function load() {
  const answer = await fetch(viewer.dataset.source);
  if (!answer.ok) throw new Error(`the file does not come (${answer.status})`);
  picture = await read(await answer.arrayBuffer());
  found = layers(picture.planes);
  if (found.length === 0) throw new Error("the file has no layer that can be shown");
  part("layer").replaceChildren(...found.map(({ name }) => new Option(name, name)));
  const first = found.findIndex(({ name }) => name === "picture");
  part("layer").selectedIndex = Math.max(first, 0);
  part("canvas").width = picture.width;
  part("canvas").height = picture.height;
  draw();
  say(picture.width >> 1, picture.height >> 1);
}

if (viewer) {
  part("layer").addEventListener("change", () => { draw(); say(...marked); });
  part("tone").addEventListener("change", () => {
    ready(part("tone").value).then(draw).catch((error) => {
      part("under").textContent = error.message;
    });
  });
  part("zoom").addEventListener("change", zoom);
  part("exposure").addEventListener("input", () => {
    part("exposure-is").textContent = part("exposure").value;
    requestAnimationFrame(draw);
  });
  part("canvas").addEventListener("pointermove", pointed);
  part("stage").addEventListener("keydown", moved);
  load().catch((error) => {
    part("under").textContent = `The picture cannot be shown: ${error.message}`;
  });
}
