//! Nodes come, live, drain and go; their leases follow them.

use crate::action::Action;
use crate::core::Core;
use crate::input::{RequestId, SessionId};
use crate::journal::Record;
use crate::nodes::devices::telemetry;
use crate::nodes::roster::{Node, Presence, SCENES_MAX, capacity};
use crate::timers::Timer;
use std::collections::BTreeSet;
use tessera_protocol::client::{RequestError, Response};
use tessera_protocol::device::DeviceTelemetry;
use tessera_protocol::ids::{BlobHash, Epoch, Fingerprint, JobId, Lease, NodeId};
use tessera_protocol::limits::LEASES_MAX;
use tessera_protocol::node::{CoordinatorToNode, Heartbeat, Join};

impl Core {
    /// The node of a session, which is heard now; None for a session that is over.
    pub(crate) fn heard_from(&mut self, session: SessionId) -> Option<NodeId> {
        let id = self.roster.node_of(session)?;
        match self.roster.get_mut(id) {
            Some(node) => node.heard = self.now,
            None => self.fault("a session is of an unknown node"),
        }
        Some(id)
    }

    pub(crate) fn on_joined(
        &mut self,
        session: SessionId,
        join: &Join,
        fingerprint: Fingerprint,
        build: &str,
    ) {
        if self.roster.node_of(session).is_some() {
            return self
                .act(Action::CloseSession { session, reason: "a session joins once".to_owned() });
        }
        let mut node = Node::new(join, fingerprint, build, session, self.now);
        let mut same_process = false;
        if let Some(known) = self.roster.get(join.node) {
            same_process = known.process == join.process;
            node.fitness = known.fitness.clone();
            if same_process {
                node.keep_history(known);
            }
            if let Some(replaced) = known.session() {
                let reason = "the node has opened another session".to_owned();
                self.act(Action::CloseSession { session: replaced, reason });
            }
        }
        self.roster.join(join.node, session, node);
        if !same_process {
            self.on_new_process(join.node);
        }
        self.dirty.mark(join.node);
        self.reconcile(join, same_process);
        self.forget_ended(join.node);
        if self.farm.is_drained(join.node) {
            self.send(session, CoordinatorToNode::Drain);
        }
    }

    /// Jobs of which a node holds a lease now.
    pub fn jobs_leased_to(&self, node: NodeId) -> BTreeSet<JobId> {
        self.leases.of_node(node).map(|(lease, _)| lease.unit.job).collect()
    }

    /// Makes the leases that we keep for a node and those that it names the same.
    fn reconcile(&mut self, join: &Join, same_process: bool) {
        let (running, finished) = (listed(&join.running), listed(&join.finished));
        let named: BTreeSet<Epoch> = running
            .iter()
            .chain(finished)
            .filter(|lease| self.leases.get(**lease).is_some_and(|held| held.node == join.node))
            .map(|lease| lease.epoch)
            .collect();
        let mut unnamed = self.leases.epochs_of(join.node);
        unnamed.retain(|epoch| !named.contains(epoch));
        if same_process {
            // The message that gave them was lost: nobody began them.
            for epoch in unnamed {
                match self.release(epoch) {
                    Some(held) => self.give_back(held.unit, self.now),
                    None => self.fault("a lease of a node is not held"),
                }
            }
        } else {
            self.lose(join.node, &unnamed);
        }
        let mut stale = Vec::new();
        for lease in running {
            if !self.take_back(join.node, *lease) {
                stale.push(*lease);
            }
        }
        if !stale.is_empty() {
            self.tell(join.node, CoordinatorToNode::Revoke { leases: stale });
        }
        for lease in finished {
            if !self.take_back(join.node, *lease) && !self.may_still_come(join.node, *lease) {
                let message = self.refusal(*lease);
                self.tell(join.node, message);
            }
        }
        let jobs: BTreeSet<JobId> =
            running.iter().chain(finished).map(|lease| lease.unit.job).collect();
        if let Some(node) = self.roster.get_mut(join.node) {
            node.jobs_known.extend(jobs);
        }
    }

    /// A node has a result that nobody waits for: of a job that is paused, and would be taken.
    fn may_still_come(&self, node: NodeId, lease: Lease) -> bool {
        self.is_paused(lease.unit.job) && self.is_acceptable(node, lease)
    }

    /// A node names a lease: it is renewed, or taken up again where its result would be accepted.
    /// False: it is of no use.
    fn take_back(&mut self, node: NodeId, lease: Lease) -> bool {
        if self.leases.get(lease).is_some_and(|held| held.node == node) {
            self.leases.renew(lease.epoch, self.now, &self.settings);
            return true;
        }
        let acceptable = !self.is_paused(lease.unit.job) && self.is_acceptable(node, lease);
        if acceptable {
            self.hold(lease, node);
        }
        acceptable
    }

