//! A farm without faults, in virtual time, that owners share: what device time each gets, and when
//! each job begins. Drives the core alone; what it finds is judged in `fair`.

use crate::model::film::film_of;
use std::collections::{BTreeMap, VecDeque};
use tessera_core::{
    Action, Arrived, Caller, Core, Grid, Input, Moment, RequestId, SessionId, Settings, Weights,
};
use tessera_protocol::frames::FrameSet;
use tessera_protocol::ids::{BlobHash, FrameNumber, JobId, Lease, NodeId};
use tessera_protocol::job::RenderSpec;
use tessera_protocol::node::{Assignment, CoordinatorToNode, Join};
use tessera_protocol::status::FrameFile;
use tessera_support::inputs;
use uuid::Uuid;

/// One way of a message, microseconds.
const WAY: u64 = 5_000;
/// The start of all runs, milliseconds.
const START: u64 = 1_000_000;

/// What is wrong with a farm, on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    /// An owner has next to no weight in the core, and nobody knows.
    OwnerStarved(u64),
}

/// A farm of equal nodes, each with one device.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) nodes: usize,
    /// Units that a node holds.
    pub(crate) capacity: u32,
    /// Owners by their numbers, with weights.
    pub(crate) weights: Vec<(u64, f64)>,
    pub(crate) bug: Option<Bug>,
}

impl Plan {
    fn settings(&self) -> Settings {
        let mut weights = Weights::default();
        for (owner, weight) in &self.weights {
            assert!(weights.set(&format!("#{owner}"), *weight), "{weight} is a weight");
        }
        if let Some(Bug::OwnerStarved(owner)) = self.bug {
            assert!(weights.set(&format!("#{owner}"), 0.01));
        }
        Settings { weights, ..Settings::default().without_checks() }
    }
}

enum Event {
    ToCore(Box<Input>),
    ToNode(usize, Box<CoordinatorToNode>),
    Ended(usize, Lease),
    Tick,
}

/// A node at work.
#[derive(Debug, Default)]
struct Working {
    waiting: VecDeque<Assignment>,
    running: Option<(Assignment, u64)>,
}

/// The run.
pub(crate) struct Farm {
    core: Core,
    nodes: Vec<Working>,
    /// Owner and mean device time of a unit, microseconds, of each job.
    jobs: BTreeMap<JobId, (u64, u64)>,
    agenda: BTreeMap<(u64, u64), Event>,
    events: u64,
    now: u64,
    /// When the next tick is due.
    tick_at: Option<u64>,
    /// Device time of each owner so far, microseconds.
    spent: BTreeMap<u64, u64>,
    /// When a device began the first unit of each job.
    begun: BTreeMap<JobId, u64>,
    /// Units that were given back.
    pub(crate) returned: usize,
    /// Units that were stopped.
    pub(crate) revoked: usize,
}

impl Farm {
    pub(crate) fn new(plan: &Plan) -> Self {
        let mut farm = Self {
            core: Core::new(plan.settings(), Moment(START)),
            nodes: (0..plan.nodes).map(|_| Working::default()).collect(),
            jobs: BTreeMap::new(),
            agenda: BTreeMap::new(),
            events: 0,
            now: 0,
            tick_at: None,
            spent: BTreeMap::new(),
            begun: BTreeMap::new(),
            returned: 0,
            revoked: 0,
        };
        for node in 0..plan.nodes {
            let number = node as u64;
            let id = NodeId(Uuid::from_u128(1000 + node as u128));
            let join = Join { node: id, ..inputs::join(number, plan.capacity) };
            farm.feed(inputs::joined(number, join));
        }
        farm
    }

    /// An owner submits a film of so many frames, each a unit of about so many microseconds.
    pub(crate) fn submit(&mut self, owner: u64, frames: u32, micros: u64) -> JobId {
        let job = JobId(Uuid::from_u128(1 + self.jobs.len() as u128));
        self.jobs.insert(job, (owner, micros));
        let frames = FrameSet::from_frames((1..=frames).map(FrameNumber)).expect("a set");
        let spec = inputs::job(RenderSpec { frames, ..inputs::render() });
        let caller = Caller { name: format!("owner{owner}"), id: owner, admin: false };
        let request = RequestId(1);
        self.feed(Input::Submit { request, job, spec: Box::new(spec), caller });
        job
    }

    /// Goes on until so many seconds after the start.
    pub(crate) fn run_until(&mut self, secs: f64) {
        let until = (secs * 1e6) as u64;
        while self.agenda.first_key_value().is_some_and(|((at, _), _)| *at <= until)
            && let Some(((at, _), event)) = self.agenda.pop_first()
        {
            self.now = at;
            match event {
                Event::ToCore(input) => self.feed(*input),
                Event::ToNode(node, message) => self.on_message(node, *message),
                Event::Ended(node, lease) => self.on_ended(node, lease),
                Event::Tick if self.tick_at == Some(at) => {
                    self.tick_at = None;
                    self.feed(Input::Tick);
                }
                // An earlier one took its place.
                Event::Tick => {}
            }
        }
        self.now = until;
    }

