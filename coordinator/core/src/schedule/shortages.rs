//! Units that lack an external resource: data only. What follows from it is in `results::shortage`.

use crate::time::Moment;
use std::time::Duration;
use tessera_protocol::ids::NodeId;

/// A unit's wait for an external resource.
#[derive(Clone, Debug)]
pub(crate) struct Shortage {
    since: Moment,
    times: u32,
    /// Node of the last shortage.
    node: NodeId,
    reason: String,
}

impl Shortage {
    /// Begins a wait now, on no node yet.
    pub(crate) fn new(now: Moment) -> Self {
        Self { since: now, times: 0, node: NodeId(Default::default()), reason: String::new() }
    }

    /// Notes a shortage on a node. Returns how often it happened, and for how long so far.
    pub(crate) fn note(&mut self, node: NodeId, reason: String, now: Moment) -> (u32, Duration) {
        self.times = self.times.saturating_add(1);
        (self.node, self.reason) = (node, reason);
        (self.times, now.since(self.since))
    }

    /// Time of the first shortage.
    pub(crate) fn since(&self) -> Moment {
        self.since
    }

    /// Node of the last shortage.
    pub(crate) fn node(&self) -> NodeId {
        self.node
    }

    /// Reason that the node gave last.
    pub(crate) fn reason(&self) -> &str {
        &self.reason
    }
}
