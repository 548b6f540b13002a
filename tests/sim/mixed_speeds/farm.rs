//! A small farm without faults, in virtual time: nodes of given speeds, one job, and when its last
//! unit was committed. Drives the core alone; what it finds is judged in `mixed_speeds`.

use crate::model::film::film_of;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use tessera_core::{
    Action, Arrived, Core, Grid, Input, Moment, ResultShape, SessionId, Settings, Split,
};
use tessera_protocol::ids::{BlobHash, Fingerprint, FrameNumber, JobId, Lease, UnitIndex};
use tessera_protocol::job::RenderSpec;
use tessera_protocol::node::{
    Assignment, CoordinatorToNode, Failure, Heartbeat, Join, LimitReached, NodeLimit, Piece, Task,
};
use tessera_protocol::status::FrameFile;
use tessera_support::inputs;
use uuid::Uuid;

/// One way of a message, microseconds.
const WAY: u64 = 5_000;
/// From a unit's end on the device to its result at the core: store, upload.
const UPLOAD: u64 = 15_000;
/// From a unit to the word that it has failed.
const FAILS_AFTER: u64 = 20_000;
/// Between heartbeats.
const BEAT: u64 = 2_000_000;
/// Work that a node holds ahead on each device, as the node does by default.
const HOLD: f64 = 500_000.0;
/// The start of all runs, milliseconds.
const START: u64 = 1_000_000;

/// What is wrong with a node, if anything is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    None,
    /// It says of every scene that it cannot be prepared.
    CannotPrepare,
    /// It has too little memory for every scene.
    Small,
    /// Every attempt fails on it.
    FailsAll,
    /// Its heart beats, and it begins nothing.
    Idle,
}

/// A node of one run.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    /// Camera samples of mean cost per second, of each device.
    pub(crate) speed: f64,
    pub(crate) devices: usize,
    /// From this second on, its devices have another speed.
    pub(crate) change: Option<(f64, f64)>,
    pub(crate) trouble: Trouble,
}

impl Machine {
    pub(crate) fn of(speed: f64) -> Self {
        Self { speed, devices: 1, change: None, trouble: Trouble::None }
    }

    fn speed_at(&self, micros: u64) -> f64 {
        match self.change {
            Some((from, speed)) if micros as f64 * 1e-6 >= from => speed,
            _ => self.speed,
        }
    }

    /// Work that all its devices do within so many seconds.
    fn work_within(&self, secs: f64) -> f64 {
        let first = self.change.map_or(secs, |(from, _)| from.min(secs));
        let later = self.change.map_or(0.0, |(_, speed)| speed) * (secs - first);
        (self.speed * first + later) * self.devices as f64
    }
}

/// What was said of a job's end when a fifth of its units was committed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Guess {
    /// Seconds that were said to be left; None if nothing was said.
    pub(crate) said: Option<u64>,
    /// Seconds until it ended.
    pub(crate) was: f64,
}

/// What came of a run.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    /// Seconds until the last unit was committed.
    pub(crate) makespan: f64,
    /// Seconds that the work takes where every device works until the end.
    pub(crate) bound: f64,
    /// Units of a frame.
    pub(crate) units: u32,
    /// Units committed by each node.
    pub(crate) by_node: Vec<u32>,
    /// Leases that were taken back.
    pub(crate) revoked: u32,
    /// All units were committed.
    pub(crate) ended_well: bool,
    /// Frames at most that had begun and were not done, and seconds until the first was.
    pub(crate) frames_open: usize,
    pub(crate) first_frame: f64,
    /// What operators saw of the last node when it was passed over or out of work for the first
    /// time.
    pub(crate) note: String,
    /// What was said of each job's end.
    pub(crate) guesses: Vec<Guess>,
}

enum Event {
    ToCore(Box<Input>),
    ToNode(usize, Box<CoordinatorToNode>),
    /// A unit ends on a device, if it is still the one that runs there.
    Ended(usize, usize, Lease),
    Beat(usize),
    Tick,
}

/// A node at work.
#[derive(Default)]
struct Working {
    waiting: VecDeque<Assignment>,
    running: Vec<Option<(Assignment, u64)>>,
    mean_micros: Option<f64>,
    capacity: u32,
    beats: u64,
}

/// The run.
pub(crate) struct Farm {
    core: Core,
    machines: Vec<Machine>,
    nodes: Vec<Working>,
    grid: Grid,
    width: u32,
    channels: u8,
    seed: u64,
    agenda: BTreeMap<(u64, u64), Event>,
    events: u64,
    now: u64,
    left: u64,
    jobs_left: u64,
    done_at: u64,
    by_node: Vec<u32>,
    revoked: u32,
    note: String,
    /// Camera samples of mean cost that finishing a pixel takes; 0 if nodes finish no frames.
    per_pixel: f64,
    frames: Frames,
    asked: Asked,
    /// By how much the lowest tiles of a frame cost more than the mean, and the highest less.
    slope: f64,
}

