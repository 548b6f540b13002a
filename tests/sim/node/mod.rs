//! Simulated nodes: processes that come and go, their sessions, and the outbox that outlives them.
//! What they do about work is in `work`, what liars do besides in `lies`.

mod leaving;
pub(crate) mod lies;
mod putting;
pub(crate) mod work;

use crate::checks::violation::Checked;
use crate::client::Ask;
use crate::faults::Fault;
use crate::model::film::{Film, other_shape};
use crate::world::World;
use crate::world::events::{Event, LinkId, NodeEvent, Parcel};
use crate::world::plan::{NodePlan, fingerprint, reinstalled};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use tessera_protocol::device::{DeviceInfo, DeviceKind, DeviceState};
use tessera_protocol::ids::{BlobHash, Fingerprint, JobId, Lease, ProcessEpoch};
use tessera_protocol::job::JobKind;
use tessera_protocol::node::{Assignment, Failure, Heartbeat, Join, NodeToCoordinator, Progress};

/// A node's machine.
#[derive(Debug)]
pub(crate) struct SimNode {
    pub(crate) plan: NodePlan,
    pub(crate) fingerprint: Fingerprint,
    next_process: u64,
    pub(crate) process: Option<NodeProcess>,
    /// Finished results, on its disk until they are acknowledged.
    pub(crate) outbox: BTreeMap<Lease, Film>,
    /// Leases that it had; liars come back to them.
    pub(crate) past: Vec<Lease>,
    /// It puts nothing into the bucket until then.
    pub(crate) no_bucket_until: u64,
    /// It cannot dial before.
    pub(crate) cut_off_until: u64,
    /// Everything fails on it until then.
    pub(crate) fails_until: u64,
    /// Milliseconds that messages take besides.
    pub(crate) lag: u64,
    /// Its units take so many times as long as planned.
    pub(crate) slowness: u64,
    /// It stands still until then.
    pub(crate) stalled_until: u64,
    deferred: VecDeque<Event>,
}

/// What becomes of a unit on a node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum UnitState {
    Waiting,
    Running(u64),
    Storing,
}

/// A unit that a node holds.
#[derive(Clone, Debug)]
pub(crate) struct Unit {
    pub(crate) assignment: Assignment,
    pub(crate) state: UnitState,
    /// Grows with each heartbeat while its device gets on.
    pub(crate) done: u64,
    /// What it read when it began, if it finishes a frame.
    pub(crate) read: u64,
}

/// One process of a node.
#[derive(Debug)]
pub(crate) struct NodeProcess {
    pub(crate) number: u64,
    pub(crate) link: Option<LinkId>,
    pub(crate) units: BTreeMap<Lease, Unit>,
    pub(crate) waiting: VecDeque<Lease>,
    /// Runs on devices, and what they render.
    pub(crate) running: BTreeMap<u64, Lease>,
    pub(crate) next_run: u64,
    /// Those that were told of, and those of units held from a former session.
    pub(crate) jobs: BTreeMap<JobId, Box<JobKind>>,
    /// Jobs that this session was told of.
    pub(crate) told: BTreeSet<JobId>,
    /// Jobs whose owner this session was told.
    pub(crate) owned: BTreeSet<JobId>,
    pub(crate) untold: BTreeMap<Lease, Failure>,
    pub(crate) scenes: BTreeSet<BlobHash>,
    pub(crate) capacity: u32,
    pub(crate) draining: bool,
    /// Devices that take no units, and whether they are being tested.
    pub(crate) out: BTreeMap<u32, bool>,
    /// No device gets on until then.
    pub(crate) stuck_until: u64,
    /// It begins nothing until then.
    pub(crate) idle_until: u64,
    /// Time between heartbeats by the coordinator's clock, milliseconds.
    beat: u64,
    beats: u64,
}

impl SimNode {
    pub(crate) fn new(plan: NodePlan) -> Self {
        Self {
            fingerprint: plan.fingerprint,
            plan,
            next_process: 1,
            process: None,
            outbox: BTreeMap::new(),
            past: Vec::new(),
            no_bucket_until: 0,
            cut_off_until: 0,
            fails_until: 0,
            lag: 0,
            slowness: 1,
            stalled_until: 0,
            deferred: VecDeque::new(),
        }
    }
}

