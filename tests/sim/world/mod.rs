//! One run: everything there is, and the loop that lets one event after another happen.

pub(crate) mod events;
pub(crate) mod network;
pub(crate) mod plan;
pub(crate) mod random;
pub(crate) mod waiting;

use crate::checks::violation::{Checked, violated};
use crate::client::Clients;
use crate::coordinator::Shell;
use crate::coordinator::blobs::Blobs;
use crate::coordinator::bucket::Bucket;
use crate::coordinator::disk::Disk;
use crate::faults::planted::Planted;
use crate::faults::{Fault, Tally};
use crate::leaders::Leaders;
use crate::model::ledger::Ledger;
use crate::node::SimNode;
use crate::situations::Met;
use crate::world::events::{Event, EventQueue, NodeEvent};
use crate::world::network::Links;
use crate::world::plan::Plan;
use crate::world::random::Random;

use std::collections::{BTreeMap, BTreeSet};
use tessera_history::History;
use tessera_protocol::ids::{JobId, UnitKey};

/// Virtual milliseconds after the last fault and the last commit within which everything must have
/// ended.
const STILL_MAX: u64 = 1800 * 1000;
/// Virtual milliseconds after the last fault within which everything must have ended: a pool of one
/// slow node needs hours for thousands of units.
const HEAL_MAX: u64 = 4 * 3600 * 1000;
/// Steps between two checks of everything: a check costs as much as dozens of steps.
const WHOLE_EVERY: u64 = 64;
/// Events of a run at most: many times what the longest needs.
const EVENTS_MAX: u64 = 3_000_000;

/// Everything there is.
#[derive(Debug)]
pub(crate) struct World {
    /// Virtual milliseconds since the run began.
    pub(crate) now: u64,
    pub(crate) random: Random,
    pub(crate) plan: Plan,
    pub(crate) healed: bool,
    pub(crate) tally: Tally,
    pub(crate) met: Met,
    /// What clients and nodes were told.
    pub(crate) history: History,
    /// When a commit was acknowledged last.
    pub(crate) acknowledged_at: u64,
    /// When the coordinator ended last.
    pub(crate) ended_at: u64,
    pub(crate) events: EventQueue,
    pub(crate) links: Links,
    pub(crate) nodes: Vec<SimNode>,
    pub(crate) shell: Shell,
    /// Where the state is in a database.
    pub(crate) leaders: Option<Box<Leaders>>,
    /// Counts the processes of coordinators that led.
    pub(crate) incarnations: u64,
    pub(crate) disk: Disk,
    pub(crate) blobs: Blobs,
    /// Where the results of frames in work are in one.
    pub(crate) bucket: Option<Box<Bucket>>,
    pub(crate) clients: Clients,
    pub(crate) ledger: Ledger,
    pub(crate) planted: Option<Planted>,
    /// Units that needed more memory than a device had, and are not committed yet.
    pub(crate) shortages: BTreeSet<UnitKey>,
    /// Units whose scene a node could not prepare, and units that exceeded a limit of a node.
    pub(crate) unprepared: BTreeSet<UnitKey>,
    pub(crate) limited: BTreeSet<UnitKey>,
    /// Jobs whose files cannot be had, and until when.
    pub(crate) files_gone: BTreeMap<JobId, u64>,
    /// Units that nobody can render, and until when.
    pub(crate) poisoned: BTreeMap<UnitKey, u64>,
    pub(crate) steps: u64,
    /// Everything is compared with everything after each so many steps, besides what a step
    /// touches, which is checked at once.
    pub(crate) whole_every: u64,
    pub(crate) over: bool,
    /// What happened, if it is to be kept.
    pub(crate) diary: Option<Vec<String>>,
}

