//! The checker finds each kind of broken promise, and takes what answers that overtake each other
//! may say.

use super::*;
use tessera_protocol::ids::{Epoch, UnitIndex, UnitKey};
use uuid::Uuid;

fn job(number: u128) -> JobId {
    JobId(Uuid::from_u128(number))
}

fn lease(unit: u32, epoch: u64) -> Lease {
    let unit = UnitKey { job: job(1), frame: FrameNumber(1), unit: UnitIndex(unit) };
    Lease { unit, epoch: Epoch(epoch) }
}

fn finished(bytes: &[u8]) -> Seen {
    Seen::Finished { job: job(1), frame: FrameNumber(1), hash: BlobHash::of(bytes) }
}

fn shown(state: JobState, units_committed: u64, frames_done: u32) -> Seen {
    Seen::Job(JobSeen { job: job(1), state, units: 8, units_committed, frames: 2, frames_done })
}

/// Feeds answers, each asked for just before it came; gives the promise that the last one breaks.
fn last_of(answers: &[Seen]) -> Option<&'static str> {
    let mut history = History::new();
    let mut last = None;
    for (position, seen) in answers.iter().enumerate() {
        let result = history.saw(history.ask(), seen);
        last = result.err().map(|broken| broken.promise);
        assert!(last.is_none() || position + 1 == answers.len(), "{seen:?} breaks {last:?}");
    }
    last
}

// promise: P1
#[test]
fn a_lost_job_is_found() {
    let accepted = Seen::Accepted(job(1));
    assert_eq!(last_of(&[accepted.clone(), Seen::Listed(vec![job(2)])]), Some("P1"));
    assert_eq!(last_of(&[accepted.clone(), Seen::Unknown(job(1))]), Some("P1"));
    assert_eq!(
        last_of(&[accepted, Seen::Listed(vec![job(2), job(1)]), Seen::Unknown(job(2))]),
        None
    );
}

// promise: P1
#[test]
fn a_lost_commit_is_found() {
    let committed = Seen::Committed(lease(0, 5));
    assert_eq!(last_of(&[committed.clone(), shown(JobState::Running, 0, 0)]), Some("P1"));
    assert_eq!(last_of(&[committed.clone(), committed, shown(JobState::Running, 1, 0)]), None);
}

// promise: P1
#[test]
fn a_unit_that_counts_twice_is_found() {
    let twice = [Seen::Committed(lease(0, 5)), Seen::Committed(lease(0, 6))];
    assert_eq!(last_of(&twice), Some("P2"));
    let back = Seen::TakenBack(lease(0, 5).unit);
    let again = [twice[0].clone(), back, shown(JobState::Running, 0, 0), twice[1].clone()];
    assert_eq!(last_of(&again), None);
    assert_eq!(
        last_of(&[again.as_slice(), &[shown(JobState::Running, 0, 0)]].concat()),
        Some("P1")
    );
    assert_eq!(last_of(&[shown(JobState::Running, 9, 0)]), Some("P2"));
    assert_eq!(last_of(&[shown(JobState::Running, 8, 3)]), Some("P2"));
}

// promise: P1
#[test]
fn a_frame_that_changes_or_vanishes_is_found() {
    let unfinished = Seen::Unfinished { job: job(1), frame: FrameNumber(1) };
    assert_eq!(last_of(&[unfinished.clone(), finished(b"a"), finished(b"a")]), None);
    assert_eq!(last_of(&[finished(b"a"), finished(b"b")]), Some("P3"));
    assert_eq!(last_of(&[finished(b"a"), unfinished]), Some("P3"));
    assert_eq!(last_of(&[finished(b"a"), shown(JobState::Running, 8, 0)]), Some("P3"));
}

#[test]
fn an_end_that_changes_is_found() {
    let done = shown(JobState::Done, 8, 2);
    assert_eq!(last_of(&[done.clone(), shown(JobState::Running, 8, 2)]), Some("P1"));
    assert_eq!(last_of(&[done.clone(), Seen::Cancelled(job(1))]), Some("P1"));
    assert_eq!(last_of(&[shown(JobState::Running, 8, 2), done.clone(), done]), None);
}

#[test]
fn a_reopened_job_may_end_differently_but_keeps_its_frames() {
    let failed = shown(JobState::Failed, 8, 1);
    let opened =
        [finished(b"a"), failed.clone(), Seen::Retried(job(1)), shown(JobState::Running, 4, 1)];
    assert_eq!(last_of(&opened), None);
    assert_eq!(last_of(&[&opened[..], &[shown(JobState::Done, 8, 2)]].concat()), None);
    assert_eq!(last_of(&[&opened[..], &[finished(b"b")]].concat()), Some("P3"));
    let ended = [shown(JobState::Done, 8, 2), shown(JobState::Running, 8, 2)];
    assert_eq!(last_of(&[&opened[..], &ended].concat()), Some("P1"));
    // What was asked for before says nothing of after.
    let mut history = History::new();
    let early = history.ask();
    assert_eq!(history.saw(early, &Seen::Retried(job(1))), Ok(()));
    assert_eq!(history.saw(early, &failed), Ok(()));
    assert_eq!(history.saw(history.ask(), &shown(JobState::Running, 4, 1)), Ok(()));
}

// promise: P1
#[test]
fn an_answer_that_was_overtaken_breaks_nothing() {
    let mut history = History::new();
    let early = history.ask();
    for seen in [
        Seen::Accepted(job(1)),
        Seen::Committed(lease(0, 5)),
        finished(b"a"),
        shown(JobState::Done, 8, 2),
    ] {
        assert_eq!(history.saw(history.ask(), &seen), Ok(()));
    }
    let unfinished = Seen::Unfinished { job: job(1), frame: FrameNumber(1) };
    for seen in
        [Seen::Listed(vec![]), Seen::Unknown(job(1)), shown(JobState::Running, 0, 0), unfinished]
    {
        assert_eq!(history.saw(early, &seen), Ok(()), "{seen:?}");
        assert!(history.saw(history.ask(), &seen).is_err(), "{seen:?}");
    }
    assert_eq!(history.accepted().collect::<Vec<_>>(), [job(1)]);
}
