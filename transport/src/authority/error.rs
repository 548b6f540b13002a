//! Errors of the authority.

use crate::identity::peer::PeerError;
use std::path::PathBuf;

/// Why an authority cannot be used, or does not sign.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// A file cannot be read or written.
    #[error("cannot read or write the farm's authority at `{}`", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        #[source]
        source: std::io::Error,
    },
    /// The files do not contain an authority.
    #[error("`{}` is not the farm's authority: {problem}; restore it from a backup, or move it \
        away to found a new farm", path.display())]
    Broken {
        /// Path of the file.
        path: PathBuf,
        /// Description of the fault.
        problem: &'static str,
    },
    /// The former rotation has not ended.
    #[error(
        "the authority was rotated already, and the one before is trusted for {0} s more; rotate \
            again after that"
    )]
    Rotating(u64),
    /// The authority is changed on the disk, and not in the store from which a start reads it.
    #[error("the authority cannot be kept in the store: {0}")]
    Elsewhere(String),
    /// The request is malformed.
    #[error("the certificate request is malformed: {0}")]
    Request(&'static str),
    /// The identity cannot be signed.
    #[error(transparent)]
    Identity(#[from] PeerError),
    /// The cryptography failed.
    #[error("cannot make a certificate")]
    Crypto(#[source] rcgen::Error),
}
