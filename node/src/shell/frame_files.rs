//! Puts the files of finished frames together where the farm's store has their pieces: makes and
//! puts them, or compares them with what another node has put. Beside the units, on the word of the
//! coordinator, who does it by itself where this does not work.

use crate::inputs::elsewhere::{There, fetch};
use quinn::Connection;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tessera_finishing::{FinishError, Frame, Inputs, Output, Outputs, Values, assemble, join};
use tessera_protocol::compute::Chunks;
use tessera_protocol::frame_files::{
    FilesOrder, FilesPurpose, FilesReply, FilesReport, FilesRequest,
};
use tessera_protocol::job::Bands;
use tessera_protocol::limits::{REASON_MAX, RESULT_BYTES_MAX};
use tessera_protocol::status::FrameFile;
use tessera_protocol::stream::{StoredPart, StreamKind};
use tessera_protocol::{BlobHash, Fingerprint, FrameNumber, JobId, JobKind};
use tessera_transport::FrameError;
use tessera_transport::blob::{hash_object, put_file};
use tessera_transport::close::cut;
use tessera_transport::error::chain;
use tessera_transport::frame::open_both;
use tokio::sync::Semaphore;

/// Orders that a node works on at a time. Each needs memory for one piece.
const AT_ONCE: usize = 2;
/// Longest wait for the coordinator's answer.
const ANSWER: Duration = Duration::from_secs(10);
/// Time for the report to arrive.
const DELIVERED: Duration = Duration::from_secs(60);

/// Why an order is not carried out.
#[derive(Debug, thiserror::Error)]
enum FilesError {
    #[error("the order is not one for the files of a frame: {0}")]
    Order(String),
    #[error("pieces of the frame cannot be read")]
    Pieces,
    #[error("the files cannot be made")]
    Make(#[source] FinishError),
    #[error("the farm's store does not take the files")]
    Put,
    #[error("what another node has put cannot be read")]
    Compare,
    #[error("the node stops")]
    Stopping,
}

/// Carries orders out in tasks of their own, which end with their sessions.
#[derive(Clone, Debug)]
pub(super) struct FrameFiles {
    folder: PathBuf,
    turns: Arc<Semaphore>,
}

impl FrameFiles {
    /// `folder`: for what is read and made. Nothing stays in it.
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, turns: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    /// Begins with an order of a session.
    pub(super) fn begin(&self, connection: Connection, order: u64) {
        let own = self.clone();
        tokio::spawn(async move {
            let closed = connection.closed();
            tokio::select! {
                served = own.serve(&connection, order) => if let Err(error) = served {
                    tracing::debug!(error = chain(&error), "files of a frame are not made here");
                },
                _ = closed => {}
            }
        });
    }

