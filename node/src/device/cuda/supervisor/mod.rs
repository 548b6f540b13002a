//! The thread of a CUDA device in the node. It keeps a worker alive, tests it, gives it units, ends
//! it if it hangs, and gives the device up if it cannot be trusted. The worker does the computing.

mod end;
mod give;
mod hear;
mod start;

use super::child::Child;
use super::command::WorkerCommand;
use super::compute::ToLane;
use super::event::Event;
use super::flight::Flights;
use super::health::{Fault, Health};
use super::held::Held;
use super::proof::Proof;
use super::shared::Shared;
use super::watchdog::Watchdog;
use crate::device::known_answer::{Kind, KnownAnswer};
use crate::device::rate::Rate;
use crate::device::worker::FoundDevice;
use crate::device::worker::message::{Order, Refusal};
use crate::device::{DeviceError, DeviceUnit, PreparedFrame};
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

/// Time between two checks of cancelled units and deadlines.
const TICK: Duration = Duration::from_millis(20);
/// The same time if no unit is in progress.
const IDLE_TICK: Duration = Duration::from_millis(500);

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
    /// It may use machine code that was installed.
    has_cubins: bool,
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
    /// Folder of machine code that workers may use; None once some has been found wanting.
    cubins: Option<PathBuf>,
    multiprocessors: u32,
    /// Most paths that a batch of the present worker begins with.
    batch_paths: u32,
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
    pub(super) fn new(cubins: Option<PathBuf>) -> Self {
        Self {
            cubins,
            stage: Stage::Down { until: Instant::now() },
            queue: VecDeque::new(),
            held: Held::default(),
            proof: Proof::default(),
            tests: BTreeMap::new(),
            multiprocessors: 0,
            batch_paths: 0,
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
}
