//! Files of a frame that nodes put together where the farm's store has the pieces, so that no byte
//! of them passes this process: one node makes and puts them, another one makes them too and
//! compares. What does not work is done here.
//!
//! ```text
//! pieces ─► maker ─► its own objects ─► copies that it cannot write ─► blobs
//!                                            └─ compared by another node ─┘
//! ```

use super::desk::{FilesDesk, FilesWanted, Purpose};
use super::frame::Frame;
use super::order::{Joiner, ResolveOrder};
use crate::blobs::{Blobs, GuardedBlobs};
use crate::driver::event::Event;
use crate::spool::{ResultObject, ResultStore, SpoolIndex, SpoolKey, SpoolReader};
use std::sync::Arc;
use std::time::Duration;
use tessera_core::{Input, SessionId, Split};
use tessera_protocol::frame_files::FilesReport;
use tessera_protocol::job::JobKind;
use tessera_protocol::status::FrameFile;
use tessera_protocol::{BlobHash, NodeId, RawJobSpec, UnitIndex};
use tokio::sync::mpsc;
use uuid::Uuid;

/// Longest wait for a node to ask for its order.
const TAKEN_WITHIN: Duration = Duration::from_secs(5);
/// Longest wait for its report: as long as its addresses hold.
const DONE_WITHIN: Duration = Duration::from_secs(600);
/// Longest file that a store copies by itself. S3 does so up to 5 GiB, and lengths of objects have
/// 32 bits.
const COPIED_MAX: u64 = u32::MAX as u64;
/// Bytes that are read at once when two nodes contradict each other.
const READ_BYTES: usize = 1 << 20;

/// What this process has that takes part.
#[derive(Clone)]
pub(super) struct Means {
    pub(super) blobs: GuardedBlobs,
    pub(super) spools: Arc<dyn SpoolReader>,
    pub(super) desk: Arc<FilesDesk>,
    pub(super) events: mpsc::Sender<Event>,
}

/// What came of it.
pub(super) enum ByNodes {
    /// The files are blobs.
    Made(Vec<FrameFile>),
    /// Nodes cannot do it.
    Not,
    /// Two nodes contradict each other.
    Disputed(Dispute),
}

/// What two nodes said.
pub(super) struct Dispute {
    /// The one that put the files, and where they were copied to.
    maker: (NodeId, Vec<FrameFile>),
    objects: Objects,
    checker: (NodeId, Vec<FrameFile>),
}

/// Lets two nodes put the files together.
pub(super) async fn join(order: &ResolveOrder, means: &Means) -> ByNodes {
    let Some((maker, checker)) = pair(&order.by) else { return ByNodes::Not };
    let Some(wanted) = wanted(order, means).await else { return ByNodes::Not };
    let (Purpose::Put(new) | Purpose::Compare(new)) = &wanted.purpose;
    let of = |node| new.iter().map(|object| of_node(object, node)).collect::<Vec<_>>();
    // A node can still write to its own object, but not to the copy.
    let objects = Objects { key: wanted.key, own: of(maker.1), copies: of(NOBODY) };
    let made = join_to(&objects, wanted, (maker, checker), means).await;
    if !matches!(made, ByNodes::Disputed(_)) {
        objects.forget(means).await;
    }
    made
}

/// The objects of a frame's files, until they are blobs.
#[derive(Clone)]
struct Objects {
    key: SpoolKey,
    own: Vec<ResultObject>,
    copies: Vec<ResultObject>,
}

impl Objects {
    /// Deletes them. After a crash, the next start does.
    async fn forget(&self, means: &Means) {
        let all = self.own.iter().chain(&self.copies).map(|object| (self.key, *object));
        let (all, results): (Vec<_>, _) = (all.collect(), means.blobs.results());
        drop(tokio::task::spawn_blocking(move || results.forget(&all)).await);
    }
}

async fn join_to(
    objects: &Objects,
    wanted: FilesWanted,
    (maker, checker): (Joiner, Joiner),
    means: &Means,
) -> ByNodes {
    let Objects { key, own, copies } = objects.clone();
    let put = FilesWanted { purpose: Purpose::Put(own.clone()), ..wanted.clone() };
    let Some(FilesReport::Made(files)) = ask(means, maker.0, put).await else {
        return ByNodes::Not;
    };
    if files.len() != own.len() || files.iter().any(|file| file.length > COPIED_MAX) {
        return ByNodes::Not;
    }
    if !copied(means, key, own, copies.clone()).await {
        return ByNodes::Not;
    }
    let compare = FilesWanted { purpose: Purpose::Compare(copies.clone()), ..wanted };
    match ask(means, checker.0, compare).await {
        Some(FilesReport::Made(same)) if same == files => {
            if !adopted(means, key, copies, files.clone()).await {
                return ByNodes::Not;
            }
            tracing::debug!(job = %key.job, frame = %key.frame, maker = %maker.1,
                checker = %checker.1, "files of a frame were put by nodes");
            ByNodes::Made(files)
        }
        Some(FilesReport::Made(others) | FilesReport::Differs(others)) => {
            let (maker, checker) = ((maker.1, files), (checker.1, others));
            ByNodes::Disputed(Dispute { maker, objects: objects.clone(), checker })
        }
        _ => ByNodes::Not,
    }
}

