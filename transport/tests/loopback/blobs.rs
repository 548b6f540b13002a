//! Blobs over streams: whole, interrupted, corrupt, absent, and from peers that lie.

use crate::farm::*;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use tessera_protocol::BlobHash;
use tessera_protocol::limits::BLOB_BYTES_MAX;
use tessera_protocol::stream::{BlobOffer, BlobReceipt, BlobReply, BlobRequest, StreamKind};
use tessera_transport::blob::{RangeStreams, Target, get, put, serve_get, serve_put};
use tessera_transport::frame::{FrameReceiver, FrameSender, accept_kind, open_both};
use tessera_transport::{
    BlobError, BlobRead, BlobSink, BlobStore, CloseCode, FarmClient, FrameError, Identity, Link,
    PartFile, SinkError, Timing,
};

/// Files in one folder; the whole ones are listed.
struct Shelf {
    folder: tempfile::TempDir,
    whole: Whole,
    /// Streams that asked for a blob, and streams with later ranges of an upload.
    ranges: Mutex<(usize, usize)>,
    /// Streams on which a blob is asked for now, and the most there were.
    asking: Mutex<(usize, usize)>,
    /// Where each blob is as well, and its length.
    elsewhere: Mutex<Option<(String, u64)>>,
}

type Whole = Arc<Mutex<BTreeMap<BlobHash, PathBuf>>>;

impl Shelf {
    fn new() -> Arc<Self> {
        let folder = tempfile::tempdir().unwrap();
        let (ranges, asking, elsewhere) = Default::default();
        Arc::new(Self { folder, whole: Whole::default(), ranges, asking, elsewhere })
    }

    fn add(&self, hash: BlobHash, bytes: &[u8]) {
        let path = self.folder.path().join(hash.to_string());
        std::fs::write(&path, bytes).unwrap();
        self.whole.lock().unwrap().insert(hash, path);
    }

    fn find(&self, hash: BlobHash) -> Option<PathBuf> {
        self.whole.lock().unwrap().get(&hash).cloned()
    }

    fn part(&self, hash: BlobHash) -> PathBuf {
        self.folder.path().join(format!("{hash}.part"))
    }

    fn begins(&self) {
        let mut asking = self.asking.lock().unwrap();
        asking.0 += 1;
        asking.1 = asking.1.max(asking.0);
    }

    fn file_count(&self) -> usize {
        std::fs::read_dir(self.folder.path()).unwrap().count()
    }
}

impl BlobStore for Shelf {
    fn open(&self, hash: BlobHash) -> io::Result<Option<Box<dyn BlobRead>>> {
        let path = self.find(hash);
        path.map(|path| Ok(Box::new(std::fs::File::open(path)?) as Box<dyn BlobRead>)).transpose()
    }

    fn elsewhere(&self, _: BlobHash, here: bool) -> Option<(String, u64)> {
        self.elsewhere.lock().unwrap().clone().filter(|_| here)
    }

    fn begin(&self, hash: BlobHash, length: u64) -> Result<Box<dyn BlobSink>, String> {
        if length == 13 {
            return Err("the disk is full".into());
        }
        let part = PartFile::open(&self.part(hash), hash, length);
        let part = part.map_err(|error| error.to_string())?;
        let (path, whole) = (self.folder.path().join(hash.to_string()), self.whole.clone());
        Ok(Box::new(Upload { part, hash, path, whole }))
    }
}

/// A part that gets its place among the whole ones.
struct Upload {
    part: PartFile,
    hash: BlobHash,
    path: PathBuf,
    whole: Whole,
}

impl BlobSink for Upload {
    fn held(&self) -> u64 {
        self.part.held()
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.part.write(bytes)
    }

    fn finish(&mut self) -> Result<(), SinkError> {
        self.part.finish()?;
        tessera_transport::files::rename_synced(self.part.path(), &self.path)?;
        self.part.forget();
        self.whole.lock().unwrap().insert(self.hash, self.path.clone());
        Ok(())
    }
}

