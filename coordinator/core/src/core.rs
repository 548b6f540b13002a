//! The core itself: takes inputs, keeps the state, gives steps. What each noun does is in its own
//! module.

use crate::action::{Action, Step};
use crate::faults::Faults;
use crate::input::{Input, RequestId, SessionId};
use crate::journal::Record;
use crate::lease::{Epochs, Leases};
use crate::nodes::roster::Roster;
use crate::schedule::dirty::Dirty;
use crate::schedule::priorities::Shares;
use crate::schedule::queue::Queue;
use crate::settings::Settings;
use crate::state::farm::Farm;
use crate::state::ledger::Ledger;
use crate::state::snapshot::{SnapshotPart, restore};
use crate::time::Moment;
use crate::timers::{Timer, Timers};
use std::collections::{BTreeMap, BTreeSet};
use tessera_protocol::client::{RequestError, Response};
use tessera_protocol::ids::{FrameNumber, JobId, Lease, NodeId, UnitKey};
use tessera_protocol::node::CoordinatorToNode;

/// Why records are no journal of a core: the store is damaged, or of another farm. Never repaired
/// in silence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("entry {position} of the journal contradicts what is before it: {problem}")]
pub struct ReplayError {
    /// Position among the snapshot's parts and then the records, counted from 0.
    pub position: u64,
    /// What is wrong.
    pub problem: String,
}

/// The state machine that decides everything.
#[derive(Debug)]
pub struct Core {
    pub(crate) settings: Settings,
    pub(crate) now: Moment,
    /// What the journal says; changed by [`Core::record`] only.
    pub(crate) farm: Ledger,
    pub(crate) leases: Leases,
    pub(crate) epochs: Epochs,
    pub(crate) roster: Roster,
    /// Of every job that has not ended.
    pub(crate) queues: BTreeMap<JobId, Queue>,
    pub(crate) shares: Shares,
    pub(crate) timers: Timers,
    /// Orders that failed so far, of frames that wait for their files or to be measured.
    pub(crate) resolves: BTreeMap<(JobId, FrameNumber), crate::frames::resolve::Wait>,
    /// Orders to resolve or to measure that are not answered yet, and whether units of the frame
    /// have been taken back since.
    pub(crate) resolving: BTreeMap<(JobId, FrameNumber), bool>,
    /// Frames whose checks are going to be looked at.
    pub(crate) looks: BTreeSet<(JobId, FrameNumber)>,
    /// Nothing is leased before.
    pub(crate) settled_at: Moment,
    /// Nodes that may get more units.
    pub(crate) dirty: Dirty,
    /// When units to copy are looked for again.
    pub(crate) look_at: Option<Moment>,
    /// When many leases were looked through for units to copy last.
    pub(crate) looked_at: Moment,
    pub(crate) faults: Faults,
    /// What the step under way asks the shell to do.
    actions: Vec<Action>,
}

impl Core {
    /// A farm that has never run.
    pub fn new(settings: Settings, now: Moment) -> Self {
        Self::over(settings, Farm::default(), now)
    }

    /// The farm that a snapshot (may be empty) and the records after it tell of. Frames that wait
    /// for their files are asked for again by the first step.
    pub fn replay(
        settings: Settings,
        snapshot: impl IntoIterator<Item = SnapshotPart>,
        records: impl IntoIterator<Item = Record>,
        now: Moment,
    ) -> Result<Self, ReplayError> {
        let mut position = 0;
        let mut farm = Farm::default();
        for part in snapshot {
            restore(&mut farm, part).map_err(|problem| ReplayError { position, problem })?;
            position += 1;
        }
        for record in records {
            farm.apply(&record).map_err(|problem| ReplayError { position, problem })?;
            position += 1;
        }
        let mut core = Self::over(settings, farm, now);
        core.take_up();
        Ok(core)
    }

    fn over(settings: Settings, farm: Farm, now: Moment) -> Self {
        Self {
            epochs: Epochs::new(farm.epochs_reserved()),
            settings,
            now,
            farm: Ledger::new(farm),
            leases: Leases::default(),
            roster: Roster::default(),
            queues: BTreeMap::new(),
            shares: Shares::default(),
            timers: Timers::default(),
            resolves: BTreeMap::new(),
            resolving: BTreeMap::new(),
            looks: BTreeSet::new(),
            settled_at: now,
            dirty: Dirty::default(),
            look_at: None,
            looked_at: Moment::default(),
            faults: Faults::default(),
            actions: Vec::new(),
        }
    }

    /// Goes on with what was open when the records end.
    fn take_up(&mut self) {
        let open: Vec<JobId> =
            self.farm.order().iter().copied().filter(|job| self.is_open(*job)).collect();
        for id in open {
            self.open_queue(id);
            let Some(job) = self.farm.job(id) else {
                self.fault("an open job is unknown");
                continue;
            };
            let begun = (0..).zip(job.frames()).filter(|(_, frame)| frame.unfinished().is_some());
            let numbers: Vec<_> = begun.filter_map(|(position, _)| job.number(position)).collect();
            for frame in numbers {
                self.ask_if_due(id, frame);
            }
            self.take_up_checks(id);
            // The process may have ended between a job's last frame and its end.
            self.end_if_over(id);
        }
        if self.farm.epochs_reserved().0 > 0 && !self.queues.is_empty() {
            self.settled_at = self.now.after(self.settings.settle);
            self.timers.set(self.settled_at, Timer::Settled);
        }
    }

