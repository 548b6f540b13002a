//! Where a coordinator's blobs are: on the disk of its data folder, or in a store elsewhere that an
//! address names. Opens stores, and owns none.

use super::disk::DiskBlobs;
use super::store::Blobs;
use crate::folder::DataFolder;
use crate::mark::Mark;
use crate::spool::FolderResults;
use crate::store::Purpose;
use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tessera_transport::files;
use tessera_transport::validity::now_secs;
use uuid::Uuid;

/// First line of the mark of a folder whose blobs are elsewhere.
const HEAD: &str = "files are in another store";

/// Why a store of blobs cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum BlobPlaceError {
    /// The folder's blobs are in a store elsewhere.
    #[error("the files of the farm in `{path}` are in `{store}`")]
    Elsewhere {
        /// Path of the data folder.
        path: PathBuf,
        /// Address of the store.
        store: String,
    },
    /// The folder and the store are of two farms.
    #[error("`{store}` does not belong to the farm in `{path}`: {why}")]
    OtherFarm {
        /// Path of the data folder.
        path: PathBuf,
        /// Address of the store.
        store: String,
        /// What shows it, and what to do.
        why: &'static str,
    },
    /// The service of the store returned an error, or does not do what is needed.
    #[error("the files in `{store}` cannot be used: {problem}")]
    Service {
        /// Address of the store.
        store: String,
        /// What was tried.
        problem: String,
        /// What to do about it, if that is known.
        hint: Option<&'static str>,
        /// Error of the service, if it has one.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// The file system returned an error.
    #[error("`{path}` cannot be used")]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Error of the file system.
        #[source]
        source: io::Error,
    },
}

impl BlobPlaceError {
    /// Returns what to do about the error, where its text does not say it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Service { hint, .. } => *hint,
            Self::Elsewhere { .. } => Some("name the place by --blobs (TESSERA_BLOBS)"),
            Self::OtherFarm { .. } | Self::Io { .. } => None,
        }
    }
}

/// A place of blobs. A data folder's blobs are in one place only, which its mark names.
pub trait BlobPlace: Debug + Send + Sync {
    /// Describes the place for messages, without secrets.
    fn describe(&self, folder: &DataFolder) -> String;
    /// Whether other machines have the same blobs in this place.
    fn is_elsewhere(&self) -> bool {
        true
    }
    /// Opens or makes the store for the only coordinator that writes to it. Blobs are put together
    /// on the disk of the folder, of which uploads leave `reserve_bytes` free. Blocks.
    fn open(
        &self,
        folder: &DataFolder,
        purpose: Purpose,
        reserve_bytes: u64,
    ) -> Result<Arc<dyn Blobs>, BlobPlaceError>;
    /// Opens the store of a stopped farm to read it. Changes nothing. Blocks.
    fn inspect(&self, folder: &DataFolder) -> Result<Arc<dyn Blobs>, BlobPlaceError>;
    /// Makes this the place of the folder's blobs, after a migration.
    fn adopt(&self, folder: &DataFolder) -> Result<(), BlobPlaceError>;
    /// Puts what the folder has of this place out of the way, after a migration to another one.
    fn leave(&self, folder: &DataFolder) -> Result<(), BlobPlaceError>;
}

/// The disk of the data folder.
#[derive(Clone, Copy, Debug)]
pub struct DiskPlace;

impl BlobPlace for DiskPlace {
    fn describe(&self, folder: &DataFolder) -> String {
        format!("disk:{}", folder.root().display())
    }

    fn is_elsewhere(&self) -> bool {
        false
    }

    fn open(
        &self,
        folder: &DataFolder,
        purpose: Purpose,
        reserve_bytes: u64,
    ) -> Result<Arc<dyn Blobs>, BlobPlaceError> {
        if purpose != Purpose::CopyTo {
            BlobMark::refuse(folder)?;
        }
        Ok(Arc::new(DiskBlobs::open(folder, reserve_bytes)))
    }

    fn inspect(&self, folder: &DataFolder) -> Result<Arc<dyn Blobs>, BlobPlaceError> {
        BlobMark::refuse(folder)?;
        Ok(Arc::new(DiskBlobs::open(folder, 0)))
    }