impl World {
    /// Keeps what reaches a node that stands still; gives back everything else.
    pub(crate) fn defer(&mut self, event: Event) -> Option<Event> {
        let node = match &event {
            Event::Node(node, ..) => Some(*node),
            Event::Down(link, _) | Event::NodeNotices(link) => {
                self.links.links.get(link).filter(|link| link.node_open).map(|link| link.node)
            }
            _ => None,
        };
        let Some(node) = node.map(|node| &mut self.nodes[node]) else { return Some(event) };
        if node.process.is_some() && (self.now < node.stalled_until || !node.deferred.is_empty()) {
            node.deferred.push_back(event);
            return None;
        }
        Some(event)
    }

    pub(crate) fn stall_node(&mut self, node: usize, millis: u64) {
        if self.nodes[node].stalled_until <= self.now {
            self.nodes[node].stalled_until = self.now + millis;
            self.after(millis, Event::NodeWakes(node));
        }
    }

    pub(crate) fn wake_node(&mut self, node: usize) -> Checked {
        if self.now < self.nodes[node].stalled_until {
            return Ok(());
        }
        while let Some(event) = self.nodes[node].deferred.pop_front() {
            self.dispatch(event)?;
        }
        Ok(())
    }

    pub(crate) fn start_node(&mut self, index: usize) {
        if self.nodes[index].process.is_some() {
            return;
        }
        let returns = self.nodes[index].next_process > 1;
        if returns {
            self.tally.count(Fault::NodeReturn);
        }
        if !self.nodes[index].outbox.is_empty() {
            self.tally.count(Fault::OutboxKept);
        }
        let free = self.plan.mixed && !self.nodes[index].plan.anchored;
        if returns && free && self.chance(Fault::Upgrade) {
            let other = if self.nodes[index].fingerprint == fingerprint(1) { 2 } else { 1 };
            self.nodes[index].fingerprint = fingerprint(other);
            // Results of the former build would be mixed in: a node that is upgraded drops them.
            self.nodes[index].outbox.clear();
        }
        self.reinstall(index, returns);
        let mut beat = self.nodes[index].plan.beat;
        if self.chance(Fault::ClockSkew) {
            beat = self.random.between(beat / 2, beat * 3 / 2);
        }
        let node = &mut self.nodes[index];
        node.process = Some(NodeProcess {
            number: node.next_process,
            link: None,
            units: BTreeMap::new(),
            waiting: VecDeque::new(),
            running: BTreeMap::new(),
            next_run: 0,
            jobs: BTreeMap::new(),
            told: BTreeSet::new(),
            owned: BTreeSet::new(),
            untold: BTreeMap::new(),
            scenes: BTreeSet::new(),
            capacity: node.plan.capacity,
            draining: false,
            out: BTreeMap::new(),
            stuck_until: 0,
            idle_until: 0,
            beat,
            beats: 0,
        });
        node.next_process += 1;
        self.node_after(index, 1, NodeEvent::Dial);
        let first = self.random.between(1, beat);
        self.node_after(index, first, NodeEvent::Beat);
    }

    /// A machine may come back with another identity, without what was on its disk.
    fn reinstall(&mut self, index: usize, returns: bool) {
        let plan = &self.nodes[index].plan;
        let plain = !plan.anchored && !plan.liar && !plan.forger;
        if !returns || !plain || !self.chance(Fault::NodeReinstalled) {
            return;
        }
        let node = &mut self.nodes[index];
        node.plan.id = reinstalled(node.plan.id);
        node.outbox.clear();
        node.past.clear();
        // Its operator may want it out of the way at once, and names it while both are listed.
        if self.random.permille(500) {
            let soon = self.random.between(2, 1_000);
            self.after(soon, Event::Ask(Ask::Drain(index, false)));
            self.after(20_000, Event::Ask(Ask::Undrain(index)));
        }
    }

    /// The process ends at once, and its machine starts another after a while.
    pub(crate) fn end_node(&mut self, index: usize, away: u64) {
        let Some(process) = self.nodes[index].process.take() else { return };
        self.nodes[index].stalled_until = 0;
        self.nodes[index].deferred.clear();
        if let Some(link) = process.link {
            self.leave_link(link);
        }
        self.note(|| format!("node {index} ends, for {away} ms"));
        self.after(away, Event::NodeStarts(index));
    }

