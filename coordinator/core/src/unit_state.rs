//! The life of a unit: the states that it can be in, and the one function that derives the state
//! from what the core keeps. No state is stored per unit. `docs/ARCHITECTURE.md` draws the states
//! and what leads from one to another.

use crate::lease::Leases;
use crate::schedule::queue::Queue;
use crate::state::frame::{Frame, OpenFrame};
use crate::state::job::{Job, Place};
use crate::time::Moment;
use tessera_protocol::ids::{NodeId, UnitKey};

/// State of a unit in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitState {
    /// Not wanted, at least not yet: of a round that has not begun, or of a frame that reads the
    /// result of one that is not finished.
    NotDue,
    /// Wanted, and may be leased now.
    Open,
    /// Leased to a node, and to another one as well where the unit is copied.
    Leased {
        /// Node that holds the older lease.
        node: NodeId,
        /// Node that holds the copy, if there is one.
        copy: Option<NodeId>,
    },
    /// Wanted, but not leased before a moment: an attempt failed, or something was lacking.
    Waiting {
        /// Time at which the unit may be leased again.
        until: Moment,
    },
    /// Its result counts, and needs no check.
    Committed,
    /// Its result counts, and another node is to render it again before the frame is resolved.
    InCheck {
        /// Node that holds the lease of the check, if there is one.
        node: Option<NodeId>,
        /// Node that holds the copy of that lease, if there is one.
        copy: Option<NodeId>,
    },
    /// Its frame has failed.
    Dead,
}

impl UnitState {
    /// Whether a result of the unit is committed.
    pub fn is_committed(&self) -> bool {
        matches!(self, Self::Committed | Self::InCheck { .. })
    }

    /// The nodes that hold a lease of the unit, the older lease first.
    pub fn holders(&self) -> impl Iterator<Item = NodeId> {
        let (node, copy) = match *self {
            Self::Leased { node, copy } => (Some(node), copy),
            Self::InCheck { node, copy } => (node, copy),
            _ => (None, None),
        };
        node.into_iter().chain(copy)
    }
}

/// A unit that has moved from one state to another in a step, whatever it was in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitMove {
    /// Unit that moved.
    pub unit: UnitKey,
    /// Its state before the step.
    pub from: UnitState,
    /// Its state after the step.
    pub to: UnitState,
}

/// Views of what the core keeps about the units of one job.
#[derive(Clone, Copy)]
pub(crate) struct JobUnits<'a> {
    job: &'a Job,
    /// Queue of the job; None once it has ended.
    queue: Option<&'a Queue>,
    leases: &'a Leases,
}

impl<'a> JobUnits<'a> {
    pub(crate) fn new(job: &'a Job, queue: Option<&'a Queue>, leases: &'a Leases) -> Self {
        Self { job, queue, leases }
    }

    /// Derives the state of a unit. The error says how the books contradict each other.
    pub(crate) fn state_of(&self, place: Place) -> Result<UnitState, String> {
        let Self { job, queue, leases } = self;
        let frame = job.frames().get(place.position);
        let (Some(frame), Some(key)) = (frame, job.key(place)) else {
            return Err(format!("job {} has no frame at {}", job.id(), place.position));
        };
        let mut holders = leases.of_unit(key).filter_map(|epoch| leases.get_by_epoch(epoch));
        let (node, copy) = (holders.next().map(|held| held.node), holders.next());
        let copy = copy.map(|held| held.node);
        let until = queue.and_then(|queue| queue.waiting().get(&place)).copied();
        let ready = queue.is_some_and(|queue| queue.ready().contains_key(&place));
        let behind = queue.is_some_and(|queue| queue.is_behind(place));
        let kept = usize::from(node.is_some()) + usize::from(ready) + usize::from(until.is_some());
        if kept > usize::from(frame.unit_is_wanted(place.unit, &job.grid())) {
            return Err(format!("{key} is {kept} times leased, ready or waiting, in {frame:?}"));
        }
        if ready && !behind {
            return Err(format!("{key} is ready and ahead of the cursor"));
        }
        if !frame.unit_is_open(place.unit, &job.grid()) {
            return Ok(closed_state(frame, place, node, copy));
        }
        Ok(match (node, until) {
            (Some(node), _) => UnitState::Leased { node, copy },
            (None, Some(until)) => UnitState::Waiting { until },
            (None, None) if ready => UnitState::Open,
            (None, None) if job.waits_at(place.position) => UnitState::NotDue,
            (None, None) if behind => {
                return Err(format!("{key} is lost: open, and neither leased nor to be leased"));
            }
            (None, None) if job.is_shut(place.position) => UnitState::NotDue,
            (None, None) => UnitState::Open,
        })
    }
}

/// The state of a unit that cannot be committed now.
fn closed_state(
    frame: Frame<'_>,
    place: Place,
    node: Option<NodeId>,
    copy: Option<NodeId>,
) -> UnitState {
    let of_open = |open: &OpenFrame| match open.committed().get(place.unit.0) {
        true if open.checks().contains_key(&place.unit) => UnitState::InCheck { node, copy },
        true => UnitState::Committed,
        false => UnitState::NotDue,
    };
    match frame {
        Frame::Untouched => UnitState::NotDue,
        Frame::Open(open) | Frame::Complete(open) => of_open(open),
        Frame::Done(_) => UnitState::Committed,
        Frame::Failed(_) => UnitState::Dead,
    }
}
