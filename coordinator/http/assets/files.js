// The files that somebody drops or chooses: folders are walked, and what belongs to a scene is told
// from its names.
const MOST = 4096;

// Files of an entry of a drop, with their paths within it.
async function walk(entry, within, found) {
  if (found.length >= MOST) throw new Error(`more than ${MOST} files were dropped`);
  if (entry.isFile) {
    const file = await new Promise((resolve, reject) => { entry.file(resolve, reject); });
    found.push({ file, path: within + entry.name });
    return;
  }
  const reader = entry.createReader();
  for (;;) {
    const some = await new Promise((resolve, reject) => { reader.readEntries(resolve, reject); });
    if (some.length === 0) return;
    for (const one of some) await walk(one, `${within}${entry.name}/`, found);
  }
}

// All files of a drop.
export async function dropped(transfer) {
  // Entries must be asked for before anything else happens.
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  const plain = [...transfer.files].map((file) => ({ file, path: file.name }));
  if (entries.length === 0) return plain;
  const found = [];
  for (const entry of entries) await walk(entry, "", found);
  return found;
}

// Which files are scenes, which one is an environment, and what is left: all with paths that begin
// where the first scene lies.
export function choose(files) {
  const ends = (path, ...kinds) => kinds.some((kind) => path.toLowerCase().endsWith(kind));
  const first = files.filter(({ path }) => ends(path, ".glb", ".gltf"))
    .sort((a, b) => a.path.split("/").length - b.path.split("/").length)[0];
  const root = first ? first.path.slice(0, first.path.lastIndexOf("/") + 1) : "";
  const near = files.filter(({ path }) => path.startsWith(root) && !/(^|\/)\./.test(path))
    .map(({ file, path }) => ({ file, path: path.slice(root.length) }));
  const scenes = near.filter(({ path }) => ends(path, ".glb", ".gltf"));
  const map = near.find(({ path }) => ends(path, ".hdr", ".exr"));
  const rest = near.filter((one) => !scenes.includes(one) && one !== map);
  return { scenes, map, rest };
}
