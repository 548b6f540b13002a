//! Tests of the writer thread: order, groups, and a full disk.

use super::*;
use crate::spool::{DiskSpools, EntryHeader, SpoolEntry, path_of};
use crate::store::{Loaded, Sequence};
use std::sync::mpsc as sync;
use tessera_protocol::{BlobHash, Epoch, UnitIndex};
use tokio::sync::oneshot;

/// A store that reports each call, and waits until the test lets it continue.
struct Slow {
    seen: sync::Sender<Vec<Sequence>>,
    go_on: sync::Receiver<Result<(), StoreError>>,
    spool: PathBuf,
}

impl Store for Slow {
    fn load(&self) -> Result<Loaded, StoreError> {
        Ok(Loaded::default())
    }

    fn tidy(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    fn commit(&mut self, changes: &Changes) -> Result<(), StoreError> {
        // The results that the journal will name must already be in the spool.
        for (key, extent) in &changes.spools {
            let Some(extent) = extent else { continue };
            let found = std::fs::metadata(path_of(&self.spool, *key)).unwrap().len();
            assert_eq!(found, extent.length);
        }
        self.seen.send(changes.records.iter().map(|(sequence, _)| *sequence).collect()).unwrap();
        self.go_on.recv().unwrap_or(Ok(()))
    }
}

struct Bench {
    root: tempfile::TempDir,
    seen: sync::Receiver<Vec<Sequence>>,
    go_on: sync::Sender<Result<(), StoreError>>,
    writer: StoreWriter,
}

fn bench(reserve_bytes: u64) -> Bench {
    bench_of(reserve_bytes, Duration::ZERO)
}

fn bench_of(reserve_bytes: u64, results_pause: Duration) -> Bench {
    let root = tempfile::tempdir().unwrap();
    let (spools, _) = DiskSpools::open(root.path(), BTreeMap::new(), true).unwrap();
    let (seen_by, seen) = sync::channel();
    let (go_on, waits) = sync::channel();
    let store = Slow { seen: seen_by, go_on: waits, spool: root.path().to_path_buf() };
    let limits = WriterLimits { root: root.path().to_path_buf(), reserve_bytes, results_pause };
    let writer = StoreWriter::start(store, spools, limits).unwrap();
    Bench { root, seen, go_on, writer }
}

fn commit(sequence: Sequence) -> (Commit, oneshot::Receiver<()>) {
    let (mut commit, told) = Commit::new();
    commit.records.push((sequence, vec![0; 10]));
    (commit, told)
}

fn key() -> SpoolKey {
    SpoolKey { job: JobId(uuid::Uuid::from_u128(1)), frame: FrameNumber(3) }
}

fn entry() -> SpoolEntry {
    let bytes = bytes::Bytes::from_static(b"film");
    let hash = BlobHash::of(&bytes);
    let header =
        EntryHeader { unit: UnitIndex(0), epoch: Epoch(1), first: 0, samples: 1, length: 4, hash };
    SpoolEntry { key: key(), header, body: bytes.into() }
}

// promise: P1
#[test]
fn results_are_announced_in_order_and_only_after_the_commit() {
    let bench = bench(0);
    let (mut first, mut first_told) = commit(1);
    first.results.push(entry());
    bench.writer.queue().send(first).unwrap();
    assert_eq!(bench.seen.recv().unwrap(), [1]);
    let mut others: Vec<_> = (2..=5)
        .map(|sequence| {
            let (commit, told) = commit(sequence);
            bench.writer.queue().send(commit).unwrap();
            told
        })
        .collect();
    assert!(first_told.try_recv().is_err());
    assert_eq!(bench.writer.spool_extent(key()), None);
    bench.go_on.send(Ok(())).unwrap();
    first_told.blocking_recv().unwrap();
    assert_eq!(bench.writer.spool_extent(key()), Some(SpoolExtent::open(64)));
    // The commits that arrived in the meantime are one group.
    assert_eq!(bench.seen.recv().unwrap(), [2, 3, 4, 5]);
    assert!(others.iter_mut().all(|told| told.try_recv().is_err()));
    bench.go_on.send(Ok(())).unwrap();
    for told in others {
        told.blocking_recv().unwrap();
    }
    bench.writer.stop();
}

#[test]
fn a_spool_whose_results_are_all_in_is_sealed_with_the_last_one() {
    let bench = bench(0);
    let (mut last, told) = commit(1);
    last.results.push(entry());
    last.sealed.push(key());
    bench.writer.queue().send(last).unwrap();
    bench.go_on.send(Ok(())).unwrap();
    told.blocking_recv().unwrap();
    let extent = bench.writer.spool_extent(key()).unwrap();
    assert_eq!((extent.sealed.len(), extent.open_length()), (1, 0));
    // Sealing a sealed spool changes nothing.
    let (mut again, told) = commit(2);
    again.sealed.push(key());
    bench.writer.queue().send(again).unwrap();
    bench.go_on.send(Ok(())).unwrap();
    told.blocking_recv().unwrap();
    assert_eq!(bench.writer.spool_extent(key()), Some(extent));
    bench.writer.stop();
}

#[test]
fn a_spool_that_is_done_with_ends_its_group() {
    let bench = bench(0);
    let (first, _) = commit(1);
    bench.writer.queue().send(first).unwrap();
    assert_eq!(bench.seen.recv().unwrap(), [1]);
    let (mut second, _) = commit(2);
    second.snapshot = Some((2, vec![]));
    let (third, told) = commit(3);
    bench.writer.queue().send(second).unwrap();
    bench.writer.queue().send(third).unwrap();
    (0..3).for_each(|_| bench.go_on.send(Ok(())).unwrap());
    told.blocking_recv().unwrap();
    assert_eq!(bench.seen.iter().take(2).collect::<Vec<_>>(), [vec![2], vec![3]]);
    bench.writer.stop();
}

// promise: P1
#[test]
fn a_spool_that_has_results_again_is_not_deleted() {
    let bench = bench(0);
    let send = |sequence, change: &dyn Fn(&mut Commit)| {
        let (mut commit, told) = commit(sequence);
        change(&mut commit);
        bench.writer.queue().send(commit).unwrap();
        bench.go_on.send(Ok(())).unwrap();
        told.blocking_recv().unwrap();
    };
    let hold = bench.writer.hold_spools();
    send(1, &|commit| commit.results.push(entry()));
    // The frame has failed, is opened again, and has a result.
    send(2, &|commit| commit.finished.push(key()));
    send(3, &|commit| commit.results.push(entry()));
    drop(hold);
    send(4, &|_| ());
    assert_eq!(bench.writer.spool_extent(key()), Some(SpoolExtent::open(64)));
    assert!(path_of(bench.root.path(), key()).exists());
    send(5, &|commit| commit.finished.push(key()));
    bench.writer.stop();
    assert!(!path_of(bench.root.path(), key()).exists());
}

// promise: P1
#[test]
fn a_full_disk_is_waited_for_and_nothing_is_announced() {
    let bench = bench(u64::MAX);
    let (mut waiting, mut told) = commit(1);
    waiting.results.push(entry());
    bench.writer.queue().send(waiting).unwrap();
    while !bench.writer.is_full() {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(told.try_recv().is_err());
    assert!(bench.seen.try_recv().is_err(), "the store is not touched");
    assert!(!path_of(bench.root.path(), key()).exists(), "nor the spool");
    bench.writer.stop();
    assert!(told.blocking_recv().is_err(), "it never became durable");
}

#[test]
fn a_failed_store_announces_nothing_and_gives_its_reason() {
    let bench = bench(0);
    let (first, told) = commit(1);
    bench.writer.queue().send(first).unwrap();
    let path = PathBuf::from("/x");
    bench
        .go_on
        .send(Err(StoreError::Io { path, source: std::io::Error::other("broken") }))
        .unwrap();
    assert!(told.blocking_recv().is_err());
    while bench.writer.queue().send(commit(2).0).is_ok() {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(matches!(bench.writer.take_failure(), Some(StoreError::Io { .. })));
    bench.writer.stop();
}

#[test]
fn results_in_quick_succession_share_a_group() {
    let bench = bench_of(0, Duration::from_secs(3600));
    let send = |sequence, is_result| {
        let (mut commit, told) = commit(sequence);
        if is_result {
            commit.results.push(entry());
        }
        bench.writer.queue().send(commit).unwrap();
        told
    };
    (0..2).for_each(|_| bench.go_on.send(Ok(())).unwrap());
    send(1, true).blocking_recv().unwrap();
    assert_eq!(bench.seen.recv().unwrap(), [1], "one that comes alone is written at once");
    send(2, true);
    send(3, true);
    send(4, false).blocking_recv().unwrap();
    assert_eq!(bench.seen.recv().unwrap(), [2, 3, 4]);
    bench.writer.stop();
}
