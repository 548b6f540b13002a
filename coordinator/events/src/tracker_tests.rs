//! What is told of jobs, quarantines and budgets, and what is not told twice.

use crate::event::BudgetFacts;
use crate::tracker::{Memory, Tracker};
use tessera_core::Quarantine;
use tessera_protocol::cost::{Amount, AtLimit, BudgetStatus, Period, Whose};
use tessera_protocol::status::{JobState, JobSummary, Waits};
use tessera_protocol::{JobId, NodeId};

/// Takes a job, and returns when it ended if that is to be told.
fn see(tracker: &mut Tracker, job: &JobSummary, now: u64) -> Option<u64> {
    let ended = tracker.new_end(job);
    tracker.see_job(job, now);
    ended
}

/// Tells what is due; how many, and when the first one began.
fn due(tracker: &mut Tracker, now: u64) -> (usize, Option<u64>) {
    let due = tracker.due(now);
    due.iter().for_each(|(job, _)| tracker.wait_told(job.job));
    (due.len(), due.first().map(|(_, began)| *began))
}

fn tracker() -> Tracker {
    Tracker::new(60, Memory { horizon: 100, ..Memory::default() }, 1000)
}

fn job(state: JobState, ended_at: Option<u64>, waits: Option<Waits>) -> JobSummary {
    JobSummary {
        job: JobId::new(),
        name: "shot".into(),
        owner: "ada".into(),
        owner_id: 7,
        state,
        priority: 50,
        submitted_at: 1,
        ended_at,
        frames: 1,
        frames_done: 0,
        frames_failed: 0,
        units: 1,
        units_committed: 0,
        units_leased: 0,
        samples_committed: 0,
        samples_kept: 0,
        note: String::new(),
        waits,
        pool: None,
        left_secs: None,
        device_millis: 0,
        cost: Default::default(),
    }
}

fn quarantine(device: Option<&str>, word: &'static str) -> Quarantine {
    Quarantine {
        node: NodeId(uuid::Uuid::from_u128(7)),
        name: "n1".into(),
        device: device.map(str::to_owned),
        word,
        why: "because".into(),
    }
}

#[test]
fn each_end_of_a_job_is_told_once() {
    let mut tracker = tracker();
    let ended = job(JobState::Failed, Some(500), None);
    assert_eq!(see(&mut tracker, &ended, 1000), Some(500));
    assert_eq!(see(&mut tracker, &ended, 1001), None);
    let retried = JobSummary { state: JobState::Running, ended_at: None, ..ended.clone() };
    assert_eq!(see(&mut tracker, &retried, 1002), None);
    let again = JobSummary { state: JobState::Done, ended_at: Some(1003), ..ended };
    assert_eq!(see(&mut tracker, &again, 1003), Some(1003), "another end of the same job");
    let old = job(JobState::Done, Some(99), None);
    assert_eq!(see(&mut tracker, &old, 1004), None, "it ended before what is remembered");
}

#[test]
fn ends_are_not_told_again_after_a_start() {
    let mut before = tracker();
    let ended = job(JobState::Done, Some(500), None);
    let missed = job(JobState::Done, Some(500), None);
    before.see_job(&ended, 1000);
    let mut after = Tracker::new(60, before.memory(), 2000);
    assert_eq!(see(&mut after, &ended, 2000), None);
    assert_eq!(see(&mut after, &missed, 2000), Some(500), "what nobody saw end is told");
}

#[test]
fn many_ends_move_the_horizon_and_lose_none() {
    let mut tracker = tracker();
    for at in 1000..7000 {
        assert_eq!(see(&mut tracker, &job(JobState::Done, Some(at), None), at), Some(at));
    }
    let memory = tracker.memory();
    assert_eq!((memory.ends.len(), memory.horizon), (4096, 7000 - 4096 - 1));
}

#[test]
fn a_wait_is_told_once_it_has_lasted() {
    let mut tracker = tracker();
    let stuck = job(JobState::Queued, None, Some(Waits::Nodes));
    tracker.see_job(&stuck, 1000);
    assert!(tracker.due(1059).is_empty());
    assert_eq!(due(&mut tracker, 1060), (1, Some(1000)));
    tracker.see_job(&stuck, 1070);
    assert!(tracker.due(9000).is_empty(), "it is told once");
}

