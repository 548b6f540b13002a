//! For how long devices have nothing to do because what waiting units need is not prepared yet.
//! People see it; nothing is decided by it.
//!
//! ```text
//! lease        ├──────────────────────────────┤
//! frame           asked ─────────► ready
//! device       works │    idle    │ this unit
//!                    └─  waited  ─┘
//! ```

use super::ahead::Frame;
use super::{Agent, FrameKey, UnitState};
use std::time::{Duration, Instant};
use tessera_protocol::Lease;

impl<F: Clone> Agent<F> {
    /// Tells the time before an event is handled. Nothing has changed since the event before it, so
    /// each device that waited does so since then.
    pub(crate) fn pass_time(&mut self, now: Instant) {
        let before = self.now.replace(now).unwrap_or(now);
        let passed = now.saturating_duration_since(before);
        for lease in self.awaited() {
            if let Some(unit) = self.units.get_mut(&lease) {
                unit.waited += passed;
            }
        }
    }

    /// Returns for how long a device waited for what this unit needs.
    pub(crate) fn waited(&self, lease: Lease) -> Duration {
        self.units.get(&lease).map_or(Duration::ZERO, |unit| unit.waited)
    }

    /// Returns the units whose frames are not prepared, and that idle devices would have if they
    /// were: at most one for each device. What finishing units read is no matter of devices.
    fn awaited(&self) -> Vec<Lease> {
        let (mut given, mut awaited) = (self.given(), Vec::new());
        for (position, lease) in self.waiting.iter().enumerate() {
            if !given.contains(&0) {
                break;
            }
            let unit = self.units.get(lease).filter(|unit| unit.state == UnitState::Waiting);
            let Some(assignment) = unit.map(|unit| unit.assignment) else { continue };
            let frame = FrameKey::of(&assignment);
            let known = self.jobs.get(&assignment.job).and_then(|known| known.as_ref().ok());
            let Some(spec) = known.filter(|_| !frame.is_piece()) else { continue };
            let left = self.waiting.len() - position;
            let Some(device) = self.device_with_room((assignment.job, spec), &given, left) else {
                continue;
            };
            let is_ready = matches!(self.frames.get(&frame), Some(Frame::Ready(_)));
            if given[device] == 0 && !is_ready {
                awaited.push(*lease);
            }
            given[device] += 1;
        }
        awaited
    }
}
