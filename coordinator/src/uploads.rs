//! Who uploaded which file, so that uploads count for somebody until they are deleted. Written down
//! as lines of one file, so that the counts are the same after a restart.
//!
//! A line that a power cut takes leaves a file that counts for nobody; the sweeper deletes it like
//! any other.

use crate::sync::lock;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tessera_core::Owner;
use tessera_protocol::BlobHash;
use tessera_transport::files;

/// Largest ledger that is read: a million lines.
const LEDGER_BYTES_MAX: u64 = 256 << 20;
/// Most uploaded files of one owner: 64 of the largest scenes.
const FILES_MAX: u64 = 1 << 18;
/// Lines after which the ledger is written anew, if most of them are of no use any more.
const LINES_MAX: usize = 4096;

/// What limits uploads.
#[derive(Clone, Debug)]
pub(crate) struct UploadLimit {
    /// Bytes that files of one owner may have which no open job names; None: a quarter of what
    /// the disk has free for them.
    pub(crate) bytes: Option<u64>,
    /// Folder on the disk.
    pub(crate) root: PathBuf,
}

/// The ledger of uploads.
#[derive(Debug)]
pub(crate) struct Uploads {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    file: File,
    lines: usize,
    files: BTreeMap<BlobHash, Uploaded>,
    /// Bytes and number of each owner's files, those of second writers too.
    held: BTreeMap<Owner, (u64, u64)>,
    /// How many writers each file has now.
    writers: BTreeMap<BlobHash, u32>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Uploaded {
    owner: Owner,
    length: u64,
}

impl State {
    fn insert(&mut self, hash: BlobHash, uploaded: Uploaded) {
        self.remove(hash);
        self.take(&uploaded.owner, uploaded.length);
        self.files.insert(hash, uploaded);
    }

    fn take(&mut self, owner: &Owner, length: u64) {
        let (bytes, files) = self.held.entry(owner.clone()).or_default();
        *bytes = bytes.saturating_add(length);
        *files += 1;
    }

    fn remove(&mut self, hash: BlobHash) -> bool {
        let Some(Uploaded { owner, length }) = self.files.remove(&hash) else { return false };
        self.give_back(&owner, length);
        true
    }

