//! What messages to nodes do to leases: who is given which, and which are revoked.

use super::{Changes, Seen, Watch};
use crate::checks::violation::{Checked, violated};
use crate::model::books::Books;
use crate::model::parts::is_within;
use crate::model::tasks::{file_hash, task_of};
use tessera_core::SessionId;
use tessera_protocol::ids::{BlobHash, Epoch, FrameNumber, JobId, Lease, NodeId};
use tessera_protocol::job::RawJobSpec;
use tessera_protocol::node::{Assignment, CoordinatorToNode};

impl Watch {
    pub(super) fn note_message(
        &mut self,
        session: SessionId,
        message: &CoordinatorToNode,
        seen: &Seen,
        books: &Books,
        changes: &mut Changes,
    ) -> Checked {
        match message {
            CoordinatorToNode::Work(assignments) => {
                for assignment in assignments {
                    self.check_epoch(assignment.lease(), books, changes)?;
                }
                // With several inputs, the session may have ended after this.
                let lasting = self.node_of(session);
                let ended = self.nodes.get(&session).copied().filter(|_| seen.inputs > 1);
                let Some(node) = lasting.or(ended) else {
                    return violated(format!("work is sent to {session:?}, which is over"));
                };
                self.check_willing(node, assignments, seen, books)?;
                for assignment in assignments {
                    self.note_assignment(node, assignment, seen, books)?;
                    changes.given.insert((node, assignment.lease()));
                }
                Ok(())
            }
            CoordinatorToNode::Revoke { leases } => {
                // A node that names the lease of another is told the same, and that lease goes on.
                let told = self.nodes.get(&session);
                let of_another = |lease: &&Lease| {
                    self.held
                        .get(lease)
                        .is_some_and(|held| told.is_some_and(|told| *told != held.node))
                };
                changes.ended.extend(leases.iter().filter(|lease| !of_another(lease)));
                Ok(())
            }
            CoordinatorToNode::Job { job, spec } => check_found(*job, spec, books),
            _ => Ok(()),
        }
    }

    fn check_willing(
        &self,
        node: NodeId,
        work: &[Assignment],
        seen: &Seen,
        books: &Books,
    ) -> Checked {
        if seen.inputs > 1 {
            return Ok(());
        }
        let Some(known) = self.known.get(&node) else {
            return violated(format!("work is sent to {node}, which never joined"));
        };
        if known.leaving || !known.usable || books.drained.contains_key(&node) {
            return violated(format!("work is sent to {node}, which takes none"));
        }
        for assignment in work {
            let pinned = books.jobs.get(&assignment.job).and_then(|job| job.pinned);
            if pinned.is_some_and(|pinned| pinned != known.fingerprint) {
                return violated(format!(
                    "{} is sent to a node with a foreign fingerprint",
                    assignment.lease()
                ));
            }
        }
        Ok(())
    }

    /// An epoch is new in this process, and reserved.
    fn check_epoch(&self, lease: Lease, books: &Books, changes: &mut Changes) -> Checked {
        let Epoch(epoch) = lease.epoch;
        if epoch < self.start || epoch <= self.newest_epoch || !changes.epochs.insert(epoch) {
            return violated(format!("{lease} has an epoch that was given before"));
        }
        match epoch < books.reserved {
            true => Ok(()),
            false => violated(format!("{lease} has an epoch that is not reserved")),
        }
    }

    fn note_assignment(
        &mut self,
        node: NodeId,
        assignment: &Assignment,
        seen: &Seen,
        books: &Books,
    ) -> Checked {
        let lease = assignment.lease();
        let book = books.jobs.get(&lease.unit.job);
        let expected = books.lease_task(lease.unit);
        // With several inputs, parts may have come and gone after it.
        let whole =
            book.and_then(|job| task_of(job.kind(), lease.unit)).filter(|_| seen.inputs > 1);
        let within = whole.is_some_and(|whole| is_within(assignment.task, whole));
        if expected != Some(assignment.task) && !within {
            return violated(format!("{assignment:?} should have {expected:?}"));
        }
        if seen.inputs == 1 && books.is_paused(lease.unit.job) {
            return violated(format!("{lease} is given, and its job is paused"));
        }
        if books.holds_back(lease.unit.job, lease.unit.frame) {
            return violated(format!("{lease} is given, and waits for another job"));
        }
        let begins = book.and_then(|job| job.spec.not_before).map_or(0, |secs| secs * 1000);
        if seen.inputs == 1 && begins > self.now {
            return violated(format!("{lease} is given, and its job begins at {begins}"));
        }
        if book.is_some_and(|job| job.lacks_feed(lease.unit.frame)) {
            return violated(format!(
                "{lease} is given before the frame that it reads is finished"
            ));
        }
        self.given.insert(lease.unit, (lease.epoch, node));
        Ok(())
    }
}

/// What a job reads of another is what that one has made, of the same frames or of its only one.
fn check_found(job: JobId, spec: &RawJobSpec, books: &Books) -> Checked {
    let Ok(spec) = spec.clone().check() else {
        return violated(format!("a node is sent a description of {job} that is none"));
    };
    let Some(compute) = spec.kind.compute() else { return Ok(()) };
    let from = compute.inputs.iter().filter_map(|input| Some((input, input.from.as_ref()?.job)));
    for (input, on) in from {
        let Some(other) = books.jobs.get(&on) else {
            return violated(format!("{job} reads frames of {on}, which is unknown"));
        };
        let numbers: Vec<FrameNumber> = match other.frames.len() {
            1 => other.frames.keys().copied().collect(),
            _ => compute.frames.iter().collect(),
        };
        let known: Vec<BlobHash> = numbers.iter().map(|number| file_hash(on, *number)).collect();
        let many = compute.frame_inputs.iter().find(|many| many.name == input.name);
        let found = match many {
            Some(many) => many.files.iter().map(|file| file.hash).collect(),
            None => vec![input.hash],
        };
        if found != known || !numbers.iter().all(|number| other.has_done(*number)) {
            return violated(format!("{job} reads {found:?} of {on}, which has made {known:?}"));
        }
    }
    Ok(())
}
