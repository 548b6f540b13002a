//! Jobs for which a node is passed over: it cannot do them, or said so. Data only; what follows
//! from a failure is in `results`. A new process of the node is asked again.

use std::collections::BTreeMap;
use tessera_protocol::ids::JobId;
use tessera_protocol::node::NodeLimit;

/// Why a node is passed over for a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Its build does not know an option, or its driver does not take the kernel.
    Unable,
    /// The job exceeds a limit of the node.
    Limit(NodeLimit),
    /// It cannot prepare the job, or a unit failed on it twice in a row. It gets units of the job
    /// only while no other node may have them.
    Failing,
}

/// What is known of a node that is passed over for a job.
#[derive(Clone, Debug)]
pub(crate) struct Passed {
    pub(crate) cause: Cause,
    /// Reason that the node gave last.
    pub(crate) reason: String,
    /// How often it gave one.
    pub(crate) times: u32,
    /// Whether the node is asked once more, because its limit may have ended.
    again: bool,
}

/// The jobs for which one node is passed over.
#[derive(Clone, Debug, Default)]
pub(crate) struct PassedOver(BTreeMap<JobId, Passed>);

impl PassedOver {
    /// Notes why the node is passed over for a job. Returns how often it said something alike.
    pub(crate) fn note(&mut self, job: JobId, cause: Cause, reason: String) -> u32 {
        let known = self.0.get(&job).filter(|known| known.cause == cause);
        let times = known.map_or(0, |known| known.times).saturating_add(1);
        self.0.insert(job, Passed { cause, reason, times, again: false });
        times
    }

    /// Returns why the node is passed over for a job.
    pub(crate) fn of(&self, job: JobId) -> Option<&Passed> {
        self.0.get(&job)
    }

    /// Whether the node gets no unit of the job, whatever other nodes do.
    pub(crate) fn excludes(&self, job: JobId) -> bool {
        self.of(job).is_some_and(|known| known.cause != Cause::Failing && !known.again)
    }

    /// Whether the node gets units of the job only while no other node may have them.
    pub(crate) fn is_last_for(&self, job: JobId) -> bool {
        self.of(job).is_some_and(|known| known.cause == Cause::Failing)
    }

    /// Lets the node be asked once more. False if it is not passed over for a limit of its own.
    pub(crate) fn ask_again(&mut self, job: JobId) -> bool {
        let limited = |known: &&mut Passed| matches!(known.cause, Cause::Limit(_));
        let known = self.0.get_mut(&job).filter(limited);
        known.map(|known| known.again = true).is_some()
    }

    /// Ends it for a job that has ended, or of which the node has made a result.
    pub(crate) fn forget(&mut self, job: JobId) {
        self.0.remove(&job);
    }

    /// Returns the first of those jobs with what is known, and how many there are.
    pub(crate) fn first(&self) -> Option<(JobId, &Passed, usize)> {
        let (job, passed) = self.0.iter().next()?;
        Some((*job, passed, self.0.len()))
    }
}
