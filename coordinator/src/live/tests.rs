//! The board: bounds, order, and that nobody waits for anybody.

use super::board::{Board, Bounds};
use super::{Event, Outcome, keep};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tessera_protocol::live::{LiveTile, LiveValues, Watched};
use tessera_protocol::node::{SampleRange, TileRect};
use tessera_protocol::{Epoch, FrameNumber, JobId, Lease, UnitIndex, UnitKey};
use tokio::sync::mpsc;

const ADA: u64 = 3;
const BOB: u64 = 4;

fn tile(job: JobId, (frame, unit): (u32, u32), epoch: u64) -> LiveTile {
    let unit = UnitKey { job, frame: FrameNumber(frame), unit: UnitIndex(unit) };
    LiveTile {
        lease: Lease { unit, epoch: Epoch(epoch) },
        tile: TileRect { x: 0, y: 0, width: 64, height: 64 },
        samples: SampleRange { first: 0, count: 1 },
        values: LiveValues(vec![0; 24 << 10]),
    }
}

fn frame(job: JobId, number: u32) -> Watched {
    Watched { job, frame: Some(FrameNumber(number)) }
}

fn bounds() -> Bounds {
    Bounds { linger: Duration::from_secs(5), ..Bounds::default() }
}

/// Units of the live tiles that are there now.
async fn there(watcher: &mut super::Watcher) -> Vec<u32> {
    let mut units = Vec::new();
    while let Ok(Some(tile)) = tokio::time::timeout(Duration::from_millis(20), watcher.next()).await
    {
        units.push(tile.lease.unit.unit.0);
    }
    units
}

#[tokio::test]
async fn a_newcomer_gets_what_is_kept_and_what_comes() {
    let board = Board::with(bounds());
    let job = JobId::new();
    assert_eq!(board.pass(tile(job, (1, 0), 1)), Outcome::Unwatched);
    let mut first = board.watch(frame(job, 1), ADA).expect("room");
    assert!(board.has(job, FrameNumber(1)) && !board.has(job, FrameNumber(2)));
    assert_eq!(board.pass(tile(job, (1, 1), 2)), Outcome::Passed);
    assert_eq!(board.pass(tile(job, (2, 1), 3)), Outcome::Unwatched);
    let mut all = board.watch(Watched { job, frame: None }, BOB).expect("room");
    let mut second = board.watch(frame(job, 1), BOB).expect("room");
    board.pass(tile(job, (1, 2), 4));
    assert_eq!(there(&mut first).await, [1, 2]);
    assert_eq!(there(&mut second).await, [1, 2], "also what came before");
    assert_eq!(there(&mut all).await, [2], "it is another subject");
    board.end_frame(job, FrameNumber(1));
    assert!(first.next().await.is_none() && second.next().await.is_none());
    board.end_job(job);
    assert!(all.next().await.is_none());
}

// promise: P8
#[tokio::test]
async fn a_lease_has_one_live_tile() {
    let board = Board::with(bounds());
    let job = JobId::new();
    let mut watcher = board.watch(frame(job, 1), ADA).expect("room");
    let one = tile(job, (1, 0), 7);
    assert_eq!(board.pass(one.clone()), Outcome::Passed);
    let other = LiveTile { samples: SampleRange { first: 1, count: 1 }, ..one.clone() };
    for again in [one, other] {
        assert_eq!(board.pass(again), Outcome::Repeated);
    }
    let (_, bytes) = board.size();
    assert_eq!(board.pass(tile(job, (1, 0), 8)), Outcome::Passed, "a later lease");
    assert_eq!(board.size(), (1, bytes), "it takes the place of the first");
    assert_eq!(there(&mut watcher).await, [0]);
}

// promise: P8
#[tokio::test]
async fn what_is_kept_is_bounded_and_small_shares_stay() {
    let board = Board::with(Bounds { bytes: 10 * (25 << 10), ..bounds() });
    let (large, small) = (JobId::new(), JobId::new());
    let mut slow = board.watch(frame(large, 1), ADA).expect("room");
    let mut other = board.watch(frame(small, 1), BOB).expect("room");
    board.pass(tile(small, (1, 5), 1));
    for unit in 0..1000 {
        assert_eq!(board.pass(tile(large, (1, unit), u64::from(unit) + 2)), Outcome::Passed);
        assert!(board.size().1 <= 10 * (25 << 10));
    }
    assert_eq!(there(&mut other).await, [5], "a small share loses nothing");
    let read = there(&mut slow).await;
    assert_eq!((read.len(), read.last()), (9, Some(&999)), "the newest are there");
    drop((slow, other));
    board.expire(Instant::now() + Duration::from_secs(6));
    assert_eq!(board.size(), (0, 0));
}

// promise: P8
#[tokio::test]
async fn live_watchers_of_one_user_are_limited() {
    let board = Board::with(Bounds { subjects: 3, per_person: 2, ..bounds() });
    let jobs: Vec<JobId> = (0..5).map(|_| JobId::new()).collect();
    let hers: Vec<_> =
        jobs[..2].iter().map(|job| board.watch(frame(*job, 1), ADA).expect("room")).collect();
    let text = board.watch(frame(jobs[0], 1), ADA).unwrap_err().to_string();
    assert!(text.contains("2 frames and jobs are watched live for you"), "{text}");
    let his = board.watch(frame(jobs[2], 1), BOB).expect("others are not affected");
    let text = board.watch(frame(jobs[3], 1), BOB).unwrap_err().to_string();
    assert!(text.contains("3 frames and jobs are watched live"), "{text}");
    let same = board.watch(frame(jobs[0], 1), BOB).expect("it is watched already");
    drop((his, same));
    assert!(board.watch(frame(jobs[3], 1), BOB).is_ok(), "what nobody watches makes room");
    drop(hers);
}

#[tokio::test]
async fn nodes_are_told_when_watching_begins_and_ends() {
    let board = Board::with(Bounds { linger: Duration::from_millis(200), ..bounds() });
    let (events, mut told) = mpsc::channel(4);
    let keeping = tokio::spawn(keep(board.clone(), events));
    let next = async |told: &mut mpsc::Receiver<Event>| match tokio::time::timeout(
        Duration::from_secs(20),
        told.recv(),
    )
    .await
    {
        Ok(Some(Event::Watched(watched))) => watched,
        _ => panic!("nothing is told"),
    };
    let job = JobId::new();
    let one = board.watch(frame(job, 1), ADA).expect("room");
    assert_eq!(next(&mut told).await, [frame(job, 1)]);
    let two = board.watch(frame(job, 2), ADA).expect("room");
    assert_eq!(next(&mut told).await, [frame(job, 1), frame(job, 2)]);
    board.end_frame(job, FrameNumber(2));
    assert_eq!(next(&mut told).await, [frame(job, 1)]);
    let began = Instant::now();
    drop((one, two));
    assert_eq!(next(&mut told).await, []);
    assert!(began.elapsed() >= Duration::from_millis(200), "a page that is loaded again");
    assert!(told.try_recv().is_err(), "nothing more is told");
    keeping.abort();
}

#[tokio::test]
async fn the_end_of_the_coordinator_ends_watching() {
    let board = Arc::new(Board::default());
    let mut watcher = board.watch(frame(JobId::new(), 1), ADA).expect("room");
    board.close();
    assert!(watcher.next().await.is_none());
}