/// The node of copies, which no node can write.
const NOBODY: NodeId = NodeId(Uuid::nil());

fn of_node(object: &ResultObject, node: NodeId) -> ResultObject {
    ResultObject { node, ..*object }
}

/// Returns the first two nodes that are not the same.
fn pair(by: &[Joiner]) -> Option<(Joiner, Joiner)> {
    let first = by.first()?;
    Some((*first, *by.iter().find(|other| other.1 != first.1)?))
}

/// Returns what nodes are to do, with names for new objects. None if something of the frame is on
/// the disk.
async fn wanted(order: &ResolveOrder, means: &Means) -> Option<FilesWanted> {
    let (order, spools) = (order.clone(), means.spools.clone());
    let looking = tokio::task::spawn_blocking(move || {
        let (job, frame) = (order.job, order.frame);
        let key = SpoolKey { job, frame };
        spools.elsewhere().filter(|_| order.extent.length == 0)?;
        let spool = SpoolIndex::read(&*spools, key, &order.extent).ok()?;
        let split = Split::of(&order.kind);
        let (fingerprint, rounds) = (order.fingerprint, order.rounds.as_ref());
        let (units, (samples, samples_mean), count) = match &order.kind {
            JobKind::Render(spec) => {
                let frame = Frame { job, frame, spec, fingerprint, spool: &spool, rounds };
                let about = frame.described();
                let units = split.units()..split.all_units();
                (units, (about.samples, about.samples_mean), spec.formats.len())
            }
            JobKind::Compute(spec) => (0..split.units(), (0, None), spec.extensions().len()),
        };
        let piece = |(place, unit)| Some((place, *spool.only(UnitIndex(unit)).ok()?));
        let pieces = (0..).zip(units).map(piece);
        Some(FilesWanted {
            key,
            spec: RawJobSpec::from(&order.kind),
            fingerprint,
            samples,
            samples_mean,
            pieces: pieces.collect::<Option<_>>()?,
            purpose: Purpose::Put(new_objects(count)),
            extent: order.extent,
        })
    });
    looking.await.ok().flatten()
}

/// Returns names of objects that were never used.
fn new_objects(count: usize) -> Vec<ResultObject> {
    let attempt = Uuid::now_v7();
    let object = |index: usize| {
        let name = BlobHash::of(format!("file {index} of {attempt}").as_bytes());
        ResultObject { node: NOBODY, name, length: 0 }
    };
    (0..count).map(object).collect()
}

/// Calls a node for an order. None if it does not report.
async fn ask(means: &Means, session: SessionId, wanted: FilesWanted) -> Option<FilesReport> {
    let mut placed = means.desk.place(session, wanted);
    let called = Event::MakeFiles { session, order: placed.number };
    means.events.send(called).await.ok()?;
    let taken = tokio::time::timeout(TAKEN_WITHIN, &mut placed.taken).await.ok()?;
    let report = tokio::time::timeout(DONE_WITHIN, taken.ok()?).await.ok()?.ok()?;
    if let FilesReport::Failed(reason) = &report {
        tracing::debug!(session = session.0, reason, "a node makes no files of a frame");
    }
    Some(report)
}

async fn copied(
    means: &Means,
    key: SpoolKey,
    from: Vec<ResultObject>,
    to: Vec<ResultObject>,
) -> bool {
    let results = means.blobs.results();
    let copying = tokio::task::spawn_blocking(move || {
        from.into_iter().zip(to).try_for_each(|(from, to)| results.copy(key, from, to))
    });
    let copied = copying.await;
    copied.is_ok_and(|copied| {
        copied.inspect_err(|error| tracing::warn!(%error, "files of a frame not copied")).is_ok()
    })
}

async fn adopted(
    means: &Means,
    key: SpoolKey,
    copies: Vec<ResultObject>,
    files: Vec<FrameFile>,
) -> bool {
    let blobs = means.blobs.clone();
    let adopting = tokio::task::spawn_blocking(move || {
        let mut each = copies.into_iter().zip(files);
        each.try_for_each(|(copy, file)| blobs.adopt((key, copy), (file.hash, file.length)))
    });
    let adopted = adopting.await;
    adopted.is_ok_and(|adopted| {
        let warn = |error: &crate::blobs::BlobError| {
            tracing::warn!(place = error.place, error = %error.source, "a file not stored");
        };
        adopted.inspect_err(warn).is_ok()
    })
}

