//! The store: the durable state of the coordinator. Owns the journal's form and the order of
//! writing and syncing.
//!
//! A group of changes is durable as a whole or not at all. The caller gets its answer after the
//! sync has returned.

mod acknowledged;
mod audit_head;
mod audit_line;
mod commit;
pub mod envelope;
mod follow;
mod followed;
pub mod keys;
mod led;
mod mark;
mod migrate;
mod place;
mod queue;
mod sled;
pub mod snapshot;
pub mod spool_changes;
mod survey;
mod writer;

pub use self::sled::{ExportError, ExportSummary, Journal, JournalReader, export};
pub use acknowledged::{Acknowledged, Witness};
pub use audit_head::{AuditEntry, AuditHead, Waiting};
pub use audit_line::{AUDIT_ENTRIES_MAX, AuditChain, AuditLine};
pub use commit::Commit;
pub use follow::{Follow, Followable, Look};
pub use followed::{Followed, Leading};
pub use keys::values_of;
pub(crate) use led::note_no_lead;
pub use led::{last_lead, leads_on, note_lead};
pub use mark::StoreMark;
pub use migrate::{Migration, MigrationError, migrate};
pub use place::{Purpose, SledPlace, StorePlace};
pub use queue::StoreQueue;
pub use survey::Survey;
pub use writer::{StoreWriter, WriterLimits};

use crate::spool::{SpoolError, SpoolExtent, SpoolKey, StoredResults};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use tessera_transport::TokenRecord;
use tessera_transport::member::MemberRecord;

/// Position of a record in the journal, counted from 1.
pub type Sequence = u64;

/// Hash of a token's secret. It names the token in the ledger.
pub type TokenHash = [u8; 32];

/// Changes of one group.
#[derive(Debug, Default)]
pub struct Changes {
    /// New records, with their positions.
    pub records: Vec<(Sequence, Vec<u8>)>,
    /// Durable extents of spools; None for a spool that is no longer needed.
    pub spools: BTreeMap<SpoolKey, Option<SpoolExtent>>,
    /// New objects of results elsewhere, by spool and number; None for one that is not needed.
    pub stored: BTreeMap<(SpoolKey, u32), Option<Arc<StoredResults>>>,
    /// New and changed tokens; None for a token that is removed.
    pub tokens: BTreeMap<TokenHash, Option<TokenRecord>>,
    /// New and changed members, by the numbers of their identities; None for one that is forgotten.
    pub members: BTreeMap<u64, Option<MemberRecord>>,
    /// State after the record with this sequence. Records up to it are no longer needed.
    pub snapshot: Option<(Sequence, Vec<u8>)>,
    /// Newest entry of the audit log, if it is another one.
    pub audit_head: Option<Vec<u8>>,
    /// New entries of the audit log, for a store elsewhere.
    pub audit: Vec<AuditEntry>,
    /// New and changed files of the farm, sealed, for a store elsewhere.
    pub files: BTreeMap<String, Vec<u8>>,
}

/// Complete content of a store.
#[derive(Debug, Default)]
pub struct Loaded {
    /// The newest snapshot, and the sequence of the last record in it.
    pub snapshot: Option<(Sequence, Vec<u8>)>,
    /// Records after the snapshot, in order, without a gap.
    pub records: Vec<(Sequence, Vec<u8>)>,
    /// Durable extents of spools.
    pub spools: BTreeMap<SpoolKey, SpoolExtent>,
    /// Tokens that are not removed yet.
    pub tokens: BTreeMap<TokenHash, TokenRecord>,
    /// Newest entry of the audit log that the store knows of. The log may be ahead of it.
    pub audit_head: Option<Vec<u8>>,
    /// Members, by the numbers of their identities.
    pub members: BTreeMap<u64, MemberRecord>,
    /// Files of the farm, sealed, by their names; none where the store is in the data folder.
    pub files: BTreeMap<String, Vec<u8>>,
}

/// Whether this process still leads its store: a question that any thread can ask at no cost.
#[derive(Clone)]
pub struct LeadCheck(Arc<dyn Fn() -> Result<(), StoreError> + Send + Sync>);

