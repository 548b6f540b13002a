//! The thread of a CUDA device in the node. It keeps a worker alive, tests it, gives it units, ends
//! it if it hangs, and gives the device up if it cannot be trusted. The worker does the computing.

use super::child::{Child, Heard};
use super::command::WorkerCommand;
use super::compute::ToLane;
use super::event::Event;
use super::flight::{Flight, Flights, Purpose, sums_of};
use super::health::{Fault, Health, Next};
use super::held::Held;
use super::proof::Proof;
use super::shared::Shared;
use super::watchdog::{Rate, Watchdog};
use crate::device::known_answer::{Kind, KnownAnswer};
use crate::device::worker::FoundDevice;
use crate::device::worker::message::{Opened, Order, Refusal, Report, UnitError};
use crate::device::xid::XidAction;
use crate::device::{DeviceError, DeviceUnit, PreparedFrame, UnitOutput, Work};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};
use tessera_protocol::device::DeviceState;

/// Units that a worker gets ahead: one computes, one is being enqueued, one waits for its scene.
/// The rest stays here, where it can be withdrawn.
const AHEAD: usize = 3;
/// Time between two checks of cancelled units and deadlines.
const TICK: Duration = Duration::from_millis(20);
/// The same time if no unit is in progress.
const IDLE_TICK: Duration = Duration::from_millis(500);
/// Longest wait of a unit without memory for the end of a compute job's chunk. It is longer than
/// most chunks take.
const SQUEEZED_MAX: Duration = Duration::from_secs(90);
/// A worker younger than this is not restarted because of a driver event, which was caused by the
/// worker before it.
const YOUNG: Duration = Duration::from_secs(2);

/// Outcome of the first start.
#[derive(Debug)]
pub(super) enum FirstStart {
    Ready,
    Refused(Refusal),
    Faulty(String),
}

/// A running worker process.
struct Live {
    child: Child,
    flights: Flights,
    phase: Phase,
    born: Instant,
}

#[derive(PartialEq)]
enum Phase {
    Opening,
    Testing,
    Serving,
}

enum Stage {
    Down {
        until: Instant,
    },
    Up(Box<Live>),
    /// The device is no longer used.
    Out,
}

/// State of the thread.
pub(super) struct Supervisor {
    pub(super) command: WorkerCommand,
    pub(super) label: String,
    pub(super) device: FoundDevice,
    pub(super) watchdog: Watchdog,
    pub(super) shared: Arc<Shared>,
    /// Channel to the thread for compute jobs on the same device.
    pub(super) compute: Option<Sender<ToLane>>,
    pub(super) events: Receiver<Event>,
    pub(super) sender: Sender<Event>,
    pub(super) first: Option<Sender<FirstStart>>,
    pub(super) health: Health,
    pub(super) state: State,
}

/// A known answer, and its scene as this device gets it.
struct Test {
    frame: Arc<PreparedFrame>,
    answer: KnownAnswer,
}

/// Rendering waits for memory that a compute job has.
struct Squeeze {
    /// End of the wait.
    until: Instant,
    /// The last unit that a worker got before the job was asked to release memory.
    given: u64,
}

/// The changing part of the state.
pub(super) struct State {
    stage: Stage,
    queue: VecDeque<DeviceUnit>,
    /// Finished results that have not passed a test yet.
    held: Held,
    /// Known answers that the present worker has given, and that it owes.
    proof: Proof,
    tests: BTreeMap<Kind, Test>,
    multiprocessors: u32,
    rate: Rate,
    workers: u64,
    units: u64,
    /// Callers that wait until memory has been given up.
    short: Vec<Sender<()>>,
    /// Wait of rendering for memory of a compute job.
    squeeze: Option<Squeeze>,
    /// Reason why no more units are begun.
    draining: Option<String>,
}

impl State {
    pub(super) fn new() -> Self {
        Self {
            stage: Stage::Down { until: Instant::now() },
            queue: VecDeque::new(),
            held: Held::default(),
            proof: Proof::default(),
            tests: BTreeMap::new(),
            multiprocessors: 0,
            rate: Rate::default(),
            workers: 0,
            units: 0,
            short: Vec::new(),
            squeeze: None,
            draining: None,
        }
    }
}

