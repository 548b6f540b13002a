//! The coordinator's shell: hands inputs to the core, takes its steps, and performs them in the
//! documented order. Crashes are in `crash`.

pub(crate) mod blobs;
pub(crate) mod crash;
pub(crate) mod disk;

use crate::sim::checks::leases::{Seen, Watch};
use crate::sim::checks::violation::{Checked, Violation, violated};
use crate::sim::client::Ask;
use crate::sim::client::questions::Answers;
use crate::sim::faults::Fault;
use crate::sim::model::film::Film;
use crate::sim::situations::sometimes;
use crate::sim::world::World;
use crate::sim::world::events::{Event, LinkId, Parcel};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use tessera_core::{
    Action, Arrived, Core, Input, Moment, Record, RequestId, SessionId, SnapshotPart, Step,
};
use tessera_protocol::ids::{Lease, NodeId, UnitKey};
use tessera_protocol::node::{CoordinatorToNode, NodeToCoordinator};
use tessera_protocol::status::{NodeState, NodeSummary};

/// The coordinator's clock when a run begins: an evening in 2023, milliseconds.
const CLOCK_START: u64 = 1_700_000_000_000;

/// The coordinator's machine.
#[derive(Debug, Default)]
pub(crate) struct Shell {
    /// Counts the processes.
    pub(crate) incarnation: u64,
    pub(crate) process: Option<Process>,
    /// Where the clock was set to, milliseconds beside the true time.
    pub(crate) clock_offset: i64,
}

/// One process of the coordinator.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) core: Core,
    pub(crate) watch: Watch,
    pub(crate) sessions: BTreeMap<SessionId, LinkId>,
    pub(crate) next_session: u64,
    asks: BTreeMap<RequestId, Ask>,
    next_request: u64,
    /// Results that wait for the core's word.
    pub(crate) arrived: BTreeMap<(SessionId, Lease), VecDeque<Film>>,
    pub(crate) seen: Seen,
    step_planned: bool,
    /// Steps that are not durable yet, the first `syncing` of them being written.
    pub(crate) pending: VecDeque<Pending>,
    pub(crate) syncing: usize,
    /// What the core is going to be woken for.
    pub(crate) wakeup: Option<Moment>,
}

/// A step on its way to the disk.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    pub(crate) results: Vec<(Lease, Film)>,
    pub(crate) records: Vec<Record>,
    pub(crate) actions: Vec<Action>,
    /// For clients who asked how things are.
    pub(crate) answers: Vec<Answers>,
    pub(crate) snapshot: Option<Vec<SnapshotPart>>,
}

impl Process {
    pub(crate) fn new(core: Core, watch: Watch) -> Self {
        Self {
            core,
            watch,
            sessions: BTreeMap::new(),
            next_session: 1,
            asks: BTreeMap::new(),
            next_request: 1,
            arrived: BTreeMap::new(),
            seen: Seen::default(),
            step_planned: false,
            pending: VecDeque::new(),
            syncing: 0,
            wakeup: None,
        }
    }
}

impl Process {
    /// Something that the core has decided is not durable yet.
    pub(crate) fn is_behind(&self) -> bool {
        self.step_planned || !self.pending.is_empty()
    }
}

impl World {
    pub(crate) fn clock(&self) -> Moment {
        Moment((CLOCK_START + self.now).saturating_add_signed(self.shell.clock_offset))
    }

