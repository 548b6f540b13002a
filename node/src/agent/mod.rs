//! Decides what a node does about its leases, as a pure state machine. Messages and events go in,
//! [`Action`]s come out. It has no clock, socket, file or thread.
//!
//! A lease is waiting (for its frame, or for room on a device), given to a device, or storing (its
//! result is being written to disk). Then it is finished, and the outbox keeps it until the
//! coordinator says that it is durable or not wanted.

mod ahead;
#[cfg(test)]
mod ahead_tests;
mod capacity;
#[cfg(test)]
mod tests;

use crate::job::checked_spec;
use ahead::{Ahead, Frame};
pub(crate) use capacity::Pace;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tessera_protocol::device::DeviceInfo;
use tessera_protocol::limits::LEASES_MAX;
use tessera_protocol::node::{Assignment, CoordinatorToNode, Failure, NodeToCoordinator};
use tessera_protocol::{BlobHash, FrameNumber, JobId, JobKind, Lease};

/// A frame of a job. It is prepared once and shared by its units.
pub(crate) type FrameKey = (JobId, FrameNumber);

/// Most leases that are held, whatever the coordinator sends: twice the most that is ever
/// requested.
const HELD_MAX: usize = 2 * LEASES_MAX;

/// An action for the shell. `F` is the handle of a prepared frame.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Action<F> {
    /// Send a message to the coordinator.
    Send(NodeToCoordinator),
    /// Prepare a frame, then call [`Agent::on_frame`]. If it is to be held `beside` others, and
    /// does not fit, call [`Agent::on_postponed`].
    Prepare { frame: FrameKey, spec: Arc<JobKind>, feed: Option<BlobHash>, beside: bool },
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
}

#[derive(Debug)]
struct Device {
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
            too_small: BTreeSet::new(),
            finished: finished.into_iter().map(|lease| (lease, false)).collect(),
            untold: BTreeMap::new(),
            connected: false,
            capacity_told: 0,
            draining: false,
            drained: false,
            left: false,
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

    /// Returns the number of frames that are being fetched or prepared, and of units whose output
    /// is being stored.
    pub(crate) fn in_preparation(&self) -> usize {
        let asked = self.frames.values().filter(|state| matches!(state, Frame::Asked)).count();
        let storing = self.units.values().filter(|unit| unit.state == UnitState::Storing).count();
        asked + storing
    }

    /// Returns the number of units that this node wants to hold now.
    pub(crate) fn capacity(&self) -> u32 {
        if self.draining {
            return 0;
        }
        let paces: Vec<Pace> =
            self.devices.iter().filter(|of| of.usable).map(|of| of.pace).collect();
        let each = paces.iter().map(|pace| pace.depth_among(&paces, self.ahead.span()));
        each.sum::<u32>().min(LEASES_MAX as u32)
    }

    /// Sets the properties of a device. Without them it takes every kernel.
    pub(crate) fn set_info(&mut self, device: usize, info: DeviceInfo) {
        self.devices[device].info = Some(info);
    }

