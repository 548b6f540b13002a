//! A disk that loses power: what was synced is there, what was not may be there, in part or not at
//! all. Stricter than most file systems: a sync of a file says nothing of its name, and a name
//! lasts from its folder's sync on.

use super::trace::Event;
use crate::farm::kills::Chance;
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Bytes that a disk writes as one.
const SECTOR: usize = 512;

/// A file, whatever it is called.
#[derive(Clone, Debug, Default)]
struct File {
    durable: Vec<u8>,
    /// Not synced yet, in order.
    pending: Vec<Change>,
}

#[derive(Clone, Debug)]
enum Change {
    Write { at: u64, bytes: Vec<u8> },
    Resize(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Node {
    Folder,
    File(usize),
}

/// A change of a folder's names.
#[derive(Clone, Debug)]
enum Naming {
    Add { path: PathBuf, node: Node },
    Rename { from: PathBuf, to: PathBuf, node: Node },
    Remove(PathBuf),
}

/// The disk at some moment.
#[derive(Debug)]
pub(crate) struct Disk {
    root: PathBuf,
    files: Vec<File>,
    names: BTreeMap<PathBuf, Node>,
    durable_names: BTreeMap<PathBuf, Node>,
    /// Not synced yet, by folder, in order.
    pending: BTreeMap<PathBuf, Vec<Naming>>,
}

impl Disk {
    /// A disk with a folder that is empty.
    pub(crate) fn new(root: &Path) -> Self {
        let names: BTreeMap<_, _> = [(root.to_path_buf(), Node::Folder)].into();
        let durable_names = names.clone();
        Self {
            root: root.to_path_buf(),
            files: Vec::new(),
            names,
            durable_names,
            pending: BTreeMap::new(),
        }
    }

    fn name(&mut self, path: &Path, naming: Naming) {
        let folder = path.parent().unwrap_or(Path::new("/")).to_path_buf();
        self.pending.entry(folder).or_default().push(naming);
    }

    fn file(&mut self, path: &Path) -> Option<&mut File> {
        match self.names.get(path) {
            Some(Node::File(index)) => self.files.get_mut(*index),
            _ => None,
        }
    }

    fn add(&mut self, path: &Path, node: Node) {
        self.names.insert(path.to_path_buf(), node);
        self.name(path, Naming::Add { path: path.to_path_buf(), node });
    }

    /// Takes an event in.
    pub(crate) fn take(&mut self, event: &Event) {
        match event {
            Event::Mkdir(path) if *path == self.root => {}
            Event::Mkdir(path) => self.add(path, Node::Folder),
            Event::Open { path, create, truncate } => {
                if *create && !self.names.contains_key(path) {
                    self.files.push(File::default());
                    self.add(path, Node::File(self.files.len() - 1));
                } else if *truncate && let Some(file) = self.file(path) {
                    file.pending.push(Change::Resize(0));
                }
            }
            Event::Write { path, at, bytes } => {
                let change = Change::Write { at: *at, bytes: bytes.clone() };
                self.file(path).expect("a file that is written was opened").pending.push(change);
            }
            Event::Resize { path, length } => {
                if let Some(file) = self.file(path) {
                    file.pending.push(Change::Resize(*length));
                }
            }
            Event::Rename { from, to } => {
                let Some(node) = self.names.remove(from) else { return };
                self.names.insert(to.clone(), node);
                self.name(to, Naming::Rename { from: from.clone(), to: to.clone(), node });
            }
            Event::Remove(path) => {
                self.names.remove(path);
                self.name(path, Naming::Remove(path.clone()));
            }
            Event::Sync(path) => self.sync(path),
            Event::Acknowledged(_) => {}
        }
    }

    fn sync(&mut self, path: &Path) {
        for naming in self.pending.remove(path).unwrap_or_default() {
            apply(&mut self.durable_names, &naming);
        }
        if let Some(file) = self.file(path) {
            for change in std::mem::take(&mut file.pending) {
                change.apply(&mut file.durable, usize::MAX);
            }
        }
    }

    /// Writes to `target` what somebody finds there when the power is back.
    pub(crate) fn lose_power(&self, chance: &mut Chance, target: &Path) {
        let mut names = self.durable_names.clone();
        for pending in self.pending.values() {
            // Names of one folder reach the disk in order.
            let kept = some_of(chance, pending.len());
            pending.iter().take(kept).for_each(|naming| apply(&mut names, naming));
        }
        let reachable = |path: &Path| {
            let mut above =
                path.ancestors().skip(1).take_while(|above| above.starts_with(&self.root));
            above.all(|above| names.get(above) == Some(&Node::Folder))
        };
        for (path, node) in names.iter().filter(|(path, _)| reachable(path)) {
            let place = target.join(path.strip_prefix(&self.root).expect("a path below the root"));
            match node {
                Node::Folder => std::fs::create_dir_all(place).expect("a folder"),
                Node::File(index) => {
                    let bytes = self.files[*index].after_power_loss(chance);
                    std::fs::write(&place, bytes).expect("a file");
                    // Rights are not what this disk loses, and keys need them.
                    let private = std::fs::Permissions::from_mode(0o600);
                    std::fs::set_permissions(&place, private).expect("rights");
                }
            }
        }
    }
}

fn apply(names: &mut BTreeMap<PathBuf, Node>, naming: &Naming) {
    match naming {
        Naming::Add { path, node } => drop(names.insert(path.clone(), *node)),
        Naming::Rename { from, to, node } => {
            // The old name may have gone to another file since, or never have lasted.
            if names.get(from) == Some(node) {
                names.remove(from);
            }
            names.insert(to.clone(), *node);
        }
        Naming::Remove(path) => drop(names.remove(path)),
    }
}

/// None, all or some.
fn some_of(chance: &mut Chance, count: usize) -> usize {
    match chance.below(3) {
        0 => 0,
        1 => count,
        _ => chance.below(count as u64 + 1) as usize,
    }
}

impl File {
    fn after_power_loss(&self, chance: &mut Chance) -> Vec<u8> {
        let mut bytes = self.durable.clone();
        let manner = chance.below(3);
        for change in &self.pending {
            let kept = match (manner, chance.below(4)) {
                (0, _) | (2, 0 | 1) => continue,
                (1, _) | (2, 2) => usize::MAX,
                // Torn between two sectors.
                _ => chance.below(64) as usize * SECTOR,
            };
            change.apply(&mut bytes, kept);
        }
        bytes
    }
}

impl Change {
    /// Applies it, of a write at most the first `kept` bytes.
    fn apply(&self, content: &mut Vec<u8>, kept: usize) {
        match self {
            Self::Resize(length) => content.resize(*length as usize, 0),
            Self::Write { at, bytes } => {
                let bytes = &bytes[..bytes.len().min(kept)];
                let (start, end) = (*at as usize, *at as usize + bytes.len());
                if content.len() < end {
                    content.resize(end, 0);
                }
                content[start..end].copy_from_slice(bytes);
            }
        }
    }
}
