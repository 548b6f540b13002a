//! Orders of the driver for the resolver.

use crate::spool::SpoolExtent;
use tessera_core::{FrameRounds, SessionId};
use tessera_protocol::job::JobKind;
use tessera_protocol::{Fingerprint, FrameNumber, JobId, NodeId};

/// A node of a session.
pub(crate) type Joiner = (SessionId, NodeId);

/// What the resolver makes for a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Files,
    /// The files, put together from the pieces that nodes made.
    Joined,
    /// The tiles that are too noisy after the newest round.
    Noise,
}

/// An order for one frame.
#[derive(Clone, Debug)]
pub(crate) struct ResolveOrder {
    pub(crate) wanted: Wanted,
    pub(crate) job: JobId,
    pub(crate) frame: FrameNumber,
    pub(crate) kind: JobKind,
    pub(crate) fingerprint: Option<Fingerprint>,
    /// Rounds of the frame, if it is sampled in rounds.
    pub(crate) rounds: Option<FrameRounds>,
    /// The durable part of the frame's spool.
    pub(crate) extent: SpoolExtent,
    /// Nodes that may put the files together.
    pub(crate) by: Vec<Joiner>,
}

impl ResolveOrder {
    /// Whether nodes have done the work, or may do it: files that are put together from pieces, and
    /// where the store of files is far away those of a compute job.
    pub(super) fn is_by_nodes(&self, is_far: bool) -> bool {
        let is_compute = self.kind.render().is_none();
        self.wanted == Wanted::Joined || self.wanted == Wanted::Files && is_compute && is_far
    }
}
