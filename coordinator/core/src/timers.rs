//! What is to happen later. A timer that has lost its reason when it fires does nothing.

use crate::state::job::Place;
use crate::time::Moment;
use std::collections::BTreeSet;
use tessera_protocol::ids::{FrameNumber, JobId, NodeId};

/// Why to wake up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// Nodes had time to come back after a restart.
    Settled,
    /// A node's grace ends.
    Away(NodeId),
    /// A node may have work again.
    Fit(NodeId),
    /// Units may be withheld no longer, or copied.
    Look,
    /// A unit's wait ends.
    Unit(JobId, Place),
    /// Checks of a frame may have nobody to make them.
    Checks(JobId, FrameNumber),
    /// A frame is to be resolved again.
    Resolve(JobId, FrameNumber),
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
