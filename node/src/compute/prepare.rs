//! Fetches, checks and reads the files of a compute job. Blocks only its own task.

use super::array_file::{unreadable, words_for};
use super::values::builtin_numbers;
use super::{Header, LoadedArray, PreparedCompute, Source, next_id, picture};
use crate::frame_memory::{Claim, Held, NotPrepared};
use crate::scene::fetch::Fetcher;
use std::collections::VecDeque;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tessera_kernels::compute::builtin;
use tessera_protocol::compute::{ComputeSpec, InputArray, Program, npy};
use tessera_protocol::job::AssetFile;
use tessera_protocol::node::{Failure, LimitReached, MemoryShortage, NodeLimit};
use tessera_protocol::{BlobHash, FrameNumber};
use tessera_transport::error::chain;

/// Number of frames that are kept for their next units. Their inputs stay in memory.
const RECENT_MAX: usize = 2;

/// A frame with its feed.
type Recent = (Option<BlobHash>, Arc<PreparedCompute>);

/// Prepares frames, and keeps the last ones.
pub(crate) struct Preparations {
    recent: Mutex<VecDeque<Recent>>,
    /// The most memory of any device in bytes; 0 if it is not known. A smaller device reports by
    /// itself if a frame does not fit.
    device_bytes: u64,
    /// Memory of this machine in bytes; 0 if it is not known.
    host_bytes: u64,
    /// Limit in bytes for the inputs of frames that are kept. Inputs in use do not count.
    kept_bytes: u64,
}

impl Preparations {
    pub(crate) fn new(device_bytes: u64, host_bytes: u64, kept_bytes: u64) -> Self {
        Self { recent: Mutex::default(), device_bytes, host_bytes, kept_bytes }
    }

    fn recent(&self) -> MutexGuard<'_, VecDeque<Recent>> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks the memory before anything is fetched: neither the node nor one of its devices can
    /// hold more than its memory.
    fn check_memory(&self, spec: &ComputeSpec) -> Result<(), Failure> {
        let needed = needed_for(spec);
        let reason = |what: &str, have: u64| {
            format!("the inputs of the job need {needed} bytes, {what} has {have}")
        };
        let is_short = |have: u64| have > 0 && needed > have;
        if is_short(self.device_bytes) {
            let available = self.device_bytes;
            let reason = reason("the largest device of this node", available);
            let shortage = MemoryShortage { device: 0, needed, available, reason };
            return Err(Failure::OutOfMemory(shortage));
        }
        if is_short(self.host_bytes) {
            let reason = reason("this node", self.host_bytes);
            return Err(Failure::Limit(LimitReached { limit: NodeLimit::Memory, reason }));
        }
        Ok(())
    }

    /// Keeps a frame for its next units, if there is room.
    fn keep(&self, feed: Option<BlobHash>, job: Arc<PreparedCompute>) {
        let mut recent = self.recent();
        recent.push_back((feed, job));
        let bytes = |recent: &VecDeque<Recent>| {
            recent.iter().map(|(_, job)| job.input_bytes()).sum::<u64>()
        };
        while recent.len() > RECENT_MAX || bytes(&recent) > self.kept_bytes {
            if recent.pop_front().is_none() {
                return;
            }
        }
    }

    /// Prepares a frame, or returns it from memory. `feed` is the result of the previous frame, if
    /// there is one. `views` is a folder for temporary files, and `claim` the memory of the frame.
    pub(crate) async fn prepare(
        &self,
        (fetcher, views): (&Fetcher, &Path),
        spec: &ComputeSpec,
        (number, feed): (FrameNumber, Option<BlobHash>),
        claim: &Claim,
    ) -> Result<Arc<PreparedCompute>, NotPrepared> {
        let is_it = |(fed, job): &&Recent| *fed == feed && job.frame == number && job.spec == *spec;
        let found = self.recent().iter().find(is_it).map(|(_, job)| job.clone());
        if let Some(job) = found {
            claim.settle(arrays_of(&job));
            return Ok(job);
        }
        self.check_memory(spec)?;
        claim.expect(needed_for(spec))?;
        let job = Arc::new(prepare(fetcher, views, spec, (number, feed)).await?);
        claim.settle(arrays_of(&job));
        self.keep(feed, job.clone());
        Ok(job)
    }
}

/// Returns the memory for the inputs of a job.
fn needed_for(spec: &ComputeSpec) -> u64 {
    spec.inputs.iter().fold(0u64, |sum, input| sum.saturating_add(input.bytes()))
}

fn arrays_of(job: &PreparedCompute) -> Vec<Held> {
    let of = |array: &LoadedArray| Held {
        address: array.words.as_ptr() as usize,
        bytes: array.length as u64,
    };
    job.arrays.iter().map(of).collect()
}

