//! The receiving half of a transfer: bytes arrive while the former ones are written and hashed.

use super::{BlobError, BlobSink, SinkError, blocking, file_error};
use crate::stream::frame::{FrameError, FrameReceiver};
use crate::timing::Timing;
use bytes::Bytes;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tessera_protocol::BlobHash;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::JoinHandle;

/// Bytes that are written and hashed at once. Packets are small, but files and hashes are faster
/// with large steps.
const STEP_BYTES: usize = 1 << 20;
/// The same for a transfer that gets no place among the large steps.
const SMALL_STEP_BYTES: usize = 64 << 10;
/// Large steps of all transfers of this process at a time, so that many transfers together hold
/// little: 64 MiB, and at most two small steps each.
static LARGE_STEPS: Semaphore = Semaphore::const_new(64);
/// Longest time in which a step collects bytes, so that a slow line that is cut again and again
/// still gets on.
const STEP_TIME: Duration = Duration::from_millis(500);
/// Pieces that are taken from QUIC at once.
const PIECES: usize = 64;

/// A sink whose blocking calls run on threads for blocking work. A thread is only taken for bytes
/// that are there, so a slow peer occupies none.
pub(super) struct Filling<S>(Arc<Mutex<S>>);

impl<S> Filling<S> {
    pub(super) fn new(sink: S) -> Self {
        Self(Arc::new(Mutex::new(sink)))
    }
}

impl<S: BlobSink + 'static> Filling<S> {
    /// Runs a function on the sink that may block.
    pub(super) async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut S) -> T + Send + 'static,
    ) -> io::Result<T> {
        let sink = self.0.clone();
        blocking(move || work(&mut sink.lock().unwrap_or_else(PoisonError::into_inner))).await
    }

    /// Returns the number of bytes so far.
    pub(super) fn held(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).held()
    }

    /// Reads raw bytes from a stream until there are `length` bytes. Received bytes are written
    /// even if this fails. At most two steps are in memory: one that arrives, and one that is
    /// written.
    pub(super) async fn fill(
        &self,
        receiver: &mut impl Source,
        (length, path): (u64, &Path),
        timing: &Timing,
        progress: &mut (dyn FnMut(u64) + Send),
    ) -> Result<(), BlobError> {
        let mut held = self.held();
        let (mut step, mut writing) = (Step::default(), None);
        let mut result = Ok(());
        while held < length && result.is_ok() {
            result = gather(receiver, &mut step, length - held, timing).await;
            held += step.bytes.len() as u64;
            let spare = match writing.take() {
                Some(writing) => written(writing).await.map_err(file_error(path))?,
                None => Step::default(),
            };
            writing = Some(self.write(std::mem::replace(&mut step, spare)));
            progress(held);
        }
        if let Some(writing) = writing {
            written(writing).await.map_err(file_error(path))?;
        }
        Ok(result?)
    }

    /// Begins to write a step, and gives its emptied buffer back.
    fn write(&self, mut step: Step) -> JoinHandle<io::Result<Step>> {
        let sink = self.0.clone();
        tokio::task::spawn_blocking(move || {
            let mut sink = sink.lock().unwrap_or_else(PoisonError::into_inner);
            sink.write(&step.bytes)?;
            step.bytes.clear();
            if step.large.take().is_none() {
                step.bytes.shrink_to(SMALL_STEP_BYTES);
            }
            Ok(step)
        })
    }

    /// Checks and syncs a complete blob.
    pub(super) async fn finish(&self, hash: BlobHash, path: &Path) -> Result<(), BlobError> {
        let finished = self.with(S::finish).await.map_err(file_error(path))?;
        finished.map_err(|error| match error {
            SinkError::Corrupt { found } => BlobError::Corrupt { hash, found },
            SinkError::Io(source) => file_error(path)(source),
        })
    }
}

/// Where the bytes of a blob come from.
pub(super) trait Source {
    /// Takes pieces as they come, and returns their number; None at the end. Nothing is lost if the
    /// returned future is dropped.
    fn some(
        &mut self,
        pieces: &mut [Bytes],
    ) -> impl Future<Output = Result<Option<usize>, FrameError>> + Send;
}

impl Source for FrameReceiver {
    async fn some(&mut self, pieces: &mut [Bytes]) -> Result<Option<usize>, FrameError> {
        self.receive_pieces(pieces).await
    }
}

/// Bytes that are written at once.
#[derive(Default)]
struct Step {
    bytes: Vec<u8>,
    /// The place of a large step.
    large: Option<SemaphorePermit<'static>>,
}

impl Step {
    /// Returns whether nothing more is collected, and takes a place for a large step where one is
    /// free.
    fn is_full(&mut self, left: usize) -> bool {
        if self.large.is_none() && self.bytes.len() >= SMALL_STEP_BYTES {
            self.large = LARGE_STEPS.try_acquire().ok();
        }
        let most = if self.large.is_some() { STEP_BYTES } else { SMALL_STEP_BYTES };
        self.bytes.len() >= left.min(most)
    }
}

async fn written(writing: JoinHandle<io::Result<Step>>) -> io::Result<Step> {
    writing.await.map_err(io::Error::other)?
}

/// Collects the bytes of a step from a stream: at least one, at most `left`, and a little more than
/// a step if the last pieces are large. The step grows with what arrives. Leaves in it what came
/// before an error.
async fn gather(
    receiver: &mut impl Source,
    step: &mut Step,
    left: u64,
    timing: &Timing,
) -> Result<(), FrameError> {
    let left = usize::try_from(left).unwrap_or(usize::MAX);
    let mut pieces = [const { Bytes::new() }; PIECES];
    // One timer a step, not one a read.
    let pause = STEP_TIME.min(timing.answer);
    let (mut silent, timer) = (Duration::ZERO, tokio::time::sleep(pause));
    tokio::pin!(timer);
    while !step.is_full(left) {
        let read = tokio::select! {
            biased;
            read = receiver.some(&mut pieces) => read?,
            () = &mut timer => {
                silent += pause;
                match step.bytes.is_empty() {
                    false => return Ok(()),
                    true if silent >= timing.answer => {
                        return Err(FrameError::Silent(timing.answer));
                    }
                    true => timer.as_mut().reset(tokio::time::Instant::now() + pause),
                }
                continue;
            }
        };
        let Some(count) = read else { return Err(FrameError::Cut) };
        for piece in &mut pieces[..count] {
            step.bytes.extend_from_slice(&std::mem::take(piece));
        }
        // Nobody has asked for what follows the last byte.
        step.bytes.truncate(left);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_steps_of_many_transfers_have_a_bound() {
        let small = || Step { bytes: vec![0; SMALL_STEP_BYTES], large: None };
        let mut steps: Vec<Step> = (0..100).map(|_| small()).collect();
        let full: Vec<bool> = steps.iter_mut().map(|step| step.is_full(usize::MAX)).collect();
        assert!(full.iter().filter(|full| !**full).count() <= 64);
        assert!(full[99], "a transfer beyond the bound writes small steps");
        assert!(steps[0].is_full(SMALL_STEP_BYTES), "nothing is left");
        drop(steps);
        assert!(!small().is_full(usize::MAX), "places are given back");
    }
}
