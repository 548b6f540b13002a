//! Streams of a context: what waits in each, what may run next, and waiting for it. One thing runs
//! at a time; which stream is served next is left to chance, so that work which nobody has put in
//! order shows. Executes nothing.

use super::event::Event;
use super::launch::Launch;
use super::locked;
use crate::ffi::HostBytes;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The stream that orders itself with all streams that were made without `CU_STREAM_NON_BLOCKING`.
pub(crate) const LEGACY: u64 = 0;
/// An event of another context tells nobody here that it has passed: so often we look.
const GLANCE: Duration = Duration::from_millis(1);

/// Where an upload's bytes are.
pub(crate) enum Source {
    /// Copied when it was asked for: the program's memory was not pinned.
    Staged(Vec<u8>),
    /// Read when the stream gets there.
    Pinned(HostBytes),
}

/// One thing that a stream does.
pub(crate) enum Operation {
    Upload { to: u64, from: Source },
    Download { from: u64, to: HostBytes },
    Copy { from: u64, to: u64, bytes: u64 },
    Fill { at: u64, pattern: Vec<u8>, count: usize },
    Launch(Box<Launch>),
    Record { event: Arc<Event>, mark: u64 },
    Wait { event: Arc<Event>, mark: u64 },
    Call { function: usize, data: usize },
    Free { address: u64 },
}

struct Lane {
    is_blocking: bool,
    waiting: VecDeque<(u64, Operation)>,
}

struct State {
    lanes: BTreeMap<u64, Lane>,
    next_lane: u64,
    next_number: u64,
    /// Lane and number of what runs.
    running: Option<(u64, u64)>,
    chance: u64,
    is_closed: bool,
}

/// All streams of a context.
pub(crate) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

impl Queue {
    pub(crate) fn new(seed: u64) -> Queue {
        let legacy = Lane { is_blocking: true, waiting: VecDeque::new() };
        let state = State {
            lanes: BTreeMap::from([(LEGACY, legacy)]),
            next_lane: LEGACY + 1,
            next_number: 1,
            running: None,
            chance: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            is_closed: false,
        };
        Queue { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// A new stream.
    pub(crate) fn open(&self, is_blocking: bool) -> u64 {
        let mut state = locked(&self.state);
        let lane = state.next_lane;
        state.next_lane += 1;
        state.lanes.insert(lane, Lane { is_blocking, waiting: VecDeque::new() });
        lane
    }

    /// Puts something at the end of a stream; its number.
    pub(crate) fn push(&self, lane: u64, operation: Operation) -> u64 {
        let mut state = locked(&self.state);
        let number = state.next_number;
        state.next_number += 1;
        if let Some(lane) = state.lanes.get_mut(&lane) {
            lane.waiting.push_back((number, operation));
        }
        self.changed.notify_all();
        number
    }

    /// The next thing to execute, when there is one; `None` when the queue was closed and
    /// everything is done.
    pub(crate) fn take(&self) -> Option<Operation> {
        let mut state = locked(&self.state);
        loop {
            if let Some(lane) = state.choose() {
                let (number, operation) = state.lanes.get_mut(&lane)?.waiting.pop_front()?;
                state.running = Some((lane, number));
                return Some(operation);
            }
            let is_empty = state.lanes.values().all(|lane| lane.waiting.is_empty());
            if is_empty && state.is_closed {
                return None;
            }
            state = self.wait(state, if is_empty { Duration::from_secs(1) } else { GLANCE });
        }
    }

    /// What was taken is done.
    pub(crate) fn done(&self) {
        locked(&self.state).running = None;
        self.changed.notify_all();
    }

    /// Forgets all that waits.
    pub(crate) fn discard(&self) {
        let mut state = locked(&self.state);
        let dropped: Vec<_> =
            state.lanes.values_mut().flat_map(|lane| lane.waiting.drain(..)).collect();
        drop(state);
        drop(dropped);
        self.changed.notify_all();
    }

    /// Takes no more; [`Self::take`] ends when everything is done.
    pub(crate) fn close(&self) {
        locked(&self.state).is_closed = true;
        self.changed.notify_all();
    }

    /// Whether all of a stream's work, or of every stream's for `None`, is done now.
    pub(crate) fn is_idle(&self, lane: Option<u64>) -> bool {
        let state = locked(&self.state);
        let last = state.next_number;
        state.is_done(lane, last)
    }

    /// Waits until what a stream (`None`: every stream) had to do when this was called is done, or
    /// `is_over`.
    pub(crate) fn wait_for(&self, lane: Option<u64>, is_over: impl Fn() -> bool) {
        let state = locked(&self.state);
        let last = state.next_number;
        drop(state);
        self.wait_until(|state| state.is_done(lane, last), is_over);
    }

    /// Waits until an event's mark is passed, or `is_over`.
    pub(crate) fn wait_for_event(&self, event: &Event, mark: u64, is_over: impl Fn() -> bool) {
        self.wait_until(|_| event.has_passed(mark), is_over);
    }

    /// `is_over` is asked without the lock: whoever finds a context dead empties this queue.
    fn wait_until(&self, is_done: impl Fn(&State) -> bool, is_over: impl Fn() -> bool) {
        while !is_over() {
            let state = locked(&self.state);
            if is_done(&state) {
                return;
            }
            drop(self.wait(state, Duration::from_millis(20)));
        }
    }

    fn wait<'lock>(
        &self,
        state: MutexGuard<'lock, State>,
        at_most: Duration,
    ) -> MutexGuard<'lock, State> {
        self.changed.wait_timeout(state, at_most).unwrap_or_else(PoisonError::into_inner).0
    }
}

impl State {
    /// A stream whose first operation may run now.
    fn choose(&mut self) -> Option<u64> {
        let ready: Vec<u64> =
            self.lanes.keys().copied().filter(|lane| self.is_ready(*lane)).collect();
        self.chance ^= self.chance << 13;
        self.chance ^= self.chance >> 7;
        self.chance ^= self.chance << 17;
        ready.get((self.chance % ready.len().max(1) as u64) as usize).copied()
    }

    fn first(&self, lane: u64) -> Option<u64> {
        self.lanes.get(&lane)?.waiting.front().map(|(number, _)| *number)
    }

    fn is_ready(&self, lane: u64) -> bool {
        let Some((number, operation)) = self.lanes.get(&lane).and_then(|lane| lane.waiting.front())
        else {
            return false;
        };
        if let Operation::Wait { event, mark } = operation
            && !event.has_passed(*mark)
        {
            return false;
        }
        // The legacy stream goes after all that blocking streams were given before, and they go
        // after it.
        let mut others = self.lanes.iter().filter(|(other, _)| match lane {
            LEGACY => **other != LEGACY,
            _ => **other == LEGACY,
        });
        let is_ordered = self.lanes[&lane].is_blocking;
        !is_ordered
            || others.all(|(other, lane)| {
                !lane.is_blocking || self.first(*other).is_none_or(|first| first > *number)
            })
    }

    /// Whether nothing is left of a stream's work below a number.
    fn is_done(&self, lane: Option<u64>, below: u64) -> bool {
        let concerns = |other: u64| lane.is_none_or(|lane| lane == other);
        let is_running =
            self.running.is_some_and(|(lane, number)| concerns(lane) && number < below);
        let waits = self
            .lanes
            .keys()
            .any(|lane| concerns(*lane) && self.first(*lane).is_some_and(|first| first < below));
        !is_running && !waits
    }
}
