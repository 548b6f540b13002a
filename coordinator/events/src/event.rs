//! An event, as receivers get it. `docs/events.md` describes the form.

use serde::{Deserialize, Serialize};
use tessera_core::Quarantine;
use tessera_protocol::JobId;
use tessera_protocol::cost::{AtLimit, BudgetStatus, Period, Whose, money};
use tessera_protocol::status::{JobState, JobSummary};

/// Version of the body of a webhook. A field more does not change it.
pub(crate) const VERSION: u32 = 1;

/// What has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum EventKind {
    /// A job has ended with all its frames.
    Done,
    /// A job has ended without some or all of its frames.
    Failed,
    /// Somebody has cancelled a job.
    Cancelled,
    /// A job goes on only once somebody changes something.
    Waiting,
    /// A node or a device is quarantined or in doubt.
    Quarantine,
    /// A budget is nearly used up, or used up.
    Budget,
    /// Somebody tries a target.
    Test,
}

impl EventKind {
    /// The kinds that a target can ask for.
    pub(crate) const ASKED: [Self; 6] =
        [Self::Done, Self::Failed, Self::Cancelled, Self::Waiting, Self::Quarantine, Self::Budget];

    /// Returns the name, as in JSON and in the file.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Waiting => "waiting",
            Self::Quarantine => "quarantine",
            Self::Budget => "budget",
            Self::Test => "test",
        }
    }

    /// Returns the event of a job that has ended in this state; None for an open one.
    pub(crate) fn of_end(state: JobState) -> Option<Self> {
        match state {
            JobState::Done => Some(Self::Done),
            JobState::Failed => Some(Self::Failed),
            JobState::Cancelled => Some(Self::Cancelled),
            JobState::Queued | JobState::Running | JobState::Paused => None,
        }
    }
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Event {
    /// The same at each attempt and after each start, so that a receiver can drop a repeated one.
    pub(crate) id: String,
    /// What has happened.
    pub(crate) kind: EventKind,
    /// When, in seconds since the Unix epoch.
    pub(crate) at: u64,
    /// The job that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) job: Option<JobFacts>,
    /// The node that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) node: Option<NodeFacts>,
    /// The budget that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) budget: Option<BudgetFacts>,
}

/// A job, as it was at the event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct JobFacts {
    pub(crate) id: JobId,
    pub(crate) name: String,
    pub(crate) owner: String,
    pub(crate) owner_id: u64,
    pub(crate) batch: Option<String>,
    /// Targets that the job names.
    #[serde(default)]
    pub(crate) notify: Vec<String>,
    pub(crate) state: String,
    /// Why it waits, in a word.
    pub(crate) waits: Option<String>,
    /// Why it waits or failed, for people.
    pub(crate) note: String,
    pub(crate) frames: u32,
    pub(crate) frames_done: u32,
    pub(crate) frames_failed: u32,
    pub(crate) submitted_at: u64,
    pub(crate) ended_at: Option<u64>,
}

/// What a job's spec says of its events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) batch: Option<String>,
    /// Targets that the job names.
    pub(crate) notify: Vec<String>,
}

/// A node or a device of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NodeFacts {
    pub(crate) id: String,
    pub(crate) name: String,
    /// The device; None means the whole node.
    pub(crate) device: Option<String>,
    /// Why, in a word.
    pub(crate) reason: String,
    /// Why, for people.
    pub(crate) note: String,
}

/// A budget, as it was at the event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct BudgetFacts {
    /// Who spends it.
    pub(crate) of: Whose,
    pub(crate) period: Period,
    /// Amounts of the farm's currency.
    pub(crate) amount: f64,
    pub(crate) spent: f64,
    pub(crate) currency: String,
    /// What has happened because it is used up; None while it is nearly used up.
    pub(crate) reached: Option<AtLimit>,
    /// The same for people.
    pub(crate) note: String,
}

impl Eq for BudgetFacts {}

impl BudgetFacts {
    /// Returns what is said of a budget; None while much of it is left.
    pub(crate) fn of(budget: &BudgetStatus, currency: &str) -> Option<Self> {
        let state = match budget.reached {
            Some(AtLimit::Warn) => "is used up",
            Some(AtLimit::Refuse) => "is used up: new jobs are refused",
            Some(AtLimit::Pause) => "is used up: no unit begins",
            None if budget.warns => "is nearly used up",
            None => return None,
        };
        let [spent, amount] = [budget.spent, budget.amount]
            .map(|amount| money(amount, currency).unwrap_or_else(|| amount.to_string()));
        let period = match budget.period {
            Period::Month => "this month",
            Period::Total => "in all",
        };
        let whose = &budget.whose;
        Some(Self {
            of: whose.clone(),
            period: budget.period,
            amount: budget.amount.decimal(),
            spent: budget.spent.decimal(),
            currency: currency.to_owned(),
            reached: budget.reached,
            note: format!("the budget of {whose} {period} {state}: {spent} of {amount}"),
        })
    }

