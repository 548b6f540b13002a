//! Units that a worker has, in their order, with the known progress of each. Knows no process.

use super::watchdog::Watchdog;
use crate::device::known_answer::Kind;
use crate::device::rate::Rate;
use crate::device::{CancelToken, DeviceError, Finish, PreparedFrame, UnitOutput};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;
use tessera_layout::UnitParams;
use tessera_protocol::TileSums;

/// Purpose of a unit.
pub(super) enum Purpose {
    /// A caller waits for the unit.
    Work {
        /// Ends the unit early.
        cancel: CancelToken,
        /// Called at the end of the unit.
        finish: Finish,
    },
    /// Unit of the known-answer test.
    Test,
}

/// A unit that a worker has.
pub(super) struct Flight {
    pub(super) number: u64,
    pub(super) frame: Arc<PreparedFrame>,
    pub(super) params: UnitParams,
    pub(super) purpose: Purpose,
    /// Whether the device has begun the unit.
    pub(super) started: bool,
    /// Whether the worker was told to stop the unit.
    pub(super) stopped: bool,
}

impl Flight {
    /// Returns the camera samples of the whole unit.
    pub(super) fn samples(&self) -> u64 {
        let params = &self.params;
        u64::from(params.width) * u64::from(params.height) * u64::from(params.sample_count)
    }

    /// Returns the kernels that compute the unit: of a small one either those for small units or,
    /// beside others, those for large ones.
    pub(super) fn kinds(&self) -> [Kind; 2] {
        let kind = Kind::of(&self.frame.scene, &self.params);
        [kind, Kind { staged: true, ..kind }]
    }

    fn is_test(&self) -> bool {
        matches!(self.purpose, Purpose::Test)
    }

    /// Ends the unit for its caller.
    pub(super) fn end(self, result: Result<UnitOutput, DeviceError>) {
        if let Purpose::Work { finish, .. } = self.purpose {
            finish(result);
        }
    }
}

/// All units of one worker.
#[derive(Default)]
pub(super) struct Flights {
    flights: VecDeque<Flight>,
    /// When the first unit last made progress, or became the first.
    moved: Option<Instant>,
}

impl Flights {
    pub(super) fn add(&mut self, flight: Flight, now: Instant) {
        if self.flights.is_empty() {
            self.moved = Some(now);
        }
        self.flights.push_back(flight);
    }

    pub(super) fn len(&self) -> usize {
        self.flights.len()
    }

    /// Returns the camera samples of all units.
    pub(super) fn samples(&self) -> u64 {
        self.flights.iter().map(Flight::samples).fold(0, u64::saturating_add)
    }

    pub(super) fn has_test(&self) -> bool {
        self.flights.iter().any(Flight::is_test)
    }

    /// Returns the units that callers wait for.
    pub(super) fn work(&self) -> impl Iterator<Item = &Flight> {
        self.flights.iter().filter(|flight| !flight.is_test())
    }

    /// Returns the frame that some unit needs.
    pub(super) fn frame(&self, scene: u64) -> Option<Arc<PreparedFrame>> {
        let mut of_scene = self.flights.iter().filter(|flight| flight.frame.id == scene);
        of_scene.next().map(|flight| flight.frame.clone())
    }

    /// Records progress of the device.
    pub(super) fn on_progress(&mut self, number: u64, started: bool, now: Instant) {
        if self.flights.front().is_some_and(|first| first.number == number) {
            self.moved = Some(now);
        }
        if let Some(flight) = self.flights.iter_mut().find(|flight| flight.number == number) {
            flight.started |= started;
        }
    }

    /// Records progress outside the units: a scene is being transferred.
    pub(super) fn on_other_progress(&mut self, now: Instant) {
        self.moved = Some(now);
    }

    /// Removes a unit that has ended.
    pub(super) fn take(&mut self, number: u64, now: Instant) -> Option<Flight> {
        let index = self.flights.iter().position(|flight| flight.number == number)?;
        self.moved = Some(now);
        self.flights.remove(index)
    }

    /// Returns the units that were cancelled since the last call, so that they can be stopped.
    pub(super) fn newly_cancelled(&mut self) -> Vec<u64> {
        let mut numbers = Vec::new();
        for flight in &mut self.flights {
            let Purpose::Work { cancel, .. } = &flight.purpose else { continue };
            if cancel.is_cancelled() && !std::mem::replace(&mut flight.stopped, true) {
                numbers.push(flight.number);
            }
        }
        numbers
    }

    /// Returns how long the first unit has made no progress, if that is longer than allowed.
    pub(super) fn overdue(&self, watchdog: &Watchdog, rate: &Rate, now: Instant) -> Option<String> {
        let first = self.flights.front()?;
        let waited = now.saturating_duration_since(self.moved?);
        // Those that have begun may be computed with the first, and end with it.
        let begun = self.flights.iter().skip(1).filter(|flight| flight.started);
        let samples = begun.map(Flight::samples).fold(first.samples(), u64::saturating_add);
        let allowed = watchdog.allows(rate, samples);
        (waited > allowed).then(|| {
            let (waited, allowed) = (waited.as_secs_f64(), allowed.as_secs_f64());
            format!("no progress for {waited:.1} s where {allowed:.1} s are allowed")
        })
    }

    /// Ends all units. The first one ends with `error` if the device had begun it. The others go
    /// back to be rendered elsewhere.
    pub(super) fn end_all(&mut self, error: &DeviceError) {
        let first_is_to_blame = self.flights.front().is_some_and(|first| first.started);
        for (index, flight) in self.flights.drain(..).enumerate() {
            let blame = index == 0 && first_is_to_blame;
            flight.end(Err(if blame { error.clone() } else { DeviceError::Cancelled }));
        }
    }
}

/// Reads a unit's sums from the worker's bytes; None if their number is wrong.
pub(super) fn sums_of(params: &UnitParams, bytes: &[u8]) -> Option<TileSums> {
    // The edges of a unit were checked against the protocol's limit before.
    let mut sums =
        TileSums::empty(params.width as u16, params.height as u16, params.channels() as u8);
    if bytes.len() != sums.values.len() * 8 {
        return None;
    }
    for (sum, bytes) in sums.values.iter_mut().zip(bytes.chunks_exact(8)) {
        *sum = i64::from_le_bytes(std::array::from_fn(|index| bytes[index]));
    }
    sums.samples = params.sample_count;
    Some(sums)
}
