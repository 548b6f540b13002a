//! Which events a target gets.

use crate::event::{Event, EventKind, JobFacts};
use std::collections::BTreeSet;
use tessera_protocol::cost::Whose;
use tessera_protocol::pattern::fits;

/// Which events a target gets: those that meet all conditions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// Kinds of events.
    pub(crate) kinds: BTreeSet<EventKind>,
    /// Owner of the jobs: the name, or `#` and the number of the identity.
    pub(crate) owner: Option<String>,
    /// Pattern of the whole name of the jobs: `*` is any text, `?` one character.
    pub(crate) job: Option<String>,
    /// Batch of the jobs.
    pub(crate) batch: Option<String>,
    /// Name by which the jobs have to ask for the target; None where they need not.
    pub(crate) on_request: Option<String>,
}

impl Wanted {
    /// Returns whether only some jobs are meant.
    pub(crate) fn is_of_jobs(&self) -> bool {
        let texts = [&self.owner, &self.job, &self.batch, &self.on_request];
        texts.into_iter().any(Option::is_some)
    }

    /// Returns whether only some jobs are meant, by more than their owner.
    pub(crate) fn is_of_some_jobs(&self) -> bool {
        [&self.job, &self.batch, &self.on_request].into_iter().any(Option::is_some)
    }

    /// Returns whether the target gets an event.
    pub(crate) fn takes(&self, event: &Event) -> bool {
        self.kinds.contains(&event.kind)
            && match (&event.job, &event.budget) {
                (Some(job), _) => self.meets(job),
                (None, Some(budget)) => self.pays(&budget.of),
                (None, None) => !self.is_of_jobs(),
            }
    }

    /// Whether a budget is one of those who are meant: a target of one owner gets that owner's.
    fn pays(&self, of: &Whose) -> bool {
        let is_owners = |owner: &String| matches!(of, Whose::Owner(name) if name == owner);
        !self.is_of_some_jobs() && self.owner.as_ref().is_none_or(is_owners)
    }

    fn meets(&self, job: &JobFacts) -> bool {
        let number = format!("#{}", job.owner_id);
        self.owner.as_ref().is_none_or(|owner| *owner == job.owner || *owner == number)
            && self.job.as_ref().is_none_or(|pattern| fits(pattern, &job.name))
            && (self.batch.is_none() || self.batch == job.batch)
            && self.on_request.as_ref().is_none_or(|name| job.notify.contains(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::BudgetFacts;
    use tessera_protocol::JobId;
    use tessera_protocol::cost::{Amount, BudgetStatus, Period};

    fn event(kind: EventKind) -> Event {
        let job = JobFacts {
            id: JobId::new(),
            name: "shot_010".into(),
            owner: "ada".into(),
            owner_id: 7,
            batch: Some("film".into()),
            notify: vec!["ada-mail".into()],
            state: "done".into(),
            waits: None,
            note: String::new(),
            frames: 1,
            frames_done: 1,
            frames_failed: 0,
            submitted_at: 1,
            ended_at: Some(2),
        };
        let job = Some(job).filter(|_| kind != EventKind::Quarantine);
        Event { id: "x".into(), kind, at: 2, job, node: None, budget: None }
    }

    fn wanted(owner: Option<&str>, job: Option<&str>, batch: Option<&str>) -> Wanted {
        let kinds = BTreeSet::from([EventKind::Done, EventKind::Quarantine]);
        let [owner, job, batch] = [owner, job, batch].map(|text| text.map(str::to_owned));
        Wanted { kinds, owner, job, batch, on_request: None }
    }

    #[test]
    fn a_target_gets_what_meets_all_its_conditions() {
        let done = event(EventKind::Done);
        for takes in [
            wanted(None, None, None),
            wanted(Some("ada"), Some("shot_*"), Some("film")),
            wanted(Some("#7"), None, None),
        ] {
            assert!(takes.takes(&done), "{takes:?}");
        }
        for refuses in [
            wanted(Some("bob"), None, None),
            wanted(Some("#8"), None, None),
            wanted(None, Some("shot"), None),
            wanted(Some("ada"), None, Some("other")),
        ] {
            assert!(!refuses.takes(&done), "{refuses:?}");
        }
        assert!(!wanted(None, None, None).takes(&event(EventKind::Failed)));
    }

    #[test]
    fn a_target_on_request_gets_what_names_it() {
        let done = event(EventKind::Done);
        let by =
            |name: &str| Wanted { on_request: Some(name.to_owned()), ..wanted(None, None, None) };
        assert!(by("ada-mail").takes(&done) && !by("bob-mail").takes(&done));
        let of_bob = Wanted { owner: Some("bob".into()), ..by("ada-mail") };
        assert!(!of_bob.takes(&done), "the other conditions hold as well");
        assert!(!by("ada-mail").takes(&event(EventKind::Quarantine)));
    }

    #[test]
    fn budgets_go_to_targets_of_the_farm_and_of_their_owner() {
        let event = |of: Whose| {
            let status = BudgetStatus {
                whose: of,
                period: Period::Total,
                amount: Amount(1),
                spent: Amount(1),
                warns: true,
                reached: None,
            };
            Event::of_budget(BudgetFacts::of(&status, "EUR").expect("it is said"), 3)
        };
        let kinds = BTreeSet::from([EventKind::Budget]);
        let by = |owner: Option<&str>, job: Option<&str>| Wanted {
            kinds: kinds.clone(),
            ..wanted(owner, job, None)
        };
        let (ada, farm) = (event(Whose::Owner("ada".into())), event(Whose::Farm));
        assert!(by(None, None).takes(&ada) && by(None, None).takes(&farm));
        assert!(by(Some("ada"), None).takes(&ada) && !by(Some("ada"), None).takes(&farm));
        assert!(!by(Some("bob"), None).takes(&ada) && !by(Some("ada"), Some("*")).takes(&ada));
        assert!(!wanted(None, None, None).takes(&farm), "it did not ask");
    }

    #[test]
    fn events_of_nodes_go_to_targets_of_the_whole_farm() {
        let quarantine = event(EventKind::Quarantine);
        assert!(wanted(None, None, None).takes(&quarantine));
        assert!(!wanted(Some("ada"), None, None).takes(&quarantine));
    }
}