    /// A node's message, as an input.
    pub(crate) fn on_parcel(&mut self, id: LinkId, parcel: Parcel) -> Checked {
        if let Parcel::Join(join, fingerprint) = parcel {
            let Some(process) = &mut self.shell.process else { return Ok(()) };
            let session = SessionId(process.next_session);
            process.next_session += 1;
            process.sessions.insert(session, id);
            if let Some(link) = self.links.links.get_mut(&id) {
                link.session = Some(session);
            }
            return self.input(Input::NodeJoined {
                session,
                join,
                fingerprint,
                build: "sim".to_owned(),
            });
        }
        let Some(session) = self.links.links.get(&id).and_then(|link| link.session) else {
            return violated("something has overtaken its join");
        };
        let input = match parcel {
            Parcel::Join(..) => return Ok(()),
            Parcel::Beat(heartbeat) => Input::Heartbeat { session, heartbeat },
            Parcel::Damaged(lease) => {
                Input::ResultDamaged { session, lease, reason: "other hash".to_owned() }
            }
            Parcel::Result(lease, film) => {
                if let Some(process) = &mut self.shell.process {
                    process.arrived.entry((session, lease)).or_default().push_back(film);
                }
                let node = self.links.links.get(&id).map(|link| link.node);
                let micros = node.map_or(1, |node| self.nodes[node].plan.unit_millis * 1000);
                let needs = self.needs(lease.unit.job);
                let measured =
                    Arrived { device_micros: micros, device_bytes: needs, ..film.arrived(lease) };
                Input::ResultArrived { session, result: measured }
            }
            Parcel::Control(message) => match message {
                NodeToCoordinator::Join(_) => return violated("a join is no control message here"),
                NodeToCoordinator::Capacity { units } => Input::Capacity { session, units },
                NodeToCoordinator::Scene { scene, held } => {
                    Input::SceneHeld { session, scene, held }
                }
                NodeToCoordinator::Failed { lease, failure } => {
                    Input::UnitFailed { session, lease, failure }
                }
                NodeToCoordinator::Returned { leases } => Input::Returned { session, leases },
                NodeToCoordinator::Devices(devices) => Input::DevicesChanged { session, devices },
                NodeToCoordinator::Draining => Input::NodeDraining { session },
            },
        };
        self.input(input)
    }

    pub(crate) fn on_session_lost(&mut self, session: SessionId) -> Checked {
        if let Some(process) = &mut self.shell.process {
            process.sessions.remove(&session);
        }
        self.input(Input::SessionLost { session })
    }

    /// The core is woken by the last wakeup that was planned, and by none of those before it.
    pub(crate) fn on_tick(&mut self, wakeup: Moment) -> Checked {
        let planned = self
            .shell
            .process
            .as_mut()
            .and_then(|process| process.wakeup.take_if(|at| *at == wakeup));
        if planned.is_some() { self.input(Input::Tick) } else { Ok(()) }
    }

    /// A client's request, as an input.
    pub(crate) fn ask_core(&mut self, ask: Ask, input: impl FnOnce(RequestId) -> Input) -> Checked {
        let Some(process) = &mut self.shell.process else { return Ok(()) };
        let request = RequestId(process.next_request);
        process.next_request += 1;
        process.asks.insert(request, ask);
        self.input(input(request))
    }

    /// Hands an input to the core, and takes the step at once or with others.
    pub(crate) fn input(&mut self, input: Input) -> Checked {
        let now = self.clock();
        let Some(process) = &mut self.shell.process else { return Ok(()) };
        let input = match &mut self.planted {
            Some(planted) => planted.disguise(input, &self.ledger.believed),
            None => input,
        };
        process.watch.on_input(&input, &mut process.seen, now.0);
        let copied = match &input {
            Input::ResultArrived { result, .. } => {
                process.core.leases_of(result.lease.unit).count() > 1
            }
            _ => false,
        };
        let passed = match &mut self.planted {
            Some(planted) => planted.on_input(input, process, &mut self.random),
            None => Some(input),
        };
        if let Some(ghost) =
            self.planted.as_mut().and_then(|planted| planted.on_start(self.shell.incarnation))
        {
            process.core.handle(ghost, now);
        }
        if let Some(input) = passed {
            process.core.handle(input, now);
        }
        if process.step_planned {
            return Ok(());
        }
        let long = copied && self.chance(Fault::LongBatch);
        if !long && !self.chance(Fault::Batch) {
            return self.take_step();
        }
        let delay = if long { self.random.between(500, 4_000) } else { self.random.between(1, 20) };
        self.after(delay, Event::TakeStep(self.shell.incarnation));
        if let Some(process) = &mut self.shell.process {
            process.step_planned = true;
        }
        Ok(())
    }

