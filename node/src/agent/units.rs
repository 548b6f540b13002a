//! The units that the node holds: taken from the coordinator, given to devices with their frames,
//! ended, and given back.

use super::ahead::Frame;
use super::{Action, Agent, FrameKey, Rendered, Unit, UnitState};
use std::collections::VecDeque;
use std::time::Duration;
use tessera_protocol::Lease;
use tessera_protocol::limits::LEASES_MAX;
use tessera_protocol::node::{Assignment, Failure, NodeToCoordinator};

/// Most leases that are held, whatever the coordinator sends: twice the most that is ever
/// requested.
const HELD_MAX: usize = 2 * LEASES_MAX;

impl<F: Clone> Agent<F> {
    pub(super) fn on_work(&mut self, assignments: Vec<Assignment>) {
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
                let (state, waited) = (UnitState::Waiting, Duration::ZERO);
                self.units.insert(lease, Unit { assignment, state, waited });
                self.waiting.push_back(lease);
            }
        }
        self.give_back(returned);
        self.offer();
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

    /// Returns those of these units that have not begun. Whether a unit that a device was given has
    /// begun is known only to the device.
    pub(super) fn on_wanted_back(&mut self, leases: Vec<Lease>) {
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
                    unit.state == UnitState::Waiting && FrameKey::of(&unit.assignment) == frame
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
        let was_piece = self.finishing.remove(&lease);
        if !was_piece {
            self.devices[device].given -= 1;
        }
        let wanted =
            self.units.get_mut(&lease).filter(|unit| matches!(unit.state, UnitState::Given { .. }));
        let mut store = false;
        match (wanted, rendered) {
            (Some(unit), Rendered::Done(device_time)) => {
                unit.state = UnitState::Storing;
                if !was_piece {
                    self.devices[device].pace.measure(device_time);
                }
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

    /// Records that a unit was taken back from its device before it began.
    pub(crate) fn on_withdrawn(&mut self, lease: Lease) {
        if self.units.remove(&lease).is_some() {
            self.give_back(vec![lease]);
        }
        self.leave_if_done();
    }

    /// Requests the frames that waiting units need, and gives units with a prepared frame to
    /// devices that have room.
    pub(super) fn pump(&mut self) {
        if !self.draining {
            self.tell_capacity();
        }
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
        let frame = FrameKey::of(&assignment);
        match self.frames.get(&frame) {
            Some(Frame::Ready(handle)) => {
                let device = match frame.is_piece() {
                    true => self.device_for_piece(&spec),
                    false => {
                        let left = self.waiting.len() + 1;
                        self.device_with_room((assignment.job, &spec), &self.given(), left)
                    }
                };
                let Some(device) = device else { return false };
                let action = Action::Start { device, assignment, spec, frame: handle.clone() };
                self.actions.push_back(action);
                match frame.is_piece() {
                    true => drop(self.finishing.insert(lease)),
                    false => self.devices[device].given += 1,
                }
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

    /// Ends a unit that is not wanted here any more. A result that is already in the outbox stays
    /// until the coordinator has seen it.
    pub(super) fn stop_unit(&mut self, lease: Lease) {
        if let Some(Unit { state: UnitState::Given { .. }, .. }) = self.units.remove(&lease) {
            self.actions.push_back(Action::Cancel(lease));
        }
    }

    pub(super) fn fail(&mut self, lease: Lease, failure: Failure) {
        if self.connected {
            self.send(NodeToCoordinator::Failed { lease, failure });
        } else {
            self.untold.insert(lease, failure);
        }
    }

    /// Returns leases. Without a session nothing is sent, because the next join does not name these
    /// leases.
    pub(super) fn give_back(&mut self, leases: Vec<Lease>) {
        if self.connected {
            for leases in leases.chunks(LEASES_MAX) {
                self.send(NodeToCoordinator::Returned { leases: leases.to_vec() });
            }
        }
    }
}
