//! Events: marks in a stream, with the time at which they were passed. Does not wait; see `queue`.

use super::context::Context;
use super::locked;
use crate::status::Status;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// `CU_EVENT_DISABLE_TIMING` of cuda.h.
const DISABLE_TIMING: u32 = 2;

/// An event.
pub(crate) struct Event {
    pub(crate) context: Arc<Context>,
    flags: u32,
    state: Mutex<State>,
}

#[derive(Clone, Copy, Default)]
struct State {
    /// How often it was recorded.
    recorded: u64,
    /// The latest record that a stream has passed.
    passed: u64,
    at: Option<Instant>,
}

impl Event {
    pub(crate) fn new(context: Arc<Context>, flags: u32) -> Event {
        Event { context, flags, state: Mutex::default() }
    }

    /// A new record of it; the mark that a stream has to pass.
    pub(crate) fn record(&self) -> u64 {
        let mut state = locked(&self.state);
        state.recorded += 1;
        state.recorded
    }

    /// The mark that stands for "now": the latest record, 0 for none.
    pub(crate) fn mark(&self) -> u64 {
        locked(&self.state).recorded
    }

    /// A stream passes a mark.
    pub(crate) fn pass(&self, mark: u64) {
        let mut state = locked(&self.state);
        state.passed = state.passed.max(mark);
        state.at = Some(Instant::now());
    }

    /// Whether a mark has been passed.
    pub(crate) fn has_passed(&self, mark: u64) -> bool {
        locked(&self.state).passed >= mark
    }

    /// Milliseconds from this event to another one.
    pub(crate) fn millis_until(&self, end: &Event) -> Result<f32, Status> {
        let (first, last) = (*locked(&self.state), *locked(&end.state));
        let is_timed = (self.flags | end.flags) & DISABLE_TIMING == 0;
        if !is_timed || first.recorded == 0 || last.recorded == 0 {
            return Err(Status::INVALID_HANDLE);
        }
        if first.passed < first.recorded || last.passed < last.recorded {
            return Err(Status::NOT_READY);
        }
        let (Some(from), Some(to)) = (first.at, last.at) else {
            return Err(Status::INVALID_HANDLE);
        };
        let forward = to.saturating_duration_since(from).as_secs_f32();
        Ok((forward - from.saturating_duration_since(to).as_secs_f32()) * 1e3)
    }
}
