//! What a node does about its leases, as the node's own agent does: hold, render, store, offer,
//! forget.

use crate::checks::violation::{Checked, violated};
use crate::faults::Fault;
use crate::model::film::Film;
use crate::model::finishing::piece_sum;
use crate::model::parts::is_within;
use crate::model::tasks::task_of;
use crate::node::{NodeProcess, Unit, UnitState};
use crate::situations::sometimes;
use crate::world::World;
use crate::world::events::NodeEvent;
use crate::world::plan::NodePlan;
use crate::world::random::mix;
use tessera_protocol::compute::ComputeSpec;
use tessera_protocol::ids::{JobId, Lease, UnitKey};
use tessera_protocol::job::JobKind;
use tessera_protocol::node::{
    Assignment, CoordinatorToNode, Failure, LimitReached, MemoryShortage, NodeLimit,
    NodeToCoordinator, Task,
};

/// Old leases that a liar remembers.
const PAST_MAX: usize = 64;
/// So long after the healing forgers still forge, milliseconds.
const FORGED_AFTER: u64 = 60_000;

impl World {
    pub(crate) fn on_node_message(&mut self, node: usize, message: CoordinatorToNode) -> Checked {
        match message {
            CoordinatorToNode::Job { job, spec } => {
                let kind = spec.check().map(|spec| Box::new(spec.kind));
                let kind = kind.or_else(|error| violated(format!("job {job}: {error}")))?;
                let Some(process) = &mut self.nodes[node].process else { return Ok(()) };
                // What a kernel leaves on a device is not for the jobs of another owner.
                if matches!(*kind, JobKind::Compute(_)) && !process.owned.contains(&job) {
                    return violated(format!("compute job {job} is described without its owner"));
                }
                process.jobs.insert(job, kind);
                if !process.told.insert(job) {
                    return violated(format!("job {job} is described twice in a session"));
                }
            }
            CoordinatorToNode::Owner { job, .. } => {
                let Some(process) = &mut self.nodes[node].process else { return Ok(()) };
                process.owned.insert(job);
            }
            CoordinatorToNode::Work(assignments) => self.on_work(node, assignments)?,
            CoordinatorToNode::Committed { lease } | CoordinatorToNode::Unwanted { lease } => {
                self.stop_unit(node, lease);
                self.nodes[node].outbox.remove(&lease);
            }
            CoordinatorToNode::Revoke { leases } => {
                leases.into_iter().for_each(|lease| self.stop_unit(node, lease));
            }
            CoordinatorToNode::GiveBack { leases } => self.give_back(node, leases),
            CoordinatorToNode::Forget { job } => self.forget(node, job),
            CoordinatorToNode::Leave => self.drain_node(node),
            CoordinatorToNode::Drained { drained: true } => self.rest_node(node),
            CoordinatorToNode::Drained { drained: false } => {}
            // Of live tiles, of which the core knows nothing.
            CoordinatorToNode::Watched { watched } => {
                return violated(format!(
                    "the core says that {} frames are watched",
                    watched.len()
                ));
            }
            // Of where results and files are kept, of which the core knows nothing either.
            CoordinatorToNode::StoreResults | CoordinatorToNode::MakeFiles { .. } => {
                return violated("the core says where results are kept");
            }
            // Of second processes of a node, which the shell keeps from the core.
            CoordinatorToNode::Notice { text } => {
                return violated(format!("{} is told: {text}", self.nodes[node].plan.name));
            }
            CoordinatorToNode::Refused { reason } => {
                return violated(format!("{} is refused: {reason}", self.nodes[node].plan.name));
            }
        }
        self.pump(node);
        self.leave_if_done(node);
        Ok(())
    }

    /// What has not begun goes back; a node that has begun everything says nothing.
    fn give_back(&mut self, node: usize, mut leases: Vec<Lease>) {
        let Some(process) = &mut self.nodes[node].process else { return };
        leases.retain(|lease| {
            process.units.get(lease).is_some_and(|unit| unit.state == UnitState::Waiting)
        });
        process.units.retain(|lease, _| !leases.contains(lease));
        sometimes!(self, RoomMade, !leases.is_empty());
        sometimes!(self, RoomTooLate, leases.is_empty());
        if !leases.is_empty() {
            self.control(node, NodeToCoordinator::Returned { leases });
        }
    }

