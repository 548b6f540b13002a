//! What the worker says: results, answers to tests, and what it cannot do.

use super::{FirstStart, Live, Phase, Squeeze, Stage, Supervisor};
use crate::device::cuda::child::{Child, Heard};
use crate::device::cuda::compute::ToLane;
use crate::device::cuda::flight::{Purpose, sums_of};
use crate::device::cuda::health::Fault;
use crate::device::worker::message::{Order, Report, UnitError};
use crate::device::{DeviceError, DeviceUnit, PreparedFrame, UnitOutput, Work};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tessera_protocol::device::DeviceState;

/// Longest wait of a unit without memory for the end of a compute job's chunk. It is longer than
/// most chunks take.
const SQUEEZED_MAX: Duration = Duration::from_secs(90);

impl Live {
    /// Answers a worker's question for a scene, or tells it that the scene will not come.
    fn answer(
        &mut self,
        scene: u64,
        now: Instant,
        answer: impl FnOnce(&Child, Arc<PreparedFrame>),
    ) {
        self.flights.on_other_progress(now);
        match self.flights.frame(scene) {
            Some(frame) => answer(&self.child, frame),
            None => {
                let problem = "no unit needs it any more".to_owned();
                self.child.order(Order::NoScene { scene, problem });
            }
        }
    }
}

impl Supervisor {
    pub(super) fn on_heard(&mut self, heard: Heard) {
        let (report, payload) = match heard {
            Heard::Report(report, payload) => (report, payload),
            Heard::Gone(reason) => {
                let Stage::Up(live) = &mut self.state.stage else { return };
                let reason = format!("{reason} ({})", live.child.how_it_ended());
                return self.fail(Fault::Worker, &reason, DeviceError::Worker);
            }
        };
        let Stage::Up(live) = &mut self.state.stage else { return };
        let now = Instant::now();
        match report {
            Report::Ready(sandbox) if sandbox.holds() => {
                tracing::debug!(device = self.label, %sandbox, "worker confined");
            }
            Report::Ready(sandbox) => {
                tracing::warn!(device = self.label, %sandbox, "worker not confined")
            }
            Report::Opened(opened) => self.on_opened(&opened),
            Report::Refused(refusal) => self.on_refused(refusal),
            Report::NeedScene { scene } => {
                live.answer(scene, now, Child::send_scene);
            }
            Report::NeedParts { scene, parts } => {
                live.answer(scene, now, |child, frame| child.send_parts(frame, parts));
            }
            Report::Started { unit, free_bytes, held_bytes } => {
                live.flights.on_progress(unit, true, now);
                self.shared.holds(free_bytes, held_bytes);
            }
            Report::Progress { unit, .. } => live.flights.on_progress(unit, false, now),
            Report::Rendered { unit, rays, device_nanos, device_bytes } => {
                let time = Duration::from_nanos(device_nanos);
                self.on_rendered(unit, rays, time, device_bytes, &payload);
            }
            Report::Failed { unit, error } => self.on_unit_failed(unit, error),
            Report::Cancelled { unit } => {
                if let Some(flight) = live.flights.take(unit, now) {
                    flight.end(Err(DeviceError::Cancelled));
                }
            }
            Report::GaveUp => {
                for short in self.state.short.drain(..) {
                    // A caller that has waited long enough does not listen any more.
                    let _ = short.send(());
                }
            }
            Report::Broken(error) => {
                self.fail(Fault::Worker, &error.to_string(), DeviceError::Failed)
            }
            // The worker was not asked for this.
            _ => {}
        }
    }

    fn on_rendered(
        &mut self,
        unit: u64,
        rays: [u64; 4],
        time: Duration,
        device_bytes: u64,
        payload: &[u8],
    ) {
        let now = Instant::now();
        let Stage::Up(live) = &mut self.state.stage else { return };
        let Some(flight) = live.flights.take(unit, now) else { return };
        if matches!(flight.purpose, Purpose::Test) {
            return self.on_answer(unit, payload);
        }
        let Some(sums) = sums_of(&flight.params, payload) else {
            flight.end(Err(DeviceError::Worker("the worker gave a film of another size".into())));
            return self.fail(Fault::Worker, "it gave a film of another size", DeviceError::Worker);
        };
        self.state.squeeze = None;
        self.state.rate.measure(flight.samples(), time);
        self.shared.worked(time, self.state.rate.samples_per_second());
        let rays = rays[0] + rays[1];
        let (chunk, piece) = (None, None);
        let output = UnitOutput { sums, chunk, piece, rays, device_time: time, device_bytes };
        self.state.held.add(flight, output, now);
    }

