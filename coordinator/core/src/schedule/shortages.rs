//! Units that lack what is not their own: data only. What follows from it is in
//! `results::shortage`.

use crate::time::Moment;
use std::time::Duration;
use tessera_protocol::ids::NodeId;

/// What a unit has waited for so far.
#[derive(Clone, Debug)]
pub(crate) struct Shortage {
    since: Moment,
    times: u32,
    /// Where it was so last.
    node: NodeId,
    reason: String,
}

impl Shortage {
    /// A wait that begins now, on no node yet.
    pub(crate) fn new(now: Moment) -> Self {
        Self { since: now, times: 0, node: NodeId(Default::default()), reason: String::new() }
    }

    /// It is so on a node. Returns how often it was so, and since how long.
    pub(crate) fn note(&mut self, node: NodeId, reason: String, now: Moment) -> (u32, Duration) {
        self.times = self.times.saturating_add(1);
        (self.node, self.reason) = (node, reason);
        (self.times, now.since(self.since))
    }

    /// When it began.
    pub(crate) fn since(&self) -> Moment {
        self.since
    }

    /// Where it was so last.
    pub(crate) fn node(&self) -> NodeId {
        self.node
    }

    /// What the node said.
    pub(crate) fn reason(&self) -> &str {
        &self.reason
    }
}
