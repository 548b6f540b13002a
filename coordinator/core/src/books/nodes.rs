//! Moves of nodes: heard, joined, gone, and what their results say of them.

use super::Books;
use crate::input::{Arrived, SessionId};
use crate::nodes::roster::{Node, Presence};
use crate::schedule::cells::Layout;
use crate::schedule::rates::Taken;
use crate::state::job::Job;
use tessera_protocol::ids::{NodeId, UnitKey};

impl Books {
    /// Returns the node of a session, and notes that it was heard; None if the session is over.
    pub(crate) fn heard_from(&mut self, session: SessionId) -> Option<NodeId> {
        let id = self.roster.node_of(session)?;
        match self.roster.get_mut(id) {
            Some(node) => node.note_heard(self.now),
            None => self.fault("a session belongs to an unknown node"),
        }
        Some(id)
    }

    /// Notes that a node works: it is not only heard.
    pub(crate) fn note_active(&mut self, id: NodeId) {
        let now = self.now;
        match self.roster.get_mut(id) {
            Some(node) => node.note_active(now),
            None => self.fault("a session belongs to an unknown node"),
        }
    }

    /// A node, to be changed by its own methods.
    pub(crate) fn node_mut(&mut self, id: NodeId) -> Option<&mut Node> {
        self.roster.get_mut(id)
    }

    /// Adds a node under its session. Its former session, if any, is forgotten.
    pub(crate) fn join(&mut self, id: NodeId, session: SessionId, node: Node) {
        self.roster.join(id, session, node);
    }

    /// Forgets the session of a node, which is then away or lost.
    pub(crate) fn leave(&mut self, id: NodeId, presence: Presence) {
        self.roster.leave(id, presence);
    }

    /// Forgets a node that has neither a session nor leases.
    pub(crate) fn forget_node(&mut self, id: NodeId) {
        self.roster.remove(id);
    }

    /// Returns the name of a node that is known or was suspected; otherwise its id.
    pub(crate) fn name_of(&self, node: NodeId) -> String {
        let listed = self.farm.register().get(node).map(|entry| entry.name.as_str());
        let suspect = || Some(self.farm.trust().suspect_of(node)?.name.as_str());
        listed.or_else(suspect).map_or_else(|| node.to_string(), str::to_owned)
    }

    /// Learns the node's speed and the job's memory from a result.
    pub(crate) fn note_result(&mut self, node: NodeId, result: &Arrived) {
        let UnitKey { job: id, unit, .. } = result.lease.unit;
        let Some(job) = self.farm.job(id) else {
            return self.fault("a result is taken, but its job is unknown");
        };
        let camera_samples = job.grid().camera_samples(unit, result.shape.size());
        // A unit cannot have needed more memory than its device has. If a node claims that, the
        // number is ignored.
        let known =
            self.roster.get(node).and_then(|node| node.devices().get(usize::from(result.device)));
        let has = known.map_or(0, |device| device.memory_bytes);
        let device_bytes = if result.device_bytes <= has { result.device_bytes } else { 0 };
        if let Some(queue) = self.queues.get_mut(&id) {
            queue.note_begun();
            let estimates = queue.estimates_mut();
            let needed = estimates.measured().need(job.spec().device_bytes);
            if job.grid().is_finishing(unit) {
                estimates.note_finished(job.grid().finished_pixels(unit), result.device_micros);
            } else {
                let taken = Taken {
                    device: result.device,
                    samples: camera_samples,
                    micros: result.device_micros,
                    cell: Layout::of(&job.grid()).cell_of(unit),
                    at: self.now,
                };
                estimates.note_result(node, &taken);
                estimates.note_need(device_bytes);
            }
            if estimates.measured().need(job.spec().device_bytes) != needed {
                self.note_wants(id);
            }
        }
        if let Some(node) = self.roster.get_mut(node) {
            node.note_commit(camera_samples, self.now);
            node.passed_mut().forget(id);
        }
    }

    /// Returns the work of a unit's lease now in camera samples or indices. That of a finishing
    /// unit is expected by the device times of such units so far.
    pub(crate) fn work_of(&self, job: &Job, unit: UnitKey) -> u64 {
        if !job.grid().is_finishing(unit.unit) {
            return job.lease_samples(unit);
        }
        let pixels = job.grid().finished_pixels(unit.unit);
        self.queue(job.id()).map_or(pixels, |queue| queue.estimates().work_of_pixels(pixels))
    }
}
