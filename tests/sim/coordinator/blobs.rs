//! The coordinator's blobs, by name and age: what clients upload, what frames are written to, and
//! the sweep that removes what no job names. Blobs survive crashes. No bytes are kept.

use crate::checks::violation::{Checked, violated};
use crate::model::tasks::file_hash;
use crate::situations::sometimes;
use crate::world::World;
use crate::world::events::Event;
use std::collections::{BTreeMap, BTreeSet};
use tessera_protocol::compute::Program;
use tessera_protocol::ids::{BlobHash, FrameNumber, JobId};
use tessera_protocol::job::JobKind;

/// Younger blobs stay, so that an upload does not lose to a sweep before its job is submitted;
/// milliseconds.
const GRACE: u64 = 6_000;
/// A blob goes in the second round that finds it without a name.
const ROUND: u64 = 2_500;

/// A blob on the disk.
#[derive(Clone, Copy, Debug)]
struct Blob {
    written: u64,
    marked: bool,
}

/// All blobs.
#[derive(Debug, Default)]
pub(crate) struct Blobs(BTreeMap<BlobHash, Blob>);

impl Blobs {
    pub(crate) fn put(&mut self, hash: BlobHash, now: u64) {
        self.0.insert(hash, Blob { written: now, marked: false });
    }

    pub(crate) fn has(&self, hash: BlobHash) -> bool {
        self.0.contains_key(&hash)
    }

    /// One round; gives how many went.
    fn sweep(&mut self, named: &BTreeSet<BlobHash>, now: u64) -> usize {
        let before = self.0.len();
        self.0.retain(|hash, blob| {
            let garbage = !named.contains(hash) && blob.written + GRACE <= now;
            let stays = !(garbage && blob.marked);
            blob.marked = garbage;
            stays
        });
        before - self.0.len()
    }
}

/// What a job reads.
pub(crate) fn inputs(kind: &JobKind) -> Vec<BlobHash> {
    match kind {
        JobKind::Render(render) => render.files.iter().map(|file| file.hash).collect(),
        JobKind::Compute(compute) => {
            let program = match &compute.program {
                Program::Ptx(file) | Program::Cuda(file) => Some(file.hash),
                Program::Builtin(_) => None,
            };
            let inputs = compute.inputs.iter().filter(|input| input.is_found());
            let frames = compute.frame_inputs.iter().flat_map(|input| &input.files);
            let found = inputs.map(|input| input.hash).chain(frames.map(|file| file.hash));
            found.chain(program).collect()
        }
    }
}

impl World {
    /// A client uploads what its job reads.
    pub(crate) fn upload(&mut self, index: usize) {
        for hash in inputs(&self.clients.jobs[index].plan.spec.kind) {
            self.blobs.put(hash, self.now);
        }
    }

    /// The coordinator removes what no job names.
    pub(crate) fn sweep_blobs(&mut self) {
        self.after(ROUND, Event::Sweep);
        let Some(process) = &self.shell.process else { return };
        if self.is_stopped() || self.is_stale() {
            return;
        }
        // What a job has named may go once its end is durable: a crash before that opens the job
        // again.
        if process.is_behind() {
            return;
        }
        let mut named: BTreeSet<BlobHash> = process.core.named_blobs().into_iter().collect();
        if self.planted.as_ref().is_some_and(|planted| planted.forgets_inputs()) {
            let open = self.ledger.durable.jobs.values().filter(|book| book.ended.is_none());
            let read: BTreeSet<BlobHash> = open.flat_map(|book| inputs(book.kind())).collect();
            named.retain(|hash| !read.contains(hash));
        }
        let gone = self.blobs.sweep(&named, self.now);
        sometimes!(self, GarbageSwept, gone > 0);
    }

    /// A node fetches what a unit needs.
    pub(crate) fn fetch_inputs(&self, job: JobId, kind: &JobKind) -> Checked {
        // Word of a unit may come to a slow node long after its job has ended.
        if self.ledger.believed.jobs.get(&job).is_none_or(|book| book.ended.is_some()) {
            return Ok(());
        }
        match inputs(kind).into_iter().find(|hash| !self.blobs.has(*hash)) {
            Some(hash) => violated(format!("blob {hash} of job {job}, which goes on, is gone")),
            None => Ok(()),
        }
    }

    /// A client fetches a finished frame.
    pub(crate) fn fetch_frame(&self, job: JobId, frame: FrameNumber) -> Checked {
        match self.blobs.has(file_hash(job, frame)) {
            true => Ok(()),
            false => violated(format!("the file of {job}/{frame}, which is finished, is gone")),
        }
    }
}
