//! The books: all state of the core, and the moves that change several parts of it at once, so that
//! they stay consistent. Every field is private to this folder; the rooms (results, checks, frames,
//! schedule, nodes, requests) read through methods and change through moves.
//!
//! What to do with an input is decided in the rooms, not here.

mod budgets;
mod leasing;
mod moves;
mod nodes;
mod spending;
mod storage;
mod units;
mod watched;

use crate::action::{Action, Step};
use crate::checks::looks::Looks;
use crate::faults::Faults;
use crate::frames::orders::Orders;
use crate::input::{RequestId, SessionId};
use crate::journal::{Commit, Record};
use crate::lease::{Epochs, Leases};
use crate::nodes::roster::Roster;
use crate::schedule::copy_looks::CopyLooks;
use crate::schedule::dirty::Dirty;
use crate::schedule::fair::{Party, Shares};
use crate::schedule::forecast::Forecast;
use crate::schedule::queue::Queue;
use crate::schedule::rooms::Rooms;
use crate::settings::Settings;
use crate::state::farm::Farm;
use crate::state::job::Job;
use crate::state::ledger::Ledger;
use crate::state::votes::Check;
use crate::time::Moment;
use crate::timers::{Timer, Timers};
use budgets::Budgets;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use tessera_protocol::client::{RequestError, Response};
use tessera_protocol::ids::{JobId, NodeId, UnitKey};
use tessera_protocol::node::CoordinatorToNode;
use watched::Watched;

/// All state of the core, and the actions of the current step.
#[derive(Debug)]
pub(crate) struct Books {
    settings: Settings,
    now: Moment,
    /// State of the journal; changed only by [`Books::record`].
    farm: Ledger,
    leases: Leases,
    epochs: Epochs,
    roster: Roster,
    /// Queues of all open jobs.
    queues: BTreeMap<JobId, Queue>,
    shares: Shares,
    rooms: Rooms,
    timers: Timers,
    orders: Orders,
    looks: Looks,
    finish_looks: Looks,
    copy_looks: CopyLooks,
    /// Nothing is leased before this time.
    settled_at: Moment,
    /// Until then, nodes that were here before a restart may come back.
    returning_until: Moment,
    /// Nodes that may get more units.
    dirty: Dirty,
    faults: Faults,
    /// When jobs should end, for people; None until somebody asks.
    forecast: OnceCell<Forecast>,
    /// Actions of the current step.
    actions: Vec<Action>,
    watched: Watched,
    budgets: Budgets,
    /// Another process leads, and knows what is not in the journal: nodes, leases, queues.
    is_following: bool,
}

impl Books {
    /// Creates books over a durable state, without leases and connected nodes.
    pub(crate) fn new(settings: Settings, farm: Farm, now: Moment) -> Self {
        Self {
            epochs: Epochs::new(farm.epochs_reserved()),
            settings,
            now,
            farm: Ledger::new(farm),
            leases: Leases::default(),
            roster: Roster::default(),
            queues: BTreeMap::new(),
            shares: Shares::default(),
            rooms: Rooms::default(),
            timers: Timers::default(),
            orders: Orders::default(),
            looks: Looks::default(),
            finish_looks: Looks::default(),
            copy_looks: CopyLooks::default(),
            settled_at: now,
            returning_until: now,
            dirty: Dirty::default(),
            faults: Faults::default(),
            forecast: OnceCell::new(),
            actions: Vec::new(),
            watched: Watched::default(),
            budgets: Budgets::default(),
            is_following: false,
        }
    }

    /// Creates books over the durable state of another process, which leads.
    pub(crate) fn following(settings: Settings, farm: Farm, now: Moment) -> Self {
        Self { is_following: true, ..Self::new(settings, farm, now) }
    }

    /// Takes over a record of the process that leads.
    pub(crate) fn follow(&mut self, record: &Record) -> Result<(), String> {
        self.farm.follow(record)
    }

    /// Whether another process leads.
    pub(crate) fn is_following(&self) -> bool {
        self.is_following
    }

    /// Returns the durable state.
    pub(crate) fn into_farm(self) -> Farm {
        self.farm.into_farm()
    }

    // Read access.

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn now(&self) -> Moment {
        self.now
    }

    /// Returns the durable state.
    pub(crate) fn farm(&self) -> &Farm {
        &self.farm
    }

    pub(crate) fn leases(&self) -> &Leases {
        &self.leases
    }

    pub(crate) fn epochs(&self) -> &Epochs {
        &self.epochs
    }

    pub(crate) fn roster(&self) -> &Roster {
        &self.roster
    }

    /// The queues of all open jobs.
    pub(crate) fn queues(&self) -> &BTreeMap<JobId, Queue> {
        &self.queues
    }

    pub(crate) fn queue(&self, job: JobId) -> Option<&Queue> {
        self.queues.get(&job)
    }

    /// Jobs with something to lease.
    pub(crate) fn shares(&self) -> &Shares {
        &self.shares
    }

    /// Whether a job is among those with something to lease.
    pub(crate) fn is_offered(&self, job: &Job) -> bool {
        self.shares.contains(Party::of(job, &self.settings))
    }

    /// Whether a job is known, and among those with something to lease.
    pub(crate) fn is_offered_job(&self, job: JobId) -> bool {
        self.farm.job(job).is_some_and(|job| self.is_offered(job))
    }

    pub(crate) fn timers(&self) -> &Timers {
        &self.timers
    }

    pub(crate) fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Whether the job is known and has not ended.
    pub(crate) fn is_open(&self, job: JobId) -> bool {
        self.farm.job(job).is_some_and(|job| !job.is_final())
    }