    fn on_work(&mut self, node: usize, assignments: Vec<Assignment>) -> Checked {
        let mut returned = Vec::new();
        for assignment in assignments {
            let lease = assignment.lease();
            self.remember(node, lease);
            if self.nodes[node].outbox.contains_key(&lease) {
                return violated(format!("{lease} is given to a node that has its result"));
            }
            let predicted = self.clients.jobs.iter().find(|known| known.plan.id == assignment.job);
            let pool = predicted.and_then(|known| known.plan.spec.pool.as_deref());
            if pool.is_some() && pool != self.nodes[node].plan.pool {
                return violated(format!(
                    "{lease} of a job for pool {pool:?} is given to a node of another"
                ));
            }
            let least =
                predicted.map_or(0, |known| known.plan.spec.device_bytes.min(known.plan.needs));
            if least > self.nodes[node].plan.memory {
                return violated(format!(
                    "{lease} is given to a node whose devices cannot hold it"
                ));
            }
            let Some(process) = &mut self.nodes[node].process else { return Ok(()) };
            let told = process.told.contains(&assignment.job);
            let Some(kind) = process.jobs.get(&assignment.job).filter(|_| told) else {
                return violated(format!(
                    "{lease} is given to a node that was not told of its job"
                ));
            };
            let kind = kind.clone();
            self.fetch_inputs(assignment.job, &kind)?;
            if !task_of(&kind, lease.unit).is_some_and(|whole| is_within(assignment.task, whole)) {
                return violated(format!("{assignment:?} is not what its job says"));
            }
            let finishes = matches!(assignment.task, Task::Finish(_));
            if finishes && !self.nodes[node].plan.finishes {
                return violated(format!("{lease} is given to a node that finishes no frames"));
            }
            let Some(process) = &mut self.nodes[node].process else { return Ok(()) };
            if process.draining {
                returned.push(lease);
            } else {
                process.units.insert(
                    lease,
                    Unit { assignment, state: UnitState::Waiting, done: 0, read: 0 },
                );
                process.waiting.push_back(lease);
            }
        }
        if !returned.is_empty() {
            self.control(node, NodeToCoordinator::Returned { leases: returned });
        }
        Ok(())
    }

    /// Bytes that units of a job really need.
    pub(crate) fn needs(&self, job: JobId) -> u64 {
        let plan = self.clients.jobs.iter().find(|known| known.plan.id == job);
        plan.map_or(0, |known| known.plan.needs)
    }

    /// A device is taken out of work; what waits on a node without any other goes back.
    pub(crate) fn quarantine(&mut self, node: usize) {
        let all = self.nodes[node].plan.devices as usize;
        let device = self.random.index(all) as u32;
        let Some(process) = &mut self.nodes[node].process else { return };
        if process.out.insert(device, false).is_some() {
            return;
        }
        let waits =
            |(lease, unit): (&Lease, &Unit)| (unit.state == UnitState::Waiting).then_some(*lease);
        let all_out = process.out.len() == all;
        let returned: Vec<Lease> =
            process.units.iter().filter_map(waits).filter(|_| all_out).collect();
        process.units.retain(|_, unit| !all_out || unit.state != UnitState::Waiting);
        let devices = self.devices_of(node);
        self.control(node, NodeToCoordinator::Devices(devices));
        if !returned.is_empty() {
            self.control(node, NodeToCoordinator::Returned { leases: returned });
        }
        let out = self.random.between(1_000, 20_000);
        self.node_after(node, out, NodeEvent::DeviceOn(device));
    }