    fn on_answer(&mut self, test: u64, payload: &[u8]) {
        let Some(kind) = self.state.proof.kind_of(test) else { return };
        if !self.state.tests.get(&kind).is_some_and(|test| test.answer.is(payload)) {
            let reason = format!("it does not give the known answer of {kind}");
            if self.may_be_cubins() {
                return self.start_without_cubins(&reason);
            }
            let units = self.state.held.give_up();
            tracing::warn!(
                device = self.label,
                units,
                "its work since the last right answer is repeated"
            );
            // The units that it has begun are not blamed, since their results would not be used.
            return self.fail(Fault::WrongAnswer, &reason, |_| DeviceError::Cancelled);
        }
        let Some(first) = self.state.proof.right(test) else { return };
        for _ in 0..self.state.held.release(first, Instant::now()) {
            self.health.on_unit();
        }
        let Stage::Up(live) = &mut self.state.stage else { return };
        if live.phase == Phase::Testing && self.state.proof.serves() {
            live.phase = Phase::Serving;
            self.shared.set_state(DeviceState::Ready);
            tracing::info!(
                device = self.label,
                failures = self.health.failures(),
                "device gives the known answers"
            );
            if let Some(first) = self.first.take() {
                let _ = first.send(FirstStart::Ready);
            }
        }
    }

    fn on_unit_failed(&mut self, unit: u64, error: UnitError) {
        let Stage::Up(live) = &mut self.state.stage else { return };
        let Some(flight) = live.flights.take(unit, Instant::now()) else { return };
        // A unit that has begun may have the memory that this one lacks.
        let is_shared = live.flights.work().any(|work| work.started);
        if matches!(error, UnitError::OutOfMemory { .. }) && self.squeeze(unit, Instant::now()) {
            return match flight.purpose {
                Purpose::Test => self.state.proof.take_back(unit),
                Purpose::Work { cancel, finish } => {
                    let work = Work::Render { frame: flight.frame, params: flight.params };
                    self.state.queue.push_front(DeviceUnit { work, cancel, finish });
                }
            };
        }
        let is_short = matches!(error, UnitError::OutOfMemory { .. });
        if matches!(flight.purpose, Purpose::Test) && is_short && is_shared {
            return self.state.proof.take_back(unit);
        }
        if matches!(flight.purpose, Purpose::Test) {
            let reason = format!("the known-answer test failed: {error:?}");
            return self.fail(Fault::Worker, &reason, DeviceError::Worker);
        }
        flight.end(Err(match error {
            UnitError::OutOfMemory { needed, available } => {
                DeviceError::OutOfMemory { needed, available }
            }
            UnitError::Refused(reason) => DeviceError::Failed(reason),
        }));
    }

    /// Returns whether a unit that found no memory should be tried again. This is so if a compute
    /// job has memory of this device and was asked to release it after its present chunk, or has
    /// done so since the unit was given.
    fn squeeze(&mut self, unit: u64, now: Instant) -> bool {
        let (held, squeeze) = (self.shared.compute_held() > 0, self.state.squeeze.as_ref());
        let is_late = squeeze.is_some_and(|squeeze| now >= squeeze.until);
        let was_before = squeeze.is_some_and(|squeeze| unit <= squeeze.given);
        if is_late || !(held || was_before) {
            self.state.squeeze = None;
            return false;
        }
        if !held {
            return true;
        }
        let until = squeeze.map_or(now + SQUEEZED_MAX, |squeeze| squeeze.until);
        self.state.squeeze = Some(Squeeze { until, given: self.state.units });
        // The thread of the compute lane ends after this one.
        self.compute.as_ref().is_some_and(|lane| lane.send(ToLane::LetGo).is_ok())
    }
}
