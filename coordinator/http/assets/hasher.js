// A worker that hashes files, one after the other: a page stays quick while it does.
import { Blake3 } from "./blake3.js";

const PIECE_BYTES = 4 << 20;

async function hash(file, number) {
  const hasher = new Blake3();
  for (let at = 0; at < file.size; at += PIECE_BYTES) {
    hasher.update(new Uint8Array(await file.slice(at, at + PIECE_BYTES).arrayBuffer()));
    postMessage({ number, done: Math.min(at + PIECE_BYTES, file.size) });
  }
  postMessage({ number, hash: hasher.hex() });
}

let last = Promise.resolve();
addEventListener("message", ({ data: { file, number } }) => {
  last = last.then(() => hash(file, number)).catch((error) => {
    postMessage({ number, problem: error.message });
  });
});
