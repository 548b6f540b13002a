//! What must hold after a step, besides its leases: where commits come from, that the last node is
//! kept, and that nodes run what the core says.

use crate::checks::leases::Seen;
use crate::checks::violation::{Checked, violated};
use crate::situations::sometimes;
use crate::world::World;
use crate::world::events::LinkId;
use crate::world::network::Link;
use std::collections::BTreeSet;
use tessera_core::{Record, Step};
use tessera_protocol::ids::{Lease, NodeId, UnitKey};
use tessera_protocol::status::{NodeState, NodeSummary};

impl World {
    /// The last node that takes work is never put out of it, whatever fails there. Nodes are looked
    /// at where an attempt may have failed.
    pub(crate) fn check_last_node(&mut self, step: &Step, seen: &Seen) -> Checked {
        let now = self.clock();
        let Some(process) = &mut self.shell.process else { return Ok(()) };
        let failed = step.records.iter().filter_map(|record| match record {
            Record::AttemptsEnded { node, attempts, .. } => {
                attempts.iter().any(|attempt| attempt.ending.has_failed()).then_some(*node)
            }
            _ => None,
        });
        let failed: BTreeSet<NodeId> = failed.chain(process.watch.ended_quietly()).collect();
        if failed.is_empty() {
            return Ok(());
        }
        let core = &process.core;
        let takes =
            |row: &NodeSummary| row.state == NodeState::Ready || row.note.contains("fingerprint");
        let rows: Vec<NodeSummary> = failed.iter().map(|node| core.node(*node, now)).collect();
        let other_takes = |node| !failed.contains(&node) && takes(&core.node(node, now));
        let others_take = process.watch.here().any(other_takes);
        let here = |row: &&NodeSummary| process.watch.session_of(row.node).is_some();
        let any_takes = others_take || rows.iter().filter(here).any(takes);
        let out = rows.iter().filter(|row| row.note.contains("in a row")).map(|row| row.node);
        let fresh: Vec<NodeId> = out.filter(|node| process.watch.note_out(*node)).collect();
        sometimes!(self, LastNodeFails, !others_take);
        // Of several inputs one may have put it out of work, and another have taken the others
        // away.
        match fresh.first().filter(|_| !any_takes && seen.inputs == 1) {
            Some(node) => {
                violated(format!("{node} is put out of work, and no other node takes any"))
            }
            None => Ok(()),
        }
    }

    /// No copy of a node takes the place of the node itself while that has a connection.
    fn check_no_clone_of(&self, own: &Link) -> Checked {
        let lives = own.node_open && own.coordinator_open && self.now <= own.dead_from;
        let served = |link: &Link| {
            link.cloned
                && link.node == own.node
                && link.incarnation == own.incarnation
                && link.coordinator_open
                && link.session.is_some()
        };
        match lives && !own.cloned && self.links.links.values().any(served) {
            true => {
                let name = &self.nodes[own.node].plan.name;
                violated(format!("{name} is put out by a copy of itself"))
            }
            false => Ok(()),
        }
    }

    /// A session is about to be closed.
    pub(crate) fn check_no_clone(&self, id: LinkId) -> Checked {
        self.links.links.get(&id).map_or(Ok(()), |own| self.check_no_clone_of(own))
    }

    /// What is committed was leased to its node, once, by this process or another; and nobody is
    /// found guilty who did not lie.
    pub(crate) fn check_origins(&self, step: &Step) -> Checked {
        for record in &step.records {
            self.check_blame(record)?;
            if let Record::NodeSuspected { node, reason, guilty: true, .. } = record
                && !self.ledger.forgers.contains(node)
            {
                return violated(format!("{node} is found guilty, and never lied: {reason}"));
            }
            let (job, frame, commits) = match record {
                Record::UnitsCommitted { job, frame, commits } => (job, frame, commits.as_slice()),
                Record::PartCommitted { job, frame, commit, .. } => {
                    (job, frame, std::slice::from_ref(commit))
                }
                _ => continue,
            };
            for commit in commits {
                let unit = UnitKey { job: *job, frame: *frame, unit: commit.unit };
                let lease = Lease { unit, epoch: commit.epoch };
                if !self.ledger.was_issued(lease, commit.node) {
                    return violated(format!(
                        "{lease} is committed for {}, which never had it",
                        commit.node
                    ));
                }
            }
        }
        Ok(())
    }

    /// Only a forger is wrong about a steady kernel, only a kernel that is not steady (or is lied
    /// about) ends its job for that, and no kernel of a user's puts a node out of other jobs.
    fn check_blame(&self, record: &Record) -> Checked {
        let books = &self.ledger.believed;
        match record {
            Record::NodeSuspected { node, reason, .. } => {
                let mut of_users = books.jobs.iter().filter(|(_, book)| book.runs_users_kernel());
                match of_users.find(|(job, _)| reason.contains(&job.to_string())) {
                    Some((job, _)) => {
                        violated(format!("{node} is put out of work for the kernel of {job}"))
                    }
                    None => Ok(()),
                }
            }
            Record::NodeBarred { job, node, .. }
                if !self.ledger.forgers.contains(node) && !self.ledger.unsteady.contains(job) =>
            {
                violated(format!("{node} is barred from {job}, whose kernel is steady"))
            }
            Record::JobEnded { job, note, .. } if note.contains("not deterministic") => {
                let meant = books.jobs.get(job).is_some_and(|book| book.is_uncompared());
                let steady = !self.ledger.unsteady.contains(job) && self.ledger.forgers.is_empty();
                match meant || steady {
                    true => violated(format!("{job} ends for what is meant, or is not so: {note}")),
                    false => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// Leases equal running: where nothing is on its way, a node holds what the core says it holds,
    /// and its outbox is empty.
    pub(crate) fn check_running(&self) -> Checked {
        let Some(process) = self.shell.process.as_ref().filter(|process| process.seen.inputs == 0)
        else {
            return Ok(());
        };
        let own = |link: &&Link| link.incarnation == self.shell.incarnation && link.is_quiet();
        for link in self.links.links.values().filter(own) {
            let node = &self.nodes[link.node];
            let Some(running) = node.process.as_ref().filter(|known| known.number == link.process)
            else {
                continue;
            };
            if node.plan.liar || process.step_planned {
                continue;
            }
            let held = process.watch.held_by(node.plan.id);
            let (units, untold) = (running.units.keys(), running.untold.keys());
            if !held.into_iter().flatten().eq(units.clone()) || untold.len() > 0 {
                let units: Vec<&Lease> = units.collect();
                let name = &node.plan.name;
                return violated(format!(
                    "{name} runs {units:?}, its leases are {held:?}, nothing is on its way"
                ));
            }
            if let Some(lease) = node.outbox.keys().next() {
                return violated(format!(
                    "{} waits for a word on {lease}, and none is on its way",
                    node.plan.name
                ));
            }
        }
        Ok(())
    }
}
