//! The store: what the coordinator has promised, on disk. Owns the journal's form and the order of
//! writing and syncing.
//!
//! A group of changes is durable as a whole or not at all; the caller is told after the sync has
//! returned.

mod sled;
pub mod snapshot;
mod writer;

pub use self::sled::{ExportError, ExportSummary, Journal, Survey, export, values_of};
pub use writer::{Commit, StoreQueue, StoreWriter, WriterLimits};

use crate::spool::{SpoolError, SpoolExtent, SpoolKey};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use tessera_transport::TokenRecord;

/// Position of a record in the journal, counted from 1.
pub type Sequence = u64;

/// Hash of a token's secret: its name in the ledger.
pub type TokenHash = [u8; 32];

/// What one group changes.
#[derive(Debug, Default)]
pub struct Changes {
    /// New records.
    pub records: Vec<(Sequence, Vec<u8>)>,
    /// Durable extents of spools; None where a spool is done with.
    pub spools: BTreeMap<SpoolKey, Option<SpoolExtent>>,
    /// Tokens made and changed; None where one is used up.
    pub tokens: BTreeMap<TokenHash, Option<TokenRecord>>,
    /// The state after the record of this sequence: records up to it are not needed any more.
    pub snapshot: Option<(Sequence, Vec<u8>)>,
}

/// Everything that a store holds.
#[derive(Debug, Default)]
pub struct Loaded {
    /// The newest snapshot, and the record it stands after.
    pub snapshot: Option<(Sequence, Vec<u8>)>,
    /// Records after the snapshot, in order, without a gap.
    pub records: Vec<(Sequence, Vec<u8>)>,
    /// Durable extents of spools.
    pub spools: BTreeMap<SpoolKey, SpoolExtent>,
    /// Tokens that can still be used or have expired.
    pub tokens: BTreeMap<TokenHash, TokenRecord>,
}

/// A place that keeps groups of changes.
pub trait Store: Send + 'static {
    /// Everything in it; fails on the first thing that is not intact. Changes nothing.
    fn load(&self) -> Result<Loaded, StoreError>;
    /// Removes what a crash left behind and nothing names any more.
    fn tidy(&mut self) -> Result<(), StoreError>;
    /// Makes a group durable, whole; on return it has been synced.
    fn commit(&mut self, changes: &Changes) -> Result<(), StoreError>;
}

/// Why a store cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Something is not what was written.
    #[error(
        "{what} in store `{path}` is damaged: {problem}; nothing was changed, and what is intact \
         can be saved with \
         `tessera coordinator --data DIR --export FILE`"
    )]
    Damaged {
        /// The store.
        path: PathBuf,
        /// Which part.
        what: String,
        /// How.
        problem: String,
    },
    /// sled said no.
    #[error("store `{path}` cannot be used")]
    Sled {
        /// The store.
        path: PathBuf,
        /// Why.
        #[source]
        source: ::sled::Error,
    },
    /// The file system said no.
    #[error("`{path}` cannot be used")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A spool cannot be written.
    #[error("results cannot be kept")]
    Spool(#[from] SpoolError),
    /// The disk is nearly full.
    #[error("disk of `{path}` has {free} bytes free, fewer than the {needed} that are needed")]
    Full {
        /// The data folder.
        path: PathBuf,
        /// Bytes free.
        free: u64,
        /// Bytes needed, the reserve included.
        needed: u64,
    },
    /// What the core wants kept has no bytes.
    #[error("a record cannot be encoded: {0}")]
    Record(String),
    /// The writer has stopped.
    #[error("the store has stopped")]
    Stopped,
}
