// From linear light to the screen, by the formulas of the farm's own PNG files
// (finishing/src/tone). The look of `agx` and `filmic` is in those files, not here.

// Transfer function of sRGB (IEC 61966-2-1), for values that are in a table of 4,096 steps.
const STEPS = 4096;
const CURVE = new Uint8ClampedArray(STEPS + 1);
for (let step = 0; step <= STEPS; step += 1) {
  const linear = step / STEPS;
  const value = linear <= 0.0031308 ? 12.92 * linear : 1.055 * linear ** (1 / 2.4) - 0.055;
  CURVE[step] = Math.round(value * 255);
}

// The byte of a linear value. Dark values have steps of their own, since the curve is steep there.
export function byte(linear) {
  if (!(linear > 0)) return 0;
  if (linear >= 1) return 255;
  if (linear < 0.02) {
    const value = linear <= 0.0031308 ? 12.92 * linear : 1.055 * linear ** (1 / 2.4) - 0.055;
    return Math.round(value * 255);
  }
  return CURVE[Math.round(linear * STEPS)];
}

// Khronos PBR Neutral (2024), in place.
function neutral(rgb) {
  const f90 = 0.04;
  const start = 0.8 - f90;
  const darkest = Math.min(rgb[0], rgb[1], rgb[2]);
  const offset = darkest < 2 * f90 ? darkest - (darkest * darkest) / (4 * f90) : f90;
  for (let at = 0; at < 3; at += 1) rgb[at] -= offset;
  const peak = Math.max(rgb[0], rgb[1], rgb[2]);
  if (!(peak >= start)) return;
  const room = 1 - start;
  const compressed = 1 - (room * room) / (peak + room - start);
  const white = 1 - 1 / (0.15 * (peak - compressed) + 1);
  for (let at = 0; at < 3; at += 1) {
    rgb[at] = ((rgb[at] * compressed) / peak) * (1 - white) + compressed * white;
  }
}

export const maps = { standard: () => {}, "pbr-neutral": neutral };
