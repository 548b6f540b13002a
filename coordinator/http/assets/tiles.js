// Live tiles of a frame that is rendered: reads their stream, and merges the means of a tile's
// samples. Values are linear light, as in the frame's own file.
import { halfFloat } from "./exr.js";

const HEAD = 0;
const TILE = 1;
const END = 3;
// Longer than any message of the stream.
const LONGEST = 64 * 1024;

// All half floats. What is no number is no light.
const HALVES = Float32Array.from({ length: 65536 }, (_, bits) => {
  const value = halfFloat(bits);
  return Number.isFinite(value) ? value : 0;
});

// The picture so far.
export class LivePicture {
  constructor(width, height) {
    if (width * height > 2 ** 28) throw new Error("the picture is too large here");
    this.width = width;
    this.height = height;
    const plane = () => new Float32Array(width * height);
    this.planes = { R: plane(), G: plane(), B: plane() };
    // What is there of each tile: its place in the picture, and its number of samples.
    this.tiles = new Map();
    this.seen = new Set();
  }

  // Adds the mean of some samples of a tile. Returns where the picture has changed; null for what
  // was there before, or is outside.
  add(view) {
    const [unit, left, top, width, height, first, count, step] = [0, 1, 2, 3, 4, 5, 6, 7].map(
      (at) => (at === 1 || at === 2 ? view.getInt32(at * 4, true) : view.getUint32(at * 4, true)));
    const name = `${unit}/${first}`;
    const across = Math.ceil(width / step);
    if (this.seen.has(name) || count === 0) return null;
    if (view.byteLength !== 32 + across * Math.ceil(height / step) * 6) return null;
    this.seen.add(name);
    const place = {
      left: Math.max(left, 0),
      top: Math.max(top, 0),
      right: Math.min(left + width, this.width),
      bottom: Math.min(top + height, this.height),
    };
    if (place.left >= place.right || place.top >= place.bottom) return null;
    const key = `${left},${top}`;
    const before = this.tiles.get(key)?.samples ?? 0;
    const share = count / (before + count);
    this.tiles.set(key, { ...place, samples: before + count });
    const planes = [this.planes.R, this.planes.G, this.planes.B];
    for (let y = place.top; y < place.bottom; y += 1) {
      const row = Math.floor((y - top) / step) * across;
      for (let x = place.left; x < place.right; x += 1) {
        const from = 32 + (row + Math.floor((x - left) / step)) * 6;
        const to = y * this.width + x;
        for (let channel = 0; channel < 3; channel += 1) {
          const value = HALVES[view.getUint16(from + 2 * channel, true)];
          planes[channel][to] += (value - planes[channel][to]) * share;
        }
      }
    }
    return place;
  }
}

// Calls `told` with each message of a stream of bytes: a length, and as many bytes.
async function messages(body, told) {
  const reader = body.getReader();
  let waiting = new Uint8Array(0);
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const all = new Uint8Array(waiting.length + value.length);
    all.set(waiting);
    all.set(value, waiting.length);
    const view = new DataView(all.buffer);
    let at = 0;
    while (at + 4 <= all.length) {
      const length = view.getUint32(at, true);
      if (length < 4 || length > LONGEST) throw new Error("the stream is damaged");
      if (at + 4 + length > all.length) break;
      told(view.getUint32(at + 4, true), new DataView(all.buffer, at + 8, length - 4));
      at += 4 + length;
    }
    waiting = all.slice(at);
  }
}

// Follows the live tiles at an address. `begun(width, height, tiles)` is called first, `came(view)`
// with each tile. Returns whether no more will come; if not, the connection was lost.
export async function follow(address, { begun, came }, signal) {
  const answer = await fetch(address, { signal });
  if (!answer.ok) {
    const problem = await answer.json().catch(() => ({}));
    // Too many of them are open, perhaps. Everything else stays as it is.
    if (answer.status === 503 || answer.status === 429) return false;
    throw new Error(problem.detail ?? `the farm says ${answer.status}`);
  }
  let isOver = false;
  await messages(answer.body, (kind, view) => {
    if (kind === HEAD) begun(view.getUint32(0, true), view.getUint32(4, true));
    if (kind === TILE) came(view);
    if (kind === END) isOver = true;
  });
  return isOver;
}