    /// The durable state in parts: all records so far, those of a step not yet taken included. Take
    /// the step first, and store the snapshot after it.
    pub fn snapshot(&self) -> Vec<SnapshotPart> {
        crate::state::snapshot::parts(&self.farm)
    }

    /// Takes one input in. Never panics, whatever a peer sent.
    pub fn handle(&mut self, input: Input, now: Moment) {
        self.now = self.now.max(now);
        self.leases.pass(self.now);
        self.on_time();
        match input {
            Input::Submit { request, job, spec, caller } => {
                self.on_submit(request, job, spec, caller)
            }
            Input::Cancel { request, job, caller } => self.on_cancel(request, job, &caller),
            Input::Pause { request, job, pause, caller } => {
                self.on_pause(request, job, pause, &caller)
            }
            Input::Retry { request, job, caller } => self.on_retry(request, job, &caller),
            Input::Forget { request, job, caller } => self.on_forget(request, job, &caller),
            Input::ForgetEnded { before } => self.on_forget_ended(before),
            Input::Drain { request, node, drain } => self.on_drain(request, &node, drain),
            Input::NodeJoined { session, join, fingerprint, build } => {
                self.on_joined(session, &join, fingerprint, &build)
            }
            Input::SessionLost { session } => self.on_session_lost(session),
            Input::Capacity { session, units } => self.on_capacity(session, units),
            Input::SceneHeld { session, scene, held } => self.on_scene_held(session, scene, held),
            Input::Heartbeat { session, heartbeat } => self.on_heartbeat(session, &heartbeat),
            Input::ResultArrived { session, result } => self.on_result(session, &result),
            Input::ResultDamaged { session, lease, reason } => {
                self.on_result_damaged(session, lease, &reason)
            }
            Input::UnitFailed { session, lease, failure } => {
                self.on_unit_failed(session, lease, &failure)
            }
            Input::Returned { session, leases } => self.on_returned(session, &leases),
            Input::DevicesChanged { session, devices } => self.on_devices(session, &devices),
            Input::NodeDraining { session } => self.on_node_draining(session),
            Input::FrameResolved { job, frame, files } => self.on_resolved(job, frame, files),
            Input::RoundMeasured { job, frame, round, noisy } => {
                self.on_measured(job, frame, (round, &noisy))
            }
            Input::FrameResolveFailed { job, frame, failure } => {
                self.on_resolve_failed(job, frame, failure)
            }
            Input::Tick => {}
        }
        self.schedule();
    }

    /// Fires the timers that are due, and ends the leases whose deadline has passed.
    fn on_time(&mut self) {
        while let Some(timer) = self.timers.take_due(self.now) {
            self.on_timer(timer);
        }
        while let Some((until, epoch)) = self.leases.first_deadline()
            && until <= self.now
        {
            self.on_lease_expired(epoch);
        }
    }

    fn on_timer(&mut self, timer: Timer) {
        match timer {
            Timer::Settled => self.dirty.mark_all(),
            Timer::Look => {
                self.look_at = self.look_at.filter(|at| *at > self.now);
                self.dirty.mark_all();
            }
            Timer::Away(node) => self.on_grace_over(node),
            Timer::Fit(node) => self.on_fit_again(node),
            Timer::Unit(job, place) => self.on_wait_over(job, place),
            Timer::Checks(job, frame) => self.on_checks_due(job, frame),
            Timer::Resolve(job, frame) => self.on_resolve_due(job, frame),
        }
    }

    /// What came of the inputs since the last call.
    pub fn take_step(&mut self) -> Step {
        Step { records: self.farm.take_records(), actions: std::mem::take(&mut self.actions) }
    }

    /// When the core wants an [`Input::Tick`] at the latest, if nothing else comes; None: never.
    pub fn next_wakeup(&self) -> Option<Moment> {
        let lease = self.leases.first_deadline().map(|(until, _)| until);
        [self.timers.first(), lease].into_iter().flatten().min()
    }

    /// Every lease that is held, and by whom.
    pub fn leases(&self) -> impl Iterator<Item = (Lease, NodeId)> + '_ {
        self.leases.iter().map(|(lease, held)| (lease, held.node))
    }

    /// The leases of a unit and their nodes, the older first: none, one, or two.
    pub fn leases_of(&self, unit: UnitKey) -> impl Iterator<Item = (Lease, NodeId)> + '_ {
        let leases = self.leases.of_unit(unit).map(move |epoch| Lease { unit, epoch });
        leases.filter_map(|lease| self.leases.get(lease).map(|held| (lease, held.node)))
    }

    pub(crate) fn is_open(&self, job: JobId) -> bool {
        self.farm.job(job).is_some_and(|job| !job.is_final())
    }

    /// Writes a fact down: it is true from now on, here and after a restart.
    pub(crate) fn record(&mut self, record: Record) {
        self.farm.record(record);
    }

    pub(crate) fn act(&mut self, action: Action) {
        self.actions.push(action);
    }

    pub(crate) fn send(&mut self, session: SessionId, message: CoordinatorToNode) {
        self.act(Action::Send { session, message });
    }

    /// Sends to a node that is here.
    pub(crate) fn tell(&mut self, node: NodeId, message: CoordinatorToNode) {
        if let Some(session) = self.roster.session_of(node) {
            self.send(session, message);
        }
    }

    pub(crate) fn reply(&mut self, request: RequestId, answer: Result<Response, RequestError>) {
        let response = answer.unwrap_or_else(Response::Error);
        self.act(Action::Reply { request, response });
    }
}
