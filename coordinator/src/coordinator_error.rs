//! Why a coordinator does not start, or has ended.

use crate::access::{DeniedError, KeptError};
use crate::blobs::BlobPlaceError;
use crate::farm_files::FarmFilesError;
use crate::folder::FolderError;
use crate::spool::SpoolError;
use crate::store::StoreError;
use tessera_core::ReplayError;
use tessera_transport::authority::AuthorityError;
use tessera_transport::identity::IdentityError;
use tessera_transport::peer::PeerError;
use tessera_transport::server::ServeError;

/// Why a coordinator does not start, or why it has ended.
#[derive(Debug, thiserror::Error)]
pub enum CoordinatorError {
    /// The data folder cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The spools cannot be used.
    #[error(transparent)]
    Spool(#[from] SpoolError),
    /// The blobs cannot be used.
    #[error(transparent)]
    Blobs(#[from] BlobPlaceError),
    /// The journal's values are intact but cannot be understood.
    #[error(
        "the journal in `{path}` cannot be read: {problem}; nothing was changed, and what is \
         intact can be saved with \
         `tessera coordinator --data DIR --export FILE`"
    )]
    Journal {
        /// Path of the data folder.
        path: std::path::PathBuf,
        /// Description of the fault.
        problem: String,
    },
    /// The records contradict each other.
    #[error(
        "the journal in `{path}` contradicts itself; nothing was changed, and what is intact can \
         be saved with \
         `tessera coordinator --data DIR --export FILE`"
    )]
    Replay {
        /// Path of the data folder.
        path: std::path::PathBuf,
        /// The contradiction, and its place.
        #[source]
        source: ReplayError,
    },
    /// The farm's authority is gone, and there are members with certificates of it.
    #[error(
        "the farm's authority is missing from `{path}`, and there are members of it: {members}; \
         a new one would lock all of them out: put the folder `authority` of a backup back; if \
         there is none, --new-authority makes a new one, and every node and user must enrol again, \
         with tokens that replace (`tessera token create --replace --name NAME`)"
    )]
    NoAuthority {
        /// Folder of the authority.
        path: std::path::PathBuf,
        /// What shows that there are members.
        members: String,
    },
    /// The farm's files cannot be brought from a store elsewhere, or into it.
    #[error(transparent)]
    Files(#[from] FarmFilesError),
    /// The farm's authority cannot be used.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    /// An identity cannot be stored.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The audit log cannot be read or written.
    #[error("the audit log in `{path}` cannot be used")]
    AuditLog {
        /// Folder of the log.
        path: std::path::PathBuf,
        /// Error of the file system.
        #[source]
        source: std::io::Error,
    },
    /// The deny-list cannot be read.
    #[error(transparent)]
    Denied(#[from] DeniedError),
    /// A name cannot be an identity's name.
    #[error(transparent)]
    Peer(#[from] PeerError),
    /// The coordinator cannot listen on the address.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// The socket does not tell its address.
    #[error("the socket does not say where it listens")]
    Socket(#[source] std::io::Error),
    /// A task has ended although it should not.
    #[error("the coordinator's task has failed: {0}")]
    Task(String),
}

impl From<KeptError> for CoordinatorError {
    fn from(error: KeptError) -> Self {
        match error {
            KeptError::Authority(error) => error.into(),
            KeptError::Identity(error) => error.into(),
        }
    }
}