/// What was asked of the ends of jobs.
#[derive(Default)]
struct Asked {
    /// Units of a job.
    units: u64,
    /// Units committed.
    committed: BTreeMap<JobId, u64>,
    /// When a job ended.
    ended: BTreeMap<JobId, u64>,
    /// When a fifth was committed, and what was said then.
    said: BTreeMap<JobId, (u64, Option<u64>)>,
}

impl Asked {
    fn guesses(&self) -> Vec<Guess> {
        let of = |(job, (at, said)): (&JobId, &(u64, Option<u64>))| {
            let end = self.ended.get(job).copied().unwrap_or(0);
            Guess { said: *said, was: end.saturating_sub(*at) as f64 * 1e-6 }
        };
        self.said.iter().map(of).collect()
    }
}

/// Frames of the run.
#[derive(Default)]
struct Frames {
    open: BTreeSet<(JobId, FrameNumber)>,
    open_most: usize,
    first_done: Option<u64>,
}

impl Farm {
    /// Renders a job on these machines. `seed` decides what each tile costs: from half of the mean
    /// to half as much again.
    pub(crate) fn run(machines: &[Machine], render: &RenderSpec, seed: u64) -> Run {
        Self::run_jobs(machines, (render, 1), seed)
    }

    /// The same by nodes that finish frames as well, at a cost of so many samples for each pixel.
    pub(crate) fn run_film(
        machines: &[Machine],
        render: &RenderSpec,
        (per_pixel, seed): (f64, u64),
    ) -> Run {
        Self::run_all(machines, (render, 1), (per_pixel, seed))
    }

    /// The same with several such jobs.
    pub(crate) fn run_jobs(
        machines: &[Machine],
        (render, jobs): (&RenderSpec, u64),
        seed: u64,
    ) -> Run {
        Self::run_all(machines, (render, jobs), (0.0, seed))
    }

    fn run_all(
        machines: &[Machine],
        jobs: (&RenderSpec, u64),
        (per_pixel, seed): (f64, u64),
    ) -> Run {
        let settings = Settings::default().without_checks();
        Self::run_by(settings, machines, jobs, (per_pixel, seed, 0.0))
    }

    /// The same under other settings, where the lowest tiles cost more than the highest: by this
    /// share of the mean.
    pub(crate) fn run_by(
        settings: Settings,
        machines: &[Machine],
        (render, jobs): (&RenderSpec, u64),
        (per_pixel, seed, slope): (f64, u64, f64),
    ) -> Run {
        let grid = Grid::of(render);
        let units = if per_pixel > 0.0 { Split::Tiles(grid).all_units() } else { grid.units() };
        let nodes = machines.iter().map(|machine| {
            let running = vec![None; machine.devices];
            Working { running, capacity: 2 * machine.devices as u32, ..Working::default() }
        });
        let mut farm = Self {
            core: Core::new(settings, Moment(START)),
            nodes: nodes.collect(),
            machines: machines.to_vec(),
            grid,
            width: render.width,
            channels: render.channels(),
            seed,
            agenda: BTreeMap::new(),
            events: 0,
            now: 0,
            left: u64::from(units) * u64::from(render.frames.len()) * jobs,
            jobs_left: jobs,
            done_at: 0,
            by_node: vec![0; machines.len()],
            revoked: 0,
            note: String::new(),
            per_pixel,
            frames: Frames::default(),
            asked: Asked {
                units: u64::from(units) * u64::from(render.frames.len()),
                ..Asked::default()
            },
            slope,
        };
        let frames = f64::from(render.frames.len()) * jobs as f64;
        let work: f64 = (0..units).map(|unit| farm.cost(UnitIndex(unit))).sum::<f64>() * frames;
        farm.begin(render, jobs);
        farm.go_on();
        Run {
            makespan: farm.done_at as f64 * 1e-6,
            bound: bound(machines, work),
            units,
            frames_open: farm.frames.open_most,
            first_frame: farm.frames.first_done.unwrap_or(farm.done_at) as f64 * 1e-6,
            by_node: farm.by_node,
            revoked: farm.revoked,
            ended_well: farm.left == 0 && farm.jobs_left == 0,
            note: farm.note,
            guesses: farm.asked.guesses(),
        }
    }

