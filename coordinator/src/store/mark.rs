//! The mark of a data folder whose state is in a store elsewhere: which store, and where it was. It
//! keeps a coordinator from starting on the folder's own, old or empty journal.

use super::StoreError;
use crate::folder::DataFolder;
use std::io;
use tessera_transport::files;
use uuid::Uuid;

/// First line of the file.
const HEAD: &str = "state is in another store";
/// Longest file in bytes. An address has a few hundred.
const BYTES_MAX: u64 = 8192;

/// Names the store that a data folder belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreMark {
    /// Id of the store, which it has from the day that it was made.
    pub id: Uuid,
    /// Where the store was last, without a password.
    pub address: String,
}

impl StoreMark {
    /// Reads the mark of a folder. None if its state is in its own journal.
    pub fn read(folder: &DataFolder) -> Result<Option<Self>, StoreError> {
        let path = folder.store_mark();
        let bytes = match files::read_secret(&path, BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(StoreError::Io { path, source }),
        };
        let text = String::from_utf8_lossy(&bytes);
        let mut lines = text.lines();
        let mark = match (lines.next(), lines.next().map(Uuid::parse_str), lines.next()) {
            (Some(HEAD), Some(Ok(id)), Some(address)) => Self { id, address: address.to_owned() },
            _ => {
                let problem = "it does not name a store".into();
                return Err(StoreError::Damaged {
                    path,
                    what: "the mark (`store`)".into(),
                    problem,
                });
            }
        };
        Ok(Some(mark))
    }

    /// Fails if the folder's state is in another store.
    pub(crate) fn refuse(folder: &DataFolder) -> Result<(), StoreError> {
        match Self::read(folder)? {
            Some(Self { address: store, .. }) => {
                Err(StoreError::Elsewhere { path: folder.root().to_path_buf(), store })
            }
            None => Ok(()),
        }
    }

    /// Writes the mark, durably.
    pub fn write(&self, folder: &DataFolder) -> Result<(), StoreError> {
        let path = folder.store_mark();
        let text = format!("{HEAD}\n{}\n{}\n", self.id, self.address);
        files::write_atomically(&path, text.as_bytes(), files::Access::Secret)
            .map_err(|source| StoreError::Io { path, source })
    }

    /// Removes the mark, durably: the state is in the folder's own journal again.
    pub(crate) fn remove(folder: &DataFolder) -> Result<(), StoreError> {
        let path = folder.store_mark();
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(source) => return Err(StoreError::Io { path, source }),
            Ok(()) => {}
        }
        files::sync_folder(folder.root()).map_err(|source| StoreError::Io { path, source })
    }
}