    /// A device that was out is tested, and then ready.
    pub(crate) fn on_device_on(&mut self, node: usize, device: u32) {
        let Some(process) = &mut self.nodes[node].process else { return };
        match process.out.get_mut(&device) {
            Some(tested @ false) => {
                *tested = true;
                let takes = self.random.between(100, 3_000);
                self.node_after(node, takes, NodeEvent::DeviceOn(device));
            }
            _ => {
                process.out.remove(&device);
                self.tally.count(Fault::DeviceTested);
            }
        }
        let devices = self.devices_of(node);
        self.control(node, NodeToCoordinator::Devices(devices));
        self.pump(node);
    }

    fn remember(&mut self, node: usize, lease: Lease) {
        let past = &mut self.nodes[node].past;
        if past.len() == PAST_MAX {
            past.remove(0);
        }
        past.push(lease);
    }

    pub(crate) fn stop_unit(&mut self, node: usize, lease: Lease) {
        let Some(process) = &mut self.nodes[node].process else { return };
        if let Some(Unit { state: UnitState::Running(run), .. }) = process.units.remove(&lease) {
            process.running.remove(&run);
        }
    }

    fn forget(&mut self, node: usize, job: JobId) {
        let Some(process) = &mut self.nodes[node].process else { return };
        process.jobs.remove(&job);
        process.told.remove(&job);
        process.owned.remove(&job);
        let held: Vec<Lease> =
            process.units.keys().filter(|lease| lease.unit.job == job).copied().collect();
        held.into_iter().for_each(|lease| self.stop_unit(node, lease));
        self.nodes[node].outbox.retain(|lease, _| lease.unit.job != job);
    }

    /// Gives waiting units to devices that have room.
    pub(crate) fn pump(&mut self, node: usize) {
        loop {
            let devices = self.nodes[node].plan.devices as usize;
            let Some(process) = &mut self.nodes[node].process else { return };
            let devices = devices - process.out.len();
            if process.running.len() >= devices || self.now < process.idle_until {
                return;
            }
            let Some(lease) = process.waiting.pop_front() else { return };
            let Some(unit) =
                process.units.get_mut(&lease).filter(|unit| unit.state == UnitState::Waiting)
            else {
                continue;
            };
            let run = process.next_run;
            process.next_run += 1;
            unit.state = UnitState::Running(run);
            if matches!(unit.assignment.task, Task::Finish(_)) {
                unit.read = self.ledger.read_for(lease.unit, &self.disk);
                if let Some(problem) = self.read_problem(node, lease) {
                    self.fail_unit(node, lease, Failure::Asset(problem));
                    continue;
                }
            }
            let Some(process) = &mut self.nodes[node].process else { return };
            process.running.insert(run, lease);
            let scene = process.jobs.get(&lease.unit.job).map(|kind| kind.data_hash());
            let fresh = scene.filter(|scene| process.scenes.insert(*scene));
            let stuck = process.stuck_until.saturating_sub(self.now);
            if let Some(scene) = fresh {
                self.control(node, NodeToCoordinator::Scene { scene, held: true });
            }
            let mean = self.nodes[node].plan.unit_millis * self.nodes[node].slowness;
            let failing = self.now < self.nodes[node].fails_until;
            let mean = if failing { mean / 8 } else { mean };
            let millis = self.random.between(mean / 2, mean * 2) + stuck;
            self.node_after(node, millis, NodeEvent::Rendered(run));
        }
    }

    pub(crate) fn on_rendered(&mut self, node: usize, run: u64) {
        let Some(process) = &mut self.nodes[node].process else { return };
        if process.stuck_until > self.now {
            let wait = process.stuck_until - self.now;
            return self.node_after(node, wait, NodeEvent::Rendered(run));
        }
        // A run that was stopped has no lease any more.
        let Some(lease) = process.running.remove(&run) else { return };
        match self.failure(node, lease) {
            Some(failure) => self.fail_unit(node, lease, failure),
            None => {
                if let Some(unit) =
                    self.nodes[node].process.as_mut().and_then(|p| p.units.get_mut(&lease))
                {
                    unit.state = UnitState::Storing;
                }
                let delay = self.random.between(1, 40);
                self.node_after(node, delay, NodeEvent::Stored(lease));
            }
        }
        self.pump(node);
        self.leave_if_done(node);
    }