    fn begin(&mut self, render: &RenderSpec, jobs: u64) {
        for node in 0..self.nodes.len() {
            let join = self.join(node);
            self.feed(join);
            self.at(BEAT / 7 * (node as u64 % 7 + 1), Event::Beat(node));
        }
        for job in 1..=jobs {
            let id = JobId(Uuid::from_u128(job.into()));
            self.feed(inputs::submit(id, inputs::job(render.clone())));
        }
    }

    fn join(&self, node: usize) -> Input {
        let (number, devices) = (node as u64, vec![inputs::device(); self.machines[node].devices]);
        let finishing = (self.per_pixel > 0.0).then_some(Fingerprint([1; 32]));
        let join = Join { devices, finishing, ..inputs::join(number, self.nodes[node].capacity) };
        inputs::joined(number, join)
    }

    fn go_on(&mut self) {
        // A run that does not end is a failure of its judge's, not a hang.
        while let Some(((at, _), event)) = self.agenda.pop_first()
            && self.jobs_left > 0
            && self.events < 20_000_000
        {
            self.now = at;
            match event {
                Event::ToCore(input) => self.feed(*input),
                Event::ToNode(node, message) => self.on_message(node, *message),
                Event::Ended(node, device, lease) => self.on_ended(node, device, lease),
                Event::Beat(node) => self.on_beat(node),
                Event::Tick => self.feed(Input::Tick),
            }
        }
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
            let due = wake.0.saturating_sub(START) * 1000;
            // The clock of the core has milliseconds.
            self.at(due.saturating_sub(self.now).max(1000), Event::Tick);
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Send { session, message } => {
                let node = session.0 as usize;
                match &message {
                    CoordinatorToNode::Committed { lease } => {
                        self.frames.open.insert((lease.unit.job, lease.unit.frame));
                        self.frames.open_most = self.frames.open_most.max(self.frames.open.len());
                        self.left -= 1;
                        self.done_at = self.now;
                        self.by_node[node] += 1;
                        self.note_commit(lease.unit.job);
                    }
                    CoordinatorToNode::Revoke { leases } => self.revoked += leases.len() as u32,
                    _ => {}
                }
                self.at(WAY, Event::ToNode(node, Box::new(message)));
            }
            Action::Fault { what } => panic!("fault of the core: {what}"),
            Action::ResolveFrame { job, frame } => {
                let file = FrameFile {
                    format: "exr".to_owned(),
                    hash: BlobHash([3; 32]),
                    length: 1,
                    pixels_sha256: [0; 32],
                };
                self.at(
                    WAY,
                    Event::ToCore(Box::new(Input::FrameResolved {
                        job,
                        frame,
                        files: vec![file],
                        exposure: None,
                    })),
                );
            }
            Action::JobEnded { job } => {
                self.asked.ended.insert(job, self.now);
                self.jobs_left -= 1;
            }
            Action::FrameFinished { job, frame } => {
                self.frames.open.remove(&(job, frame));
                self.frames.first_done.get_or_insert(self.now);
            }
            _ => {}
        }
    }

    /// A unit of a job is committed: after a fifth of them, its end is asked for.
    fn note_commit(&mut self, job: JobId) {
        let now = self.now;
        let count = self.asked.committed.entry(job).or_default();
        *count += 1;
        if *count * 5 >= self.asked.units && !self.asked.said.contains_key(&job) {
            let said = self.core.job_summary(job).and_then(|summary| summary.left_secs);
            self.asked.said.insert(job, (now, said));
        }
    }

    /// A node fails what it is given, as its trouble says.
    fn fail_all(&mut self, node: usize, work: &[Assignment]) {
        let text = || "simulated".to_owned();
        for unit in work {
            let failure = match self.machines[node].trouble {
                Trouble::CannotPrepare => Failure::Scene(text()),
                Trouble::Small => {
                    Failure::Limit(LimitReached { limit: NodeLimit::SceneMemory, reason: text() })
                }
                _ => Failure::Device(text()),
            };
            let (session, lease) = (SessionId(node as u64), unit.lease());
            let input = Input::UnitFailed { session, lease, failure };
            self.at(FAILS_AFTER, Event::ToCore(Box::new(input)));
        }
    }

    fn on_message(&mut self, node: usize, message: CoordinatorToNode) {
        let trouble = self.machines[node].trouble;
        match message {
            CoordinatorToNode::Work(work) if is_failing(trouble) => self.fail_all(node, &work),
            CoordinatorToNode::Work(work) => self.nodes[node].waiting.extend(work),
            CoordinatorToNode::Revoke { leases } => {
                let working = &mut self.nodes[node];
                working.waiting.retain(|unit| !leases.contains(&unit.lease()));
                for running in &mut working.running {
                    if running.as_ref().is_some_and(|(unit, _)| leases.contains(&unit.lease())) {
                        *running = None;
                    }
                }
            }
            _ => {}
        }
        self.pump(node);
    }

    fn pump(&mut self, node: usize) {
        if self.machines[node].trouble == Trouble::Idle {
            return;
        }
        for device in 0..self.machines[node].devices {
            if self.nodes[node].running[device].is_some() {
                continue;
            }
            let Some(unit) = self.nodes[node].waiting.pop_front() else { return };
            self.nodes[node].running[device] = Some((unit, self.now));
            let micros =
                (self.cost(unit.unit) / self.machines[node].speed_at(self.now) * 1e6) as u64;
            self.at(micros.max(1), Event::Ended(node, device, unit.lease()));
        }
    }

    fn on_ended(&mut self, node: usize, device: usize, lease: Lease) {
        let working = &mut self.nodes[node];
        let Some((unit, began)) = working.running[device].filter(|(unit, _)| unit.lease() == lease)
        else {
            return;
        };
        working.running[device] = None;
        let micros = self.now - began;
        let mean = working.mean_micros.unwrap_or(micros as f64) * 0.75 + micros as f64 * 0.25;
        working.mean_micros = Some(mean);
        let capacity =
            (1.0 + (HOLD / mean).ceil()).clamp(2.0, 128.0) as u32 * working.running.len() as u32;
        if capacity != working.capacity {
            working.capacity = capacity;
            let session = SessionId(node as u64);
            self.at(WAY, Event::ToCore(Box::new(Input::Capacity { session, units: capacity })));
        }
        let shape = match unit.task {
            Task::Tile { tile, samples } => film_of(tile, samples, self.channels),
            Task::Finish(finish) => ResultShape::Finished(finish.piece),
            Task::Chunk { .. } => return,
        };
        let result = Arrived {
            lease,
            hash: BlobHash([2; 32]),
            shape,
            device: device as u8,
            device_micros: micros,
            waited_micros: 0,
            device_bytes: 0,
        };
        let input = Input::ResultArrived { session: SessionId(node as u64), result };
        self.at(UPLOAD, Event::ToCore(Box::new(input)));
        self.pump(node);
    }

    fn on_beat(&mut self, node: usize) {
        let working = &mut self.nodes[node];
        working.beats += 1;
        let running = working.running.iter().flatten().map(|(unit, _)| unit.lease());
        let leases = running.chain(working.waiting.iter().map(Assignment::lease)).collect();
        let heartbeat = Heartbeat {
            sequence: working.beats,
            leases,
            outbox: 0,
            working: u32::from(self.machines[node].trouble != Trouble::Idle),
            busy: Some(1.0),
            devices: Vec::new(),
            progress: Vec::new(),
        };
        if self.note.is_empty() && node + 1 == self.nodes.len() {
            let rows = self.core.nodes(Moment(START + self.now / 1000));
            let row = rows.into_iter().find(|row| row.node == inputs::node(node as u64));
            self.note = row.map(|row| row.note).unwrap_or_default();
        }
        let input = Input::Heartbeat { session: SessionId(node as u64), heartbeat };
        self.at(WAY, Event::ToCore(Box::new(input)));
        self.at(BEAT, Event::Beat(node));
    }

    /// What a unit costs, in samples of mean cost: the same for every node.
    fn cost(&self, unit: UnitIndex) -> f64 {
        let rows = match Split::Tiles(self.grid).piece(unit) {
            Some(Piece::Band { rows, .. } | Piece::Frame { rows }) => f64::from(rows),
            // Encoding what the bands have made costs a tenth of making it.
            Some(Piece::Assembly) => f64::from(self.grid.bands().height()) * 0.1,
            None => 0.0,
        };
        if rows > 0.0 {
            return rows * f64::from(self.width) * self.per_pixel;
        }
        let (tile, _) = self.grid.tile_and_pass(unit);
        let mixed = (u64::from(tile) ^ self.seed << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let share = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 40;
        let row = f64::from(tile / self.grid.columns()) / f64::from(self.grid.rows()) - 0.5;
        let factor = 0.5 + share as f64 / f64::from(1u32 << 24) + row * 2.0 * self.slope;
        self.grid.unit_camera_samples(unit) as f64 * factor
    }
}

fn is_failing(trouble: Trouble) -> bool {
    !matches!(trouble, Trouble::None | Trouble::Idle)
}

/// The seconds in which the machines together do so much work.
fn bound(machines: &[Machine], work: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1e9);
    for _ in 0..200 {
        let middle = (low + high) / 2.0;
        let done: f64 = machines.iter().map(|machine| machine.work_within(middle)).sum();
        if done < work { low = middle } else { high = middle }
    }
    high
}