impl LeadCheck {
    /// `check` must not wait. It fails if this process leads no more, and says why.
    pub fn new(check: impl Fn() -> Result<(), StoreError> + Send + Sync + 'static) -> Self {
        Self(Arc::new(check))
    }

    /// Fails if this process leads its store no more: what it knows may be old.
    pub fn check(&self) -> Result<(), StoreError> {
        (self.0)()
    }
}

impl std::fmt::Debug for LeadCheck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LeadCheck({:?})", self.check().is_ok())
    }
}

/// Storage for groups of changes.
pub trait Store: Send + 'static {
    /// Reads the complete content. Fails at the first damaged value. Changes nothing.
    fn load(&self) -> Result<Loaded, StoreError>;
    /// Reads what is after a place that was followed to, and all values that are no records. None
    /// if the journal does not go on from there, or that cannot be shown.
    fn load_after(&self, at: &Followed) -> Result<Option<Loaded>, StoreError> {
        let _ = at;
        Ok(None)
    }
    /// Removes files that a crash left behind and that no value names.
    fn tidy(&mut self) -> Result<(), StoreError>;
    /// Makes a whole group durable. It is synced on return.
    fn commit(&mut self, changes: &Changes) -> Result<(), StoreError>;
    /// Returns up to `most` entries of the audit log, those that follow the entry `after`, in
    /// order. None if this store keeps none: they are in the data folder.
    fn audit_after(&self, after: u64, most: usize) -> Result<Option<Vec<AuditEntry>>, StoreError> {
        let _ = (after, most);
        Ok(None)
    }
    /// Whether the data folder has the spools of everything that was committed: its own coordinator
    /// was the last one that wrote to this store.
    fn continues(&self) -> bool {
        true
    }
    /// Fails if the store can take no more commits. Asked every second while there is none.
    fn check(&self) -> Result<(), StoreError> {
        Ok(())
    }
    /// Returns what tells any thread, at no cost, whether this process still leads the store. None
    /// if nobody else can lead it.
    fn leading(&self) -> Option<LeadCheck> {
        None
    }
    /// Lets the store go, after the last commit.
    fn close(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
}

impl Store for Box<dyn Store> {
    fn load(&self) -> Result<Loaded, StoreError> {
        (**self).load()
    }

    fn load_after(&self, at: &Followed) -> Result<Option<Loaded>, StoreError> {
        (**self).load_after(at)
    }

    fn tidy(&mut self) -> Result<(), StoreError> {
        (**self).tidy()
    }

    fn commit(&mut self, changes: &Changes) -> Result<(), StoreError> {
        (**self).commit(changes)
    }

    fn audit_after(&self, after: u64, most: usize) -> Result<Option<Vec<AuditEntry>>, StoreError> {
        (**self).audit_after(after, most)
    }

    fn continues(&self) -> bool {
        (**self).continues()
    }

    fn check(&self) -> Result<(), StoreError> {
        (**self).check()
    }

    fn leading(&self) -> Option<LeadCheck> {
        (**self).leading()
    }

    fn close(&mut self) -> Result<(), StoreError> {
        (**self).close()
    }
}

