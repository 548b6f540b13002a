//! Who leads a store, and how far its journal was followed. Reads nothing.

/// A place in a journal up to which it was read, with what shows later whether the journal still
/// goes on from there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Followed {
    /// Sequence of the newest record that was read, or of the snapshot if there is none after it.
    pub head: u64,
    /// Number of takeovers, and the name of the newest term.
    pub term: (i64, Vec<u8>),
    /// Number of commits.
    pub commits: i64,
    /// Number of the commit that wrote the newest snapshot; 0 if there is none.
    pub snapshot: i64,
    /// First sequence of the newest group of records that was read, and its hash.
    pub group: Option<(u64, [u8; 32])>,
    /// Hash of the values that are no records.
    pub values: String,
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