    fn failure(&mut self, node: usize, lease: Lease) -> Option<Failure> {
        let text = || "simulated".to_owned();
        let memory = self.nodes[node].plan.memory;
        let needs = self.needs(lease.unit.job);
        if needs > memory {
            self.tally.count(Fault::MemoryTooSmall);
            self.shortages.insert(lease.unit);
            // Some devices cannot tell how much it would have been.
            let needed = if self.random.permille(500) { needs } else { 0 };
            let shortage = MemoryShortage { device: 0, needed, available: memory, reason: text() };
            return Some(Failure::OutOfMemory(shortage));
        }
        let fails = self.now < self.nodes[node].fails_until;
        // Of nodes that fail for a while, a third is too small, and a third can prepare nothing.
        match self.nodes[node].fails_until % 3 {
            0 if fails && !self.healed => {
                self.tally.count(Fault::SmallNode);
                return Some(self.limit_failure());
            }
            1 if fails && !self.healed => {
                self.tally.count(Fault::CannotPrepare);
                return Some(Failure::Scene(text()));
            }
            _ => {}
        }
        if (self.nodes[node].plan.bad || fails) && !self.healed {
            self.tally.count(Fault::BadNode);
            return Some(Failure::Device(text()));
        }
        if self.nodes[node].plan.unpreparing && !self.healed {
            self.tally.count(Fault::CannotPrepare);
            return Some(Failure::Scene(text()));
        }
        if self.nodes[node].plan.small && lease.unit.job.0.as_u128().is_multiple_of(2) {
            self.tally.count(Fault::SmallNode);
            return Some(self.limit_failure());
        }
        if self.is_poisoned(lease.unit) {
            return Some(Failure::Worker(text()));
        }
        if self.files_gone.get(&lease.unit.job).is_some_and(|until| self.now < *until) {
            return Some(Failure::Asset(text()));
        }
        if self.chance(Fault::FailScene) {
            Some(Failure::Scene(text()))
        } else if self.chance(Fault::FailLimit) {
            Some(self.limit_failure())
        } else if self.chance(Fault::FailAsset) {
            Some(Failure::Asset(text()))
        } else if self.chance(Fault::FailDevice) {
            Some(Failure::Device(text()))
        } else if self.chance(Fault::FailMemory) {
            let shortage =
                MemoryShortage { device: 0, needed: 0, available: memory / 2, reason: text() };
            Some(Failure::OutOfMemory(shortage))
        } else if self.chance(Fault::FailWorker) {
            Some(Failure::Worker(text()))
        } else if self.chance(Fault::FailTimeout) {
            Some(Failure::TimedOut(text()))
        } else {
            None
        }
    }

    /// Some limit of a node is exceeded.
    fn limit_failure(&mut self) -> Failure {
        let limits =
            [NodeLimit::SceneMemory, NodeLimit::SceneTime, NodeLimit::Memory, NodeLimit::Disk];
        let limit = limits[self.random.index(4)];
        Failure::Limit(LimitReached { limit, reason: "simulated".to_owned() })
    }

    /// Nobody can render the unit now, whatever he tries.
    fn is_poisoned(&mut self, unit: UnitKey) -> bool {
        let is_piece = self.ledger.believed.is_piece(unit);
        if self.chance(Fault::PoisonUnit) || is_piece && self.chance(Fault::PoisonPiece) {
            let until = self.now + self.random.between(5_000, 30_000);
            self.poisoned.insert(unit, until);
        }
        self.poisoned.get(&unit).is_some_and(|until| self.now < *until)
    }

    fn fail_unit(&mut self, node: usize, lease: Lease, failure: Failure) {
        let Some(process) = &mut self.nodes[node].process else { return };
        process.units.remove(&lease);
        match process.link {
            Some(_) => self.control(node, NodeToCoordinator::Failed { lease, failure }),
            None => {
                process.untold.insert(lease, failure);
            }
        }
    }

