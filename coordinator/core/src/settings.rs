//! What an operator may tune, with its defaults. Decides nothing.

use crate::lease::secret::Secret;
use crate::weights::Weights;
use std::time::Duration;

/// Durations and limits of the core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// A lease ends this long after it was last renewed (granted, or listed in a heartbeat).
    pub lease: Duration,
    /// A lease ends this long after it was granted, even if it is renewed: the node is stuck. Units
    /// are meant to take seconds.
    pub lease_longest: Duration,
    /// Leases of a node whose session is lost are kept this long. The transport's idle time (2.5 s)
    /// comes on top: from a node's last sign of life to the next lease of its units, less than 5 s
    /// pass. A node that returns later keeps the units that were not leased again.
    pub grace: Duration,
    /// A unit is taken back as timed out if its device reports progress, but none for this long. If
    /// four times the expected time of the whole unit is longer, that is the limit.
    pub stall: Duration,
    /// Longest wait of a unit that lacks an external resource (a file, room on a node's disk).
    /// After it, the shortage counts as a failure.
    pub shortage_longest: Duration,
    /// A job waits this long once every node that may have it has reached a limit of its own,
    /// unless the job says otherwise. Then it fails.
    pub give_up: Duration,
    /// After a restart, nothing is leased for this long, so that nodes can reconnect and name their
    /// leases.
    pub settle: Duration,
    /// After a restart, nodes that were connected before are listed as away for this long. The
    /// longest wait of a node between two tries to connect is half of it.
    pub returning: Duration,
    /// Most absent nodes that stay on the list. Beyond, those that were taken off it are forgotten,
    /// then those that are gone for longest, drained ones last.
    pub absent_nodes: usize,
    /// Failed attempts of a unit after which it is dead, unless the job says otherwise. At least 1.
    pub attempts: u8,
    /// Expired or lost leases of a unit after which it is dead. Greater than `attempts`, because a
    /// node that is switched off says nothing about the unit; bounded, because a unit may crash its
    /// nodes. At least 1.
    pub losses: u8,
    /// Wait before a failed unit is leased again. Doubles with each attempt.
    pub backoff: Duration,
    /// Longest wait before a failed unit or a failed resolve is tried again.
    pub backoff_longest: Duration,
    /// Longest time for which a job may be served before its turn because a node already holds its
    /// scene; also the most device time by which that may put its owner ahead.
    pub patience: Duration,
    /// A unit is copied to an idle node of unknown speed if its expected remaining time, or its
    /// delay, is at least this long.
    pub copy_after: Duration,
    /// A node that keeps failing gets no work for this long. Doubles each time, up to an hour.
    pub unfit: Duration,
    /// Share of results that another node renders again, once their node is well known, in 1/1024;
    /// 1024 means all.
    pub check_share: u16,
    /// Passed checks that a node needs before fewer than all of its results are checked. The share
    /// then halves with each half of this number, down to `check_share`.
    pub check_first: u32,
    /// Longest time for which a frame that lacks only a check waits for a node that may make it.
    pub check_wait: Duration,
    /// Secret that no node knows; stored by the shell.
    pub secret: Secret,
    /// Most that the jobs of one user may have together.
    pub per_user: PerUser,
    /// Weights of owners in the fair shares of the farm.
    pub weights: Weights,
    /// How often the space of finished frames is counted, where it has a price.
    pub storage_every: Duration,
    /// Number of epochs that one record of the journal reserves; one epoch is used for each lease.
    pub epoch_block: u64,
}

impl Settings {
    /// Returns these settings with verification switched off.
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
            give_up: Duration::from_secs(600),
            settle: Duration::from_secs(2),
            returning: Duration::from_secs(30),
            absent_nodes: 1000,
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
            per_user: PerUser::default(),
            weights: Weights::default(),
            storage_every: Duration::from_secs(3600),
            epoch_block: 4096,
        }
    }
}

/// Most that the jobs of one user may have together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerUser {
    /// Number of jobs that have not ended.
    pub jobs: u64,
    /// Number of frames of jobs that have not ended, and of finished frames of those that have.
    pub frames: u64,
    /// Number of units that wait for a result.
    pub units: u64,
    /// Bytes of the descriptions of all jobs, also of those that have ended and are kept.
    pub spec_bytes: u64,
}

impl Default for PerUser {
    /// A fifth of the farm's open jobs, sixteen of the longest films, four times the units of the
    /// largest job, and 256 MiB of descriptions: far beyond what people submit by hand.
    fn default() -> Self {
        Self { jobs: 2000, frames: 1 << 22, units: 1 << 33, spec_bytes: 256 << 20 }
    }
}