#[test]
fn a_wait_that_ends_by_itself_is_not_told() {
    let mut tracker = tracker();
    for waits in [Waits::Turn, Waits::After, Waits::Paused, Waits::Start, Waits::Backoff] {
        tracker.see_job(&job(JobState::Queued, None, Some(waits)), 1000);
    }
    let short = job(JobState::Queued, None, Some(Waits::Pool));
    tracker.see_job(&short, 1000);
    tracker.see_job(&JobSummary { waits: None, ..short.clone() }, 1030);
    tracker.see_job(&short, 1040);
    assert!(tracker.due(1099).is_empty(), "the second wait began at 1040");
    assert_eq!(due(&mut tracker, 1100).0, 1);
}

#[test]
fn a_wait_is_told_again_once_it_was_over_for_a_while() {
    let mut tracker = tracker();
    let stuck = job(JobState::Queued, None, Some(Waits::Nodes));
    let goes_on = JobSummary { waits: None, ..stuck.clone() };
    tracker.see_job(&stuck, 1000);
    assert_eq!(due(&mut tracker, 1060).0, 1);
    tracker.see_job(&goes_on, 1100);
    tracker.see_job(&stuck, 1200);
    assert!(tracker.due(1600).is_empty(), "nodes come and go");
    tracker.see_job(&goes_on, 2000);
    assert!(tracker.due(2600).is_empty());
    tracker.see_job(&stuck, 2601);
    assert_eq!(due(&mut tracker, 2661).0, 1);
}

#[test]
fn a_told_wait_is_not_told_again_after_a_start() {
    let mut before = tracker();
    let stuck = job(JobState::Queued, None, Some(Waits::Nodes));
    before.see_job(&stuck, 1000);
    due(&mut before, 1060);
    let mut after = Tracker::new(60, before.memory(), 1100);
    after.see_job(&JobSummary { waits: Some(Waits::Start), ..stuck.clone() }, 1100);
    after.see_job(&stuck, 1130);
    assert!(after.due(5000).is_empty());
}

#[test]
fn a_budget_is_told_once_for_each_state() {
    const NONE: [f64; 0] = [];
    let mut tracker = tracker();
    let facts = |spent, reached| {
        let status = BudgetStatus {
            whose: Whose::Farm,
            period: Period::Month,
            amount: Amount(1_000_000),
            spent: Amount(spent),
            warns: true,
            reached,
        };
        BudgetFacts::of(&status, "EUR").into_iter().collect::<Vec<_>>()
    };
    let said = |told: Vec<BudgetFacts>| told.into_iter().map(|one| one.spent).collect::<Vec<_>>();
    assert_eq!(said(tracker.see_budgets(facts(900_000, None), 1000)), [0.9]);
    assert_eq!(said(tracker.see_budgets(facts(950_000, None), 1002)), NONE, "it only grows");
    let over = || facts(1_100_000, Some(AtLimit::Pause));
    assert_eq!(said(tracker.see_budgets(over(), 1004)), [1.1]);
    let mut after = Tracker::new(60, tracker.memory(), 1010);
    assert_eq!(said(after.see_budgets(over(), 1012)), NONE, "it was told before the start");
    // With the next month it is over, and may be told again.
    assert_eq!(said(after.see_budgets(Vec::new(), 2000)), NONE);
    assert_eq!(said(after.see_budgets(over(), 2700)), [1.1]);
}

#[test]
fn a_quarantine_is_told_once_for_each_reason() {
    let mut tracker = tracker();
    let doubted = quarantine(None, "doubted");
    let told = tracker.see_quarantines(vec![doubted.clone()], 1000);
    assert_eq!(told, vec![doubted.clone()]);
    let longer = Quarantine { why: "because, in 3 s".into(), ..doubted.clone() };
    let others = vec![longer, quarantine(None, "wrong"), quarantine(Some("cuda:0"), "devices")];
    assert_eq!(tracker.see_quarantines(others, 1001).len(), 2, "its text may change");
    assert!(tracker.see_quarantines(vec![], 1002).is_empty());
    assert!(tracker.see_quarantines(vec![doubted.clone()], 1100).is_empty(), "so soon");
    tracker.see_quarantines(vec![], 2000);
    assert_eq!(tracker.see_quarantines(vec![doubted.clone()], 2600).len(), 1);
    let mut after = Tracker::new(60, tracker.memory(), 3000);
    assert!(after.see_quarantines(vec![doubted], 3000).is_empty());
}