impl World {
    pub(crate) fn new(seed: u64, planted: Option<Planted>, keep_diary: bool) -> Self {
        let mut random = Random::new(seed);
        let mut plan = Plan::of(&mut random);
        if planted.as_ref().is_none_or(Planted::is_of_waits) {
            plan.add_waits();
            plan.add_starts();
        }
        let has_leaders = planted.as_ref().is_none_or(Planted::is_of_leaders);
        let led = plan.led.filter(|_| has_leaders);
        let leaders = led.map(|led| Box::new(Leaders::new(led, &mut random)));
        let has_bucket = planted.as_ref().is_none_or(Planted::is_of_bucket);
        let bucket = (plan.stored && has_bucket).then(Box::default);
        let nodes = plan.nodes.iter().map(|plan| SimNode::new(plan.clone())).collect();
        let clients = Clients::new(&plan);
        let forgers = plan.nodes.iter().filter(|node| node.forger).map(|node| node.id).collect();
        let unsteady = plan.jobs.iter().filter(|job| job.unsteady).map(|job| job.id).collect();
        Self {
            now: 0,
            random,
            plan,
            healed: false,
            tally: Tally::default(),
            met: Met::default(),
            history: History::new(),
            acknowledged_at: 0,
            ended_at: 0,
            events: EventQueue::default(),
            links: Links::default(),
            nodes,
            shell: Shell::default(),
            leaders,
            incarnations: 0,
            disk: Disk::default(),
            blobs: Blobs::default(),
            bucket,
            clients,
            ledger: Ledger::new(forgers, unsteady),
            planted,
            shortages: BTreeSet::new(),
            unprepared: BTreeSet::new(),
            limited: BTreeSet::new(),
            files_gone: BTreeMap::new(),
            poisoned: BTreeMap::new(),
            steps: 0,
            whole_every: WHOLE_EVERY,
            over: false,
            diary: keep_diary.then(Vec::new),
        }
    }

    /// Runs to the end, or until it is idle to. An error names the invariant that broke.
    pub(crate) fn run(&mut self, is_idle: &dyn Fn() -> bool) -> Checked {
        match self.leaders.is_some() {
            true => self.start_machines(),
            false => self.events.plan(0, Event::Restart),
        }
        for index in 0..self.nodes.len() {
            self.events.plan(self.nodes[index].plan.starts_at, Event::NodeStarts(index));
        }
        self.plan_clients();
        self.events.plan(1_000, Event::RollFaults);
        self.events.plan(1_000, Event::Sweep);
        self.events.plan(self.plan.heal_at, Event::Heal);
        let mut events = 0;
        while !self.over && !is_idle() {
            let Some((at, event)) = self.events.next() else {
                return violated("nothing is to happen any more");
            };
            self.now = at;
            events += 1;
            if events > EVENTS_MAX {
                return violated(format!("{events} events, and no end"));
            }
            self.happen(event)?;
        }
        Ok(())
    }

    fn happen(&mut self, event: Event) -> Checked {
        if let Some(diary) = &mut self.diary {
            diary.push(format!("{:>9} {event:?}", self.now));
        }
        let event = self.defer(event).and_then(|event| self.defer_at_coordinator(event));
        if let Some(event) = event {
            return self.dispatch(event);
        }
        Ok(())
    }