    /// A node that comes back is told of jobs that ended meanwhile.
    fn forget_ended(&mut self, id: NodeId) {
        let mut ended = self.roster.get(id).map(|node| node.jobs_known.clone()).unwrap_or_default();
        ended.retain(|job| !self.is_open(*job));
        for job in ended {
            self.tell(id, CoordinatorToNode::Forget { job });
            if let Some(node) = self.roster.get_mut(id) {
                node.jobs_known.remove(&job);
                node.unable.remove(&job);
            }
        }
    }

    pub(crate) fn on_session_lost(&mut self, session: SessionId) {
        let Some(id) = self.roster.node_of(session) else { return };
        let until = self.now.after(self.settings.grace);
        self.roster.leave(id, Presence::Away(until));
        self.leases.hold_until(id, until, &self.settings);
        self.timers.set(until, Timer::Away(id));
    }

    pub(crate) fn on_heartbeat(&mut self, session: SessionId, heartbeat: &Heartbeat) {
        let Some(id) = self.heard_from(session) else { return };
        let mut stale = Vec::new();
        for lease in listed(&heartbeat.leases) {
            match self.leases.get(*lease) {
                Some(held) if held.node == id => {
                    self.leases.renew(lease.epoch, self.now, &self.settings);
                }
                _ if self.is_committed(*lease) => {}
                _ => stale.push(*lease),
            }
        }
        if !stale.is_empty() {
            self.send(session, CoordinatorToNode::Revoke { leases: stale });
        }
        self.on_progress(id, &heartbeat.progress);
        self.on_telemetry(id, &heartbeat.devices);
    }

    /// Memory that others have given back may make room for what did not fit.
    fn on_telemetry(&mut self, id: NodeId, told: &[DeviceTelemetry]) {
        let Some(node) = self.roster.get_mut(id) else {
            return self.fault("a session is of an unknown node");
        };
        let telemetry = telemetry(told, node.devices.len());
        let room = |all: &[DeviceTelemetry]| -> Vec<(u8, Option<u64>, Option<u64>)> {
            all.iter().map(|one| (one.device, one.memory_free, one.memory_held)).collect()
        };
        let changed = room(&telemetry) != room(&node.telemetry);
        node.telemetry = telemetry;
        match changed {
            true => self.dirty.mark(id),
            false => self.dirty.mark_heard(id),
        }
    }

    pub(crate) fn on_capacity(&mut self, session: SessionId, units: u32) {
        let Some(id) = self.heard_from(session) else { return };
        if let Some(node) = self.roster.get_mut(id) {
            node.capacity = capacity(units);
        }
        self.dirty.mark(id);
    }

    pub(crate) fn on_scene_held(&mut self, session: SessionId, scene: BlobHash, held: bool) {
        let Some(id) = self.heard_from(session) else { return };
        if let Some(node) = self.roster.get_mut(id) {
            if !held {
                node.scenes.remove(&scene);
            } else if node.scenes.len() < SCENES_MAX {
                node.scenes.insert(scene);
            }
        }
    }

    pub(crate) fn on_node_draining(&mut self, session: SessionId) {
        let Some(id) = self.heard_from(session) else { return };
        if let Some(node) = self.roster.get_mut(id) {
            node.leaving = true;
        }
        // What was kept from it in favour of others may now be for them alone.
        self.dirty.mark_all();
    }

    pub(crate) fn on_drain(&mut self, request: RequestId, node: &str, drain: bool) {
        let answer = self.drain(node, drain);
        self.reply(request, answer);
    }

    fn drain(&mut self, node: &str, drained: bool) -> Result<Response, RequestError> {
        let suspects = self.farm.trust().suspects();
        let named = |(id, suspect): (&NodeId, &crate::state::trust::Suspect)| {
            (!drained && (suspect.name == node || id.to_string() == node)).then_some(*id)
        };
        // One that has not joined since the coordinator started may be released nevertheless.
        let id = match self.roster.find(node) {
            Ok(id) => id,
            Err(error) => suspects.iter().find_map(named).ok_or(RequestError::NotFound(error))?,
        };
        if !drained {
            self.release_node(id);
        }
        if self.farm.is_drained(id) != drained {
            self.record(Record::NodeDrained { node: id, drained });
            self.dirty.mark_all();
        }
        if drained {
            self.tell(id, CoordinatorToNode::Drain);
        }
        Ok(Response::Done)
    }
}

/// As much of a peer's list as is read.
fn listed(leases: &[Lease]) -> &[Lease] {
    &leases[..leases.len().min(LEASES_MAX)]
}
