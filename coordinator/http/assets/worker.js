// One connection for all pages of a browser: it follows the farm and tells each page what changed.
// Browsers open only six connections to a server without HTTP/2, and pages are many.
const ports = new Set();
let source = null;
let state = "connecting";

function tell(message) {
  for (const port of ports) port.postMessage(message);
}

function open() {
  source = new EventSource("/api/v1/events");
  source.addEventListener("open", () => { state = "open"; tell({ kind: "state", data: state }); });
  source.addEventListener("error", () => {
    state = source.readyState === EventSource.CLOSED ? "closed" : "connecting";
    tell({ kind: "state", data: state });
    if (state === "closed") { source = null; }
  });
  for (const kind of ["hello", "jobs", "frames", "nodes"]) {
    source.addEventListener(kind, (event) => tell({ kind, data: JSON.parse(event.data) }));
  }
}

self.addEventListener("connect", (event) => {
  const port = event.ports[0];
  ports.add(port);
  port.addEventListener("message", (message) => {
    if (message.data === "bye") {
      ports.delete(port);
      if (ports.size === 0 && source) { source.close(); source = null; }
    }
  });
  port.start();
  if (source) { port.postMessage({ kind: "state", data: state }); } else { open(); }
});
