//! The deny-list: identities that are shut out, in one small file that is replaced as a whole.
//! Closes no connection; see [`super::Access`].

use crate::sync::lock;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use tessera_protocol::access::{DENIED_MAX, DeniedIdentity};
use tessera_transport::files::{self, Access};

/// Longest file that is read, in bytes. Names and reasons of entries have bounded lengths.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// Why the list cannot be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum DeniedError {
    /// The file system returned an error.
    #[error("the deny-list `{}` cannot be used", path.display())]
    Io {
        /// Path of the list.
        path: PathBuf,
        /// Error of the file system.
        #[source]
        source: std::io::Error,
    },
    /// The file is damaged. It is never treated as an empty list.
    #[error("the deny-list `{}` is damaged: {problem}; restore it, or remove it to admit every \
        identity again", path.display())]
    Broken {
        /// Path of the list.
        path: PathBuf,
        /// Description of the damage.
        problem: String,
    },
    /// The list is changed on the disk, and not in the store that the next start reads it from.
    #[error("the deny-list cannot be kept in the store: {0}")]
    Elsewhere(String),
    /// The list has no room for another entry.
    #[error("{DENIED_MAX} identities are denied already; allow some that no longer exist")]
    Full,
}

/// The deny-list, in memory and in its file. It goes by the numbers of identities.
#[derive(Debug)]
pub(crate) struct Denied {
    path: PathBuf,
    entries: Mutex<BTreeMap<u64, DeniedIdentity>>,
}

impl Denied {
    /// Reads the list from a file. A missing file is an empty list.
    pub(crate) fn open(path: &Path) -> Result<Self, DeniedError> {
        let broken = |problem: String| DeniedError::Broken { path: path.to_owned(), problem };
        let bytes = match files::read_bounded(path, FILE_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => b"[]".to_vec(),
            Err(source) => return Err(DeniedError::Io { path: path.to_owned(), source }),
        };
        let list: Vec<DeniedIdentity> =
            serde_json::from_slice(&bytes).map_err(|error| broken(error.to_string()))?;
        let mut entries = BTreeMap::new();
        for entry in list {
            if entry.number == 0 {
                return Err(broken(format!("{:?} has no number", entry.identity)));
            }
            entries.insert(entry.number, entry);
        }
        Ok(Self { path: path.to_owned(), entries: Mutex::new(entries) })
    }

    /// Returns the entry of this identity.
    pub(crate) fn get(&self, number: u64) -> Option<DeniedIdentity> {
        lock(&self.entries).get(&number).cloned()
    }

    /// Returns all entries of the deny-list.
    pub(crate) fn list(&self) -> Vec<DeniedIdentity> {
        lock(&self.entries).values().cloned().collect()
    }

    /// Takes over another list, in memory.
    pub(crate) fn follow(&self, other: &Self) {
        let entries = lock(&other.entries).clone();
        *lock(&self.entries) = entries;
    }

    /// Adds or removes an entry, durably. Blocks.
    pub(crate) fn change(
        &self,
        number: u64,
        entry: Option<DeniedIdentity>,
    ) -> Result<(), DeniedError> {
        let mut entries = lock(&self.entries);
        let mut changed = entries.clone();
        match entry {
            Some(entry) => drop(changed.insert(number, entry)),
            None => drop(changed.remove(&number)),
        }
        if changed.len() > DENIED_MAX {
            return Err(DeniedError::Full);
        }
        let list: Vec<&DeniedIdentity> = changed.values().collect();
        let io = |source| DeniedError::Io { path: self.path.clone(), source };
        let text = serde_json::to_vec_pretty(&list).map_err(|error| io(error.into()))?;
        files::create_private_folder(files::folder_of(&self.path)).map_err(io)?;
        files::write_atomically(&self.path, &text, Access::Secret).map_err(io)?;
        *entries = changed;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_outlives_its_process_and_a_damaged_one_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access/denied.json");
        let list = Denied::open(&path).unwrap();
        let entry = DeniedIdentity {
            identity: "user:ada".into(),
            number: 3,
            name: String::new(),
            by: "admin root".into(),
            at: 5,
            reason: "left".into(),
        };
        list.change(3, Some(entry.clone())).unwrap();
        let again = Denied::open(&path).unwrap();
        assert_eq!(again.get(3), Some(entry));
        again.change(3, None).unwrap();
        assert_eq!(Denied::open(&path).unwrap().get(3), None);
        let zero = r#"[{"identity":"x","number":0,"name":"","by":"","at":1,"reason":""}]"#;
        for text in ["", "[", "{}", zero] {
            std::fs::write(&path, text).unwrap();
            let error = Denied::open(&path).unwrap_err();
            assert!(matches!(error, DeniedError::Broken { .. }), "{text}: {error}");
        }
    }
}
