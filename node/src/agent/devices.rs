//! The devices of the node: which of them take units, how many the node wants to hold for them, and
//! which gets the next.

use super::{Agent, Device, Pace, UnitState};
use std::collections::VecDeque;
use tessera_protocol::device::{DeviceInfo, DeviceKind};
use tessera_protocol::limits::LEASES_MAX;
use tessera_protocol::node::{NodeToCoordinator, Task};
use tessera_protocol::{JobId, JobKind, Lease};

/// Most finishing units that are held beside what the devices have: one is made, and the inputs of
/// the next are fetched.
const PIECES_MAX: usize = 2;

impl<F: Clone> Agent<F> {
    /// Returns the number of units that this node wants to hold now.
    pub(crate) fn capacity(&self) -> u32 {
        if self.draining {
            return 0;
        }
        let paces: Vec<Pace> =
            self.devices.iter().filter(|of| of.usable).map(|of| of.pace).collect();
        let each = paces.iter().map(|pace| pace.depth_among(&paces, self.ahead.span()));
        // Finishing units do not take the places of those for the devices.
        let pieces = self.pieces_held().min(PIECES_MAX) as u32;
        (each.sum::<u32>() + pieces).min(LEASES_MAX as u32)
    }

    /// Returns the number of finishing units that are waiting or given to devices.
    fn pieces_held(&self) -> usize {
        let pieces = self.units.values().filter(|unit| {
            unit.state != UnitState::Storing && matches!(unit.assignment.task, Task::Finish(_))
        });
        pieces.count()
    }

    /// Returns the device that a finishing unit counts for; None if the node finishes another one.
    /// They are done one after another, each by all threads for finishing, beside what a device
    /// renders. Their device times say nothing of its pace. One that is denoised counts for a GPU,
    /// which may do that for the threads; others for the CPU.
    pub(super) fn device_for_piece(&self, job: &JobKind) -> Option<usize> {
        let kind = match job.render().is_some_and(|spec| spec.denoise) {
            true => DeviceKind::Cuda,
            false => DeviceKind::Cpu,
        };
        let is_of = |device: &Device| device.info.as_ref().is_some_and(|info| info.kind == kind);
        let usable = self.devices.iter().enumerate().filter(|(_, device)| device.usable);
        let first = usable.min_by_key(|(_, device)| !is_of(device));
        first.map(|(index, _)| index).filter(|_| self.finishing.is_empty())
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

    /// Returns whether a device takes units of this job now. For a job that was never described,
    /// any device that takes units counts.
    pub(super) fn suited(&self, job: JobId) -> bool {
        let kind = self.jobs.get(&job).and_then(|known| known.as_ref().ok());
        self.devices.iter().any(|device| kind.map_or(device.usable, |kind| device.suits(kind)))
    }

    /// Returns how many tiles and chunks each device has.
    pub(super) fn given(&self) -> Vec<usize> {
        self.devices.iter().map(|device| device.given).collect()
    }

    /// Returns the device with room that would finish another unit first, if each has so many. A
    /// slow device gets none if a faster one would finish all units that are `left` before it,
    /// because the end of a frame waits for the last unit.
    pub(super) fn device_with_room(
        &self,
        (job, kind): (JobId, &JobKind),
        given: &[usize],
        left: usize,
    ) -> Option<usize> {
        let usable = || self.devices.iter().enumerate().filter(|(_, device)| device.suits(kind));
        let fits = |index: usize| !self.too_small.contains(&(job, index));
        // If it fits on no device, any of them may report so again, because the coordinator may not
        // know yet.
        let fits_some = usable().any(|(index, _)| fits(index));
        let usable = || usable().filter(|(index, _)| !fits_some || fits(*index));
        let paces: Vec<Pace> = usable().map(|(_, device)| device.pace).collect();
        let room = |(index, device): &(usize, &Device)| {
            given[*index] < device.pace.depth_among(&paces, self.ahead.hold) as usize
        };
        let (index, best) = usable()
            .filter(room)
            .min_by_key(|(index, device)| device.pace.time_for(given[*index] + 1))?;
        // The coordinator fills the node up as long as it has work. Fewer units than requested
        // means that the work is ending.
        let ending = self.units.len() < self.capacity() as usize;
        let sooner = |(other, device): (usize, &Device)| {
            device.pace.is_known()
                && device.pace.time_for(given[other] + left) < best.pace.time_for(given[index] + 1)
        };
        if ending && usable().any(|other| other.0 != index && sooner(other)) {
            return None;
        }
        Some(index)
    }

    pub(super) fn tell_capacity(&mut self) {
        let capacity = self.capacity();
        if self.connected && capacity != self.capacity_told {
            self.capacity_told = capacity;
            self.send(NodeToCoordinator::Capacity { units: capacity });
        }
    }
}
