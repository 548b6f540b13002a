// Hashes files and brings them to the farm. What the farm has is not sent, and an upload that was
// interrupted goes on where it stopped.
import { ask, checked } from "./ask.js";

const PIECE_BYTES = 8 << 20;
const TRIES = 6;

let worker = null;
let numbers = 0;
const waiting = new Map();

// Resolves to the BLAKE3 of a file. `told` hears how many bytes are read.
export function hash(file, told) {
  worker ??= begin();
  numbers += 1;
  const number = numbers;
  return new Promise((resolve, reject) => {
    waiting.set(number, { resolve, reject, told });
    worker.postMessage({ file, number });
  });
}

function begin() {
  const started = new Worker(new URL("hasher.js", import.meta.url), { type: "module" });
  started.addEventListener("message", ({ data }) => {
    const one = waiting.get(data.number);
    if (data.done !== undefined) { one.told(data.done); return; }
    waiting.delete(data.number);
    if (data.hash) { one.resolve(data.hash); } else { one.reject(new Error(data.problem)); }
  });
  return started;
}

const wait = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

// Brings a file with this hash to the farm. `told` hears how many bytes are there.
export async function upload(file, name, told) {
  let tries = 0;
  let held = 0;
  for (;;) {
    try {
      const query = `length=${file.size}`;
      const now = await ask("GET", `/blobs/${name}/held?${query}`);
      held = now.held;
      if (now.whole) break;
      for (let whole = false; !whole;) {
        told(held);
        const piece = file.slice(held, held + PIECE_BYTES);
        const answer = await fetch(`/api/v1/blobs/${name}?${query}&offset=${held}`, {
          method: "PUT",
          headers: { "Content-Type": "application/octet-stream" },
          body: piece,
        });
        ({ held, whole } = await (await checked(answer)).json());
        tries = 0;
      }
      break;
    } catch (error) {
      // What the farm refuses stays refused; what was lost on the way is sent again.
      const passes = error.status === undefined || [408, 409, 429, 503].includes(error.status);
      tries += 1;
      if (!passes || tries >= TRIES) throw error;
      await wait(300 * 2 ** tries);
    }
  }
  told(file.size);
}
