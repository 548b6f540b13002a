//! What is made durable together: records, results, and what else they change.

use super::{Loaded, Sequence, StoreError, TokenHash};
use crate::spool::{SpoolEntry, SpoolKey};
use std::time::Instant;
use tessera_transport::TokenRecord;
use tessera_transport::member::MemberRecord;
use tokio::sync::oneshot;

/// Changes to be made durable together. Commits become durable in the order in which they were
/// sent.
#[derive(Debug)]
pub struct Commit {
    /// New records, by their sequence numbers.
    pub records: Vec<(Sequence, Vec<u8>)>,
    /// Results that the records accept.
    pub results: Vec<SpoolEntry>,
    /// Spools that have all their results. They are sealed.
    pub sealed: Vec<SpoolKey>,
    /// Spools that are no longer needed after these records.
    pub finished: Vec<SpoolKey>,
    /// A new or changed token; None removes it.
    pub token: Option<(TokenHash, Option<TokenRecord>)>,
    /// New and changed members; None for one that is forgotten.
    pub members: Vec<(u64, Option<MemberRecord>)>,
    /// New and changed files of the farm, sealed.
    pub files: Vec<(String, Vec<u8>)>,
    /// Snapshot of the state after the newest record sent so far.
    pub snapshot: Option<(Sequence, Vec<u8>)>,
    /// Gets the whole content of the store as it is after this commit.
    pub inspect: Option<oneshot::Sender<Result<Loaded, StoreError>>>,
    /// Answered after the sync; dropped if the store has failed.
    pub done: oneshot::Sender<()>,
    /// When the commit was made, shortly before it is sent.
    pub(super) made: Instant,
}

impl Commit {
    /// Creates an empty commit, and the receiver of its answer.
    pub fn new() -> (Self, oneshot::Receiver<()>) {
        let (done, told) = oneshot::channel();
        let commit = Self {
            records: Vec::new(),
            results: Vec::new(),
            sealed: Vec::new(),
            finished: Vec::new(),
            token: None,
            members: Vec::new(),
            files: Vec::new(),
            snapshot: None,
            inspect: None,
            done,
            made: Instant::now(),
        };
        (commit, told)
    }

    /// Whether it is only results in the middle of a frame. Their node works on meanwhile.
    pub(super) fn can_wait(&self) -> bool {
        !self.results.is_empty()
            && self.sealed.is_empty()
            && self.finished.is_empty()
            && self.token.is_none()
            && self.members.is_empty()
            && self.files.is_empty()
            && self.snapshot.is_none()
            && self.inspect.is_none()
    }
}
