//! Where a coordinator's state is: its own journal in sled, or a store elsewhere that an address
//! names. Opens stores, and owns none.

use super::mark::StoreMark;
use super::{Follow, Journal, JournalReader, Store, StoreError, Survey};
use crate::folder::DataFolder;
use std::fmt::Debug;
use tessera_transport::validity::now_secs;

/// What a store is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To run a farm.
    Run,
    /// To copy its content to another store. The folder must be of this store.
    CopyFrom,
    /// To fill it with the content of another store.
    CopyTo,
}

/// A place of a store. A data folder belongs to one store only, which its mark names.
pub trait StorePlace: Debug + Send + Sync {
    /// Describes the place for messages, without secrets.
    fn describe(&self, folder: &DataFolder) -> String;
    /// Opens or makes the store, as the only one that writes to it. Blocks.
    fn open(&self, folder: &DataFolder, purpose: Purpose) -> Result<Box<dyn Store>, StoreError>;
    /// Opens the store to lead it, and does not wait while another one does. Blocks.
    fn lead(&self, folder: &DataFolder) -> Result<Box<dyn Store>, StoreError> {
        self.open(folder, Purpose::Run)
    }
    /// Opens the store to follow its leader, if a start is to wait for its lead. Refuses a folder
    /// that could not lead it. Blocks.
    fn follow(&self, folder: &DataFolder) -> Result<Option<Box<dyn Follow>>, StoreError> {
        let _ = folder;
        Ok(None)
    }
    /// Says where this coordinator serves HTTP, so that others find it while it leads.
    fn serves_http_at(&self, url: &str) {
        let _ = url;
    }
    /// Secret of the term in which this coordinator leads; empty where there is nobody else.
    fn term_key(&self) -> Vec<u8> {
        Vec::new()
    }
    /// Reads every value, damaged or not, of a store that nobody writes to. Changes nothing.
    fn survey(&self, folder: &DataFolder) -> Result<Survey, StoreError>;
    /// Makes the folder one of this store, after a migration.
    fn adopt(&self, folder: &DataFolder) -> Result<(), StoreError>;
    /// Puts what the folder has of this store out of the way, after a migration to another one.
    fn leave(&self, folder: &DataFolder) -> Result<(), StoreError>;
}

/// The journal in the data folder, with sled.
#[derive(Clone, Copy, Debug)]
pub struct SledPlace;

impl StorePlace for SledPlace {
    fn describe(&self, folder: &DataFolder) -> String {
        format!("sled:{}", folder.root().display())
    }

    fn open(&self, folder: &DataFolder, purpose: Purpose) -> Result<Box<dyn Store>, StoreError> {
        if purpose != Purpose::CopyTo {
            StoreMark::refuse(folder)?;
        }
        Ok(Box::new(Journal::open_own(folder, true)?))
    }

    fn survey(&self, folder: &DataFolder) -> Result<Survey, StoreError> {
        Ok(JournalReader::inspect(folder)?.survey())
    }

    fn adopt(&self, folder: &DataFolder) -> Result<(), StoreError> {
        StoreMark::remove(folder)
    }

    /// Moves the journal to a folder of its own below `former`.
    fn leave(&self, folder: &DataFolder) -> Result<(), StoreError> {
        let to = folder.former().join(format!("journal-{}", now_secs()));
        let failed = |source| StoreError::Io { path: to.clone(), source };
        std::fs::create_dir_all(&to).map_err(failed)?;
        for part in [folder.sled(), folder.records(), folder.witness()] {
            let name = part.file_name().unwrap_or_default();
            std::fs::rename(&part, to.join(name)).map_err(failed)?;
        }
        tracing::info!(kept = %to.display(), "the journal of before was put aside");
        folder.sync().map_err(|error| failed(std::io::Error::other(error)))
    }
}