    fn give_back(&mut self, owner: &Owner, length: u64) {
        if let Some((bytes, files)) = self.held.get_mut(owner) {
            (*bytes, *files) = (bytes.saturating_sub(length), files.saturating_sub(1));
            if *files == 0 {
                self.held.remove(owner);
            }
        }
    }
}

/// Reads a line: `+`, hash, length, and number and name of the owner, or `-` and hash.
fn read_line(line: &str) -> Option<(BlobHash, Option<Uploaded>)> {
    let (sign, rest) = line.split_once(' ')?;
    if sign == "-" {
        return Some((rest.parse().ok()?, None));
    }
    let mut parts = rest.splitn(4, ' ');
    let (hash, length) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let (id, name) = (parts.next()?.parse().ok()?, parts.next().filter(|name| !name.is_empty())?);
    let owner = Owner::new(id, name);
    (sign == "+").then_some((hash, Some(Uploaded { owner, length })))
}

fn line(hash: BlobHash, uploaded: &Uploaded) -> String {
    let Uploaded { owner, length } = uploaded;
    format!("+ {hash} {length} {} {owner}\n", owner.id())
}

impl Uploads {
    /// Opens the ledger, which is made if there is none. A line that was cut is left out.
    pub(crate) fn open(path: &Path) -> io::Result<Arc<Self>> {
        let text = match files::read_bounded(path, LEDGER_BYTES_MAX) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                tracing::warn!(path = %path.display(), "the ledger of uploads is too large, and \
                    begins anew: files of before count for nobody");
                Vec::new()
            }
            Err(error) => return Err(error),
        };
        let mut known = BTreeMap::new();
        for (hash, uploaded) in String::from_utf8_lossy(&text).lines().filter_map(read_line) {
            match uploaded {
                Some(uploaded) => drop(known.insert(hash, uploaded)),
                None => drop(known.remove(&hash)),
            }
        }
        let (file, lines) = rewrite(path, &known)?;
        let mut state = State {
            file,
            lines,
            files: BTreeMap::new(),
            held: BTreeMap::new(),
            writers: BTreeMap::new(),
        };
        known.into_iter().for_each(|(hash, uploaded)| state.insert(hash, uploaded));
        Ok(Arc::new(Self { path: path.to_path_buf(), state: Mutex::new(state) }))
    }

    /// Notes that an owner begins to upload a file, which counts for the owner from now on. `fits`
    /// says whether the owner, who has so many bytes, may have so many. A second writer of a file
    /// counts as long as it writes.
    pub(crate) fn begin(
        self: &Arc<Self>,
        owner: &Owner,
        (hash, length): (BlobHash, u64),
        fits: impl FnOnce(u64, u64) -> Result<(), String>,
    ) -> Result<Writing, String> {
        let mut state = lock(&self.state);
        let (before, files) = state.held.get(owner).copied().unwrap_or_default();
        if files >= FILES_MAX {
            return Err(format!(
                "`{owner}` has {files} uploaded files here, and no more are taken of one user; \
                 they are deleted some time after their last use, and an admin can delete those \
                 that no job uses now (`tessera sweep --owner {owner}`)"
            ));
        }
        let writers = state.writers.entry(hash).or_default();
        *writers += 1;
        let is_second = *writers > 1;
        let known = state.files.get(&hash).map(|known| known.owner == *owner);
        let double = is_second.then(|| (owner.clone(), length));
        // Counted at once, so that others who begin now see it.
        if is_second {
            state.take(owner, length);
        } else if known.is_none() {
            state.insert(hash, Uploaded { owner: owner.clone(), length });
        }
        drop(state);
        let writing = Writing { uploads: self.clone(), hash, double };
        let goes_on = known == Some(true) && !is_second;
        if !goes_on && let Err(reason) = fits(before, before.saturating_add(length)) {
            drop(writing);
            if known.is_none() && !is_second {
                lock(&self.state).remove(hash);
            }
            return Err(reason);
        }
        if known.is_none() && !is_second {
            let mut state = lock(&self.state);
            self.append(&mut state, &line(hash, &Uploaded { owner: owner.clone(), length }));
        }
        Ok(writing)
    }

    /// Returns the files of an owner, with their lengths.
    pub(crate) fn files_of(&self, owner: &Owner) -> Vec<(BlobHash, u64)> {
        let state = lock(&self.state);
        let own = state.files.iter().filter(|(_, uploaded)| uploaded.owner == *owner);
        own.map(|(hash, uploaded)| (*hash, uploaded.length)).collect()
    }

    /// Returns all files, with their owners and lengths.
    pub(crate) fn all(&self) -> Vec<(BlobHash, Owner, u64)> {
        let state = lock(&self.state);
        let all = state.files.iter();
        all.map(|(hash, uploaded)| (*hash, uploaded.owner.clone(), uploaded.length)).collect()
    }

    /// Forgets the files for which `stays` is false. Files that are being written stay.
    pub(crate) fn retain(&self, stays: impl Fn(BlobHash) -> bool) {
        for (hash, _, _) in self.all() {
            if !stays(hash) {
                self.forget(hash);
            }
        }
    }

    /// Forgets a file that is deleted, unless somebody writes it again.
    pub(crate) fn forget(&self, hash: BlobHash) {
        let mut state = lock(&self.state);
        if !state.writers.contains_key(&hash) && state.remove(hash) {
            self.append(&mut state, &format!("- {hash}\n"));
        }
    }

    /// Adds a line. One that cannot be written is only missing after a restart.
    fn append(&self, state: &mut State, line: &str) {
        state.lines += 1;
        let written = match state.lines > LINES_MAX.max(2 * state.files.len()) {
            true => rewrite(&self.path, &state.files).map(|(file, lines)| {
                (state.file, state.lines) = (file, lines);
            }),
            false => state.file.write_all(line.as_bytes()),
        };
        if let Err(error) = written {
            tracing::warn!(path = %self.path.display(), %error, "an upload is not written down");
        }
    }
}