    /// Takes what came of the inputs, checks it, and sends it on its way.
    pub(crate) fn take_step(&mut self) -> Checked {
        let Some(process) = &mut self.shell.process else { return Ok(()) };
        process.step_planned = false;
        let mut step = process.core.take_step();
        if let Some(planted) = &mut self.planted {
            planted.on_step(&mut step, process, &self.ledger.believed, &mut self.random);
        }
        let seen = std::mem::take(&mut process.seen);
        let whole = self.steps.is_multiple_of(self.whole_every);
        self.note_step(&step, &seen);
        let Some(process) = &mut self.shell.process else { return Ok(()) };
        if let Some(diary) = &mut self.diary {
            let lines = step.records.iter().map(|record| format!("{:>9}   > {record:?}", self.now));
            diary.extend(lines.chain(
                step.actions.iter().map(|action| format!("{:>9}   > {action:?}", self.now)),
            ));
        }
        process.watch.on_step(&step, &seen, &process.core, &mut self.ledger.believed)?;
        sometimes!(self, LeaseTakenBack, process.watch.taken_back > 0);
        sometimes!(self, LeftAlone, process.watch.left_alone > 0);
        if whole {
            process.core.verify().map_err(Violation)?;
            process.watch.compare(&process.core, &self.ledger.believed, seen.inputs > 0)?;
        }
        self.check_origins(&step)?;
        self.steps += 1;
        self.check_last_node(&step, &seen)?;
        self.tell_early(&mut step)?;
        let pending = self.split_step(step)?;
        let needs_sync = !pending.results.is_empty()
            || !pending.records.is_empty()
            || pending.snapshot.is_some();
        let Some(process) = &mut self.shell.process else { return Ok(()) };
        if needs_sync || !process.pending.is_empty() {
            process.pending.push_back(pending);
            self.start_sync();
        } else {
            self.perform(pending.actions)?;
        }
        self.plan_tick();
        if whole { self.check_running() } else { Ok(()) }
    }

    /// A bug tells things before they are durable.
    fn tell_early(&mut self, step: &mut Step) -> Checked {
        let Some(planted) = &self.planted else { return Ok(()) };
        let (early, rest): (Vec<Action>, Vec<Action>) = std::mem::take(&mut step.actions)
            .into_iter()
            .partition(|action| planted.told_early(action));
        step.actions = rest;
        early.into_iter().try_for_each(|action| self.perform_one(action))
    }

    /// The last node that takes work is never put out of it, whatever fails there. Nodes are looked
    /// at where an attempt may have failed.
    fn check_last_node(&mut self, step: &Step, seen: &Seen) -> Checked {
        let now = self.clock();
        let Some(process) = &mut self.shell.process else { return Ok(()) };
        let failed = step.records.iter().filter_map(|record| match record {
            Record::AttemptsEnded { node, attempts, .. } => {
                attempts.iter().any(|attempt| attempt.ending.has_failed()).then_some(*node)
            }
            _ => None,
        });
        let failed: BTreeSet<NodeId> = failed.chain(process.watch.ended_quietly()).collect();
        if failed.is_empty() {
            return Ok(());
        }
        let rows = process.core.nodes(now);
        let known = |row: &&NodeSummary| process.watch.session_of(row.node).is_some();
        let takes =
            |row: &&NodeSummary| row.state == NodeState::Ready || row.note.contains("fingerprint");
        let taking: BTreeSet<NodeId> =
            rows.iter().filter(known).filter(takes).map(|row| row.node).collect();
        let out =
            rows.iter().filter(|row| row.note.contains("in a row")).map(|row| row.node).collect();
        let fresh = process.watch.note_out(&out, &taking);
        sometimes!(self, LastNodeFails, taking.is_subset(&failed));
        // Of several inputs one may have put it out of work, and another have taken the others
        // away.
        match fresh.intersection(&failed).next().filter(|_| taking.is_empty() && seen.inputs == 1) {
            Some(node) => {
                violated(format!("{node} is put out of work, and no other node takes any"))
            }
            None => Ok(()),
        }
    }

    /// What is committed was leased to its node, once, by this process or another; and nobody is
    /// found guilty who did not lie.
    fn check_origins(&self, step: &Step) -> Checked {
        for record in &step.records {
            if let Record::NodeSuspected { node, reason, guilty: true, .. } = record
                && !self.ledger.forgers.contains(node)
            {
                return violated(format!("{node} is found guilty, and never lied: {reason}"));
            }
            let (job, frame, commits) = match record {
                Record::UnitsCommitted { job, frame, commits } => (job, frame, commits.as_slice()),
                Record::PartCommitted { job, frame, commit, .. } => {
                    (job, frame, std::slice::from_ref(commit))
                }
                _ => continue,
            };
            for commit in commits {
                let unit = UnitKey { job: *job, frame: *frame, unit: commit.unit };
                let lease = Lease { unit, epoch: commit.epoch };
                if !self.ledger.was_issued(lease, commit.node) {
                    return violated(format!(
                        "{lease} is committed for {}, which never had it",
                        commit.node
                    ));
                }
            }
        }
        Ok(())
    }

