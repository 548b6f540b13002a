//! Following a store that another coordinator leads: what is new in it, and who leads. Writes
//! nothing.

use super::{Loaded, Sequence, StoreError};

/// Reads a store that another coordinator leads. Every call blocks, and may be repeated after an
/// error.
pub trait Follow: Send {
    /// Reads everything but the audit log, at one place of the journal.
    fn load(&mut self) -> Result<(Loaded, Followed), StoreError>;
    /// Reads who leads and what is new after a place. Cheap where nothing is new.
    fn look(&mut self, at: &Followed) -> Result<Look, StoreError>;
}

/// A place in a journal up to which it was read, with what shows later whether the journal still
/// goes on from there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Followed {
    /// Sequence of the newest record that was read, or of the snapshot if there is none after it.
    pub head: Sequence,
    /// Number of takeovers, and the name of the newest term.
    pub term: (i64, Vec<u8>),
    /// Number of commits.
    pub commits: i64,
    /// Number of the commit that wrote the newest snapshot; 0 if there is none.
    pub snapshot: i64,
    /// First sequence of the newest group of records that was read, and its hash.
    pub group: Option<(Sequence, [u8; 32])>,
    /// Hash of the values that are no records.
    pub values: String,
}

/// What a look has found.
#[derive(Debug)]
pub struct Look {
    /// Who leads.
    pub leader: Leading,
    /// What became of the journal.
    pub journal: Followable,
    /// Tokens, members and files, if they are not what they were.
    pub values: Option<Loaded>,
}

/// What became of a journal after a place.
#[derive(Debug)]
pub enum Followable {
    /// It goes on with these records, in order, to this place.
    After(Vec<(Sequence, Vec<u8>)>, Followed),
    /// It does not go on from there, or that cannot be shown: load it again.
    Elsewhere,
}

/// Who leads a store.
#[derive(Clone, Default, PartialEq)]
pub struct Leading {
    /// Who leads, in words.
    pub owner: String,
    /// Where it serves HTTP, as `https://HOST:PORT`; empty if it does not.
    pub http: String,
    /// Secret of its term, which only coordinators of the farm know.
    pub key: Vec<u8>,
    /// Seconds until its term ends unless it goes on; negative after that.
    pub left: f64,
}

impl std::fmt::Debug for Leading {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without the secret.
        write!(f, "Leading({:?}, {:?}, {})", self.owner, self.http, self.left)
    }
}