/// Writes the ledger anew, and opens it to add lines.
fn rewrite(path: &Path, known: &BTreeMap<BlobHash, Uploaded>) -> io::Result<(File, usize)> {
    let mut text = String::new();
    for (hash, uploaded) in known {
        let _ = text.write_str(&line(*hash, uploaded));
    }
    files::write_atomically(path, text.as_bytes(), files::Access::Secret)?;
    Ok((File::options().append(true).open(path)?, known.len()))
}

/// A file that is being written. Dropping it ends that.
#[derive(Debug)]
pub(crate) struct Writing {
    uploads: Arc<Uploads>,
    hash: BlobHash,
    /// Whom it counts for beside the first writer's file.
    double: Option<(Owner, u64)>,
}

impl Drop for Writing {
    fn drop(&mut self) {
        let mut state = lock(&self.uploads.state);
        if let Some(writers) = state.writers.get_mut(&self.hash) {
            *writers -= 1;
            if *writers == 0 {
                state.writers.remove(&self.hash);
            }
        }
        if let Some((owner, length)) = self.double.take() {
            state.give_back(&owner, length);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Uploads {
        fn bytes_of(&self, owner: &Owner) -> u64 {
            lock(&self.state).held.get(owner).map_or(0, |(bytes, _)| *bytes)
        }
    }

    fn owner(name: &str) -> Owner {
        Owner::new(name.bytes().map(u64::from).sum(), name)
    }

    fn hash(byte: u8) -> BlobHash {
        BlobHash([byte; 32])
    }

    fn any(_: u64, _: u64) -> Result<(), String> {
        Ok(())
    }

    #[test]
    fn uploads_count_the_same_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("uploads");
        let uploads = Uploads::open(&path).unwrap();
        drop(uploads.begin(&owner("ada"), (hash(1), 10), any).unwrap());
        drop(uploads.begin(&owner("ada b"), (hash(2), 20), any).unwrap());
        drop(uploads.begin(&owner("ada"), (hash(3), 30), any).unwrap());
        drop(uploads.begin(&owner("eve"), (hash(1), 10), any).unwrap());
        uploads.forget(hash(3));
        for uploads in [uploads, Uploads::open(&path).unwrap()] {
            let bytes = ["ada", "ada b", "eve"].map(|name| uploads.bytes_of(&owner(name)));
            assert_eq!(bytes, [10, 20, 0], "the first one who uploads a file has it");
        }
        let other = Owner::new(9, "ada");
        assert_eq!(Uploads::open(&path).unwrap().bytes_of(&other), 0, "another of that name");
        // A line that was cut.
        File::options().append(true).open(&path).unwrap().write_all(b"+ 0707").unwrap();
        let again = Uploads::open(&path).unwrap();
        assert_eq!(again.files_of(&owner("ada b")), [(hash(2), 20)]);
    }

    #[test]
    fn a_second_writer_of_a_file_counts_while_it_writes() {
        let folder = tempfile::tempdir().unwrap();
        let uploads = Uploads::open(&folder.path().join("uploads")).unwrap();
        let limit =
            |most: u64| move |_, bytes| (bytes <= most).then_some(()).ok_or_else(String::new);
        let first = uploads.begin(&owner("eve"), (hash(1), 40), limit(100)).unwrap();
        let second = uploads.begin(&owner("eve"), (hash(1), 40), limit(100)).unwrap();
        assert!(uploads.begin(&owner("eve"), (hash(1), 40), limit(100)).is_err());
        assert_eq!(uploads.bytes_of(&owner("eve")), 80);
        drop((first, second));
        assert_eq!(uploads.bytes_of(&owner("eve")), 40);
        uploads.begin(&owner("eve"), (hash(1), 40), limit(0)).expect("it goes on with its own");
        uploads.retain(|_| false);
        assert_eq!(uploads.bytes_of(&owner("eve")), 0);
    }
}