    /// Returns what tells it from other events of budgets: whose it is, for which time, and how far
    /// it is used.
    pub(crate) fn key(&self) -> String {
        format!("{:?} {:?} {:?}", self.of, self.period, self.reached)
    }
}

/// Returns an id that the same facts always have.
fn id_of(kind: EventKind, about: &str, at: u64) -> String {
    let hash = blake3::hash(format!("{} {about} {at}", kind.name()).as_bytes());
    hash.to_hex()[..32].to_owned()
}

impl Event {
    /// An event about a job. `at`: when it ended, or when the wait began.
    pub(crate) fn of_job(kind: EventKind, (job, asked): (&JobSummary, Asked), at: u64) -> Self {
        let facts = JobFacts {
            id: job.job,
            name: job.name.clone(),
            owner: job.owner.clone(),
            owner_id: job.owner_id,
            batch: asked.batch,
            notify: asked.notify,
            state: job.state.name().to_owned(),
            waits: job.waits.map(|waits| waits.name().to_owned()),
            note: job.note.clone(),
            frames: job.frames,
            frames_done: job.frames_done,
            frames_failed: job.frames_failed,
            submitted_at: job.submitted_at,
            ended_at: job.ended_at,
        };
        let id = id_of(kind, &job.job.to_string(), at);
        Self { id, kind, at, job: Some(facts), node: None, budget: None }
    }

    /// An event about a quarantine that was first seen at a time.
    pub(crate) fn of_quarantine(found: &Quarantine, at: u64) -> Self {
        let facts = NodeFacts {
            id: found.node.to_string(),
            name: found.name.clone(),
            device: found.device.clone(),
            reason: found.word.to_owned(),
            note: found.why.clone(),
        };
        let device = found.device.as_deref().unwrap_or_default();
        let about = format!("{} {device} {}", found.node, found.word);
        let id = id_of(EventKind::Quarantine, &about, at);
        Self { id, kind: EventKind::Quarantine, at, job: None, node: Some(facts), budget: None }
    }

    /// An event about a budget that was first seen so at a time.
    pub(crate) fn of_budget(facts: BudgetFacts, at: u64) -> Self {
        let id = id_of(EventKind::Budget, &facts.key(), at);
        Self { id, kind: EventKind::Budget, at, job: None, node: None, budget: Some(facts) }
    }

    /// An event that says only that somebody tries the target.
    pub(crate) fn of_test(target: &str, at: u64) -> Self {
        let id = id_of(EventKind::Test, target, at);
        Self { id, kind: EventKind::Test, at, job: None, node: None, budget: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tessera_protocol::cost::Amount;

    #[test]
    fn names_are_those_of_json() {
        for kind in EventKind::ASKED.into_iter().chain([EventKind::Test]) {
            let json = serde_json::to_string(&kind).unwrap();
            assert_eq!(json, format!("\"{}\"", kind.name()));
        }
    }

    #[test]
    fn a_budget_is_told_once_it_is_nearly_used_up() {
        let budget = |spent, warns, reached| BudgetStatus {
            whose: Whose::Owner("ada".into()),
            period: Period::Month,
            amount: Amount(2_000_000),
            spent: Amount(spent),
            warns,
            reached,
        };
        assert_eq!(BudgetFacts::of(&budget(100, false, None), "EUR"), None);
        let near = BudgetFacts::of(&budget(1_700_000, true, None), "EUR").unwrap();
        let said = "the budget of `ada` this month is nearly used up: 1.70 EUR of 2.00 EUR";
        assert_eq!((near.note.as_str(), near.spent), (said, 1.7));
        let over = budget(2_100_000, true, Some(AtLimit::Pause));
        let over = BudgetFacts::of(&over, "EUR").unwrap();
        assert!(over.note.contains("no unit begins") && over.key() != near.key(), "{over:?}");
        let event = Event::of_budget(over, 7);
        let json = serde_json::to_string(&event).unwrap();
        assert!(
            json.contains("\"of\":{\"owner\":\"ada\"}") && json.contains("\"pause\""),
            "{json}"
        );
        assert_eq!(serde_json::from_str::<Event>(&json).unwrap(), event);
    }

    #[test]
    fn an_id_depends_on_all_that_the_event_is() {
        let id = id_of(EventKind::Done, "a", 1);
        assert_eq!((id.len(), &id), (32, &id_of(EventKind::Done, "a", 1)));
        for other in [
            id_of(EventKind::Failed, "a", 1),
            id_of(EventKind::Done, "b", 1),
            id_of(EventKind::Done, "a", 2),
        ] {
            assert_ne!(id, other);
        }
    }
}
