//! One frame of a job: which units are committed, and the exceptions. Never a record per unit.

use crate::bitmap::Bitmap;
use crate::journal::Ending;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tessera_protocol::ids::{Epoch, NodeId, UnitIndex};
use tessera_protocol::status::{FrameFile, FrameState};

/// Durable state of a frame.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Frame {
    /// Nothing has happened to it.
    Untouched,
    /// Some units are committed or troubled.
    Open(Box<OpenFrame>),
    /// All units are committed; its files are to be made.
    Complete,
    /// Finished.
    Done(Vec<FrameFile>),
    /// It cannot finish.
    Failed(Box<FailedFrame>),
}

/// A frame with open units.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct OpenFrame {
    pub(crate) committed: Bitmap,
    /// Open units with ended attempts.
    pub(crate) troubled: BTreeMap<UnitIndex, Trouble>,
}

/// What became of a frame that failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct FailedFrame {
    pub(crate) reason: String,
    pub(crate) units_committed: u32,
    pub(crate) samples_committed: u64,
}

/// Ended attempts of one open unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Trouble {
    /// Attempts that failed.
    pub(crate) failed: u8,
    /// Leases that expired or were lost.
    pub(crate) lost: u8,
    /// The newest of them.
    pub(crate) epoch: Epoch,
    /// Whose it was.
    pub(crate) node: NodeId,
    /// It failed, so that no result of it is wanted.
    pub(crate) disowned: bool,
}

impl Frame {
    /// Done or failed.
    pub(crate) fn is_final(&self) -> bool {
        matches!(self, Self::Done(_) | Self::Failed(_))
    }

    /// The unit may still be committed.
    pub(crate) fn unit_is_open(&self, unit: UnitIndex) -> bool {
        match self {
            Self::Untouched => true,
            Self::Open(open) => !open.committed.get(unit.0),
            _ => false,
        }
    }

    pub(crate) fn trouble(&self, unit: UnitIndex) -> Option<&Trouble> {
        match self {
            Self::Open(open) => open.troubled.get(&unit),
            _ => None,
        }
    }

    /// The first open unit at or after `from`.
    pub(crate) fn first_open_unit(&self, from: u32, units: u32) -> Option<u32> {
        match self {
            Self::Untouched => (from < units).then_some(from),
            Self::Open(open) => open.committed.first_clear(from, units),
            _ => None,
        }
    }

    /// The open form, made on first need. None where no unit may be committed any more.
    pub(crate) fn open_mut(&mut self, units: u32) -> Option<&mut OpenFrame> {
        if matches!(self, Self::Untouched) {
            let open = OpenFrame { committed: Bitmap::new(units), troubled: BTreeMap::new() };
            *self = Self::Open(Box::new(open));
        }
        match self {
            Self::Open(open) => Some(open),
            _ => None,
        }
    }

    pub(crate) fn status(&self, units: u32) -> FrameState {
        match self {
            Self::Untouched => FrameState::Open { committed: 0, units },
            Self::Open(open) => FrameState::Open { committed: open.committed.ones(), units },
            Self::Complete => FrameState::Resolving,
            Self::Done(files) => FrameState::Done(files.clone()),
            Self::Failed(failed) => FrameState::Failed(failed.reason.clone()),
        }
    }
}

impl OpenFrame {
    /// Counts an ended attempt.
    pub(crate) fn note_ending(&mut self, unit: UnitIndex, epoch: Epoch, node: NodeId, ending: &Ending) {
        let none = Trouble { failed: 0, lost: 0, epoch: Epoch(0), node, disowned: false };
        let trouble = self.troubled.entry(unit).or_insert(none);
        let failed = matches!(ending, Ending::Failed(_));
        let count = if failed { &mut trouble.failed } else { &mut trouble.lost };
        *count = count.saturating_add(1);
        if epoch >= trouble.epoch {
            (trouble.epoch, trouble.node, trouble.disowned) = (epoch, node, failed);
        }
    }
}