    /// Splits a step by when its parts are performed.
    fn split_step(&mut self, step: Step) -> Result<Pending, Violation> {
        let snapshot = self.chance(Fault::Snapshot);
        let Some(process) = &mut self.shell.process else { return Ok(Pending::default()) };
        let mut pending = Pending { records: step.records, ..Pending::default() };
        for action in step.actions {
            match action {
                Action::KeepResult { session, lease } => {
                    pending.results.push((lease, take_arrived(process, session, lease)?));
                }
                Action::DropResult { session, lease } => {
                    take_arrived(process, session, lease)?;
                }
                Action::Fault { what } => return violated(format!("fault of the core: {what}")),
                action => {
                    if let Action::Send { session, .. } = &action
                        && let Some(id) = process.sessions.get(session)
                        && let Some(link) = self.links.links.get_mut(id)
                    {
                        link.down += 1;
                    }
                    pending.actions.push(action);
                }
            }
        }
        if let Some(((session, lease), _)) = process.arrived.first_key_value() {
            return violated(format!(
                "the result of {lease} from {session:?} is neither kept nor dropped"
            ));
        }
        if snapshot {
            pending.snapshot = Some(process.core.snapshot());
        }
        Ok(pending)
    }

    /// Writes all that is pending, unless something is being written already.
    fn start_sync(&mut self) {
        let incarnation = self.shell.incarnation;
        let idle = |process: &&mut Process| process.syncing == 0 && !process.pending.is_empty();
        let Some(process) = self.shell.process.as_mut().filter(idle) else { return };
        process.syncing = process.pending.len();
        let (slow, full) = (self.chance(Fault::SlowDisk), self.chance(Fault::DiskFull));
        let delay = match (slow, full) {
            (_, true) => self.random.between(5_000, 20_000),
            (true, false) => self.random.between(500, 6_000),
            (false, false) => self.random.between(1, 25),
        };
        self.after(delay, Event::Synced(incarnation));
        if self.chance(Fault::CrashInSync) {
            let end = self.random.between(0, delay);
            self.after(end, Event::Crash(incarnation));
        }
    }

    /// What was being written is durable: now it may be told.
    pub(crate) fn on_synced(&mut self) -> Checked {
        let Some(process) = &mut self.shell.process else { return Ok(()) };
        let count = std::mem::take(&mut process.syncing);
        let mut group: Vec<Pending> = process.pending.drain(..count).collect();
        for pending in &mut group {
            self.write(pending)?;
        }
        sometimes!(self, LongQueue, count >= 20);
        for pending in group {
            self.perform(pending.actions)?;
            if self.shell.process.is_none() {
                return Ok(());
            }
            for answers in pending.answers {
                sometimes!(self, PendingTold);
                self.send_answers(answers);
            }
        }
        self.start_sync();
        Ok(())
    }

    /// Makes a step durable: its results, then its records, then the snapshot after them.
    pub(crate) fn write(&mut self, pending: &mut Pending) -> Checked {
        for (lease, film) in pending.results.drain(..) {
            self.disk.keep(lease, film);
        }
        for record in pending.records.drain(..) {
            if let Record::JobRetried { job, .. } = &record {
                self.saw_retry(*job)?;
            }
            self.ledger.durable.apply(&record)?;
            if let Record::UnitsTakenBack { job, frame, units, .. } = &record {
                for unit in units {
                    let unit = UnitKey { job: *job, frame: *frame, unit: *unit };
                    self.saw(self.history.ask(), &tessera_history::Seen::TakenBack(unit))?;
                }
            }
            self.disk.append(record)?;
        }
        match pending.snapshot.take() {
            Some(parts) => self.disk.take_snapshot(&parts),
            None => Ok(()),
        }
    }

    fn perform(&mut self, actions: Vec<Action>) -> Checked {
        for action in actions {
            if self.chance(Fault::CrashHalfTold) {
                return self.end_process();
            }
            self.perform_one(action)?;
        }
        Ok(())
    }