    pub(crate) fn on_node_event(&mut self, node: usize, process: u64, event: NodeEvent) -> Checked {
        if self.nodes[node].process.as_ref().is_none_or(|known| known.number != process) {
            return Ok(());
        }
        match event {
            NodeEvent::Dial => return self.dial(node, process),
            NodeEvent::Beat => self.beat(node),
            NodeEvent::Rendered(run) => self.on_rendered(node, run),
            NodeEvent::Stored(lease) => return self.on_stored(node, lease),
            NodeEvent::Put(link, leases) => return self.on_put(node, (link, leases), false),
            NodeEvent::PutAgain(link, leases) => return self.on_put(node, (link, leases), true),
            NodeEvent::DeviceOn(device) => self.on_device_on(node, device),
            NodeEvent::Cut => self.cut_units(node),
            NodeEvent::Preempted => {
                let away = self.random.between(3_000, 20_000);
                self.end_node(node, away);
            }
        }
        Ok(())
    }

    fn dial(&mut self, node: usize, number: u64) -> Checked {
        let reaches = self.now >= self.nodes[node].cut_off_until;
        let Some(incarnation) = self.find_coordinator().filter(|_| reaches) else {
            let delay = self.random.between(200, 2_000);
            self.node_after(node, delay, NodeEvent::Dial);
            return Ok(());
        };
        if self.nodes[node].process.as_ref().is_none_or(|process| process.link.is_some()) {
            return Ok(());
        }
        let link = self.open_link(node, number, incarnation);
        let join = self.join_of(node);
        let fingerprint = self.nodes[node].fingerprint;
        if fingerprint != crate::world::plan::fingerprint(1) {
            self.tally.count(Fault::ForeignFingerprint);
        }
        if !join.running.is_empty() {
            self.tally.count(Fault::GraceKept);
        }
        self.send_up(link, Parcel::Join(Box::new(join), fingerprint), 0);
        let Some(process) = &mut self.nodes[node].process else { return Ok(()) };
        process.link = Some(link);
        let untold = std::mem::take(&mut process.untold);
        let draining = process.draining;
        for (lease, failure) in untold {
            self.control(node, NodeToCoordinator::Failed { lease, failure });
        }
        if draining {
            self.control(node, NodeToCoordinator::Draining);
        }
        self.offer_all(node)?;
        self.leave_if_done(node);
        Ok(())
    }

    fn join_of(&mut self, index: usize) -> Join {
        let mut lies = Vec::new();
        if self.nodes[index].plan.liar && self.chance(Fault::FalseJoin) {
            lies.append(&mut self.leases_of_others(index, 4));
        }
        if self.nodes[index].plan.liar && self.chance(Fault::BorrowedInJoin) {
            lies.append(&mut self.mixed_leases(index, 8));
        }
        let devices = self.devices_of(index);
        let node = &mut self.nodes[index];
        let Some(process) = &mut node.process else { unreachable!("only a process dials") };
        // A job is told anew in each session.
        process.told.clear();
        process.owned.clear();
        let units = &process.units;
        process.jobs.retain(|job, _| units.keys().any(|lease| lease.unit.job == *job));
        let mut running: Vec<Lease> =
            process.units.keys().chain(process.untold.keys()).copied().collect();
        let mut finished: Vec<Lease> = node.outbox.keys().copied().collect();
        let (first, second) = lies.split_at(lies.len() / 2);
        running.extend(first);
        finished.extend(second);
        let number = ProcessEpoch(process.number);
        Join {
            pool: node.plan.pool.map(str::to_owned),
            devices,
            // One that leaves wants nothing, whether or not its wish is remembered.
            capacity: if process.draining { 0 } else { process.capacity },
            running,
            finished,
            scenes: process.scenes.iter().copied().collect(),
            nvrtc: node.plan.compiles.then_some((12, 0)),
            finishing: node.plan.finishes.then_some(Fingerprint([1; 32])),
            ..Join::new(node.plan.id, node.plan.name.clone(), number)
        }
    }

