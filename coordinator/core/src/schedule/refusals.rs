//! What nodes said of a job that they could not begin: data only. What follows from it is in
//! `results::unprepared` and `results::limits`. Not durable: after a restart nodes are asked again.

use crate::time::Moment;
use std::collections::BTreeMap;
use tessera_protocol::ids::{FrameNumber, NodeId};

/// A node's word that a job cannot be prepared.
#[derive(Clone, Debug)]
struct Word {
    /// Frame that it was to prepare.
    frame: FrameNumber,
    /// How often it said so.
    times: u32,
}

/// Words about one job, and since when every node that may have it has reached a limit.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    words: BTreeMap<NodeId, Word>,
    stuck_since: Option<Moment>,
    /// Time of the next look at the limits.
    look_at: Option<Moment>,
}

impl Refusals {
    /// Notes that a node cannot prepare a frame.
    pub(crate) fn note(&mut self, node: NodeId, frame: FrameNumber) {
        let word = self.words.entry(node).or_insert(Word { frame, times: 0 });
        (word.frame, word.times) = (frame, word.times.saturating_add(1));
    }

    /// Returns the nodes whose word stands, each with how often it said so.
    pub(crate) fn standing(&self) -> impl Iterator<Item = (NodeId, u32)> {
        self.words.iter().map(|(node, word)| (*node, word.times))
    }

    /// Drops the words about a frame that another node has prepared. Returns whose they were.
    pub(crate) fn refute(&mut self, frame: FrameNumber, by: NodeId) -> Vec<NodeId> {
        let of_frame = self.words.iter().filter(|(_, word)| word.frame == frame);
        let refuted: Vec<NodeId> = of_frame.map(|(node, _)| *node).collect();
        for node in &refuted {
            self.words.remove(node);
        }
        refuted.into_iter().filter(|node| *node != by).collect()
    }

    /// Notes whether every node that may have the job has reached a limit now. Returns since when.
    pub(crate) fn note_stuck(&mut self, stuck: bool, now: Moment) -> Option<Moment> {
        self.stuck_since = stuck.then(|| self.stuck_since.unwrap_or(now));
        self.stuck_since
    }

    /// Since when every node that may have the job has reached a limit.
    pub(crate) fn stuck_since(&self) -> Option<Moment> {
        self.stuck_since
    }

    /// Plans a look at the limits; false if one is planned as early already.
    pub(crate) fn plan_look(&mut self, at: Moment, now: Moment) -> bool {
        let is_first = self.look_at.is_none_or(|planned| planned > at || planned <= now);
        if is_first {
            self.look_at = Some(at);
        }
        is_first
    }
}
