//! What an operator may tune, with its defaults. Decides nothing.

use crate::lease::secret::Secret;
use std::time::Duration;

/// Times and budgets of the core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// A lease ends this long after it was last renewed (granted, or listed in a heartbeat).
    pub lease: Duration,
    /// A lease ends this long after it was granted, however often it is renewed: the node is stuck
    /// on it. Units are cut for seconds.
    pub lease_longest: Duration,
    /// Leases of a node whose session is lost are kept this long. With the transport's idle time
    /// (2.5 s) it makes the time from a node's last sign of life to the next lease of its units,
    /// which is to be under 5 s. A node that dials again later goes on with those that nobody has
    /// by then.
    pub grace: Duration,
    /// A unit whose device says how far it is, and is no further after this long (or four times
    /// what its node should need for the whole unit, if that is longer), is taken back as timed
    /// out.
    pub stall: Duration,
    /// A unit that lacks what is not its own (a file, room on a node's disk) waits for it this
    /// long; then that is a failure.
    pub shortage_longest: Duration,
    /// After a restart, nothing is leased for this long, so that nodes can come back and say what
    /// they work on.
    pub settle: Duration,
    /// Attempts of one unit that may fail before it is dead. At least 1.
    pub attempts: u8,
    /// Leases of one unit that may expire or be lost with their node before it is dead: above
    /// `attempts`, because a node that is switched off says nothing about the unit, but bounded,
    /// because a unit may be what takes nodes down. At least 1.
    pub losses: u8,
    /// Wait before a failed unit is leased again; doubles with each attempt.
    pub backoff: Duration,
    /// Longest wait before a failed unit or a failed resolve is tried again.
    pub backoff_longest: Duration,
    /// A job may be passed over this long for a younger one of the same priority whose scene the
    /// node holds.
    pub patience: Duration,
    /// A unit with so long to go, or that long overdue, is copied to an idle node whose speed at
    /// the job nobody knows.
    pub copy_after: Duration,
    /// A node that keeps failing gets no work for this long; doubles each time, up to an hour.
    pub unfit: Duration,
    /// Results of a node of which so many of 1024 are rendered again by another node, once the node
    /// is well known; 1024: all.
    pub check_share: u16,
    /// Checks that a node must have passed before fewer than all of its results are checked; the
    /// share then halves with each half of this number, down to `check_share`.
    pub check_first: u32,
    /// A check of a frame that lacks nothing else waits this long for a node that may do it.
    pub check_wait: Duration,
    /// Known to no node; kept by the shell.
    pub secret: Secret,
    /// Epochs in one reservation: one record of the journal for this many leases.
    pub epoch_block: u64,
}

impl Settings {
    /// The same, with no result checked.
    pub fn without_checks(self) -> Self {
        Self { check_share: 0, check_first: 0, ..self }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(60),
            lease_longest: Duration::from_secs(3600),
            grace: Duration::from_millis(1500),
            stall: Duration::from_secs(60),
            shortage_longest: Duration::from_secs(600),
            settle: Duration::from_secs(2),
            attempts: 4,
            losses: 16,
            backoff: Duration::from_secs(1),
            backoff_longest: Duration::from_secs(60),
            patience: Duration::from_secs(5),
            copy_after: Duration::from_secs(30),
            unfit: Duration::from_secs(60),
            check_share: 10,
            check_first: 200,
            check_wait: Duration::from_secs(20),
            secret: Secret([0; 32]),
            epoch_block: 4096,
        }
    }
}