/// Serves blob streams until the connection ends.
fn serve(link: Link, shelf: Arc<Shelf>) {
    let streams = Arc::new(RangeStreams::default());
    tokio::spawn(async move {
        while let Ok((sender, receiver)) = link.connection.accept_bi().await {
            let (shelf, streams, timing) = (shelf.clone(), streams.clone(), link.timing);
            let connection = link.connection.clone();
            tokio::spawn(async move {
                let mut sender = FrameSender::new(sender);
                // Errors are what these tests provoke; the other end must see them.
                match accept_kind(receiver, timing.answer).await {
                    Ok((StreamKind::BlobGet, mut receiver)) => {
                        shelf.ranges.lock().unwrap().0 += 1;
                        shelf.begins();
                        let ends = (&mut sender, &mut receiver);
                        let _ = serve_get(&shelf, &connection, ends, &timing).await;
                        shelf.asking.lock().unwrap().0 -= 1;
                    }
                    Ok((StreamKind::BlobPut, mut receiver)) => {
                        let ends = (&mut sender, &mut receiver);
                        let _ = serve_put(&shelf, ends, &streams, &timing).await;
                    }
                    Ok((StreamKind::BlobRange, receiver)) => {
                        shelf.ranges.lock().unwrap().1 += 1;
                        let _ = streams.arrive(receiver, &timing).await;
                    }
                    _ => sender.reset(CloseCode::Protocol),
                }
            });
        }
    });
}

