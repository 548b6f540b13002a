//! Lines of nodes as the driver sees them: which jobs and units a node was given, and which jobs
//! are no more. No record or action comes of them.

use super::Driver;
use super::sessions::SessionHandle;
use tessera_core::{Record, SessionId};
use tessera_protocol::Lease;
use tessera_protocol::node::CoordinatorToNode;

impl Driver {
    /// Notes what a node may say lines about once it has this message.
    pub(super) fn admit_lines(&self, handle: &SessionHandle, message: &CoordinatorToNode) {
        match message {
            CoordinatorToNode::Job { job, .. } => {
                if let Some(owner) = self.core.owner_of(*job) {
                    handle.sayable.admit_job(*job, owner.id());
                }
            }
            CoordinatorToNode::Work(work) => handle.sayable.admit_work(work),
            _ => {}
        }
    }

    /// Notes what a node may say lines about that comes back with leases, and is not told of their
    /// jobs again.
    pub(super) fn readmit_lines(&self, session: SessionId, running: &[Lease]) {
        let Some(handle) = self.sessions.get(&session) else { return };
        let held: Vec<Lease> =
            running.iter().copied().filter(|lease| self.core.holds(session, *lease)).collect();
        for lease in &held {
            if let Some(owner) = self.core.owner_of(lease.unit.job) {
                handle.sayable.admit_job(lease.unit.job, owner.id());
            }
        }
        handle.sayable.admit_units(held.into_iter().map(|lease| lease.unit));
    }

    /// Drops the lines of a job that a record ends for good.
    pub(super) fn drop_lines(&self, record: &Record) {
        if let Record::JobForgotten { job } = record {
            self.around.logs.forget(*job);
        }
    }
}
