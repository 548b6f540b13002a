// Follows the farm: calls `told(kind, data)` for what changes. All pages of a browser share one
// connection where the browser has shared workers.
export function follow(told) {
  if ("SharedWorker" in window) {
    const worker = new SharedWorker(new URL("worker.js", import.meta.url), { type: "module" });
    worker.port.addEventListener("message", ({ data }) => told(data.kind, data.data));
    worker.port.start();
    // A page that is kept for the back button asks anew when it is shown again.
    window.addEventListener("pagehide", () => worker.port.postMessage("bye"));
    window.addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
    return;
  }
  const source = new EventSource("/api/v1/events");
  source.addEventListener("open", () => told("state", "open"));
  source.addEventListener("error", () => {
    told("state", source.readyState === EventSource.CLOSED ? "closed" : "connecting");
  });
  for (const kind of ["hello", "jobs", "frames", "nodes"]) {
    source.addEventListener(kind, (event) => told(kind, JSON.parse(event.data)));
  }
}