    pub(crate) fn on_stored(&mut self, node: usize, lease: Lease) -> Checked {
        let fingerprint = self.nodes[node].fingerprint;
        let Some(process) = &mut self.nodes[node].process else { return Ok(()) };
        // One that was taken away meanwhile is not wanted.
        let Some(unit) = process.units.remove(&lease) else { return Ok(()) };
        let Some(kind) = process.jobs.get(&lease.unit.job) else { return Ok(()) };
        let Some(mut film) = Film::of(lease.unit, fingerprint, kind, unit.assignment.task) else {
            return Ok(());
        };
        let is_piece = matches!(unit.assignment.task, Task::Finish(_));
        if is_piece {
            film.sum = piece_sum(lease.unit, unit.read);
        }
        let of_user = kind.compute().is_some_and(ComputeSpec::runs_users_kernel);
        let NodePlan { forger, steady, .. } = self.nodes[node].plan;
        if forger && steady && of_user {
            // It depends on the unit alone.
            let drawn = mix(film.sum);
            if drawn % 1000 < 400 {
                film.sum ^= 1 << ((drawn >> 10) % 64);
                self.tally.count(Fault::SteadyWrong);
            }
        } else if forger && (is_piece || node % 2 == 1) && self.forges() {
            // Half of them lie about nothing else, so that they are not found out before.
            film.sum ^= 1 << self.random.between(0, 63);
        }
        if self.ledger.unsteady.contains(&lease.unit.job) {
            film.sum = film.sum.wrapping_add(self.random.between(0, 2));
        }
        self.nodes[node].outbox.insert(lease, film);
        match self.stores(node) {
            true => self.store(node, &[lease])?,
            false => self.offer(node, lease)?,
        }
        self.leave_if_done(node);
        Ok(())
    }

    /// Rolls for a lie. Much is rendered only after the healing, so it goes on for a while then.
    fn forges(&mut self) -> bool {
        let lies = self.now < self.plan.heal_at + FORGED_AFTER
            && self.random.permille(self.plan.rate(Fault::WrongSums));
        if lies {
            self.tally.count(Fault::WrongSums);
        }
        lies
    }

    /// Gives back what has not begun, and stays.
    fn rest_node(&mut self, node: usize) {
        let Some(process) = &mut self.nodes[node].process else { return };
        let waiting =
            |(lease, unit): (&Lease, &Unit)| (unit.state == UnitState::Waiting).then_some(*lease);
        let leases: Vec<Lease> = process.units.iter().filter_map(waiting).collect();
        process.units.retain(|_, unit| unit.state != UnitState::Waiting);
        if !leases.is_empty() {
            self.control(node, NodeToCoordinator::Returned { leases });
        }
    }

    /// Takes no new work, gives back what has not begun, and leaves when the rest is acknowledged.
    pub(crate) fn drain_node(&mut self, node: usize) {
        let Some(process) = self.nodes[node].process.as_mut().filter(|process| !process.draining)
        else {
            return;
        };
        process.draining = true;
        let waiting =
            |(lease, unit): (&Lease, &Unit)| (unit.state == UnitState::Waiting).then_some(*lease);
        let returned: Vec<Lease> = process.units.iter().filter_map(waiting).collect();
        process.units.retain(|_, unit| unit.state != UnitState::Waiting);
        self.control(node, NodeToCoordinator::Draining);
        if !returned.is_empty() {
            self.control(node, NodeToCoordinator::Returned { leases: returned });
        }
        self.leave_if_done(node);
    }

    pub(crate) fn leave_if_done(&mut self, node: usize) {
        let idle = |process: &NodeProcess| {
            process.draining && process.units.is_empty() && process.untold.is_empty()
        };
        let done = self.nodes[node].process.as_ref().is_some_and(idle)
            && self.nodes[node].outbox.is_empty();
        if done {
            if let Some(link) = self.nodes[node].process.as_ref().and_then(|known| known.link) {
                self.say_goodbye(link);
            }
            let away = self.random.between(2_000, 15_000);
            self.end_node(node, away);
        }
    }
}
