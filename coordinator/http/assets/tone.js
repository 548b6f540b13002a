// From linear light to bytes of the screen, as the farm's own PNG files have them
// (finishing/src/tone). AgX and Filmic are tables, which are fetched when they are first chosen.

// Transfer function of sRGB (IEC 61966-2-1), for values that are in a table of 4,096 steps.
const STEPS = 4096;
const CURVE = new Uint8ClampedArray(STEPS + 1);
for (let step = 0; step <= STEPS; step += 1) CURVE[step] = Math.round(srgb(step / STEPS) * 255);

function srgb(linear) {
  return linear <= 0.0031308 ? 12.92 * linear : 1.055 * linear ** (1 / 2.4) - 0.055;
}

// The byte of a linear value. Dark values have steps of their own, since the curve is steep there.
function byte(linear) {
  if (!(linear > 0)) return 0;
  if (linear >= 1) return 255;
  if (linear < 0.02) return Math.round(srgb(linear) * 255);
  return CURVE[Math.round(linear * STEPS)];
}

function standard(rgb) {
  for (let at = 0; at < 3; at += 1) rgb[at] = byte(rgb[at]);
}

// Khronos PBR Neutral (2024).
function neutral(rgb) {
  const f90 = 0.04;
  const start = 0.8 - f90;
  const darkest = Math.min(rgb[0], rgb[1], rgb[2]);
  const offset = darkest < 2 * f90 ? darkest - (darkest * darkest) / (4 * f90) : f90;
  for (let at = 0; at < 3; at += 1) rgb[at] -= offset;
  const peak = Math.max(rgb[0], rgb[1], rgb[2]);
  if (peak >= start) {
    const room = 1 - start;
    const compressed = 1 - (room * room) / (peak + room - start);
    const white = 1 - 1 / (0.15 * (peak - compressed) + 1);
    for (let at = 0; at < 3; at += 1) {
      rgb[at] = ((rgb[at] * compressed) / peak) * (1 - white) + compressed * white;
    }
  }
  standard(rgb);
}

const LEAST = 2 ** -126;

// A tone map by its table: matrix, logarithm, lattice (interpolated in tetrahedra), curve.
function tabled(floats) {
  const [edge, steps, first, last] = floats;
  const space = floats.subarray(4, 13);
  const curve = Uint8ClampedArray.from(
    floats.subarray(13, 14 + steps), (value) => Math.round(value * 255));
  const colors = floats.subarray(14 + steps);
  const strides = [3, 3 * edge, 3 * edge * edge];
  const place = [0, 0, 0];
  const sum = [0, 0, 0];
  const axes = [0, 1, 2];
  const add = (corner, weight) => {
    for (let at = 0; at < 3; at += 1) sum[at] += colors[corner + at] * weight;
  };
  return (rgb) => {
    let corner = 0;
    for (let axis = 0; axis < 3; axis += 1) {
      const row = 3 * axis;
      const value = space[row] * rgb[0] + space[row + 1] * rgb[1] + space[row + 2] * rgb[2];
      const log = (Math.log2(Math.max(value, LEAST)) - first) / (last - first);
      const at = Math.min(Math.max(log, 0), 1) * (edge - 1) || 0;
      const cell = Math.min(Math.floor(at), edge - 2);
      corner += cell * strides[axis];
      place[axis] = at - cell;
    }
    axes.sort((a, b) => place[b] - place[a]);
    sum.fill(0);
    add(corner, 1 - place[axes[0]]);
    for (let step = 0; step < 3; step += 1) {
      corner += strides[axes[step]];
      add(corner, place[axes[step]] - (step < 2 ? place[axes[step + 1]] : 0));
    }
    for (let at = 0; at < 3; at += 1) {
      rgb[at] = curve[Math.round(Math.min(Math.max(sum[at], 0), 1) * steps)];
    }
  };
}

const encoders = { standard, "pbr-neutral": neutral };

// Gets a tone map ready. Throws where its table does not come.
export async function ready(name) {
  if (encoders[name]) return;
  const answer = await fetch(new URL(`${name}.tone`, import.meta.url));
  if (!answer.ok) throw new Error(`the tone map does not come (${answer.status})`);
  encoders[name] = tabled(new Float32Array(await answer.arrayBuffer()));
}

// The function that turns a linear colour into bytes, in place. The map is ready.
export function encoder(name) {
  return encoders[name] ?? standard;
}