    /// Device time of an owner so far, seconds.
    pub(crate) fn spent(&self, owner: u64) -> f64 {
        self.spent.get(&owner).copied().unwrap_or(0) as f64 * 1e-6
    }

    /// When a device began the first unit of a job, seconds.
    pub(crate) fn begun(&self, job: JobId) -> Option<f64> {
        self.begun.get(&job).map(|at| *at as f64 * 1e-6)
    }

    fn at(&mut self, delay: u64, event: Event) {
        self.events += 1;
        self.agenda.insert((self.now + delay, self.events), event);
    }

    fn feed(&mut self, input: Input) {
        self.core.handle(input, Moment(START + self.now / 1000));
        for action in self.core.take_step().actions {
            self.act(action);
        }
        if let Some(wake) = self.core.next_wakeup() {
            // The clock of the core has milliseconds.
            let due = (wake.0.saturating_sub(START) * 1000).max(self.now + 1000);
            if self.tick_at.is_none_or(|at| due < at) {
                self.tick_at = Some(due);
                self.at(due - self.now, Event::Tick);
            }
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Send { session, message } => {
                if let CoordinatorToNode::Revoke { leases } = &message {
                    self.revoked += leases.len();
                }
                self.at(WAY, Event::ToNode(session.0 as usize, Box::new(message)));
            }
            Action::Fault { what } => panic!("fault of the core: {what}"),
            Action::ResolveFrame { job, frame } => {
                let file = FrameFile {
                    format: "exr".to_owned(),
                    hash: BlobHash([3; 32]),
                    length: 1,
                    pixels_sha256: [0; 32],
                };
                let (files, exposure) = (vec![file], None);
                let resolved = Input::FrameResolved { job, frame, files, exposure };
                self.at(WAY, Event::ToCore(Box::new(resolved)));
            }
            _ => {}
        }
    }

    fn on_message(&mut self, node: usize, message: CoordinatorToNode) {
        let working = &mut self.nodes[node];
        match message {
            CoordinatorToNode::Work(work) => working.waiting.extend(work),
            CoordinatorToNode::Revoke { leases } => {
                working.waiting.retain(|unit| !leases.contains(&unit.lease()));
                working.running.take_if(|(unit, _)| leases.contains(&unit.lease()));
            }
            CoordinatorToNode::GiveBack { leases } => {
                let wanted = |unit: &&Assignment| leases.contains(&unit.lease());
                let given = working.waiting.iter().filter(wanted);
                let given: Vec<Lease> = given.map(Assignment::lease).collect();
                working.waiting.retain(|unit| !given.contains(&unit.lease()));
                self.returned += given.len();
                let session = SessionId(node as u64);
                let returned = Input::Returned { session, leases: given };
                self.at(WAY, Event::ToCore(Box::new(returned)));
            }
            _ => {}
        }
        self.pump(node);
    }

    fn pump(&mut self, node: usize) {
        if self.nodes[node].running.is_some() {
            return;
        }
        let Some(unit) = self.nodes[node].waiting.pop_front() else { return };
        self.nodes[node].running = Some((unit, self.now));
        self.begun.entry(unit.job).or_insert(self.now);
        let micros = self.cost(unit);
        self.at(micros, Event::Ended(node, unit.lease()));
    }

    fn on_ended(&mut self, node: usize, lease: Lease) {
        let running = &mut self.nodes[node].running;
        let Some((unit, began)) = running.take_if(|(unit, _)| unit.lease() == lease) else {
            return;
        };
        let micros = self.now - began;
        let (owner, _) = self.jobs[&unit.job];
        *self.spent.entry(owner).or_default() += micros;
        let (tile, samples) = Grid::of(&inputs::render()).unit(unit.unit).expect("the only unit");
        let result = Arrived {
            lease,
            hash: BlobHash([2; 32]),
            shape: film_of(tile, samples, 3),
            device: 0,
            device_micros: micros,
            waited_micros: 0,
            device_bytes: 0,
        };
        let input = Input::ResultArrived { session: SessionId(node as u64), result };
        self.at(WAY, Event::ToCore(Box::new(input)));
        self.pump(node);
    }

    /// Device time of a unit: from half of the job's mean to half as much again.
    fn cost(&self, unit: Assignment) -> u64 {
        let (owner, mean) = self.jobs[&unit.job];
        let mixed = (u64::from(unit.frame.0) ^ owner << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mean / 2 + (((mixed >> 32) * mean) >> 32)
    }
}
