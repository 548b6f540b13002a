//! The writing side: appends groups of results, and knows how much of each spool is durable.

use crate::spool::{HEADER_BYTES, SpoolEntry, SpoolError, SpoolKey};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use tessera_transport::files;

/// Spools held open at most: frames in flight are few, and a file beyond this number is opened
/// again.
const OPEN_MAX: usize = 64;

/// All spools of a coordinator. One thread owns it.
#[derive(Debug)]
pub struct SpoolFiles {
    root: PathBuf,
    lengths: BTreeMap<SpoolKey, u64>,
    open: BTreeMap<SpoolKey, File>,
    sync: bool,
}

impl SpoolFiles {
    /// Takes over the spools that the journal knows, with their durable lengths; cuts what is
    /// beyond, and deletes files that the journal does not know. Also gives what is wrong with
    /// them: those spools stay as they are.
    pub fn open(
        root: &Path,
        lengths: BTreeMap<SpoolKey, u64>,
        sync: bool,
    ) -> Result<(Self, Vec<SpoolError>), SpoolError> {
        let mut problems = Vec::new();
        for (key, length) in &lengths {
            let path = key.path(root);
            match cut(&path, *length) {
                Ok(found) if found >= *length => {}
                Ok(found) => problems.push(SpoolError::Short { path, found, expected: *length }),
                Err(source) => problems.push(SpoolError::Io { path, source }),
            }
        }
        let known: BTreeSet<PathBuf> = lengths.keys().map(|key| key.path(root)).collect();
        remove_unknown(root, &known)
            .map_err(|source| SpoolError::Io { path: root.to_path_buf(), source })?;
        Ok((Self { root: root.to_path_buf(), lengths, open: BTreeMap::new(), sync }, problems))
    }

    /// Appends a group and syncs every spool it touched. Gives their new lengths, which count from
    /// [`Self::accept`] on: until then the same bytes may be written again in the same place.
    pub fn append(&mut self, group: &[SpoolEntry]) -> Result<BTreeMap<SpoolKey, u64>, SpoolError> {
        let mut lengths = BTreeMap::new();
        for entry in group {
            debug_assert_eq!(entry.header.length as usize, entry.bytes.len());
            let start = match lengths.get(&entry.key) {
                Some(length) => *length,
                None => self.lengths.get(&entry.key).copied().unwrap_or(0),
            };
            let failed = |source| SpoolError::Io { path: entry.key.path(&self.root), source };
            let file = file(&mut self.open, &self.root, entry.key).map_err(failed)?;
            file.write_all_at(&entry.header.to_bytes(), start).map_err(failed)?;
            file.write_all_at(&entry.bytes, start + HEADER_BYTES as u64).map_err(failed)?;
            lengths.insert(entry.key, start + HEADER_BYTES as u64 + u64::from(entry.header.length));
        }
        if self.sync {
            self.sync(&lengths)?;
        }
        Ok(lengths)
    }

    fn sync(&mut self, touched: &BTreeMap<SpoolKey, u64>) -> Result<(), SpoolError> {
        for key in touched.keys() {
            let path = key.path(&self.root);
            let failed = |source| SpoolError::Io { path: path.clone(), source };
            file(&mut self.open, &self.root, *key)
                .and_then(|file| file.sync_data())
                .map_err(failed)?;
            if !self.lengths.contains_key(key) {
                // A new file: its name and its folder's name must last too.
                let folder = self.root.join(key.job.to_string());
                files::sync_folder(&folder).map_err(failed)?;
                files::sync_folder(&self.root).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// The journal has these lengths now.
    pub fn accept(&mut self, lengths: BTreeMap<SpoolKey, u64>) {
        self.lengths.extend(lengths);
        while self.open.len() > OPEN_MAX {
            self.open.pop_first();
        }
    }

    /// The journal does not know these spools any more.
    pub fn forget(&mut self, keys: &[SpoolKey]) {
        for key in keys {
            self.open.remove(key);
            self.lengths.remove(key);
        }
    }

    /// Deletes the files of spools that were forgotten.
    pub fn remove(&mut self, keys: &[SpoolKey]) {
        for key in keys {
            let path = key.path(&self.root);
            if let Err(error) = std::fs::remove_file(&path)
                && error.kind() != io::ErrorKind::NotFound
            {
                // The next start deletes it: the journal does not know it.
                tracing::warn!(path = %path.display(), %error, "a spool that is done with stays on \
                    the disk");
            }
            // Fails while other frames of the job are open, which is right.
            drop(std::fs::remove_dir(self.root.join(key.job.to_string())));
        }
    }

    /// Durable spools and their lengths.
    pub fn lengths(&self) -> &BTreeMap<SpoolKey, u64> {
        &self.lengths
    }
}

fn file<'a>(
    open: &'a mut BTreeMap<SpoolKey, File>,
    root: &Path,
    key: SpoolKey,
) -> io::Result<&'a mut File> {
    use std::collections::btree_map::Entry;
    match open.entry(key) {
        Entry::Occupied(entry) => Ok(entry.into_mut()),
        Entry::Vacant(entry) => {
            let path = key.path(root);
            std::fs::create_dir_all(root.join(key.job.to_string()))?;
            let file = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
            Ok(entry.insert(file))
        }
    }
}

/// Cuts the file to `length` where it is longer; gives the bytes it had.
fn cut(path: &Path, length: u64) -> io::Result<u64> {
    let file = OpenOptions::new().write(true).open(path)?;
    let found = file.metadata()?.len();
    if found > length {
        file.set_len(length)?;
        file.sync_all()?;
    }
    Ok(found)
}

fn remove_unknown(root: &Path, known: &BTreeSet<PathBuf>) -> io::Result<()> {
    for job in std::fs::read_dir(root)? {
        let job = job?.path();
        if !job.is_dir() {
            continue;
        }
        for spool in std::fs::read_dir(&job)? {
            let path = spool?.path();
            if !known.contains(&path) {
                std::fs::remove_file(path)?;
            }
        }
        drop(std::fs::remove_dir(&job));
    }
    Ok(())
}
