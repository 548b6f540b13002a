//! What other parts of the coordinator's own process ask, which count as no user.

use super::answer::Api;
use super::follow::Follow;
use crate::driver::{Event, Question};
use crate::event_targets::EventTargets;
use std::sync::Arc;
use tessera_core::Quarantine;
use tessera_protocol::JobId;
use tessera_protocol::client::{RequestError, Response};
use tessera_protocol::cost::BudgetStatus;
use tessera_protocol::status::{JobDetail, NodeState, NodeSummary};

/// What a farm lacks.
#[derive(Clone, Debug)]
pub struct Missing {
    /// Whether units wait that more nodes could work on.
    pub is_wanted: bool,
    /// Nodes that have left or are lost, without those that an operator has drained.
    pub absent: Vec<NodeSummary>,
}

impl Api {
    /// Says who sends events. Said once, when the coordinator begins to lead.
    pub fn tell_events_by(&self, targets: Arc<dyn EventTargets>) {
        let _ = self.context.targets.set(targets);
    }

    /// Returns everything about a job, for the coordinator's own process; None if there is no such
    /// job.
    pub async fn job_detail(&self, job: JobId) -> Result<Option<Box<JobDetail>>, RequestError> {
        match self.context.question(Question::Job(job)).await? {
            Response::Job(detail) => Ok(Some(detail)),
            _ => Ok(None),
        }
    }

    /// Returns which nodes and devices are quarantined or in doubt, for the coordinator's own
    /// process.
    pub async fn quarantines(&self) -> Result<Vec<Quarantine>, RequestError> {
        self.context.send(Event::Quarantines).await
    }

    /// Returns how far budgets are used, and the name of the currency, for the coordinator's own
    /// process.
    pub async fn budgets(&self) -> Result<(Vec<BudgetStatus>, String), RequestError> {
        match self.context.question(Question::Costs { month: None }).await? {
            Response::Costs(report) => Ok((report.budgets, report.currency)),
            _ => Ok(Default::default()),
        }
    }

    /// Returns whether units wait that more nodes could work on, and the nodes that are not there,
    /// for the coordinator's own process.
    pub async fn missing_nodes(&self) -> Result<Missing, RequestError> {
        let tally = self.tally().await?;
        let leased = self.context.send(Event::Present).await?.units_leased;
        let is_wanted = tally.units_open > leased && tally.queue_micros > 0;
        let Response::Nodes(nodes) = self.context.question(Question::Nodes).await? else {
            return Ok(Missing { is_wanted, absent: Vec::new() });
        };
        let is_absent = |node: &NodeSummary| {
            matches!(node.state, NodeState::Left | NodeState::Lost) && !node.drained
        };
        Ok(Missing { is_wanted, absent: nodes.into_iter().filter(is_absent).collect() })
    }

    /// Returns the time of the coordinator, in seconds since the Unix epoch.
    pub fn now_secs(&self) -> u64 {
        self.context.clock.now().secs()
    }

    /// Follows all jobs, with those that have ended at this time or later, in seconds since the
    /// Unix epoch.
    pub async fn follow_jobs(&self, since: u64) -> Result<Follow, RequestError> {
        Follow::begin(self.context.clone(), Some(since), None).await
    }
}
