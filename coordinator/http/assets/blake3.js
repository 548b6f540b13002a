// BLAKE3 of bytes that come in pieces (O'Connor, Aumasson, Neves, Wilcox-O'Hearn: "BLAKE3", section
// 2): the plain hash only. Owns no reading.
const START = Int32Array.of(
  0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19);
const CHUNK_START = 1;
const CHUNK_END = 2;
const PARENT = 4;
const ROOT = 8;
const CHUNK_BYTES = 1024;
const BLOCK_BYTES = 64;
const MOVED = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8];

// Which word of a block is taken when: 16 words in each of 7 rounds.
const WORDS = new Uint8Array(7 * 16);
for (let at = 0; at < 16; at += 1) WORDS[at] = at;
for (let at = 16; at < WORDS.length; at += 1) {
  WORDS[at] = WORDS[at - 16 - (at % 16) + MOVED[at % 16]];
}

const state = new Int32Array(16);

function mix(a, b, c, d, x, y) {
  let va = state[a];
  let vb = state[b];
  let vc = state[c];
  let vd = state[d];
  va = (va + vb + x) | 0;
  vd ^= va;
  vd = (vd >>> 16) | (vd << 16);
  vc = (vc + vd) | 0;
  vb ^= vc;
  vb = (vb >>> 12) | (vb << 20);
  va = (va + vb + y) | 0;
  vd ^= va;
  vd = (vd >>> 8) | (vd << 24);
  vc = (vc + vd) | 0;
  vb ^= vc;
  vb = (vb >>> 7) | (vb << 25);
  state[a] = va;
  state[b] = vb;
  state[c] = vc;
  state[d] = vd;
}

// Compresses the block of 16 words at `from` into `value`, which is changed.
function compress(value, words, from, [counter, length, flags]) {
  state.set(value);
  for (let at = 0; at < 4; at += 1) state[8 + at] = START[at];
  state[12] = counter | 0;
  state[13] = Math.floor(counter / 2 ** 32) | 0;
  state[14] = length;
  state[15] = flags;
  for (let at = 0; at < WORDS.length; at += 16) {
    mix(0, 4, 8, 12, words[from + WORDS[at]], words[from + WORDS[at + 1]]);
    mix(1, 5, 9, 13, words[from + WORDS[at + 2]], words[from + WORDS[at + 3]]);
    mix(2, 6, 10, 14, words[from + WORDS[at + 4]], words[from + WORDS[at + 5]]);
    mix(3, 7, 11, 15, words[from + WORDS[at + 6]], words[from + WORDS[at + 7]]);
    mix(0, 5, 10, 15, words[from + WORDS[at + 8]], words[from + WORDS[at + 9]]);
    mix(1, 6, 11, 12, words[from + WORDS[at + 10]], words[from + WORDS[at + 11]]);
    mix(2, 7, 8, 13, words[from + WORDS[at + 12]], words[from + WORDS[at + 13]]);
    mix(3, 4, 9, 14, words[from + WORDS[at + 14]], words[from + WORDS[at + 15]]);
  }
  for (let at = 0; at < 8; at += 1) value[at] = state[at] ^ state[8 + at];
}

// A hash in the making.
export class Blake3 {
  #chunk = new Uint8Array(CHUNK_BYTES);
  #words = new Int32Array(this.#chunk.buffer);
  #held = 0;
  #chunks = 0;
  // Values of subtrees, the largest first.
  #trees = [];

  update(bytes) {
    let at = 0;
    while (at < bytes.length) {
      // The last chunk is kept: it may be the whole tree's root.
      if (this.#held === CHUNK_BYTES) this.#push(this.#close(0));
      const count = Math.min(CHUNK_BYTES - this.#held, bytes.length - at);
      this.#chunk.set(bytes.subarray(at, at + count), this.#held);
      this.#held += count;
      at += count;
    }
  }

  // The hash in hexadecimal digits. Nothing can be added afterwards.
  hex() {
    let value = this.#close(this.#trees.length === 0 ? ROOT : 0);
    while (this.#trees.length > 0) {
      value = this.#join(this.#trees.pop(), value, this.#trees.length === 0 ? ROOT : 0);
    }
    return [...new Uint8Array(value.buffer)].map((byte) => byte.toString(16).padStart(2, "0"))
      .join("");
  }

  // The value of the chunk that is held.
  #close(root) {
    this.#chunk.fill(0, this.#held);
    const value = START.slice();
    const blocks = Math.max(Math.ceil(this.#held / BLOCK_BYTES), 1);
    for (let block = 0; block < blocks; block += 1) {
      const length = Math.min(this.#held - block * BLOCK_BYTES, BLOCK_BYTES);
      let flags = block === 0 ? CHUNK_START : 0;
      if (block === blocks - 1) flags |= CHUNK_END | root;
      compress(value, this.#words, block * 16, [this.#chunks, length, flags]);
    }
    this.#held = 0;
    this.#chunks += 1;
    return value;
  }

  // Adds a chunk's value, and joins the subtrees that are whole now.
  #push(value) {
    let joined = value;
    for (let count = this.#chunks; count % 2 === 0; count /= 2) {
      joined = this.#join(this.#trees.pop(), joined, 0);
    }
    this.#trees.push(joined);
  }

  #join(left, right, root) {
    const words = new Int32Array(16);
    words.set(left);
    words.set(right, 8);
    const value = START.slice();
    compress(value, words, 0, [0, BLOCK_BYTES, PARENT | root]);
    return value;
  }
}