    fn perform_one(&mut self, action: Action) -> Checked {
        let incarnation = self.shell.incarnation;
        let Some(process) = &mut self.shell.process else { return Ok(()) };
        let link = match &action {
            Action::Send { session, .. } | Action::CloseSession { session, .. } => {
                process.sessions.get(session).copied()
            }
            _ => None,
        };
        let node =
            link.and_then(|id| self.links.links.get(&id)).map(|link| self.nodes[link.node].plan.id);
        self.ledger.on_performed(&action, node, &self.disk)?;
        sometimes!(self, ThirdLease, self.ledger.leased_thrice(&action));
        if let Action::Send { message: CoordinatorToNode::Committed { lease }, .. } = &action {
            self.acknowledged_at = self.now;
            // A later step of the same sync may have taken it back.
            if self.ledger.durable.part_leases.contains(lease) {
                self.saw(self.history.ask(), &tessera_history::Seen::PartCommitted(*lease))?;
            } else if self.ledger.durable.stands(*lease) {
                self.saw(self.history.ask(), &tessera_history::Seen::Committed(*lease))?;
            }
        }
        let Some(process) = &mut self.shell.process else { return Ok(()) };
        match action {
            Action::Fault { what } => return violated(format!("fault of the core: {what}")),
            Action::Send { message, .. } => {
                if let Some(id) = link {
                    self.send_down(id, message);
                }
            }
            Action::CloseSession { session, .. } => {
                process.sessions.remove(&session);
                if let Some(id) = link {
                    self.hang_up(id, 100);
                }
                if self.chance(Fault::LateLoss) {
                    let delay = self.random.between(1, 3_000);
                    self.after(delay, Event::LateLoss(incarnation, session));
                }
            }
            Action::Reply { request, response } => {
                let Some(ask) = process.asks.remove(&request) else {
                    return violated(format!("{request:?} is answered and waits for no answer"));
                };
                self.ledger.on_reply(&response)?;
                return self.answer(ask, response);
            }
            Action::ResolveFrame { job, frame } => {
                let delay = self.random.between(20, 3_000);
                self.after(delay, Event::Resolved(incarnation, job, frame));
            }
            Action::MeasureFrame { job, frame } => {
                let measured = self.ledger.noisy_tiles(job, frame, &self.disk);
                let delay = self.random.between(20, 3_000);
                self.after(delay, Event::Measured(incarnation, job, frame, measured));
            }
            Action::FrameFinished { job, frame } | Action::FrameFailed { job, frame } => {
                self.disk.drop_spool(job, frame);
            }
            Action::JobEnded { job } => self.disk.drop_spools(job),
            Action::KeepResult { .. } | Action::DropResult { .. } => {}
        }
        Ok(())
    }

    /// Wakes the core when it asks for it, or a little later.
    pub(crate) fn plan_tick(&mut self) {
        let (clock, incarnation) = (self.clock(), self.shell.incarnation);
        let late = self.random.between(0, 30);
        let Some(process) = &mut self.shell.process else { return };
        let Some(wakeup) = process.core.next_wakeup() else { return };
        if process.wakeup.is_none_or(|planned| wakeup < planned) {
            process.wakeup = Some(wakeup);
            self.after(wakeup.0.saturating_sub(clock.0) + late, Event::Tick(incarnation, wakeup));
        }
    }

    /// Leases equal running: where nothing is on its way, a node holds what the core says it holds,
    /// and its outbox is empty.
    fn check_running(&self) -> Checked {
        let Some(process) = self.shell.process.as_ref().filter(|process| process.seen.inputs == 0)
        else {
            return Ok(());
        };
        for link in self.links.links.values().filter(|link| link.is_quiet()) {
            let node = &self.nodes[link.node];
            let Some(running) = node.process.as_ref().filter(|known| known.number == link.process)
            else {
                continue;
            };
            if node.plan.liar || process.step_planned {
                continue;
            }
            let held = process.watch.held_by(node.plan.id);
            let (units, untold) = (running.units.keys(), running.untold.keys());
            if !held.into_iter().flatten().eq(units.clone()) || untold.len() > 0 {
                let units: Vec<&Lease> = units.collect();
                let name = &node.plan.name;
                return violated(format!(
                    "{name} runs {units:?}, its leases are {held:?}, nothing is on its way"
                ));
            }
            if let Some(lease) = node.outbox.keys().next() {
                return violated(format!(
                    "{} waits for a word on {lease}, and none is on its way",
                    node.plan.name
                ));
            }
        }
        Ok(())
    }
}

/// The result that an action speaks of.
fn take_arrived(
    process: &mut Process,
    session: SessionId,
    lease: Lease,
) -> Result<Film, Violation> {
    let films = process.arrived.get_mut(&(session, lease));
    let film = films.and_then(VecDeque::pop_front);
    if process.arrived.get(&(session, lease)).is_some_and(VecDeque::is_empty) {
        process.arrived.remove(&(session, lease));
    }
    film.ok_or_else(|| Violation(format!("{session:?} is said to have sent a result of {lease}")))
}
