//! A job is paused and goes on: on a user's word alone. Its leases are taken back at once, and
//! nothing of it is given until it is resumed; frames whose units are all in are finished
//! nevertheless.

use crate::core::Core;
use crate::input::{Caller, RequestId};
use crate::journal::Record;
use std::collections::BTreeMap;
use tessera_protocol::client::{RequestError, Response};
use tessera_protocol::ids::{Epoch, JobId, Lease, NodeId, UnitKey};
use tessera_protocol::node::CoordinatorToNode;

impl Core {
    pub(crate) fn on_pause(
        &mut self,
        request: RequestId,
        job: JobId,
        pause: bool,
        caller: &Caller,
    ) {
        let answer = self.pause(job, pause, caller);
        self.reply(request, answer);
    }

    fn pause(&mut self, id: JobId, pause: bool, caller: &Caller) -> Result<Response, RequestError> {
        let job = self.job_of(id, caller)?;
        if job.is_final() {
            let what = if pause { "paused" } else { "resumed" };
            return Err(RequestError::Invalid(format!(
                "job {id} has ended already, and cannot be {what}"
            )));
        }
        if job.paused().is_some() == pause {
            return Ok(Response::Done);
        }
        let (priority, order) = (job.spec().priority, job.order());
        if pause {
            self.record(Record::JobPaused { job: id, by: caller.name.clone(), at: self.now });
            self.shares.remove(priority, order);
            self.take_leases_of(id);
            // They have left room on nodes.
            self.dirty.mark_all();
        } else {
            self.record(Record::JobResumed { job: id });
            if let Some(work) = self.queues.get_mut(&id) {
                work.resume();
            }
            self.offer_job(id);
        }
        Ok(Response::Done)
    }

    /// Somebody wants nothing of the job to be leased.
    pub(crate) fn is_paused(&self, job: JobId) -> bool {
        self.farm.job(job).is_some_and(|job| job.paused().is_some())
    }

    /// Ends every lease of a job without a result, and without an attempt; its nodes are told to
    /// stop.
    fn take_leases_of(&mut self, id: JobId) {
        let leases: Vec<(UnitKey, Epoch)> = self.leases.of_job(id).collect();
        let mut of_node: BTreeMap<NodeId, Vec<Lease>> = BTreeMap::new();
        for (unit, epoch) in leases {
            match self.release(epoch) {
                Some(held) => {
                    of_node.entry(held.node).or_default().push(Lease { unit, epoch });
                    self.give_back(unit, self.now);
                }
                None => self.fault("a lease of a job is not held"),
            }
        }
        for (node, leases) in of_node {
            self.tell(node, CoordinatorToNode::Revoke { leases });
        }
    }
}