impl Supervisor {
    pub(super) fn run(mut self) {
        loop {
            self.turn();
            match self.events.recv_timeout(self.wait()) {
                Ok(Event::Stop) | Err(RecvTimeoutError::Disconnected) => break,
                Ok(event) => self.on_event(event),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        // End the worker first, so that no caller waits for its remaining work.
        let stage = std::mem::replace(&mut self.state.stage, Stage::Out);
        if let Stage::Up(live) = stage {
            let Live { child, mut flights, .. } = *live;
            drop(child);
            flights.end_all(&DeviceError::Cancelled);
        }
        self.state.held.give_up();
        self.return_queue();
    }

    fn wait(&self) -> Duration {
        match &self.state.stage {
            Stage::Up(live) if live.flights.len() > 0 || live.phase != Phase::Serving => TICK,
            Stage::Up(_) if !self.state.held.is_empty() => TICK,
            Stage::Down { until } => until.saturating_duration_since(Instant::now()).min(IDLE_TICK),
            _ => IDLE_TICK,
        }
    }

    fn on_event(&mut self, event: Event) {
        match event {
            Event::Submit(unit) => self.state.queue.push_back(unit),
            Event::Heard(worker, heard) if worker == self.state.workers => self.on_heard(heard),
            // The message is from a worker that has been given up.
            Event::Heard(..) => {}
            Event::Xid { code, action, meaning } => self.on_xid(code, action, &meaning),
            Event::Doubt => self.state.proof.doubt(),
            Event::GiveUp(short) => {
                // A worker that is absent or not open yet holds no memory.
                if let Stage::Up(live) = &self.state.stage
                    && live.phase != Phase::Opening
                {
                    live.child.order(Order::GiveUp);
                    self.state.short.push(short);
                }
            }
            // The loop handles this.
            Event::Stop => {}
        }
    }

    /// Does what is due, and gives the worker what it can take.
    fn turn(&mut self) {
        let now = Instant::now();
        match &mut self.state.stage {
            Stage::Down { until } if *until <= now => self.start(),
            Stage::Down { .. } | Stage::Out => {}
            Stage::Up(live) => {
                for unit in live.flights.newly_cancelled() {
                    live.child.order(Order::Cancel { unit });
                }
                let overdue = match live.phase {
                    Phase::Opening => (now - live.born > self.watchdog.start).then(|| {
                        format!("not open after {:.0} s", self.watchdog.start.as_secs_f64())
                    }),
                    _ => live.flights.overdue(&self.watchdog, &self.state.rate, now),
                };
                if let Some(reason) = overdue {
                    self.fail(Fault::Worker, &reason, DeviceError::TimedOut);
                }
            }
        }
        self.give();
        if !self.shared.is_ready() && self.first.is_none() {
            self.return_queue();
        }
    }

    fn start(&mut self) {
        self.state.workers += 1;
        let (worker, sender) = (self.state.workers, self.sender.clone());
        let heard = move |heard| {
            // The receiver is gone once the device is closed.
            let _ = sender.send(Event::Heard(worker, heard));
        };
        let visible = self.device.by_uuid.then_some(self.device.uuid.as_str());
        self.shared.set_state(DeviceState::Testing);
        match Child::start(&self.command, visible, &self.label, heard) {
            Ok(child) => {
                let (now, flights) = (Instant::now(), Flights::default());
                child.order(Order::Open {
                    ordinal: self.device.ordinal,
                    uuid: self.device.uuid.clone(),
                });
                let live = Live { child, flights, phase: Phase::Opening, born: now };
                self.state.stage = Stage::Up(Box::new(live));
            }
            Err(error) => {
                let reason = format!("cannot start `{}`: {error}", self.command.program.display());
                self.fail(Fault::Worker, &reason, DeviceError::Worker);
            }
        }
    }

    /// Gives the worker its next units, but the tests first that are due.
    fn give(&mut self) {
        let now = Instant::now();
        let waits = self.state.squeeze.as_ref().is_some_and(|squeeze| now < squeeze.until);
        if waits && self.shared.compute_held() > 0 {
            return;
        }
        self.give_tests(now);
        let Stage::Up(live) = &mut self.state.stage else { return };
        while live.phase == Phase::Serving
            && live.flights.len() < AHEAD
            && self.state.draining.is_none()
        {
            let is_covered =
                |unit: &DeviceUnit| kind_of(unit).is_none_or(|kind| self.state.proof.covers(kind));
            if self.state.queue.front().is_none_or(|unit| !is_covered(unit)) {
                break;
            }
            let Some(unit) = self.state.queue.pop_front() else { break };
            let DeviceUnit { work: Work::Render { frame, params }, cancel, finish } = unit else {
                // Compute units have a separate thread.
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
    fn give_tests(&mut self, now: Instant) {
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
        let work = live.flights.work().chain(self.state.held.flights()).map(Flight::kind);
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

    fn on_heard(&mut self, heard: Heard) {
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
                live.flights.on_other_progress(now);
                match live.flights.frame(scene) {
                    Some(frame) => live.child.send_scene(frame),
                    None => {
                        let problem = "no unit needs it any more".to_owned();
                        live.child.order(Order::NoScene { scene, problem });
                    }
                }
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

    fn on_opened(&mut self, opened: &Opened) {
        tracing::info!(
            device = self.label,
            name = opened.device.name,
            cuda = opened.driver_version,
            free_bytes = opened.free_bytes,
            start_millis = opened.start.as_millis(),
            compile_millis = opened.compile.as_millis(),
            "device opened"
        );
        self.shared.opened(opened);
        if self.state.multiprocessors != opened.device.multiprocessors {
            self.state.tests.clear();
            self.state.multiprocessors = opened.device.multiprocessors;
        }
        self.state.proof.begin();
        if let Stage::Up(live) = &mut self.state.stage {
            live.phase = Phase::Testing;
        }
        self.give_tests(Instant::now());
    }

    fn on_refused(&mut self, refusal: Refusal) {
        match self.first.take() {
            Some(first) => {
                self.quarantine(&refusal.to_string());
                // The caller that opens the device waits for this.
                let _ = first.send(FirstStart::Refused(refusal));
            }
            None => self.fail(Fault::Worker, &refusal.to_string(), DeviceError::Worker),
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
        let output = UnitOutput { sums, chunk: None, rays, device_time: time, device_bytes };
        self.state.held.add(flight, output, now);
    }

    fn on_answer(&mut self, test: u64, payload: &[u8]) {
        let Some(kind) = self.state.proof.kind_of(test) else { return };
        if !self.state.tests.get(&kind).is_some_and(|test| test.answer.is(payload)) {
            let units = self.state.held.give_up();
            tracing::warn!(
                device = self.label,
                units,
                "its work since the last right answer is repeated"
            );
            let reason = format!("it does not give the known answer of {kind}");
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

    fn on_xid(&mut self, code: u64, action: XidAction, meaning: &str) {
        self.shared.xid(code, Instant::now());
        tracing::warn!(
            device = self.label,
            xid = code,
            meaning,
            ?action,
            "the driver reports an event"
        );
        let reason = format!("Xid {code}: {meaning}");
        match (action, &self.state.stage) {
            (XidAction::Note, _) | (_, Stage::Out) => {}
            // The process of the kernel has ended because of it. The known-answer test shows
            // whether the device is healthy.
            (XidAction::Restart, Stage::Up(_))
                if self.shared.is_under_user_kernel(Instant::now()) =>
            {
                self.on_event(Event::Doubt);
            }
            (XidAction::Restart, Stage::Up(live)) if live.born.elapsed() >= YOUNG => {
                self.fail(Fault::Worker, &reason, DeviceError::Failed);
            }
            (XidAction::Restart, _) => {}
            (XidAction::Drain, Stage::Up(_)) => {
                // From now on no unit begins. The units that have begun are finished, then `give`
                // ends the worker.
                self.shared.quarantine(&reason);
                self.state.draining = Some(reason);
            }
            (XidAction::Drain, Stage::Down { .. }) => self.quarantine(&reason),
            (XidAction::Quarantine, _) => {
                self.end_worker(&reason, DeviceError::Failed);
                self.quarantine(&reason);
            }
        }
    }

    /// Ends the worker after a fault. The device's health decides what comes next.
    fn fail(&mut self, fault: Fault, reason: &str, error: impl FnOnce(String) -> DeviceError) {
        if let Some(event) = self.state.draining.take() {
            self.end_worker(reason, error);
            return self.quarantine(&event);
        }
        self.shared.set_state(DeviceState::Testing);
        let next = self.health.on_fault(fault);
        match next {
            Next::Restart(wait) => {
                tracing::warn!(
                    device = self.label,
                    reason,
                    wait_millis = wait.as_millis(),
                    "worker ended; starting another"
                );
                self.end_worker(reason, error);
                self.state.stage = Stage::Down { until: Instant::now() + wait };
            }
            Next::Quarantine => {
                self.shared.quarantine(reason);
                self.end_worker(reason, error);
                self.quarantine(reason);
            }
        }
    }

    /// Ends the worker. Its present unit has failed; the others go back to be rendered elsewhere.
    fn end_worker(&mut self, reason: &str, error: impl FnOnce(String) -> DeviceError) {
        self.state.draining = None;
        self.state.short.clear();
        let stage = std::mem::replace(&mut self.state.stage, Stage::Out);
        if let Stage::Up(live) = stage {
            let Live { child, mut flights, .. } = *live;
            drop(child);
            flights.end_all(&error(format!("{}: {reason}", self.label)));
        }
    }

    fn quarantine(&mut self, reason: &str) {
        tracing::error!(
            device = self.label,
            reason,
            failures = self.health.failures(),
            "device quarantined"
        );
        self.shared.quarantine(reason);
        self.state.stage = Stage::Out;
        self.state.held.give_up();
        self.return_queue();
        if let Some(first) = self.first.take() {
            let _ = first.send(FirstStart::Faulty(reason.to_owned()));
        }
    }

    /// Sends the units that no worker has back, to be rendered elsewhere.
    fn return_queue(&mut self) {
        for unit in std::mem::take(&mut self.state.queue) {
            (unit.finish)(Err(DeviceError::Cancelled));
        }
    }
}

/// Returns the kernels that a unit needs; None if it is a compute unit.
fn kind_of(unit: &DeviceUnit) -> Option<Kind> {
    match &unit.work {
        Work::Render { frame, params } => Some(Kind::of(&frame.scene, params)),
        Work::Compute { .. } => None,
    }
}
