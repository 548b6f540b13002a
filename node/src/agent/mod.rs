//! Decides what a node does about its leases, as a pure state machine. Messages and events go in,
//! [`Action`]s come out. It has no clock, socket, file or thread; it is told the time.
//!
//! A lease is waiting (for its frame, or for room on a device), given to a device, or storing (its
//! result is being written to disk). Then it is finished, and the outbox keeps it until the
//! coordinator says that it is durable or not wanted.

mod ahead;
#[cfg(test)]
mod ahead_tests;
mod capacity;
mod devices;
mod frame_key;
mod leaving;
#[cfg(test)]
mod piece_tests;
mod results;
#[cfg(test)]
mod tests;
mod units;
mod waits;
#[cfg(test)]
mod waits_tests;

use crate::job::checked_spec;
use ahead::{Ahead, Frame};
pub(crate) use capacity::Pace;
pub(crate) use frame_key::FrameKey;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tessera_protocol::device::DeviceInfo;
use tessera_protocol::node::{Assignment, CoordinatorToNode, Failure, NodeToCoordinator, Task};
use tessera_protocol::{JobId, JobKind, Lease};

/// An action for the shell. `F` is the handle of a prepared frame.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Action<F> {
    /// Send a message to the coordinator.
    Send(NodeToCoordinator),
    /// Prepare a frame for a unit with this task, and for all others that share it; then call
    /// [`Agent::on_frame`]. If it is to be held `beside` others, and does not fit, call
    /// [`Agent::on_postponed`].
    Prepare { frame: FrameKey, spec: Arc<JobKind>, task: Task, beside: bool },
    /// Stop the preparation of a frame: no unit waits for it any more. Nothing is to be called.
    Abandon(FrameKey),
    /// Give a unit to a device, then call [`Agent::on_rendered`].
    Start { device: usize, assignment: Assignment, spec: Arc<JobKind>, frame: F },
    /// Take a unit back from its device if it has not begun; if so, call [`Agent::on_withdrawn`].
    Withdraw(Lease),
    /// End a unit at the next sample. The samples so far are its output.
    Cut(Lease),
    /// Stop a unit; its result is no longer wanted.
    Cancel(Lease),
    /// Send a result of the outbox. If that fails, call [`Agent::on_offer_failed`].
    Offer(Lease),
    /// Remove a result from the outbox.
    Remove(Lease),
    /// Everything is done: leave the farm.
    Leave,
}

/// How an attempt ended on its device.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Rendered {
    /// The unit is done, after this much device time.
    Done(Duration),
    /// The attempt failed for this reason.
    Failed(Failure),
    /// The attempt was cancelled.
    Cancelled,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum UnitState {
    Waiting,
    Given { device: usize },
    Storing,
}

#[derive(Debug)]
struct Unit {
    assignment: Assignment,
    state: UnitState,
    /// For how long a device had nothing to do because what this unit needs was not prepared.
    waited: Duration,
}

#[derive(Debug)]
struct Device {
    /// Number of tiles and chunks that it has.
    given: usize,
    pace: Pace,
    /// Whether the device takes units now.
    usable: bool,
    /// Properties that decide which kernels it runs; None while they are not known.
    info: Option<DeviceInfo>,
}

impl Device {
    /// Returns whether the device takes units of such a job now.
    fn suits(&self, kind: &JobKind) -> bool {
        let runs = |compute| self.info.as_ref().is_none_or(|info| info.runs(compute));
        self.usable && kind.compute().is_none_or(runs)
    }
}

/// The state of one node.
#[derive(Debug)]
pub(crate) struct Agent<F> {
    devices: Vec<Device>,
    ahead: Ahead,
    jobs: BTreeMap<JobId, Result<Arc<JobKind>, Failure>>,
    units: BTreeMap<Lease, Unit>,
    /// Waiting leases in the order of their arrival. Leases that are no longer waiting are skipped.
    waiting: VecDeque<Lease>,
    /// Frames that units wait for or devices work on.
    frames: BTreeMap<FrameKey, Frame<F>>,
    /// Frames that devices work on.
    working: BTreeSet<FrameKey>,
    /// Finishing units that devices have, also those that are not wanted any more.
    finishing: BTreeSet<Lease>,
    /// Devices that were too small for a unit of a job.
    too_small: BTreeSet<(JobId, usize)>,
    /// Leases with a result in the outbox, and whether it was offered in this session.
    finished: BTreeMap<Lease, bool>,
    /// Failures that could not be reported because there was no session.
    untold: BTreeMap<Lease, Failure>,
    connected: bool,
    capacity_told: u32,
    draining: bool,
    /// Whether an operator has drained the node, which stays.
    drained: bool,
    left: bool,
    /// The newest time that is known.
    now: Option<Instant>,
    actions: VecDeque<Action<F>>,
}