/// Why a store cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Stored data differs from what was written.
    #[error(
        "{what} in store `{path}` is damaged: {problem}; nothing was changed: `tessera fsck` lists \
         the damage, `tessera restore` restores a backup into an empty folder, and \
         `tessera coordinator --data DIR --export FILE` saves what is intact"
    )]
    Damaged {
        /// Path of the store.
        path: PathBuf,
        /// Part that is damaged.
        what: String,
        /// Description of the damage.
        problem: String,
    },
    /// The disk is too full to open the journal.
    #[error(
        "the disk of `{path}` is full, and the journal needs a few MiB to be opened; nothing is \
         lost: make room, and start again"
    )]
    NoRoomToOpen {
        /// Path of the store.
        path: PathBuf,
    },
    /// The journal is read in a copy, and there is no room for the copy.
    #[error(
        "the journal is read in a copy, and there is no room for one in `{path}`: {needed} bytes \
         are needed; nothing was changed: make room there; for `fsck`, `backup` and `--export`, \
         TMPDIR names another folder"
    )]
    NoRoomForCopy {
        /// Folder of the copy.
        path: PathBuf,
        /// Bytes that are needed.
        needed: u64,
    },
    /// sled returned an error.
    #[error("store `{path}` cannot be used")]
    Sled {
        /// Path of the store.
        path: PathBuf,
        /// Error that sled reported.
        #[source]
        source: ::sled::Error,
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
    /// Results cannot be written to a spool.
    #[error("results cannot be kept")]
    Spool(#[from] SpoolError),
    /// The disk is nearly full.
    #[error("disk of `{path}` has {free} bytes free, fewer than the {needed} that are needed")]
    Full {
        /// Path of the data folder.
        path: PathBuf,
        /// Bytes that are free.
        free: u64,
        /// Bytes that are needed, with the reserve.
        needed: u64,
    },
    /// A record of the core cannot be encoded.
    #[error("a record cannot be encoded: {0}")]
    Record(String),
    /// What the files of finished frames are cannot be read any more from the file that has it.
    #[error(
        "what the files of finished frames are was lost on the disk of the data folder; nothing \
         that was acknowledged is: start the coordinator again"
    )]
    Shelf,
    /// A store elsewhere returned an error, or something that cannot be.
    #[error("store `{store}` cannot be used: {problem}")]
    Service {
        /// Address of the store, without a password.
        store: String,
        /// What was tried.
        problem: String,
        /// What to do about it, if that is known.
        hint: Option<&'static str>,
        /// Error of the service, if it has one.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// A value of a store elsewhere differs from what was written.
    #[error(
        "{what} in `{store}` is damaged: {problem}; nothing was changed: `tessera fsck --store` \
         lists the damage, and a backup of the database has what was there"
    )]
    DamagedElsewhere {
        /// Address of the store, without a password.
        store: String,
        /// Part that is damaged.
        what: String,
        /// Description of the damage.
        problem: String,
    },
    /// Another coordinator leads.
    #[error(
        "`{store}` has a leader: {leader}, until {secs:.0} s from now unless it goes on; stop that \
         coordinator, or wait for its end with --stand-by"
    )]
    Led {
        /// Address of the store, without a password.
        store: String,
        /// Who leads.
        leader: String,
        /// Seconds until the leader's term ends.
        secs: f64,
    },
    /// The coordinator led, and does so no more.
    #[error(
        "this coordinator does not lead `{store}` any more: {why}; it has stopped, and nothing \
         that was acknowledged is lost"
    )]
    NotLeader {
        /// Address of the store, without a password.
        store: String,
        /// What ended its term, and who leads now.
        why: String,
    },
    /// The coordinator was told to end while it waited to lead.
    #[error("the wait to lead `{store}` was ended")]
    Waited {
        /// Address of the store, without a password.
        store: String,
    },
    /// The folder's state is in another store.
    #[error(
        "the state of `{path}` is not in the folder but in `{store}`: give that address by \
         --store; `tessera store migrate` brings it back"
    )]
    Elsewhere {
        /// Path of the data folder.
        path: PathBuf,
        /// Address of the store, without a password.
        store: String,
    },
    /// The data folder belongs to other state than the store has.
    #[error("`{store}` and the data folder `{path}` do not belong together: {why}")]
    OtherFarm {
        /// Path of the data folder.
        path: PathBuf,
        /// Address of the store, without a password.
        store: String,
        /// What shows it, and what to do.
        why: &'static str,
    },
    /// A store that must be empty is not.
    #[error("`{store}` is not empty; state is copied to an empty store only")]
    NotEmpty {
        /// Where the store is.
        store: String,
    },
    /// The writer has stopped.
    #[error("the store has stopped")]
    Stopped,
}

impl StoreError {
    /// Returns advice for a person, in one line.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Service { hint, .. } => *hint,
            _ => None,
        }
    }
}
