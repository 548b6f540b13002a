// Reads OpenEXR files as the farm writes them: scan lines, ZIP or no compression, half and float.
// Source of the layout: the OpenEXR file layout document of the Academy Software Foundation.

const FLOAT = 2;
const HALF = 1;
const UINT = 0;
const BYTES = { [UINT]: 4, [HALF]: 2, [FLOAT]: 4 };
const LINES = { 0: 1, 2: 1, 3: 16 };

class Reader {
  constructor(buffer) {
    this.view = new DataView(buffer);
    this.bytes = new Uint8Array(buffer);
    this.at = 0;
  }

  u32() { const value = this.view.getUint32(this.at, true); this.at += 4; return value; }

  i32() { const value = this.view.getInt32(this.at, true); this.at += 4; return value; }

  u8() { return this.bytes[this.at++]; }

  text() {
    const end = this.bytes.indexOf(0, this.at);
    if (end < 0) throw new Error("the file is cut");
    const text = new TextDecoder().decode(this.bytes.subarray(this.at, end));
    this.at = end + 1;
    return text;
  }
}

function channelsOf(reader, end) {
  const channels = [];
  while (reader.at < end && reader.bytes[reader.at] !== 0) {
    const name = reader.text();
    const kind = reader.u32();
    reader.at += 4;
    const sampling = [reader.i32(), reader.i32()];
    if (sampling[0] !== 1 || sampling[1] !== 1) throw new Error("a channel is subsampled");
    if (!(kind in BYTES)) throw new Error("a channel is of an unknown kind");
    channels.push({ name, kind });
  }
  return channels;
}

// The header: channels, the window of the pixels, compression.
export function header(buffer) {
  const reader = new Reader(buffer);
  if (reader.u32() !== 20000630) throw new Error("this is no OpenEXR file");
  const version = reader.u32();
  if ((version & 0xff) !== 2 || version & 0x1a00) throw new Error("tiles and parts are not read");
  const found = {};
  while (reader.bytes[reader.at] !== 0) {
    const name = reader.text();
    reader.text();
    const length = reader.u32();
    const end = reader.at + length;
    if (end > buffer.byteLength) throw new Error("the file is cut");
    if (name === "channels") found.channels = channelsOf(reader, end);
    if (name === "compression") found.compression = reader.u8();
    if (name === "dataWindow") {
      found.window = [reader.i32(), reader.i32(), reader.i32(), reader.i32()];
    }
    reader.at = end;
  }
  reader.at += 1;
  const [left, top, right, bottom] = found.window;
  return { ...found, width: right - left + 1, height: bottom - top + 1, after: reader.at };
}

async function inflate(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// Undoes OpenEXR's ZIP: differences of bytes, then two halves that were woven apart.
function woven(bytes) {
  for (let at = 1; at < bytes.length; at += 1) {
    bytes[at] = (bytes[at - 1] + bytes[at] - 128) & 0xff;
  }
  const out = new Uint8Array(bytes.length);
  const half = (bytes.length + 1) >> 1;
  for (let at = 0; at < bytes.length; at += 1) {
    out[at] = bytes[at & 1 ? half + (at >> 1) : at >> 1];
  }
  return out;
}

// The value of a half float, by its bits.
export function halfFloat(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

// All channels of a file as lists of numbers, row by row from the top.
export async function read(buffer) {
  const head = header(buffer);
  const { width, height, channels, compression } = head;
  const lines = LINES[compression];
  if (!lines) throw new Error("this compression is not read");
  if (width * height * channels.length > 2 ** 28) throw new Error("the picture is too large here");
  const planes = Object.fromEntries(
    channels.map(({ name }) => [name, new Float32Array(width * height)]));
  const view = new DataView(buffer);
  const blocks = Math.ceil(height / lines);
  const perLine = channels.reduce((sum, { kind }) => sum + BYTES[kind] * width, 0);
  for (let block = 0; block < blocks; block += 1) {
    const at = Number(view.getBigUint64(head.after + 8 * block, true));
    const row = view.getInt32(at, true) - head.window[1];
    const length = view.getUint32(at + 4, true);
    const rows = Math.min(lines, height - row);
    let bytes = new Uint8Array(buffer, at + 8, length);
    // What does not get smaller is kept as it is.
    if (compression !== 0 && length < perLine * rows) bytes = woven(await inflate(bytes));
    if (bytes.length !== perLine * rows) throw new Error("a block of the file is damaged");
    unpack(bytes, { row, rows, width, channels }, planes);
  }
  return { width, height, planes };
}

function unpack(bytes, { row, rows, width, channels }, planes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = 0;
  for (let line = row; line < row + rows; line += 1) {
    for (const { name, kind } of channels) {
      const plane = planes[name];
      for (let x = 0; x < width; x += 1) {
        const to = line * width + x;
        if (kind === FLOAT) plane[to] = view.getFloat32(at, true);
        else if (kind === HALF) plane[to] = halfFloat(view.getUint16(at, true));
        else plane[to] = view.getUint32(at, true);
        at += BYTES[kind];
      }
    }
  }
}

// The layers of a file: names of three channels, or of one.
export function layers(planes) {
  const names = Object.keys(planes);
  const found = [];
  const prefixes = new Set(names.map((name) => name.slice(0, name.lastIndexOf(".") + 1)));
  for (const prefix of prefixes) {
    const has = (letters) => [...letters].every((letter) => names.includes(prefix + letter));
    const name = prefix ? prefix.slice(0, -1) : "picture";
    if (has("RGB")) found.push({ name, channels: ["R", "G", "B"].map((one) => prefix + one) });
    else if (has("XYZ")) found.push({ name, channels: ["X", "Y", "Z"].map((one) => prefix + one) });
    for (const one of names) {
      const rest = one.slice(prefix.length);
      const own = one.startsWith(prefix) && !rest.includes(".") && !/^[RGBXYZ]$/.test(rest);
      if (own) found.push({ name: one, channels: [one] });
    }
  }
  return found;
}