    fn adopt(&self, folder: &DataFolder) -> Result<(), BlobPlaceError> {
        BlobMark::remove(folder)
    }

    /// Moves the blobs to a folder of their own below `former`.
    fn leave(&self, folder: &DataFolder) -> Result<(), BlobPlaceError> {
        let to = folder.former().join(format!("blobs-{}", now_secs()));
        let failed = |source| BlobPlaceError::Io { path: to.clone(), source };
        std::fs::create_dir_all(folder.former()).map_err(failed)?;
        std::fs::rename(folder.blobs(), &to).map_err(failed)?;
        FolderResults::new(folder.results()).put_aside(&to).map_err(failed)?;
        files::create_private_folder(&folder.blobs()).map_err(failed)?;
        tracing::info!(kept = %to.display(), "the files of before were put aside");
        folder.sync().map_err(|error| failed(io::Error::other(error)))
    }
}

/// Whether a data folder has blobs of its own.
pub(crate) fn has_own(folder: &DataFolder) -> Result<bool, BlobPlaceError> {
    let path = folder.blobs();
    let any = std::fs::read_dir(&path).and_then(|mut entries| entries.next().transpose());
    any.map(|entry| entry.is_some()).map_err(|source| BlobPlaceError::Io { path, source })
}

/// Names the store that has the blobs of a data folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobMark {
    /// Id of the store, which it has from the day that it was made.
    pub id: Uuid,
    /// Where the store was last.
    pub address: String,
}

impl BlobMark {
    /// Reads the mark of a folder. None if its blobs are on its own disk.
    pub fn read(folder: &DataFolder) -> Result<Option<Self>, BlobPlaceError> {
        let path = folder.blobs_mark();
        let mark = Mark::read(&path, HEAD).map_err(|source| BlobPlaceError::Io { path, source })?;
        Ok(mark.map(|Mark { id, address }| Self { id, address }))
    }

    /// Fails if the folder's blobs are in another store.
    pub(crate) fn refuse(folder: &DataFolder) -> Result<(), BlobPlaceError> {
        match Self::read(folder)? {
            Some(Self { address: store, .. }) => {
                Err(BlobPlaceError::Elsewhere { path: folder.root().to_path_buf(), store })
            }
            None => Ok(()),
        }
    }

    /// Fails unless the folder is of the store with this id. `made`: the store is new.
    pub fn check(
        folder: &DataFolder,
        (id, made): (Uuid, bool),
        (store, purpose): (&str, Purpose),
    ) -> Result<(), BlobPlaceError> {
        let why = match Self::read(folder)? {
            Some(mark) if mark.id == id => return Ok(()),
            Some(_) if made => {
                "the folder's files are in a store that is not there any more; give the address \
                 where they are, or restore a backup"
            }
            Some(_) => "the folder's files are in another store; give that one",
            None if purpose == Purpose::CopyTo && made => return Ok(()),
            None if purpose == Purpose::CopyTo => {
                "the store has the files of a farm already; give another prefix"
            }
            None if purpose == Purpose::CopyFrom => "the folder's files are on its own disk",
            None if has_own(folder)? => {
                "the folder has files of its own; `tessera store migrate --from disk:DIR` copies \
                 them"
            }
            None if !made => "the store has the files of another farm; give another prefix",
            None => return Ok(()),
        };
        let (path, store) = (folder.root().to_path_buf(), store.to_owned());
        Err(BlobPlaceError::OtherFarm { path, store, why })
    }

    /// Writes the mark, durably.
    pub fn write(&self, folder: &DataFolder) -> Result<(), BlobPlaceError> {
        let (path, Self { id, address }) = (folder.blobs_mark(), self.clone());
        let written = Mark { id, address }.write(&path, HEAD);
        written.map_err(|source| BlobPlaceError::Io { path, source })
    }

    fn remove(folder: &DataFolder) -> Result<(), BlobPlaceError> {
        let path: PathBuf = folder.blobs_mark();
        let removed = Mark::remove(Path::new(&path));
        removed.map_err(|source| BlobPlaceError::Io { path, source })
    }
}