    /// What a node's devices say of themselves.
    pub(crate) fn devices_of(&self, index: usize) -> Vec<DeviceInfo> {
        let node = &self.nodes[index];
        let state = |device: u32| match node
            .process
            .as_ref()
            .and_then(|process| process.out.get(&device))
        {
            None => DeviceState::Ready,
            Some(true) => DeviceState::Testing,
            Some(false) => {
                let (reason, remedy) = ("simulated".to_owned(), "it passes by itself".to_owned());
                DeviceState::Quarantined { reason, remedy }
            }
        };
        let device = |device: u32| DeviceInfo {
            slot: format!("cuda:{device}"),
            kind: if node.plan.compiles { DeviceKind::Cuda } else { DeviceKind::Cpu },
            name: "simulated".to_owned(),
            parallelism: 1,
            memory_bytes: node.plan.memory,
            cuda: None,
            state: state(device),
        };
        (0..node.plan.devices).map(device).collect()
    }

    fn beat(&mut self, node: usize) {
        let Some(process) = &mut self.nodes[node].process else { return };
        process.beats += 1;
        let (stuck, now) = (process.stuck_until, self.now);
        let mut progress = Vec::new();
        let begun = process.units.values().filter(|unit| unit.state != UnitState::Waiting);
        let working = begun.count() as u32;
        for (lease, unit) in &mut process.units {
            if matches!(unit.state, UnitState::Running(_)) {
                unit.done += u64::from(stuck <= now);
                progress.push(Progress { lease: *lease, device: 0, done: unit.done });
            }
        }
        let mut heartbeat = Heartbeat {
            sequence: process.beats,
            leases: process.units.keys().chain(process.untold.keys()).copied().collect(),
            outbox: self.nodes[node].outbox.len() as u32,
            working,
            busy: Some(0.5),
            devices: Vec::new(),
            progress,
        };
        let link = self.nodes[node].process.as_ref().and_then(|process| process.link);
        if self.nodes[node].plan.liar {
            self.lie(node, &mut heartbeat);
        }
        if let Some(link) = link
            && !self.chance(Fault::BeatLost)
        {
            let late =
                if self.chance(Fault::BeatLate) { self.random.between(1_000, 8_000) } else { 0 };
            if self.chance(Fault::BeatRepeated) {
                let again = self.random.between(1, 4_000);
                self.send_up(link, Parcel::Beat(heartbeat.clone()), again);
            }
            self.send_up(link, Parcel::Beat(heartbeat), late);
        }
        if let Some(beat) = self.nodes[node].process.as_ref().map(|process| process.beat) {
            self.node_after(node, beat, NodeEvent::Beat);
        }
        self.pump(node);
    }

    /// Sends a control message, if there is a session; nothing depends on one that is not sent.
    pub(crate) fn control(&mut self, node: usize, message: NodeToCoordinator) {
        let Some(link) = self.nodes[node].process.as_ref().and_then(|process| process.link) else {
            return;
        };
        if self.chance(Fault::ControlRepeated) {
            self.send_up(link, Parcel::Control(message.clone()), 0);
        }
        self.send_up(link, Parcel::Control(message), 0);
    }

    /// Sends the bytes of a result of the outbox.
    pub(crate) fn offer(&mut self, node: usize, lease: Lease) -> Checked {
        let Some(link) = self.nodes[node].process.as_ref().and_then(|process| process.link) else {
            return Ok(());
        };
        let Some(mut film) = self.nodes[node].outbox.get(&lease).copied() else { return Ok(()) };
        let lease_millis = self.plan.settings.lease.as_millis() as u64;
        let slow = if self.chance(Fault::ResultSlow) { lease_millis } else { 0 };
        let slow = slow + self.random.between(1, 300);
        if self.chance(Fault::ResultDamaged) {
            self.send_up(link, Parcel::Damaged(lease), slow);
            return Ok(());
        }
        if self.chance(Fault::WrongShape) {
            film.shape = other_shape(film.shape);
        }
        let leaving = self.nodes[node].process.as_ref().is_some_and(|process| process.draining);
        if self.chance(Fault::ResultRepeated) || (leaving && self.random.permille(100)) {
            let again = slow + self.random.between(1, 5_000);
            self.send_up(link, Parcel::Result(lease, film), again);
        }
        self.send_up(link, Parcel::Result(lease, film), slow);
        Ok(())
    }
}

impl World {
    pub(crate) fn set_capacity(&mut self, node: usize, units: u32) {
        if let Some(process) = &mut self.nodes[node].process {
            process.capacity = units;
            self.control(node, NodeToCoordinator::Capacity { units });
        }
    }
}
