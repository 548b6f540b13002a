//! Which frames are prepared, and when: those that devices wait for, and one ahead, so that the
//! next frame or job is ready when the present one ends. Also how much work is held ahead for that.
//! The inputs of each finishing unit are prepared like a frame, beside the others.
//!
//! ```text
//! (none) ── Prepare ──► asked ── on_frame ──► ready ── its units start ──► dropped
//!    ▲                   │  └─ on_postponed ─► postponed ── the present frame is done ─► (none)
//!    └───── Abandon ─────┘                     (it does not fit into the memory beside that one)
//! ```

use super::{Action, Agent, Device, FrameKey, UnitState};
use crate::agent::capacity::Pace;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tessera_protocol::JobKind;
use tessera_protocol::node::Assignment;

/// Most frames that are prepared, or being prepared, before a device works on them, besides the one
/// that an idle device waits for.
const FRAMES_AHEAD_MAX: usize = 1;
/// Most finishing units whose inputs are fetched, or held, before a device begins them.
const PIECES_AHEAD_MAX: usize = 1;
/// Longest work that is held ahead, however long the preparation of a frame takes. Other jobs wait
/// for what a node holds, unless it gives it back.
const AHEAD_MAX: Duration = Duration::from_secs(10);

/// State of a frame with waiting units.
#[derive(Debug)]
pub(super) enum Frame<F> {
    /// It is being prepared.
    Asked,
    /// It is prepared.
    Ready(F),
    /// It does not fit into the memory beside the frames that devices work on.
    Postponed,
}

/// Work that is held ahead, per device.
#[derive(Debug)]
pub(super) struct Ahead {
    /// The least, whatever preparations take.
    pub(super) hold: Duration,
    /// Running mean of what the preparation of a frame takes.
    preparation: Pace,
}

impl Ahead {
    pub(super) fn new(hold: Duration) -> Self {
        Self { hold, preparation: Pace::default() }
    }

    /// Returns the work to hold: as much as the preparation of a frame takes and a quarter more, so
    /// that the next frame is known, and prepared, before the present one ends.
    pub(super) fn span(&self) -> Duration {
        let Some(preparation) = self.preparation.mean() else { return self.hold };
        self.hold.max((preparation + preparation / 4).min(AHEAD_MAX))
    }
}

impl<F: Clone> Agent<F> {
    /// Records how long the preparation of a frame took. Call it before [`Self::on_frame`]. The
    /// inputs of a finishing unit are no measure for frames.
    pub(crate) fn on_prepared_in(&mut self, frame: FrameKey, took: Duration) {
        if frame.is_piece() {
            return;
        }
        self.ahead.preparation.measure(took);
        self.tell_capacity();
    }

    /// Handles a frame that does not fit into the memory beside those that devices work on. It is
    /// requested again once one of them is done.
    pub(crate) fn on_postponed(&mut self, frame: FrameKey) {
        if let Some(state) = self.frames.get_mut(&frame) {
            *state = Frame::Postponed;
        }
        self.pump();
        self.leave_if_done();
    }

    /// Looks at the frames that devices work on and units wait for. Drops the others, and abandons
    /// their preparation. Once a frame is done, those that did not fit beside it are requested
    /// again.
    pub(super) fn look_at_frames(&mut self) {
        let given =
            self.units.values().filter(|unit| matches!(unit.state, UnitState::Given { .. }));
        let working: BTreeSet<FrameKey> =
            given.map(|unit| FrameKey::of(&unit.assignment)).collect();
        let is_done = |frame: &FrameKey| !working.contains(frame);
        if self.working.iter().any(is_done) {
            self.frames.retain(|_, state| !matches!(state, Frame::Postponed));
        }
        // Kept for their next units as long as devices hold them anyway.
        let mut wanted = working.clone();
        let waiting = self.units.values().filter(|unit| unit.state == UnitState::Waiting);
        wanted.extend(waiting.map(|unit| FrameKey::of(&unit.assignment)));
        self.working = working;
        self.keep_frames(|frame| wanted.contains(frame));
    }

    /// Requests the frame of a waiting unit, unless enough frames are being prepared.
    pub(super) fn request(&mut self, assignment: &Assignment, spec: Arc<JobKind>) {
        let frame = FrameKey::of(assignment);
        let others = || self.frames.keys().filter(|other| **other != frame);
        let pending: Vec<FrameKey> =
            others().filter(|other| !self.working.contains(*other)).copied().collect();
        let waits = |other: &FrameKey| matches!(self.frames.get(other), Some(Frame::Postponed));
        let is_alone = self.working.is_empty() && pending.iter().all(waits);
        if waits(&frame) && !is_alone {
            return;
        }
        // What comes later does not take the memory that a postponed frame waits for.
        let is_behind = pending.iter().any(waits);
        let has_turn = match frame.is_piece() {
            true => !is_behind && self.has_turn_for_piece(&pending),
            false => self.has_turn_for_frame(&spec, &pending, is_behind),
        };
        if !is_alone && !has_turn && !self.working.contains(&frame) {
            return;
        }
        self.frames.insert(frame, Frame::Asked);
        let task = assignment.task;
        self.actions.push_back(Action::Prepare { frame, spec, task, beside: !is_alone });
    }

    /// Returns whether an idle device waits for a frame of such a job, or one more may be prepared
    /// ahead.
    fn has_turn_for_frame(&self, spec: &JobKind, pending: &[FrameKey], is_behind: bool) -> bool {
        let frames: Vec<FrameKey> =
            pending.iter().filter(|other| !other.is_piece()).copied().collect();
        let idle = |device: &&Device| device.given == 0 && device.suits(spec);
        let some_idle = self.devices.iter().any(|device| idle(&device));
        let is_awaited =
            self.devices.iter().filter(idle).any(|device| !self.has_some_for(device, &frames));
        is_awaited || !is_behind && frames.len() < FRAMES_AHEAD_MAX + usize::from(some_idle)
    }

    /// Returns whether the inputs of one more finishing unit may be fetched, beside the frames for
    /// other units.
    fn has_turn_for_piece(&self, pending: &[FrameKey]) -> bool {
        let pieces = pending.iter().filter(|other| other.is_piece()).count();
        pieces < PIECES_AHEAD_MAX + usize::from(self.finishing.is_empty())
    }

    /// Returns whether one of these frames is of a job that the device takes.
    fn has_some_for(&self, device: &Device, frames: &[FrameKey]) -> bool {
        let suits = |frame: &FrameKey| {
            let known = self.jobs.get(&frame.job()).and_then(|known| known.as_ref().ok());
            known.is_some_and(|kind| device.suits(kind))
        };
        frames.iter().any(suits)
    }

    /// Drops the frames that are not wanted, and abandons their preparation.
    pub(super) fn keep_frames(&mut self, wanted: impl Fn(&FrameKey) -> bool) {
        let actions = &mut self.actions;
        self.frames.retain(|frame, state| {
            let is_kept = wanted(frame);
            if !is_kept && matches!(state, Frame::Asked) {
                actions.push_back(Action::Abandon(*frame));
            }
            is_kept
        });
    }
}