pub(crate) struct Bench {
    pub(crate) farm: Farm,
    shelf: Arc<Shelf>,
    folder: tempfile::TempDir,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::with(Timing::default())
    }

    /// A coordinator with these limits.
    pub(crate) fn with(timing: Timing) -> Self {
        Self {
            farm: Farm::start(timing),
            shelf: Shelf::new(),
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// A blob that the coordinator has.
    pub(crate) fn add(&self, hash: BlobHash, bytes: &[u8]) {
        self.shelf.add(hash, bytes);
    }

    /// From now on every blob is at this address as well, with this length.
    pub(crate) fn is_elsewhere(&self, url: String, length: u64) {
        *self.shelf.elsewhere.lock().unwrap() = Some((url, length));
    }

    /// The bytes of a blob at the coordinator.
    pub(crate) fn stored(&self, hash: BlobHash) -> Vec<u8> {
        std::fs::read(self.shelf.find(hash).unwrap()).unwrap()
    }

    /// Streams that asked for a blob, and streams with later ranges of an upload.
    pub(crate) fn ranges_seen(&self) -> (usize, usize) {
        *self.shelf.ranges.lock().unwrap()
    }

    /// The most streams on which blobs were asked for at the same time.
    pub(crate) fn asked_at_once(&self) -> usize {
        self.shelf.asking.lock().unwrap().1
    }

    pub(crate) async fn client(&self) -> FarmClient {
        FarmClient::new(self.link(&self.farm.identity("ada")).await)
    }

    /// A connection on which blobs are served.
    pub(crate) async fn link(&self, identity: &Identity) -> Link {
        let (served, dialled) = self.farm.pair(identity).await;
        serve(served, self.shelf.clone());
        dialled
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The part of a blob on its way to the file `target`.
    pub(crate) fn part(&self, hash: BlobHash) -> PathBuf {
        Target::new(&self.path("target")).part(hash)
    }
}

pub(crate) fn bytes_of(length: usize) -> (Vec<u8>, BlobHash) {
    let mut bytes = vec![0; length];
    blake3::Hasher::new().update(b"blob").finalize_xof().fill(&mut bytes);
    let hash = BlobHash::of(&bytes);
    (bytes, hash)
}

pub(crate) fn quiet(_: u64, _: u64) {}

#[tokio::test]
async fn a_blob_survives_upload_and_download() {
    let bench = Bench::new();
    let client = bench.client().await;
    for length in [0, 1, 3_000_001] {
        let (bytes, hash) = bytes_of(length);
        let source = bench.path("source");
        std::fs::write(&source, &bytes).unwrap();
        let blob = tessera_transport::client::hash_file(&source).unwrap();
        assert_eq!(blob, (hash, length as u64));
        assert_eq!(client.put_blob(blob, &source, &mut quiet).await.unwrap(), length as u64);
        // Again: nothing need be sent.
        assert_eq!(client.put_blob(blob, &source, &mut quiet).await.unwrap(), 0);

        let (target, mut seen) = (bench.path("target"), Vec::new());
        let mut progress = |held: u64, all: u64| seen.push((held, all));
        assert_eq!(
            client
                .get_blob(hash, 1 << 30, Target::replacing(&target), &mut progress)
                .await
                .unwrap(),
            length as u64
        );
        assert_eq!(std::fs::read(&target).unwrap(), bytes);
        assert_eq!(seen.last(), Some(&(length as u64, length as u64)));
        assert!(seen.is_sorted());
        assert!(!bench.part(hash).exists());
    }
    assert_eq!(bench.shelf.file_count(), 3);
}

#[tokio::test]
async fn an_interrupted_get_resumes() {
    let bench = Bench::new();
    let (bytes, hash) = bytes_of(2_000_000);
    bench.shelf.add(hash, &bytes);
    let target = bench.path("target");

    // The connection ends after some of the bytes.
    let (served, dialled) = bench.farm.pair(&bench.farm.identity("ada")).await;
    let coordinator = async {
        let (sender, receiver) = served.connection.accept_bi().await.unwrap();
        let (_, mut receiver) = accept_kind(receiver, served.timing.answer).await.unwrap();
        let request: BlobRequest = receiver.expect(served.timing.answer).await.unwrap();
        assert_eq!(
            request,
            BlobRequest { hash, offset: 0, of: None, end: None, direct: true, ahead: 0 }
        );
        let mut sender = FrameSender::new(sender);
        sender.send(&BlobReply::From { offset: 0, length: 2_000_000 }).await.unwrap();
        sender.send_raw(&bytes[..700_000]).await.unwrap();
        sender.finish_and_deliver(served.timing.answer).await.unwrap();
    };
    let (timing, mut progress) = (Timing::default(), quiet);
    let (_, result) = tokio::join!(
        coordinator,
        get(
            &dialled.connection,
            hash.into(),
            1 << 30,
            Target::new(&target),
            &timing,
            &mut progress
        )
    );
    assert!(matches!(result, Err(BlobError::Frame(FrameError::Cut))), "{result:?}");
    assert!(!target.exists());
    assert_eq!(std::fs::metadata(bench.part(hash)).unwrap().len(), 700_000);

    let (client, mut first) = (bench.client().await, None);
    let mut progress = |held: u64, _: u64| {
        first.get_or_insert(held);
    };
    client.get_blob(hash, 1 << 30, Target::replacing(&target), &mut progress).await.unwrap();
    assert_eq!(first, Some(700_000));
    assert_eq!(std::fs::read(&target).unwrap(), bytes);
}

#[tokio::test]
async fn an_interrupted_put_resumes() {
    let bench = Bench::new();
    let (bytes, hash) = bytes_of(2_000_000);
    let source = bench.path("source");
    std::fs::write(&source, &bytes).unwrap();
    {
        let client = bench.client().await;
        let connection = &client.link().connection;
        let (mut sender, mut receiver) = open_both(connection, StreamKind::BlobPut).await.unwrap();
        sender.send(&BlobOffer { hash, length: 2_000_000, ranges: None }).await.unwrap();
        let reply: BlobReply = receiver.expect(Timing::default().answer).await.unwrap();
        assert_eq!(reply, BlobReply::From { offset: 0, length: 2_000_000 });
        sender.send_raw(&bytes[..800_000]).await.unwrap();
        sender.finish_and_deliver(Timing::default().answer).await.unwrap();
        // The answer to an end that came too early; after it, the other side has let go of the
        // part.
        let receipt: BlobReceipt = receiver.expect(Timing::default().answer).await.unwrap();
        assert!(matches!(receipt, BlobReceipt::Refused(_)));
        receiver.receive::<BlobReceipt>().await.unwrap();
    }
    assert_eq!(std::fs::metadata(bench.shelf.part(hash)).unwrap().len(), 800_000);
    let client = bench.client().await;
    let sent = client.put_blob((hash, 2_000_000), &source, &mut quiet).await.unwrap();
    assert_eq!(sent, 1_200_000);
    assert_eq!(std::fs::read(bench.shelf.find(hash).unwrap()).unwrap(), bytes);
    assert!(!bench.shelf.part(hash).exists());
}

#[tokio::test]
async fn a_corrupt_blob_leaves_no_file() {
    let bench = Bench::new();
    let client = bench.client().await;
    let (mut bytes, hash) = bytes_of(500_000);
    bytes[123_456] ^= 1;
    bench.shelf.add(hash, &bytes);
    let target = bench.path("target");
    let error =
        client.get_blob(hash, 1 << 30, Target::replacing(&target), &mut quiet).await.unwrap_err();
    assert!(matches!(error, BlobError::Corrupt { .. }), "{error:?}");
    assert!(!error.is_interruption());
    assert!(!target.exists() && !bench.part(hash).exists());

    let (_, other) = bytes_of(500_001);
    let source = bench.path("source");
    std::fs::write(&source, &bytes).unwrap();
    let error = client.put_blob((other, 500_000), &source, &mut quiet).await.unwrap_err();
    assert!(
        matches!(&error, BlobError::Refused { reason, .. } if reason.contains("corrupt")),
        "{error:?}"
    );
    assert!(!bench.shelf.part(other).exists());
    assert_eq!(bench.shelf.find(other), None);
}

#[tokio::test]
async fn a_damaged_partial_get_is_replaced() {
    let bench = Bench::new();
    let client = bench.client().await;
    let (bytes, hash) = bytes_of(400_000);
    bench.shelf.add(hash, &bytes);
    let target = bench.path("target");
    // Wrong bytes; too many bytes for the caller's limit; more bytes than the blob has.
    for (rest, limit) in
        [(vec![1; 1000], 1 << 30), (vec![1; 500_000], 450_000), (vec![1; 500_000], 1 << 30)]
    {
        std::fs::write(bench.part(hash), rest).unwrap();
        client.get_blob(hash, limit, Target::replacing(&target), &mut quiet).await.unwrap();
        assert_eq!(std::fs::read(&target).unwrap(), bytes);
        std::fs::remove_file(&target).unwrap();
    }
}

#[tokio::test]
async fn a_file_that_is_there_stays_unless_it_may_be_replaced() {
    let bench = Bench::new();
    let client = bench.client().await;
    let (bytes, hash) = bytes_of(1000);
    bench.shelf.add(hash, &bytes);
    let target = bench.path("target");
    std::fs::write(&target, "mine").unwrap();
    let error = client.get_blob(hash, 1000, Target::new(&target), &mut quiet).await.unwrap_err();
    assert!(matches!(&error, BlobError::Occupied { path } if *path == target), "{error:?}");
    assert_eq!(std::fs::read(&target).unwrap(), b"mine");
    assert!(!bench.part(hash).exists());
    client.get_blob(hash, 1000, Target::replacing(&target), &mut quiet).await.unwrap();
    assert_eq!(std::fs::read(&target).unwrap(), bytes);
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_beside_a_locked_part_has_the_mode_of_any_new_file() {
    use std::os::unix::fs::PermissionsExt;
    let bench = Bench::new();
    let client = bench.client().await;
    let (bytes, hash) = bytes_of(1000);
    bench.shelf.add(hash, &bytes);
    let (usual, target) = (bench.path("usual"), bench.path("target"));
    std::fs::write(&usual, "").unwrap();
    let _other = PartFile::open(&bench.part(hash), hash, 1000).unwrap();
    client.get_blob(hash, 1000, Target::new(&target), &mut quiet).await.unwrap();
    let mode = |path: &PathBuf| std::fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(&target), mode(&usual));
}

#[tokio::test]
async fn a_part_that_has_another_name_is_not_written_to() {
    let bench = Bench::new();
    let client = bench.client().await;
    let (bytes, hash) = bytes_of(1000);
    bench.shelf.add(hash, &bytes);
    let (kept, target) = (bench.path("kept"), bench.path("target"));
    std::fs::write(&kept, "retouched").unwrap();
    std::fs::hard_link(&kept, bench.part(hash)).unwrap();
    client.get_blob(hash, 1000, Target::new(&target), &mut quiet).await.unwrap();
    assert_eq!(std::fs::read(&kept).unwrap(), b"retouched");
    assert_eq!(std::fs::read(&target).unwrap(), bytes);
}

#[test]
fn parts_are_named_after_their_blob_and_fit_a_folder() {
    let hash = BlobHash([0xab; 32]);
    let part = |name: &str| Target::new(std::path::Path::new(name)).part(hash);
    assert_eq!(part("out/a.0001.exr"), PathBuf::from("out/a.0001.exr.abababab.part"));
    let long = part(&"é".repeat(127));
    assert_eq!(long.to_str().unwrap().len(), 254);
}

#[tokio::test]
async fn absent_refused_and_oversized_blobs_are_named() {
    let bench = Bench::new();
    let client = bench.client().await;
    let (bytes, hash) = bytes_of(1000);
    let target = bench.path("target");
    let error =
        client.get_blob(hash, 1 << 30, Target::replacing(&target), &mut quiet).await.unwrap_err();
    assert!(matches!(error, BlobError::Absent(absent) if absent == hash), "{error:?}");
    bench.shelf.add(hash, &bytes);
    let error =
        client.get_blob(hash, 999, Target::replacing(&target), &mut quiet).await.unwrap_err();
    assert!(matches!(error, BlobError::TooLong { length: 1000, limit: 999, .. }), "{error:?}");
    assert!(!target.exists());

    let source = bench.path("source");
    std::fs::write(&source, [0; 13]).unwrap();
    let other = BlobHash([1; 32]);
    let error = client.put_blob((other, 13), &source, &mut quiet).await.unwrap_err();
    assert!(
        matches!(&error, BlobError::Refused { reason, .. } if reason.contains("disk is full")),
        "{error:?}"
    );
    let error =
        client.put_blob((other, BLOB_BYTES_MAX + 1), &source, &mut quiet).await.unwrap_err();
    assert!(
        matches!(&error, BlobError::Refused { reason, .. } if reason.contains("at most")),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_file_truncated_during_a_put_fails_it() {
    let bench = Bench::new();
    let client = bench.client().await;
    let (bytes, hash) = bytes_of(1000);
    let source = bench.path("source");
    std::fs::write(&source, &bytes[..999]).unwrap();
    let error = client.put_blob((hash, 1000), &source, &mut quiet).await.unwrap_err();
    assert!(matches!(error, BlobError::File { .. }), "{error:?}");
    assert_eq!(bench.shelf.find(hash), None);
}

#[tokio::test]
async fn two_puts_of_the_same_blob_do_not_disturb_each_other() {
    let bench = Bench::new();
    let (first, second) = (bench.client().await, bench.client().await);
    let (bytes, hash) = bytes_of(1_500_000);
    let source = bench.path("source");
    std::fs::write(&source, &bytes).unwrap();
    let blob = (hash, 1_500_000);
    let (mut a, mut b) = (quiet, quiet);
    let (one, two) =
        tokio::join!(first.put_blob(blob, &source, &mut a), second.put_blob(blob, &source, &mut b));
    one.unwrap();
    two.unwrap();
    assert_eq!(std::fs::read(bench.shelf.find(hash).unwrap()).unwrap(), bytes);
    assert_eq!(bench.shelf.file_count(), 1);
}

#[tokio::test]
async fn a_peer_that_stalls_within_a_blob_times_out() {
    let bench = Bench::new();
    let (served, dialled) = bench.farm.pair(&bench.farm.identity("ada")).await;
    let (_, hash) = bytes_of(1000);
    let target = bench.path("target");
    let coordinator = async {
        let (sender, receiver) = served.connection.accept_bi().await.unwrap();
        let mut sender = FrameSender::new(sender);
        sender.send(&BlobReply::From { offset: 0, length: 1000 }).await.unwrap();
        sender.send_raw(&[0; 10]).await.unwrap();
        (sender, FrameReceiver::new(receiver))
    };
    let (timing, mut progress) = (short(), quiet);
    let (_held, result) = tokio::join!(
        coordinator,
        get(&dialled.connection, hash.into(), 1000, Target::new(&target), &timing, &mut progress)
    );
    let error = result.unwrap_err();
    assert!(matches!(error, BlobError::Frame(FrameError::Silent(_))), "{error:?}");
    assert!(error.is_interruption());

    // A put's offer that is answered for another length.
    let coordinator = async {
        let (sender, _receiver) = served.connection.accept_bi().await.unwrap();
        let mut sender = FrameSender::new(sender);
        sender.send(&BlobReply::From { offset: 0, length: 1 << 40 }).await.unwrap();
        sender
    };
    let source = bench.path("source");
    std::fs::write(&source, [0; 10]).unwrap();
    let (_held, result) = tokio::join!(
        coordinator,
        put(&dialled.connection, (hash, 10), &source, &timing, &mut progress)
    );
    assert!(matches!(result, Err(BlobError::Protocol { .. })), "{result:?}");
}
