//! What the worker is given: the tests that are due, then units, as many as it may have ahead.

use super::{Phase, Stage, Supervisor, Test};
use crate::device::cuda::flight::{Flight, Flights, Purpose};
use crate::device::cuda::health::Fault;
use crate::device::known_answer::{Kind, KnownAnswer};
use crate::device::worker::message::Order;
use crate::device::{DeviceError, DeviceUnit, PreparedFrame, Work};
use std::collections::btree_map::Entry;
use std::sync::Arc;
use std::time::Instant;
use tessera_kernels::cuda::UNITS_MAX;

/// Units that a worker gets ahead at least: one computes, one is being enqueued, one waits for its
/// scene.
const AHEAD: usize = 3;
/// Batches of small units that a worker gets ahead: one computes, and one is enqueued. The rest
/// stays here, where it can be withdrawn, and where the tests of what is done come before it.
const BATCHES_AHEAD: u64 = 2;

impl Supervisor {
    /// Gives the worker its next units, but the tests first that are due.
    pub(super) fn give(&mut self) {
        let now = Instant::now();
        let waits = self.state.squeeze.as_ref().is_some_and(|squeeze| now < squeeze.until);
        if waits && self.shared.compute_held() > 0 {
            return;
        }
        self.give_tests(now);
        let Stage::Up(live) = &mut self.state.stage else { return };
        let batch = u64::from(self.state.batch_paths);
        while live.phase == Phase::Serving
            && has_room(&live.flights, batch)
            && self.state.draining.is_none()
        {
            let is_covered =
                |unit: &DeviceUnit| kind_of(unit).is_none_or(|kind| self.state.proof.covers(kind));
            if self.state.queue.front().is_none_or(|unit| !is_covered(unit)) {
                break;
            }
            let Some(unit) = self.state.queue.pop_front() else { break };
            let DeviceUnit { work: Work::Render { frame, params }, cancel, finish } = unit else {
                // Compute and finishing units have separate threads.
                (unit.finish)(Err(DeviceError::Cancelled));
                continue;
            };
            // A unit that comes again after a shortage of memory has begun already.
            if !cancel.begin() && cancel.is_cancelled() {
                finish(Err(DeviceError::Cancelled));
                continue;
            }
            self.state.units += 1;
            let number = self.state.units;
            live.child.order(Order::Render {
                unit: number,
                scene: frame.id,
                params: bytemuck::must_cast(params),
                in_stages: false,
            });
            let purpose = Purpose::Work { cancel, finish };
            live.flights.add(
                Flight { number, frame, params, purpose, started: false, stopped: false },
                now,
            );
        }
        if live.flights.len() == 0
            && let Some(reason) = self.state.draining.take()
        {
            self.quarantine(&reason);
        }
    }

    /// Gives the worker the tests that are due, unless it has some already: those that it owes,
    /// those of the next unit if nothing is known of its kernels, and those of the results that
    /// have waited long enough.
    pub(super) fn give_tests(&mut self, now: Instant) {
        let Stage::Up(live) = &mut self.state.stage else { return };
        if live.phase == Phase::Opening || live.flights.has_test() {
            return;
        }
        let proof = &mut self.state.proof;
        if self.state.draining.is_none()
            && let Some(kind) = self.state.queue.front().and_then(kind_of)
        {
            proof.owe(kind);
        }
        let nothing_to_give = self.state.queue.is_empty() || self.state.draining.is_some();
        let idle = nothing_to_give && live.flights.len() == 0;
        let due = live.phase == Phase::Serving
            && self.state.held.is_due(self.watchdog.test_units, idle, now);
        if !due && !proof.is_owed() {
            return;
        }
        // Whatever the worker has been given before the tests is released by them.
        let work = live.flights.work().chain(self.state.held.flights()).flat_map(Flight::kinds);
        for kind in proof.take_owed(work) {
            if let Err(problem) = self.give_test(kind, now) {
                return self.fail(Fault::Worker, &problem, DeviceError::Worker);
            }
        }
    }

    fn give_test(&mut self, kind: Kind, now: Instant) -> Result<(), String> {
        let Stage::Up(live) = &mut self.state.stage else { return Ok(()) };
        let Test { frame, answer } = match self.state.tests.entry(kind) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                let answer = KnownAnswer::of(kind, self.state.multiprocessors)
                    .map_err(|error| error.to_string())?;
                let frame = Arc::new(PreparedFrame::new(answer.scene.clone(), answer.id));
                place.insert(Test { frame, answer })
            }
        };
        self.state.units += 1;
        let number = self.state.units;
        let (frame, params) = (frame.clone(), answer.params);
        self.state.proof.asked(number, kind);
        live.child.order(Order::Render {
            unit: number,
            scene: frame.id,
            params: bytemuck::must_cast(params),
            in_stages: kind.staged,
        });
        let purpose = Purpose::Test;
        let flight = Flight { number, frame, params, purpose, started: false, stopped: false };
        live.flights.add(flight, now);
        Ok(())
    }
}

/// Whether a worker takes another unit ahead.
fn has_room(flights: &Flights, batch: u64) -> bool {
    flights.len() < AHEAD
        || flights.len() < BATCHES_AHEAD as usize * UNITS_MAX
            && flights.samples() < BATCHES_AHEAD * batch
}

/// Returns the kernels that a unit needs; None if it is a compute unit.
fn kind_of(unit: &DeviceUnit) -> Option<Kind> {
    match &unit.work {
        Work::Render { frame, params } => Some(Kind::of(&frame.scene, params)),
        Work::Compute { .. } | Work::Finish(_) => None,
    }
}
