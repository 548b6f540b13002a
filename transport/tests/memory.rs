//! How much memory a transfer takes, at both ends together: one program, since every allocation of
//! its process is counted.

#![expect(clippy::unwrap_used, reason = "in a test, a failure of the setup is a failure")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use tessera_protocol::client::Role;
use tessera_protocol::stream::StreamKind;
use tessera_protocol::{BlobHash, Fingerprint, Hello};
use tessera_transport::blob::{RangeStreams, Target, get, put, serve_get, serve_put};
use tessera_transport::frame::accept_kind;
use tessera_transport::{
    Authority, BlobRead, BlobSink, BlobStore, FrameSender, Link, PartFile, PeerIdentity, Server,
    SinkError, Timing, connect,
};

/// Far more than what both ends may hold, and little enough to be quick.
const LENGTH: usize = 104 << 20;
/// The windows of both ends, their steps, and what the rest of the process takes.
const PEAK_BYTES_MAX: usize = 96 << 20;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

struct Counting;

#[global_allocator]
static HEAP: Counting = Counting;

fn grow(bytes: usize) {
    PEAK.fetch_max(LIVE.fetch_add(bytes, Relaxed) + bytes, Relaxed);
}

// SAFETY: everything is passed on to the system's allocator, and only counted here.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller keeps the contract.
        unsafe { System.dealloc(at, layout) }
    }
}

/// A store of one blob.
struct Single(PathBuf);

impl BlobStore for Single {
    fn open(&self, hash: BlobHash) -> io::Result<Option<Box<dyn BlobRead>>> {
        match std::fs::File::open(self.0.join(hash.to_string())) {
            Ok(file) => Ok(Some(Box::new(file))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn begin(&self, hash: BlobHash, length: u64) -> Result<Box<dyn BlobSink>, String> {
        let part = PartFile::open(&self.0.join("part"), hash, length);
        let part = part.map_err(|error| error.to_string())?;
        Ok(Box::new(Upload(part, self.0.join(hash.to_string()))))
    }
}

struct Upload(PartFile, PathBuf);

impl BlobSink for Upload {
    fn held(&self) -> u64 {
        self.0.held()
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write(bytes)
    }

    fn finish(&mut self) -> Result<(), SinkError> {
        self.0.finish()?;
        std::fs::rename(self.0.path(), &self.1)?;
        self.0.forget();
        Ok(())
    }
}

/// Both ends of one connection: the coordinator's, then a person's.
async fn pair() -> (Link, Link) {
    let authority = Authority::generate().unwrap();
    let loopback = "127.0.0.1:0".parse().unwrap();
    let server = Server::bind(loopback, &authority, Timing::default()).unwrap();
    let ada = PeerIdentity::new(Role::Artist, "ada", None).unwrap();
    let identity = authority.issue(&ada).unwrap();
    let hello = Hello::ours(Fingerprint([5; 32]));
    let address = server.local_address().unwrap().into();
    let (served, dialled) = tokio::join!(
        async { server.accept().await.unwrap().establish(&hello).await },
        connect(&address, &identity, &hello, Timing::default())
    );
    let (served, dialled) = (served.unwrap(), dialled.unwrap());
    served.welcome();
    (served, dialled)
}

fn serve(link: Link, store: Arc<Single>) {
    let streams = Arc::new(RangeStreams::default());
    tokio::spawn(async move {
        while let Ok((sender, receiver)) = link.connection.accept_bi().await {
            let (store, streams, timing) = (store.clone(), streams.clone(), link.timing);
            let connection = link.connection.clone();
            tokio::spawn(async move {
                let mut sender = FrameSender::new(sender);
                let (kind, mut receiver) = accept_kind(receiver, timing.answer).await.unwrap();
                match kind {
                    StreamKind::BlobRange => streams.arrive(receiver, &timing).await.unwrap(),
                    StreamKind::BlobPut => {
                        let ends = (&mut sender, &mut receiver);
                        serve_put(&store, ends, &streams, &timing).await.unwrap();
                    }
                    _ => {
                        let ends = (&mut sender, &mut receiver);
                        serve_get(&store, &connection, ends, &timing).await.unwrap();
                    }
                }
            });
        }
    });
}

/// Writes a file without holding it.
fn write_source(path: &Path) -> BlobHash {
    let mut source = blake3::Hasher::new().update(b"blob").finalize_xof();
    let (mut hasher, mut step) = (blake3::Hasher::new(), vec![0; 1 << 20]);
    let mut file = std::fs::File::create(path).unwrap();
    for _ in 0..LENGTH >> 20 {
        source.fill(&mut step);
        hasher.update(&step);
        file.write_all(&step).unwrap();
    }
    BlobHash(*hasher.finalize().as_bytes())
}

fn hash_of_file(path: &Path) -> BlobHash {
    let mut hasher = blake3::Hasher::new();
    let mut step = vec![0; 1 << 20];
    let mut file = std::fs::File::open(path).unwrap();
    loop {
        match file.read(&mut step).unwrap() {
            0 => return BlobHash(*hasher.finalize().as_bytes()),
            count => hasher.update(&step[..count]),
        };
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transfer_holds_windows_and_steps_and_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let (served, dialled) = pair().await;
    serve(served, Arc::new(Single(folder.path().to_owned())));
    let (source, target) = (folder.path().join("source"), folder.path().join("target"));
    let (hash, length) = (write_source(&source), LENGTH as u64);
    let connection = &dialled.connection;
    let long = Timing { stream_round_trip: Duration::ZERO, ..Timing::default() };
    for timing in [Timing::default(), long] {
        PEAK.store(LIVE.load(Relaxed), Relaxed);
        put(connection, (hash, length), &source, &timing, &mut |_, _| {}).await.unwrap();
        let into = Target::replacing(&target);
        get(connection, hash.into(), length, into, &timing, &mut |_, _| {}).await.unwrap();
        let peak = PEAK.load(Relaxed);
        assert!(peak < PEAK_BYTES_MAX, "{} MiB are allocated at once", peak >> 20);
        assert_eq!(hash_of_file(&target), hash);
        std::fs::remove_file(folder.path().join(hash.to_string())).unwrap();
    }
}