    async fn serve(&self, connection: &Connection, order: u64) -> Result<(), FrameError> {
        // The semaphore is never closed.
        let _turn = self.turns.acquire().await;
        let (mut sender, mut receiver) = open_both(connection, StreamKind::FrameFiles).await?;
        sender.send(&FilesRequest { order }).await?;
        let FilesReply::Order(order) = receiver.expect(ANSWER).await? else { return Ok(()) };
        let report = carry_out(&self.folder, *order).await.unwrap_or_else(|error| {
            tracing::warn!(error = chain(&error), "the coordinator makes files of a frame itself");
            FilesReport::Failed(cut(&chain(&error), REASON_MAX).to_owned())
        });
        sender.send(&report).await?;
        sender.finish_and_deliver(DELIVERED).await
    }
}

async fn carry_out(folder: &Path, order: FilesOrder) -> Result<FilesReport, FilesError> {
    let kind = checked(&order)?;
    let FilesOrder { addresses, pieces, purpose, .. } = order;
    let there = There { addresses, parts: pieces, is_bands: false };
    let inputs = fetch(folder, there).await.map_err(|_| FilesError::Pieces)?;
    let outputs = TemporaryFiles::new(folder);
    let about = About {
        job: order.job,
        frame: order.frame,
        fingerprint: order.fingerprint,
        samples: (order.samples, order.samples_mean),
    };
    let making = tokio::task::spawn_blocking(move || about.make(&kind, &inputs, outputs));
    let made = making.await.map_err(|_| FilesError::Stopping)?.map_err(FilesError::Make)?;
    let files: Vec<FrameFile> = made.iter().map(|(file, _)| file.clone()).collect();
    if made.len() != purpose.addresses().len() {
        return Err(FilesError::Order(format!("{} files have other addresses", made.len())));
    }
    tracing::debug!(job = %order.job, frame = %order.frame, "files of a frame put together");
    match purpose {
        FilesPurpose::Put(addresses) => {
            for (address, (file, bytes)) in addresses.iter().zip(made) {
                if !put_file(address, bytes, file.length).await {
                    return Err(FilesError::Put);
                }
            }
            Ok(FilesReport::Made(files))
        }
        FilesPurpose::Compare(addresses) => {
            for (address, file) in addresses.iter().zip(&files) {
                match hash_object(address, file.length).await {
                    Some(there) if there == (file.hash, file.length) => {}
                    Some(_) => return Ok(FilesReport::Differs(files)),
                    None => return Err(FilesError::Compare),
                }
            }
            Ok(FilesReport::Made(files))
        }
    }
}

/// Returns what the job of an order is, after a check of what it names.
fn checked(order: &FilesOrder) -> Result<JobKind, FilesError> {
    let spec = order.spec.as_ref().clone().check();
    let spec = spec.map_err(|error| FilesError::Order(error.to_string()))?;
    let due = match &spec.kind {
        JobKind::Render(spec) => Bands::of(spec).units(),
        JobKind::Compute(spec) => Chunks::of(spec).units(),
    };
    let fit = |piece: &StoredPart| piece.length > 0 && piece.length as usize <= RESULT_BYTES_MAX;
    match order.pieces.len() == due as usize && order.pieces.iter().all(fit) {
        true => Ok(spec.kind),
        false => {
            let found = order.pieces.len();
            Err(FilesError::Order(format!("{found} pieces where {due} are due")))
        }
    }
}

type Made = Vec<(FrameFile, File)>;

/// What files say of a frame.
struct About {
    job: JobId,
    frame: FrameNumber,
    fingerprint: Option<Fingerprint>,
    /// Samples per pixel, and their mean.
    samples: (u32, Option<f64>),
}

impl About {
    /// Makes the files of a frame from its pieces.
    fn make(
        &self,
        kind: &JobKind,
        inputs: &Inputs,
        outputs: TemporaryFiles,
    ) -> Result<Made, FinishError> {
        let Self { job, frame, fingerprint, samples: (samples, samples_mean) } = *self;
        let files = match kind {
            JobKind::Render(spec) => {
                let described = Frame { job, frame, spec, fingerprint, samples, samples_mean };
                join(&described, &mut inputs.in_order(), &outputs)?
            }
            JobKind::Compute(spec) => {
                assemble(&Values { job, frame, spec, fingerprint, results: inputs }, &outputs)?
            }
        };
        let mut finished = outputs.take();
        let with_bytes = files.into_iter().map(|file| {
            let place = finished.iter().position(|(hash, _)| *hash == file.hash);
            let (_, bytes) = finished.swap_remove(place.ok_or_else(no_such_file)?);
            Ok((file, bytes))
        });
        with_bytes.collect()
    }
}

fn no_such_file() -> FinishError {
    FinishError::Write(io::ErrorKind::NotFound.into())
}

type Finished = Arc<Mutex<Vec<(BlobHash, File)>>>;

/// Files without names in a folder, which are kept with their hashes once they are whole.
struct TemporaryFiles {
    folder: PathBuf,
    finished: Finished,
}

impl TemporaryFiles {
    fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), finished: Arc::default() }
    }

    fn take(self) -> Vec<(BlobHash, File)> {
        std::mem::take(&mut *self.finished.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Outputs for TemporaryFiles {
    fn begin(&self) -> Result<Box<dyn Output>, FinishError> {
        let file = tempfile::tempfile_in(&self.folder).map_err(FinishError::Write)?;
        Ok(Box::new(TemporaryFile { file, finished: self.finished.clone() }))
    }
}

struct TemporaryFile {
    file: File,
    finished: Finished,
}

impl Output for TemporaryFile {
    fn finish(mut self: Box<Self>) -> Result<(BlobHash, u64), FinishError> {
        let (hash, length) = hash_of(&mut self.file).map_err(FinishError::Write)?;
        let mut finished = self.finished.lock().unwrap_or_else(PoisonError::into_inner);
        finished.push((hash, self.file));
        Ok((hash, length))
    }
}

/// Returns the hash and the length of a whole file.
fn hash_of(file: &mut File) -> io::Result<(BlobHash, u64)> {
    file.seek(SeekFrom::Start(0))?;
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(file)?;
    Ok((BlobHash(*hasher.finalize().as_bytes()), hasher.count()))
}

impl Write for TemporaryFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for TemporaryFile {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        self.file.seek(position)
    }
}
