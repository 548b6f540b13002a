//! A large farm in virtual time, as cheap as can be: every node works on a unit a second and sends
//! a heartbeat every two. Measures the core's time on the processor for each kind of input; what it
//! finds is judged in `scale`.

use crate::model::film::film_of;
use std::collections::VecDeque;
use std::time::Instant;
use tessera_core::{Action, Arrived, Core, Grid, Input, Moment, SessionId, Settings};
use tessera_protocol::frames::FrameSet;
use tessera_protocol::ids::{BlobHash, FrameNumber, JobId, Lease, NodeId};
use tessera_protocol::job::RenderSpec;
use tessera_protocol::node::{Assignment, CoordinatorToNode, Heartbeat, Join};
use tessera_protocol::status::{FrameFile, JobState};
use tessera_support::inputs;
use uuid::Uuid;

/// The start of a run, milliseconds.
const START: u64 = 1_000_000;
/// Time of a unit, microseconds.
const UNIT: u64 = 1_000_000;
/// Time between heartbeats, in units' times.
const BEAT: u64 = 2;
/// Units that a node holds.
const CAPACITY: u32 = 2;
/// Units of a frame: 1024 tiles by 10 passes, or fewer passes for a small job.
const TILES: u64 = 1024;

/// What a run took.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    /// Results committed.
    pub(crate) decisions: u64,
    nanos: u64,
}

impl Cost {
    /// Nanoseconds of the processor for each result: its commit, the next lease, its share of
    /// heartbeats, and this farm itself.
    pub(crate) fn decision_nanos(&self) -> u64 {
        self.nanos / self.decisions.max(1)
    }
}

/// Nanoseconds that this thread has had a processor for; of the clock where the system does not
/// say.
fn nanos_on_processor(since: Instant) -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let told = text.split_whitespace().next().and_then(|first| first.parse().ok());
    told.unwrap_or_else(|| since.elapsed().as_nanos() as u64)
}

/// The run.
pub(crate) struct Farm {
    core: Core,
    grid: Grid,
    render: RenderSpec,
    job: JobId,
    /// Leases in the order in which they end, with their nodes.
    working: VecDeque<(u64, usize, Assignment)>,
    /// What each node holds.
    held: Vec<Vec<Lease>>,
    nodes: usize,
    next_beat: usize,
    sequence: u64,
    /// Microseconds since the start.
    now: u64,
}

impl Farm {
    pub(crate) fn new(nodes: usize, units: u64) -> Self {
        let render = render(units);
        let job = JobId(Uuid::from_u128(1));
        let mut farm = Self {
            core: Core::new(Settings::default().without_checks(), Moment(START)),
            grid: Grid::of(&render),
            render: render.clone(),
            job,
            working: VecDeque::new(),
            held: vec![Vec::new(); nodes],
            nodes,
            next_beat: 0,
            sequence: 0,
            now: 0,
        };
        farm.feed(inputs::submit(job, inputs::job(render)));
        for node in 0..nodes {
            farm.feed(join(node));
        }
        farm
    }

    /// Units in all.
    pub(crate) fn units(&self) -> u64 {
        u64::from(self.grid.units()) * u64::from(self.render.frames.len())
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.core.job_summary(self.job).is_some_and(|summary| summary.state == JobState::Done)
    }

    /// Runs for so many commits, or to the end of the job.
    pub(crate) fn run(&mut self, decisions: u64) -> Cost {
        let started = Instant::now();
        let before = nanos_on_processor(started);
        let mut cost = Cost::default();
        let each_beat = BEAT * UNIT / self.nodes as u64;
        let mut beat_at = self.now;
        while cost.decisions < decisions {
            while beat_at <= self.now {
                let beat = self.beat();
                self.feed(beat);
                beat_at += each_beat.max(1);
            }
            let Some((at, node, assignment)) = self.working.pop_front() else { break };
            self.now = self.now.max(at);
            self.held[node].retain(|lease| *lease != assignment.lease());
            let Some(result) = self.result(node, assignment) else { break };
            self.feed(result);
            cost.decisions += 1;
        }
        cost.nanos = nanos_on_processor(started) - before;
        cost
    }

    fn feed(&mut self, input: Input) {
        let now = Moment(START + self.now / 1000);
        self.core.handle(input, now);
        loop {
            let actions = self.core.take_step().actions;
            let mut resolved = Vec::new();
            for action in actions {
                match action {
                    Action::Send { session, message: CoordinatorToNode::Work(work) } => {
                        self.begin(session.0 as usize, work);
                    }
                    Action::Send { session, message: CoordinatorToNode::Revoke { leases } } => {
                        self.held[session.0 as usize].retain(|lease| !leases.contains(lease));
                        self.working
                            .retain(|(_, _, assignment)| !leases.contains(&assignment.lease()));
                    }
                    Action::Fault { what } => panic!("fault of the core: {what}"),
                    Action::ResolveFrame { job, frame } => resolved.push((job, frame)),
                    _ => {}
                }
            }
            if resolved.is_empty() {
                return;
            }
            for (job, frame) in resolved {
                let file = FrameFile {
                    format: "exr".to_owned(),
                    hash: BlobHash([3; 32]),
                    length: 1,
                    pixels_sha256: [0; 32],
                };
                self.core.handle(
                    Input::FrameResolved { job, frame, files: vec![file], exposure: None },
                    now,
                );
            }
        }
    }

    /// A node works on its units one after the other; which is so regular that the order of their
    /// ends is that of their beginnings.
    fn begin(&mut self, node: usize, work: Vec<Assignment>) {
        let spread = node as u64 * UNIT / self.nodes as u64;
        for assignment in work {
            self.held[node].push(assignment.lease());
            let first = if self.now == 0 { spread } else { 0 };
            let at = (self.now + UNIT * u64::from(CAPACITY) + first)
                .max(self.working.back().map_or(0, |last| last.0));
            self.working.push_back((at, node, assignment));
        }
    }

    fn result(&self, node: usize, assignment: Assignment) -> Option<Input> {
        let (tile, samples) = self.grid.unit(assignment.unit)?;
        let result = Arrived {
            lease: assignment.lease(),
            hash: BlobHash([2; 32]),
            shape: film_of(tile, samples, 3),
            device: 0,
            device_micros: UNIT,
            waited_micros: 0,
            device_bytes: 0,
        };
        Some(Input::ResultArrived { session: SessionId(node as u64), result })
    }

    fn beat(&mut self) -> Input {
        let node = self.next_beat;
        self.next_beat = (node + 1) % self.nodes;
        self.sequence += 1;
        let leases = self.held[node].clone();
        let heartbeat = Heartbeat {
            sequence: self.sequence,
            leases,
            outbox: 0,
            working: 1,
            busy: Some(1.0),
            devices: Vec::new(),
            progress: Vec::new(),
        };
        Input::Heartbeat { session: SessionId(node as u64), heartbeat }
    }
}

fn node_id(node: usize) -> NodeId {
    NodeId(Uuid::from_u128(1000 + node as u128))
}

fn join(node: usize) -> Input {
    inputs::joined(node as u64, Join { node: node_id(node), ..inputs::join(node as u64, CAPACITY) })
}

fn render(units: u64) -> RenderSpec {
    let passes = (units / TILES).clamp(1, 10) as u32;
    let frames = units.div_ceil(TILES * u64::from(passes)) as u32;
    let frames = FrameSet::from_frames((0..frames).map(FrameNumber)).expect("frames are a set");
    RenderSpec { width: 1024, height: 1024, frames, spp: passes, tile: 32, ..inputs::render() }
}