/// Reads the files of a frame.
async fn prepare(
    fetcher: &Fetcher,
    views: &Path,
    spec: &ComputeSpec,
    (number, feed): (FrameNumber, Option<BlobHash>),
) -> Result<PreparedCompute, Failure> {
    let id = next_id();
    let folder = Folder::new(views)?;
    let source = source(fetcher, &folder, spec).await?;
    let mut arrays = Vec::new();
    for input in &spec.inputs_at(number) {
        let fed = feed.filter(|_| spec.feed.as_ref() == Some(&input.name));
        let wanted = match fed {
            // The previous frame is an array of the same shape and type, with a header that we
            // wrote.
            Some(hash) => {
                let header = npy::header_bytes(input.element, &input.shape).len() as u64;
                let values = input.shape.iter().product::<u64>() * input.element.bytes() as u64;
                InputArray { hash, length: header + values, from: None, ..input.clone() }
            }
            None => input.clone(),
        };
        let path = folder.place(fetcher, &wanted.name, wanted.hash, wanted.length).await?;
        let read = tokio::task::spawn_blocking(move || load(&path, &wanted)).await;
        arrays.push(
            read.map_err(|error| Failure::Asset(format!("reading an input failed: {error}")))??,
        );
    }
    Ok(PreparedCompute { id, spec: spec.clone(), frame: number, source, arrays })
}

async fn source(fetcher: &Fetcher, folder: &Folder, spec: &ComputeSpec) -> Result<Source, Failure> {
    let file = match &spec.program {
        Program::Builtin(name) => {
            builtin_numbers(name, spec).map_err(|error| Failure::Program(chain(&error)))?;
            let kernel = builtin(name);
            return kernel
                .map(Source::Builtin)
                .ok_or_else(|| Failure::Program(format!("no kernel `{name}`")));
        }
        Program::Ptx(file) | Program::Cuda(file) => file,
    };
    let kernel = text(fetcher, (folder, "kernel"), file).await?;
    if matches!(spec.program, Program::Ptx(_)) {
        return Ok(Source::Ptx(kernel.into()));
    }
    let mut headers = Vec::new();
    for (index, file) in spec.headers.iter().enumerate() {
        let place = format!("header-{index}");
        let text = text(fetcher, (folder, &place), file).await?;
        headers.push(Header { name: file.path.clone(), text });
    }
    Ok(Source::Cuda(kernel.into(), headers.into()))
}

/// Reads a source file of the job.
async fn text(
    fetcher: &Fetcher,
    (folder, place): (&Folder, &str),
    file: &AssetFile,
) -> Result<String, Failure> {
    let path = folder.place(fetcher, place, file.hash, file.length).await?;
    let bytes = tokio::fs::read(&path).await.map_err(|error| unreadable(&path, &error))?;
    String::from_utf8(bytes)
        .map_err(|_| Failure::Program(format!("`{}` is not UTF-8 text", file.path)))
}

/// Files of one preparation. They are deleted with it.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new(views: &Path) -> Result<Self, Failure> {
        let made = tempfile::Builder::new().prefix("compute-").tempdir_in(views);
        made.map(Self).map_err(|error| unreadable(views, &error))
    }

    async fn place(
        &self,
        fetcher: &Fetcher,
        name: &str,
        hash: BlobHash,
        length: u64,
    ) -> Result<PathBuf, Failure> {
        let path = self.0.path().join(format!("{name}-{hash}"));
        fetcher.place(hash, length, &path).await.map_err(|error| error.into_failure(None))?;
        Ok(path)
    }
}

/// Reads an array whose header must match the job.
fn load(path: &Path, input: &InputArray) -> Result<LoadedArray, Failure> {
    if input.is_picture() {
        return picture::load(path, input);
    }
    let failed = |error: std::io::Error| unreadable(path, &error);
    let mut file = File::open(path).map_err(failed)?;
    let mut head = Vec::new();
    let head_bytes = npy::HEADER_BYTES_MAX as u64 + 12;
    file.by_ref().take(head_bytes).read_to_end(&mut head).map_err(failed)?;
    let named = |problem: String| Failure::Program(format!("input `{}`: {problem}", input.name));
    let header =
        npy::Header::read(&head, input.length).map_err(|error| named(error.to_string()))?;
    if (header.element, &header.shape) != (input.element, &input.shape) {
        let found = format!("{} {:?}", header.element, header.shape);
        return Err(named(format!(
            "its header says {found}, the job {} {:?}",
            input.element, input.shape
        )));
    }
    let length = usize::try_from(input.length - header.data_offset as u64)
        .map_err(|_| named("it is larger than this machine's memory".into()))?;
    let mut words = words_for(input, length)?;
    let bytes: &mut [u8] = &mut bytemuck::must_cast_slice_mut(&mut words)[..length];
    let (first, rest) =
        bytes.split_at_mut(head.len().saturating_sub(header.data_offset).min(length));
    first.copy_from_slice(&head[header.data_offset..header.data_offset + first.len()]);
    file.read_exact(rest).map_err(failed)?;
    Ok(LoadedArray {
        name: input.name.clone(),
        element: input.element,
        shape: input.shape.clone(),
        words,
        length,
    })
}

#[cfg(test)]
#[path = "prepare_tests.rs"]
mod tests;
