//! What is due later. A timer whose reason is gone when it fires does nothing.

use crate::state::job::Place;
use crate::time::Moment;
use std::collections::BTreeSet;
use tessera_protocol::ids::{FrameNumber, JobId, NodeId};

/// Reason to wake up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// Nodes have had time to return after a restart.
    Settled,
    /// A node's grace ends.
    Away(NodeId),
    /// An unfit node may have work again.
    Fit(NodeId),
    /// Units may no longer be withheld, or may be copied.
    Look,
    /// A unit's wait ends.
    Unit(JobId, Place),
    /// Checks of a frame may have found no node to make them.
    Checks(JobId, FrameNumber),
    /// A frame is to be resolved again.
    Resolve(JobId, FrameNumber),
    /// A node's limit may have ended for a job.
    AskAgain(NodeId, JobId),
    /// Every node may have been too small for a job for too long.
    GiveUp(JobId),
    /// A new month begins, in which budgets may be spent again.
    Month,
    /// The space of finished frames is to be counted.
    Storage,
    /// A job may begin.
    Begin(JobId),
    /// No node may be able any more to finish a frame.
    Finish(JobId, FrameNumber),
}

/// Timers by their time.
#[derive(Debug, Default)]
pub(crate) struct Timers(BTreeSet<(Moment, Timer)>);

impl Timers {
    pub(crate) fn set(&mut self, at: Moment, timer: Timer) {
        self.0.insert((at, timer));
    }

    pub(crate) fn first(&self) -> Option<Moment> {
        self.0.first().map(|(at, _)| *at)
    }

    /// Takes the first timer that is due.
    pub(crate) fn take_due(&mut self, now: Moment) -> Option<Timer> {
        if self.first()? > now {
            return None;
        }
        self.0.pop_first().map(|(_, timer)| timer)
    }

    pub(crate) fn contains(&self, at: Moment, timer: Timer) -> bool {
        self.0.contains(&(at, timer))
    }
}