    /// Sets whether a device takes units. Waiting units that no other device can take go back to
    /// the coordinator.
    pub(crate) fn set_usable(&mut self, device: usize, usable: bool) {
        self.devices[device].usable = usable;
        self.tell_capacity();
        let (kept, gone) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition(|lease| self.suited(lease.unit.job));
        self.waiting = kept;
        let gone: VecDeque<Lease> = gone;
        let returned: Vec<Lease> =
            gone.into_iter().filter(|lease| self.units.remove(lease).is_some()).collect();
        self.give_back(returned);
        self.pump();
        self.leave_if_done();
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
            // The shell keeps owners, and logs notices.
            CoordinatorToNode::Owner { .. }
            | CoordinatorToNode::Refused { .. }
            | CoordinatorToNode::Notice { .. } => {}
        }
        self.pump();
        self.leave_if_done();
    }

    /// Returns those of these units that have not begun. Whether a unit that a device was given has
    /// begun is known only to the device.
    fn on_wanted_back(&mut self, leases: Vec<Lease>) {
        let mut returned = Vec::new();
        for lease in leases {
            match self.units.get(&lease).map(|unit| unit.state) {
                Some(UnitState::Waiting) => {
                    self.units.remove(&lease);
                    returned.push(lease);
                }
                Some(UnitState::Given { .. }) => self.actions.push_back(Action::Withdraw(lease)),
                Some(UnitState::Storing) | None => {}
            }
        }
        if !returned.is_empty() {
            self.give_back(returned);
        }
    }

    fn on_work(&mut self, assignments: Vec<Assignment>) {
        let mut returned = Vec::new();
        for assignment in assignments {
            let lease = assignment.lease();
            if self.units.contains_key(&lease) {
                continue;
            }
            if let Some(offered) = self.finished.get_mut(&lease) {
                *offered = false;
            } else if self.draining || self.units.len() >= HELD_MAX || !self.suited(assignment.job)
            {
                returned.push(lease);
            } else if let Err(failure) = self.check(&assignment) {
                self.fail(lease, failure);
            } else {
                self.units.insert(lease, Unit { assignment, state: UnitState::Waiting });
                self.waiting.push_back(lease);
            }
        }
        self.give_back(returned);
        self.offer();
    }

    /// Returns whether a device takes units of this job now. For a job that was never described,
    /// any device that takes units counts.
    fn suited(&self, job: JobId) -> bool {
        let kind = self.jobs.get(&job).and_then(|known| known.as_ref().ok());
        self.devices.iter().any(|device| kind.map_or(device.usable, |kind| device.suits(kind)))
    }

    fn check(&self, assignment: &Assignment) -> Result<(), Failure> {
        match self.jobs.get(&assignment.job) {
            Some(Ok(spec)) => crate::job::check_assignment(spec, assignment),
            Some(Err(failure)) => Err(failure.clone()),
            None => Err(Failure::Device(
                "the coordinator sent a unit of a job that it never described".into(),
            )),
        }
    }

    fn on_forget(&mut self, job: JobId) {
        let of_job = |lease: &&Lease| lease.unit.job == job;
        let held: Vec<Lease> = self.units.keys().filter(of_job).copied().collect();
        let finished: Vec<Lease> = self.finished.keys().filter(of_job).copied().collect();
        held.into_iter().for_each(|lease| self.stop_unit(lease));
        finished.into_iter().for_each(|lease| self.forget_result(lease));
        self.jobs.remove(&job);
        self.too_small.retain(|(of, _)| *of != job);
        self.keep_frames(|(of, _)| *of != job);
    }

    /// Handles a prepared frame. If it could not be prepared, all its units have failed.
    pub(crate) fn on_frame(&mut self, frame: FrameKey, result: Result<F, Failure>) {
        match result {
            // If it is no longer requested, no unit waits for it.
            Ok(handle) => {
                if let Some(state) = self.frames.get_mut(&frame) {
                    *state = Frame::Ready(handle);
                }
            }
            Err(failure) => {
                self.frames.remove(&frame);
                let waits = |unit: &Unit| {
                    unit.state == UnitState::Waiting && key(&unit.assignment) == frame
                };
                let units = self.units.iter().filter(|(_, unit)| waits(unit));
                let leases: Vec<Lease> = units.map(|(lease, _)| *lease).collect();
                for lease in leases {
                    self.units.remove(&lease);
                    self.fail(lease, failure.clone());
                }
            }
        }
        self.pump();
        self.leave_if_done();
    }

    /// Handles the end of a unit on a device. Returns true if its output must be stored and
    /// [`Self::on_stored`] called.
    pub(crate) fn on_rendered(&mut self, device: usize, lease: Lease, rendered: Rendered) -> bool {
        self.devices[device].given -= 1;
        let wanted =
            self.units.get_mut(&lease).filter(|unit| matches!(unit.state, UnitState::Given { .. }));
        let mut store = false;
        match (wanted, rendered) {
            (Some(unit), Rendered::Done(device_time)) => {
                unit.state = UnitState::Storing;
                self.devices[device].pace.measure(device_time);
                store = true;
            }
            (Some(unit), Rendered::Failed(Failure::OutOfMemory(shortage))) => {
                self.too_small.insert((lease.unit.job, device));
                let others = self.devices.iter().enumerate().filter(|(_, other)| other.usable);
                if others
                    .map(|(index, _)| index)
                    .any(|index| !self.too_small.contains(&(lease.unit.job, index)))
                {
                    // Another device of this node may have enough memory for it.
                    unit.state = UnitState::Waiting;
                    self.waiting.push_front(lease);
                } else {
                    self.units.remove(&lease);
                    self.fail(lease, Failure::OutOfMemory(shortage));
                }
            }
            (Some(_), Rendered::Failed(failure)) => {
                self.units.remove(&lease);
                self.fail(lease, failure);
            }
            (Some(_), Rendered::Cancelled) => {
                self.units.remove(&lease);
                self.give_back(vec![lease]);
            }
            (None, _) => {}
        }
        self.tell_capacity();
        self.pump();
        self.leave_if_done();
        store
    }

    /// Records that the output of a unit is on disk.
    pub(crate) fn on_stored(&mut self, lease: Lease) {
        if self.units.remove(&lease).is_some() {
            self.finished.insert(lease, false);
            self.offer();
        } else {
            // The lease was taken back while the result was being written.
            self.actions.push_back(Action::Remove(lease));
        }
        self.leave_if_done();
    }

    /// Records that the output of a unit cannot be stored, so its attempt has failed.
    pub(crate) fn on_store_failed(&mut self, lease: Lease, failure: Failure) {
        if self.units.remove(&lease).is_some() {
            self.fail(lease, failure);
        }
        self.leave_if_done();
    }

    /// Records that a unit was taken back from its device before it began.
    pub(crate) fn on_withdrawn(&mut self, lease: Lease) {
        if self.units.remove(&lease).is_some() {
            self.give_back(vec![lease]);
        }
        self.leave_if_done();
    }

    /// Records that a result was not delivered although there is a session. [`Self::offer_again`]
    /// tries again.
    pub(crate) fn on_offer_failed(&mut self, lease: Lease) {
        if let Some(offered) = self.finished.get_mut(&lease) {
            *offered = false;
        }
    }

    /// Records that a result in the outbox cannot be read. The result and its unit are lost.
    pub(crate) fn on_result_lost(&mut self, lease: Lease, failure: Failure) {
        self.forget_result(lease);
        self.fail(lease, failure);
        self.leave_if_done();
    }

    /// Offers results that were not offered in this session, or not delivered. The caller repeats
    /// this from time to time.
    pub(crate) fn offer_again(&mut self) {
        self.offer();
    }

    /// Drains the node: it takes no new work, returns units that have not begun, finishes the
    /// others, and leaves when all results are acknowledged.
    pub(crate) fn drain(&mut self) {
        if self.draining {
            return;
        }
        self.draining = true;
        if self.connected {
            self.send(NodeToCoordinator::Draining);
        }
        self.return_unbegun();
        self.pump();
        self.leave_if_done();
    }

    /// An operator has drained the node, or given it work again. It stays, and hands back what it
    /// has not begun. That it gets no new work is the coordinator's doing.
    fn on_drained(&mut self, drained: bool) {
        self.drained = drained;
        if drained {
            self.return_unbegun();
        }
    }

    /// Gives back the units that have not begun.
    fn return_unbegun(&mut self) {
        let mut returned = Vec::new();
        for (lease, unit) in &self.units {
            match unit.state {
                UnitState::Waiting => returned.push(*lease),
                UnitState::Given { .. } => self.actions.push_back(Action::Withdraw(*lease)),
                UnitState::Storing => {}
            }
        }
        for lease in &returned {
            self.units.remove(lease);
        }
        self.give_back(returned);
    }

    /// Hands in: takes no new work, returns units that have not begun, ends the others at the next
    /// sample, hands these samples in, and leaves when they are acknowledged.
    pub(crate) fn hand_in(&mut self) {
        self.drain();
        let begun =
            self.units.iter().filter(|(_, unit)| matches!(unit.state, UnitState::Given { .. }));
        self.actions.extend(begun.map(|(lease, _)| Action::Cut(*lease)));
    }

    /// Takes no new work and returns every unit, begun or not, so that another node can begin it at
    /// once. Results in the outbox stay there for the next start.
    pub(crate) fn give_up(&mut self) {
        self.drain();
        let units = std::mem::take(&mut self.units);
        for (lease, unit) in &units {
            if matches!(unit.state, UnitState::Given { .. }) {
                self.actions.push_back(Action::Cancel(*lease));
            }
        }
        self.give_back(units.into_keys().collect());
    }

    /// Requests the frames that waiting units need, and gives units with a prepared frame to
    /// devices that have room.
    fn pump(&mut self) {
        self.look_at_frames();
        let mut kept = VecDeque::new();
        while let Some(lease) = self.waiting.pop_front() {
            let Some(unit) = self.units.get(&lease).filter(|unit| unit.state == UnitState::Waiting)
            else {
                continue;
            };
            if !self.start(lease, unit.assignment) {
                kept.push_back(lease);
            }
        }
        self.waiting = kept;
    }

    /// Starts a unit. Returns true if a device has it now.
    fn start(&mut self, lease: Lease, assignment: Assignment) -> bool {
        let Some(Ok(spec)) = self.jobs.get(&assignment.job).cloned() else { return false };
        let frame = key(&assignment);
        match self.frames.get(&frame) {
            Some(Frame::Ready(handle)) => {
                let Some(device) = self.device_with_room(frame.0, &spec) else { return false };
                let action = Action::Start { device, assignment, spec, frame: handle.clone() };
                self.actions.push_back(action);
                self.devices[device].given += 1;
                self.working.insert(frame);
                if let Some(unit) = self.units.get_mut(&lease) {
                    unit.state = UnitState::Given { device };
                }
                true
            }
            Some(Frame::Asked) => false,
            Some(Frame::Postponed) | None => {
                self.request(&assignment, spec);
                false
            }
        }
    }

    /// Returns the device with room that would finish another unit first. A slow device gets none
    /// if a faster one would finish all remaining units before it, because the end of a frame waits
    /// for the last unit.
    fn device_with_room(&self, job: JobId, kind: &JobKind) -> Option<usize> {
        let usable = || self.devices.iter().enumerate().filter(|(_, device)| device.suits(kind));
        let fits = |index: usize| !self.too_small.contains(&(job, index));
        // If it fits on no device, any of them may report so again, because the coordinator may not
        // know yet.
        let fits_some = usable().any(|(index, _)| fits(index));
        let usable = || usable().filter(|(index, _)| !fits_some || fits(*index));
        let paces: Vec<Pace> = usable().map(|(_, device)| device.pace).collect();
        let room = |device: &Device| {
            device.given < device.pace.depth_among(&paces, self.ahead.hold) as usize
        };
        let (index, best) = usable()
            .filter(|(_, device)| room(device))
            .min_by_key(|(_, device)| device.pace.time_for(device.given + 1))?;
        // The coordinator fills the node up as long as it has work. Fewer units than requested
        // means that the work is ending.
        let ending = self.units.len() < self.capacity() as usize;
        let left = self.waiting.len() + 1;
        let sooner = |device: &Device| {
            device.pace.is_known()
                && device.pace.time_for(device.given + left) < best.pace.time_for(best.given + 1)
        };
        if ending && usable().any(|(other, device)| other != index && sooner(device)) {
            return None;
        }
        Some(index)
    }

    /// Ends a unit that is not wanted here any more. A result that is already in the outbox stays
    /// until the coordinator has seen it.
    fn stop_unit(&mut self, lease: Lease) {
        if let Some(Unit { state: UnitState::Given { .. }, .. }) = self.units.remove(&lease) {
            self.actions.push_back(Action::Cancel(lease));
        }
    }

    fn forget_result(&mut self, lease: Lease) {
        if self.finished.remove(&lease).is_some() {
            self.actions.push_back(Action::Remove(lease));
        }
    }

    fn offer(&mut self) {
        if !self.connected {
            return;
        }
        for (lease, offered) in &mut self.finished {
            if !std::mem::replace(offered, true) {
                self.actions.push_back(Action::Offer(*lease));
            }
        }
    }

    fn fail(&mut self, lease: Lease, failure: Failure) {
        if self.connected {
            self.send(NodeToCoordinator::Failed { lease, failure });
        } else {
            self.untold.insert(lease, failure);
        }
    }

    /// Returns leases. Without a session nothing is sent, because the next join does not name these
    /// leases.
    fn give_back(&mut self, leases: Vec<Lease>) {
        if self.connected {
            for leases in leases.chunks(LEASES_MAX) {
                self.send(NodeToCoordinator::Returned { leases: leases.to_vec() });
            }
        }
    }

    fn tell_capacity(&mut self) {
        let capacity = self.capacity();
        if self.connected && capacity != self.capacity_told {
            self.capacity_told = capacity;
            self.send(NodeToCoordinator::Capacity { units: capacity });
        }
    }

    fn send(&mut self, message: NodeToCoordinator) {
        self.actions.push_back(Action::Send(message));
    }

    fn leave_if_done(&mut self) {
        let empty = self.units.is_empty() && self.finished.is_empty() && self.untold.is_empty();
        if self.draining && empty && !self.left {
            self.left = true;
            self.actions.push_back(Action::Leave);
        }
    }
}

fn key(assignment: &Assignment) -> FrameKey {
    (assignment.job, assignment.frame)
}