    /// Whether the job was paused by a user.
    pub(crate) fn is_paused(&self, job: JobId) -> bool {
        self.farm.job(job).is_some_and(|job| job.paused().is_some())
    }

    /// The check that a unit waits for.
    pub(crate) fn check_of(&self, unit: UnitKey) -> Option<&Check> {
        self.farm.job(unit.job)?.frame(unit.frame)?.check(unit.unit)
    }

    // Parts that depend on no other part, and are changed by their own methods.

    /// Frames that wait for their files or to be measured.
    pub(crate) fn orders(&self) -> &Orders {
        &self.orders
    }

    pub(crate) fn orders_mut(&mut self) -> &mut Orders {
        &mut self.orders
    }

    /// Frames whose checks have a planned look.
    pub(crate) fn looks(&self) -> &Looks {
        &self.looks
    }

    pub(crate) fn looks_mut(&mut self) -> &mut Looks {
        &mut self.looks
    }

    /// Frames in finishing by nodes with a planned look.
    pub(crate) fn finish_looks(&self) -> &Looks {
        &self.finish_looks
    }

    pub(crate) fn finish_looks_mut(&mut self) -> &mut Looks {
        &mut self.finish_looks
    }

    /// Nodes that were asked to make room for a job.
    pub(crate) fn rooms(&self) -> &Rooms {
        &self.rooms
    }

    pub(crate) fn rooms_mut(&mut self) -> &mut Rooms {
        &mut self.rooms
    }

    /// When units to copy are looked for.
    pub(crate) fn copy_looks_mut(&mut self) -> &mut CopyLooks {
        &mut self.copy_looks
    }

    // Time.

    /// Advances the clock, which never goes back. Call it first in every step: elapsed time is
    /// charged to the leases held during it.
    pub(crate) fn advance(&mut self, now: Moment) {
        self.now = self.now.max(now);
        self.leases.pass(self.now);
        if self.forecast.get().is_some_and(|forecast| !forecast.is_fresh(self.now)) {
            self.forecast.take();
        }
    }

    pub(crate) fn set_timer(&mut self, at: Moment, timer: Timer) {
        self.timers.set(at, timer);
    }

    /// Takes the first timer that is due.
    pub(crate) fn take_due_timer(&mut self) -> Option<Timer> {
        self.timers.take_due(self.now)
    }

    /// Returns when the first timer or lease is due; None if there is neither.
    pub(crate) fn next_wakeup(&self) -> Option<Moment> {
        let lease = self.leases.first_deadline().map(|(until, _)| until);
        [self.timers.first(), lease].into_iter().flatten().min()
    }

    /// Leases nothing until nodes have had time to return after a restart.
    pub(crate) fn settle_first(&mut self) {
        self.settled_at = self.now.after(self.settings.settle);
        self.timers.set(self.settled_at, Timer::Settled);
    }

    /// Gives nodes that were here before a restart time to come back. Returns its end.
    pub(crate) fn await_nodes(&mut self) -> Moment {
        self.returning_until = self.now.after(self.settings.returning);
        self.returning_until
    }

    /// Until then, nodes that were here before a restart may come back.
    pub(crate) fn returning_until(&self) -> Moment {
        self.returning_until
    }

    /// Returns when jobs should end, and makes it if there is none of the last second.
    pub(crate) fn forecast(&self, make: impl FnOnce() -> Forecast) -> &Forecast {
        self.forecast.get_or_init(make)
    }

    /// Nothing is leased before this time.
    pub(crate) fn settled_at(&self) -> Moment {
        self.settled_at
    }

    /// Whether nodes have had time to return after a restart.
    pub(crate) fn is_settled(&self) -> bool {
        self.now >= self.settled_at
    }

    // Results of a step.

    /// Records a fact: it is true from now on, here and after a restart.
    pub(crate) fn record(&mut self, record: Record) {
        self.touch_units_of(&record);
        self.farm.record(record);
    }

    /// Records a commit, in one record with the others of its frame in this step.
    pub(crate) fn record_commit(&mut self, unit: UnitKey, commit: Commit) {
        self.touch_result(unit);
        self.farm.record_commit(unit, commit);
    }

    pub(crate) fn act(&mut self, action: Action) {
        self.actions.push(action);
    }

    pub(crate) fn send(&mut self, session: SessionId, message: CoordinatorToNode) {
        self.act(Action::Send { session, message });
    }

    /// Sends a message to a node, if it is connected.
    pub(crate) fn tell(&mut self, node: NodeId, message: CoordinatorToNode) {
        if let Some(session) = self.roster.session_of(node) {
            self.send(session, message);
        }
    }

    pub(crate) fn reply(&mut self, request: RequestId, answer: Result<Response, RequestError>) {
        let response = answer.unwrap_or_else(Response::Error);
        self.act(Action::Reply { request, response });
    }

    /// Counts a contradiction and tells the shell. Panics in debug builds and unit tests.
    #[cold]
    pub(crate) fn fault(&mut self, what: &'static str) {
        self.faults.count(what);
        self.act(Action::Fault { what });
        if cfg!(any(test, debug_assertions)) {
            panic!("fault of the core: {what}");
        }
    }

    /// Takes the records and actions since the last call.
    pub(crate) fn take_step(&mut self) -> Step {
        let (records, moves) = (self.farm.take_records(), self.take_moves());
        Step { records, actions: std::mem::take(&mut self.actions), moves }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "fault of the core: a")]
    fn a_fault_panics_in_tests() {
        Books::new(
            Settings::default(),
            Farm::new(crate::state::shelf::MemoryShelf::new()),
            Moment(0),
        )
        .fault("a");
    }
}
