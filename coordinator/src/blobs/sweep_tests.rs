//! Tests of the sweeper: blobs that are named, young, claimed, held or not marked before are kept.

use super::*;
use crate::blobs::DiskBlobs;
use crate::folder::DataFolder;
use std::sync::Arc;

const GRACE: Duration = Duration::from_secs(86_400);
const DAY: Duration = Duration::from_secs(86_401);

struct Bench {
    _root: tempfile::TempDir,
    _folder: DataFolder,
    blobs: GuardedBlobs,
    now: Now,
}

fn guarded(folder: &DataFolder) -> GuardedBlobs {
    GuardedBlobs::new(Arc::new(DiskBlobs::open(folder, 0)))
}

impl Bench {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let folder = DataFolder::open(root.path()).unwrap();
        Self { blobs: guarded(&folder), _folder: folder, _root: root, now: Now::read() }
    }

    fn put(&self, text: &str) -> BlobHash {
        self.blobs.put(text.as_bytes()).unwrap()
    }

    fn pass(&mut self, time: Duration) {
        self.now = Now { wall: self.now.wall + time, steady: self.now.steady + time };
    }

    fn round(&self, named: &[BlobHash]) -> Swept {
        round(&self.blobs, &named.iter().copied().collect(), (GRACE, PAUSE), self.now)
    }

    fn has(&self, hash: BlobHash) -> bool {
        self.blobs.length(hash).unwrap().is_some()
    }
}

// promise: P1, P3
#[test]
fn a_blob_goes_when_it_is_unnamed_old_and_marked() {
    let mut bench = Bench::new();
    let (live, dead) = (bench.put("live"), bench.put("dead"));
    assert_eq!(bench.blobs.listed(), None);
    assert_eq!(bench.round(&[live]), Swept { marked: 1, ..Swept::default() });
    assert_eq!(bench.blobs.listed(), Some((2, 8)));
    bench.pass(PAUSE);
    assert_eq!(bench.round(&[live]).blobs, 0, "it is young");
    bench.pass(DAY);
    assert_eq!(bench.round(&[live]), Swept { blobs: 1, bytes: 4, ..Swept::default() });
    assert!(bench.has(live) && !bench.has(dead));
    assert_eq!(bench.blobs.listed(), Some((1, 4)));
}

// promise: P1, P3
#[test]
fn crashes_and_clock_jumps_make_the_sweep_delete_nothing() {
    let mut bench = Bench::new();
    let uploaded = bench.put("scene");
    bench.now.wall += DAY;
    assert_eq!(
        bench.round(&[]).blobs,
        0,
        "a clock that jumped makes it old, and no round had marked it"
    );
    // The next process: the marks of the last one are lost.
    let again = guarded(&bench._folder);
    bench.pass(PAUSE);
    assert_eq!(round(&again, &BTreeSet::new(), (GRACE, PAUSE), bench.now).blobs, 0);
    assert!(bench.has(uploaded));
    // The marks of the first round are old enough now.
    assert_eq!(bench.round(&[]).blobs, 1);
}

// promise: P1, P3
#[test]
fn a_blob_that_is_claimed_begins_its_grace_anew() {
    let mut bench = Bench::new();
    let asked = bench.put("asked for");
    bench.pass(DAY);
    bench.round(&[]);
    bench.pass(PAUSE);
    assert_eq!(
        bench.blobs.claim(asked),
        Some(9),
        "a client asks whether it is here, and relies on the answer"
    );
    assert_eq!(bench.round(&[]).blobs, 0);
    // A blob that was named for a while is marked again when its job has ended.
    bench.round(&[asked]);
    bench.pass(PAUSE);
    assert_eq!(bench.round(&[]).blobs, 0);
    bench.pass(PAUSE);
    assert_eq!(bench.round(&[]).blobs, 1);
    assert_eq!(bench.blobs.claim(asked), None);
}

#[test]
fn a_backup_holds_everything_while_it_reads() {
    let mut bench = Bench::new();
    let dead = bench.put("dead");
    bench.pass(DAY);
    bench.round(&[]);
    bench.pass(PAUSE);
    let hold = bench.blobs.hold();
    assert_eq!(bench.round(&[]).blobs, 0);
    assert!(bench.has(dead));
    drop(hold);
    assert_eq!(bench.round(&[]).blobs, 1);
}

#[test]
fn interrupted_uploads_go_after_the_grace() {
    let mut bench = Bench::new();
    let hash = BlobHash::of(b"never whole");
    let mut part = bench.blobs.upload(hash, 11).unwrap();
    part.write(b"never").unwrap();
    drop(part);
    assert_eq!(bench.round(&[]).uploads, 0);
    bench.pass(DAY);
    assert_eq!(bench.round(&[]).uploads, 1);
    assert_eq!(bench.blobs.upload(hash, 11).unwrap().held(), 0);
}

// promise: P3
#[test]
fn bytes_stored_while_they_are_swept_are_not_believed() {
    let bench = Bench::new();
    let hash = bench.put("frame");
    let modified = || {
        let mut time = None;
        let mut see = |listed: crate::blobs::Listed| time = time.max(listed.modified);
        bench.blobs.list(&mut see).unwrap();
        time
    };
    let before = modified();
    let deletion = bench.blobs.begin_deletion(hash, |_| true).unwrap();
    std::thread::scope(|scope| {
        let storing = scope.spawn(|| bench.blobs.put(b"frame"));
        while modified() <= before {
            std::thread::yield_now();
        }
        assert!(bench.blobs.delete(hash).unwrap());
        drop(deletion);
        let error = storing.join().unwrap().unwrap_err();
        assert!(error.source.to_string().contains("swept"), "{error:?}");
    });
    assert_eq!(bench.blobs.put(b"frame").unwrap(), hash);
    assert!(bench.has(hash));
}
