//! The mark of a data folder whose state is in a store elsewhere.

use super::StoreError;
use crate::folder::DataFolder;
use crate::mark::Mark;
use std::io;
use uuid::Uuid;

/// First line of the file.
const HEAD: &str = "state is in another store";

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
        match Mark::read(&path, HEAD) {
            Ok(mark) => Ok(mark.map(|Mark { id, address }| Self { id, address })),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                let problem = "it does not name a store".into();
                Err(StoreError::Damaged { path, what: "the mark (`store`)".into(), problem })
            }
            Err(source) => Err(StoreError::Io { path, source }),
        }
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
        let (path, Self { id, address }) = (folder.store_mark(), self.clone());
        let written = Mark { id, address }.write(&path, HEAD);
        written.map_err(|source| StoreError::Io { path, source })
    }

    /// Removes the mark, durably: the state is in the folder's own journal again.
    pub(crate) fn remove(folder: &DataFolder) -> Result<(), StoreError> {
        let path = folder.store_mark();
        Mark::remove(&path).map_err(|source| StoreError::Io { path, source })
    }
}