impl<F: Clone> Agent<F> {
    /// Creates the state of a node with `devices` devices that holds `hold` of work ahead on each.
    /// `finished` lists the results in its outbox.
    pub(crate) fn new(devices: usize, hold: Duration, finished: Vec<Lease>) -> Self {
        Self {
            devices: (0..devices)
                .map(|_| Device { given: 0, pace: Pace::default(), usable: true, info: None })
                .collect(),
            ahead: Ahead::new(hold),
            jobs: BTreeMap::new(),
            units: BTreeMap::new(),
            waiting: VecDeque::new(),
            frames: BTreeMap::new(),
            working: BTreeSet::new(),
            finishing: BTreeSet::new(),
            too_small: BTreeSet::new(),
            finished: finished.into_iter().map(|lease| (lease, false)).collect(),
            untold: BTreeMap::new(),
            connected: false,
            capacity_told: 0,
            draining: false,
            drained: false,
            left: false,
            now: None,
            actions: VecDeque::new(),
        }
    }

    /// Returns the next action for the shell.
    pub(crate) fn poll_action(&mut self) -> Option<Action<F>> {
        self.actions.pop_front()
    }

    /// Returns the leases that are waiting, running or being stored, and those whose failure is not
    /// reported yet.
    pub(crate) fn held(&self) -> Vec<Lease> {
        self.units.keys().chain(self.untold.keys()).copied().collect()
    }

    /// Returns the leases whose results are in the outbox.
    pub(crate) fn finished(&self) -> Vec<Lease> {
        self.finished.keys().copied().collect()
    }

    /// Returns whether the node takes no new work.
    pub(crate) fn is_draining(&self) -> bool {
        self.draining
    }

    /// Returns whether an operator has drained the node, which stays connected.
    pub(crate) fn is_drained(&self) -> bool {
        self.drained
    }

    /// Returns whether units are waiting, running or being stored.
    pub(crate) fn is_working(&self) -> bool {
        !self.units.is_empty()
    }

    /// Returns whether units are waiting or running.
    pub(crate) fn has_unfinished(&self) -> bool {
        self.units.values().any(|unit| unit.state != UnitState::Storing)
    }

    /// Returns whether units wait for a device.
    pub(crate) fn has_waiting(&self) -> bool {
        self.units.values().any(|unit| unit.state == UnitState::Waiting)
    }

    /// Returns the number of frames that are being fetched or prepared, and of units whose output
    /// is being stored.
    pub(crate) fn in_preparation(&self) -> usize {
        let asked = self.frames.values().filter(|state| matches!(state, Frame::Asked)).count();
        let storing = self.units.values().filter(|unit| unit.state == UnitState::Storing).count();
        asked + storing
    }

    /// Handles a new session, after the join was sent with [`Self::held`], [`Self::finished`] and
    /// [`Self::capacity`].
    pub(crate) fn on_connected(&mut self) {
        self.connected = true;
        // A drained node is told so in each session.
        self.drained = false;
        self.capacity_told = self.capacity();
        for (lease, failure) in std::mem::take(&mut self.untold) {
            self.send(NodeToCoordinator::Failed { lease, failure });
        }
        if self.draining {
            self.send(NodeToCoordinator::Draining);
        }
        for offered in self.finished.values_mut() {
            *offered = false;
        }
        self.offer();
        self.leave_if_done();
    }

    /// Handles the end of the session. Work continues, and the next session reports it.
    pub(crate) fn on_disconnected(&mut self) {
        self.connected = false;
        let units = &self.units;
        self.jobs.retain(|job, _| units.keys().any(|lease| lease.unit.job == *job));
    }

    /// Handles a message of the coordinator. The shell handles refusals.
    pub(crate) fn on_message(&mut self, message: CoordinatorToNode) {
        match message {
            CoordinatorToNode::Job { job, spec } => {
                self.jobs.insert(job, checked_spec(*spec));
            }
            CoordinatorToNode::Work(assignments) => self.on_work(assignments),
            CoordinatorToNode::Committed { lease } | CoordinatorToNode::Unwanted { lease } => {
                self.stop_unit(lease);
                self.forget_result(lease);
            }
            CoordinatorToNode::Revoke { leases } => {
                leases.into_iter().for_each(|lease| self.stop_unit(lease));
            }
            CoordinatorToNode::Forget { job } => self.on_forget(job),
            CoordinatorToNode::Leave => self.drain(),
            CoordinatorToNode::Drained { drained } => self.on_drained(drained),
            CoordinatorToNode::GiveBack { leases } => self.on_wanted_back(leases),
            // The shell keeps owners and what is watched, makes files, and logs notices.
            CoordinatorToNode::Owner { .. }
            | CoordinatorToNode::Watched { .. }
            | CoordinatorToNode::Refused { .. }
            | CoordinatorToNode::StoreResults
            | CoordinatorToNode::MakeFiles { .. }
            | CoordinatorToNode::Notice { .. } => {}
        }
        self.pump();
        self.leave_if_done();
    }

    fn on_forget(&mut self, job: JobId) {
        let of_job = |lease: &&Lease| lease.unit.job == job;
        let held: Vec<Lease> = self.units.keys().filter(of_job).copied().collect();
        let finished: Vec<Lease> = self.finished.keys().filter(of_job).copied().collect();
        held.into_iter().for_each(|lease| self.stop_unit(lease));
        finished.into_iter().for_each(|lease| self.forget_result(lease));
        self.jobs.remove(&job);
        self.too_small.retain(|(of, _)| *of != job);
        self.keep_frames(|frame| frame.job() != job);
    }

    fn send(&mut self, message: NodeToCoordinator) {
        self.actions.push_back(Action::Send(message));
    }
}