impl Dispute {
    /// Says which of the two nodes were wrong, if the files are known now. Deletes what was put.
    pub(super) async fn settle(self, right: Option<Vec<FrameFile>>, means: &Means) {
        let (objects, results) = (self.objects.clone(), means.blobs.results());
        let finding = tokio::task::spawn_blocking(move || match right {
            Some(right) => self.wrong(&right, &*results),
            None => Vec::new(),
        });
        let wrong = finding.await.unwrap_or_default();
        objects.forget(means).await;
        let SpoolKey { job, frame } = objects.key;
        for node in wrong {
            tracing::warn!(%node, %job, %frame,
                "a node said something wrong about the files of a frame");
            let input = Box::new(Input::StoredWrong { node, job });
            // Without a driver, nobody wants to know.
            let _ = means.events.send(Event::Input(input)).await;
        }
    }

    fn wrong(&self, right: &[FrameFile], results: &dyn ResultStore) -> Vec<NodeId> {
        let there = |(object, file): (&ResultObject, &FrameFile)| {
            let read = |at, buffer: &mut [u8]| {
                results.read_exact_at(self.objects.key, *object, (at, buffer)).is_ok()
            };
            hash_of(read, file.length) == Some(file.hash)
        };
        let as_said = self.maker.1 == right && self.objects.copies.iter().zip(right).all(there);
        // Who says that something is wrong is right if it is.
        let checker_is_right = self.checker.1 == right && !as_said;
        let all = [(as_said, self.maker.0), (checker_is_right, self.checker.0)];
        all.into_iter().filter(|(is_right, _)| !is_right).map(|(_, node)| node).collect()
    }
}

/// Returns the hash of so many bytes; None if they cannot be read.
fn hash_of(read: impl Fn(u64, &mut [u8]) -> bool, length: u64) -> Option<BlobHash> {
    let (mut hasher, mut buffer) = (blake3::Hasher::new(), vec![0; READ_BYTES]);
    while hasher.count() < length {
        let count = (length - hasher.count()).min(READ_BYTES as u64) as usize;
        if !read(hasher.count(), &mut buffer[..count]) {
            return None;
        }
        hasher.update(&buffer[..count]);
    }
    Some(BlobHash(*hasher.finalize().as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spool::FolderResults;
    use crate::spool::contract::key;

    #[test]
    fn two_nodes_are_not_two_sessions_of_one() {
        let node = |number| NodeId(Uuid::from_u128(number));
        let at = |session, number| (SessionId(session), node(number));
        assert_eq!(pair(&[]), None);
        assert_eq!(pair(&[at(1, 5), at(2, 5)]), None);
        assert_eq!(pair(&[at(1, 5), at(2, 5), at(3, 6)]), Some((at(1, 5), at(3, 6))));
    }

    // promise: P7
    #[test]
    fn whoever_was_wrong_about_a_file_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let (key, results) = (key(1), FolderResults::new(folder.path().to_path_buf()));
        let (maker, checker) = (NodeId(Uuid::from_u128(1)), NodeId(Uuid::from_u128(2)));
        let file = |bytes: &[u8]| FrameFile {
            format: "exr".into(),
            hash: BlobHash::of(bytes),
            length: bytes.len() as u64,
            pixels_sha256: [0; 32],
        };
        let wrong = |there: &'static [u8], said: [&[u8]; 2]| {
            let copies = new_objects(1);
            results.put(key, copies[0], vec![there.into()]).unwrap();
            let objects = Objects { key, own: Vec::new(), copies };
            let [by_maker, by_checker] = said.map(|bytes| vec![file(bytes)]);
            let (maker, checker) = ((maker, by_maker), (checker, by_checker));
            Dispute { maker, objects, checker }.wrong(&[file(b"right")], &results)
        };
        assert_eq!(wrong(b"right", [b"right", b"other"]), [checker], "it names another file");
        assert_eq!(wrong(b"right", [b"right", b"right"]), [checker], "it denies what is there");
        assert_eq!(wrong(b"other", [b"right", b"right"]), [maker], "it put something else");
        assert_eq!(wrong(b"other", [b"other", b"right"]), [maker], "it made something else");
        assert_eq!(wrong(b"r", [b"right", b"right"]), [maker], "it put too little");
        assert_eq!(wrong(b"other", [b"other", b"third"]), [maker, checker]);
    }

    #[test]
    fn names_of_files_are_never_used_again() {
        let names = [new_objects(2), new_objects(2)].concat();
        let different: std::collections::BTreeSet<_> = names.iter().map(|one| one.name).collect();
        assert_eq!(different.len(), 4);
        assert!(names.iter().all(|one| one.node == NOBODY));
    }
}
