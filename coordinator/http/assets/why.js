// Keeps true why a job, a frame or a node stands as it does. The words are the coordinator's.
const PAUSE = 1500;
let asked = 0;
let again;

function span(secs) {
  if (secs < 120) return `${secs} s`;
  if (secs < 7200) return `${Math.floor(secs / 60)} min`;
  if (secs < 172800) return `${Math.floor(secs / 3600)} h`;
  return `${Math.floor(secs / 86400)} days`;
}

function element(name, kind, ...parts) {
  const made = document.createElement(name);
  if (kind) { made.className = kind; }
  made.append(...parts);
  return made;
}

// A text with what stands between backticks as code.
function marked(text) {
  return text.split("`").map((part, at) => (at % 2 ? element("code", "", part) : part));
}

function reason({ word, why, help, ends_secs: ends }) {
  const line = element("p", "reason", element("bdi", "", why));
  line.dataset.word = word;
  if (ends !== null) { line.append(` (ends in ${span(ends)})`); }
  if (help) { line.append(element("span", "help", element("bdi", "", ...marked(help)))); }
  return line;
}

function before({ owner, units, job }) {
  const name = owner.replaceAll("`", "");
  return `${name} (${units} ${units === 1 ? "unit" : "units"}, such as of ${job})`;
}

function lines({ reasons, ahead, begins_secs: begins, left_secs: left }) {
  const all = reasons.map(reason);
  if (ahead.length) {
    all.push(element("p", "before", `Before it: ${ahead.map(before).join(", ")}`));
  }
  if (begins !== null) { all.push(element("p", "before", `Begins in about ${span(begins)}.`)); }
  if (left !== null) { all.push(element("p", "before", `About ${span(left)} left.`)); }
  return all;
}

async function ask(address) {
  asked = Date.now();
  again = undefined;
  const answer = await fetch(address);
  if (!answer.ok) return;
  document.querySelector("[data-why]")?.replaceChildren(...lines(await answer.json()));
}

// Asks for the page's reasons again, but not more often than every PAUSE.
export function renew({ job, frame, node }) {
  if (again !== undefined || !document.querySelector("[data-why]")) return;
  const of = job ? `jobs/${job}${frame ? `/frames/${frame}` : ""}` : `nodes/${node}`;
  const address = `/api/v1/${of}/explain`;
  again = setTimeout(() => ask(address), Math.max(0, asked + PAUSE - Date.now()));
}