    pub(crate) fn dispatch(&mut self, event: Event) -> Checked {
        match event {
            Event::Up(link, parcel) => self.on_up(link, parcel),
            Event::Down(link, message) => self.on_down(link, message),
            Event::CoordinatorNotices(link) => self.on_coordinator_notices(link),
            Event::NodeNotices(link) => {
                self.on_node_notices(link);
                Ok(())
            }
            Event::NodeStarts(node) => {
                self.start_node(node);
                Ok(())
            }
            Event::Node(node, process, event) => self.on_node_event(node, process, event),
            Event::NodeWakes(node) => self.wake_node(node),
            Event::TakeStep(incarnation) => self.as_process(incarnation, Self::take_step),
            Event::Together(incarnation, link, session) => {
                self.as_process(incarnation, |world| world.on_together((link, session)))
            }
            Event::Synced(incarnation) => self.as_process(incarnation, Self::on_synced),
            Event::Tick(incarnation, wakeup) => {
                self.as_process(incarnation, |world| world.on_tick(wakeup))
            }
            Event::LateLoss(incarnation, session) => {
                self.as_process(incarnation, |world| world.on_session_lost(session))
            }
            Event::Measured(incarnation, job, frame, measured) => {
                self.as_process(incarnation, |world| world.on_measured(job, frame, measured))
            }
            Event::Resolved(incarnation, job, frame) => {
                self.as_process(incarnation, |world| world.on_resolved(job, frame))
            }
            Event::FoundWrong(incarnation, lease) => {
                self.as_process(incarnation, |world| world.on_found_wrong(lease))
            }
            Event::Forget(incarnation, objects) => {
                self.as_process(incarnation, |world| world.on_forget(&objects))
            }
            Event::Crash(incarnation) => self.as_process(incarnation, Self::crash),
            Event::Restart => self.restart(),
            Event::MachineStarts(machine) => {
                self.start_machine(machine);
                Ok(())
            }
            Event::StandBy(machine, process) => {
                self.stand_by(machine, process);
                Ok(())
            }
            Event::MachineWakes(machine) => self.wake_machine(machine),
            Event::Statement(statement) => self.on_statement(*statement),
            Event::Said(process, number, said) => self.on_said(process, number, *said),
            Event::AskAgain(incarnation) => self.as_process(incarnation, Self::ask_database),
            Event::Renew(incarnation) => self.as_process(incarnation, Self::renew),
            Event::CheckTerm(incarnation) => self.as_process(incarnation, Self::check_term),
            Event::Ask(ask) => self.on_ask(ask),
            Event::Submit(index) => self.submit(index),
            Event::Stopped(halt) => self.check_halt(&halt),
            Event::Sweep => {
                self.sweep_blobs();
                Ok(())
            }
            Event::Answer(ask, response) => self.on_answer(ask, &response),
            Event::Question(job, before) => self.on_question(job, before),
            Event::Answers(answers) => self.on_answers(&answers),
            Event::RollFaults => self.roll_faults(),
            Event::Heal => self.heal(),
            Event::Look => self.look(),
        }
    }

    pub(crate) fn after(&mut self, delay: u64, event: Event) {
        self.events.plan(self.now + delay, event);
    }

    pub(crate) fn node_after(&mut self, node: usize, delay: u64, event: NodeEvent) {
        if let Some(process) = &self.nodes[node].process {
            let number = process.number;
            self.after(delay, Event::Node(node, number, event));
        }
    }

    /// Rolls for a fault, and counts it where it happens. After the healing none does.
    pub(crate) fn chance(&mut self, fault: Fault) -> bool {
        let happens = !self.healed && self.random.permille(self.plan.rate(fault));
        if happens {
            self.tally.count(fault);
        }
        happens
    }

    pub(crate) fn note(&mut self, text: impl FnOnce() -> String) {
        if let Some(diary) = &mut self.diary {
            diary.push(format!("{:>9}   {}", self.now, text()));
        }
    }

    /// When everything must have ended.
    fn deadline(&self) -> u64 {
        let heal_at = self.plan.heal_at;
        (heal_at.max(self.acknowledged_at) + STILL_MAX).min(heal_at + HEAL_MAX)
    }

    /// Ends the run once everything is over; fails where that takes too long.
    fn look(&mut self) -> Checked {
        match self.unfinished() {
            None => {
                self.over = true;
                self.check_end()
            }
            Some(what) if self.now > self.deadline() => violated(format!(
                "{} s after the last fault: {what}",
                (self.now - self.plan.heal_at) / 1000
            )),
            Some(_) => {
                self.after(1_000, Event::Look);
                Ok(())
            }
        }
    }
}
