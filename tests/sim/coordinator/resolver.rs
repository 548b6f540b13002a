//! The coordinator's resolver: makes a frame's files or measures a round, or fails to.

use crate::checks::violation::Checked;
use crate::faults::Fault;
use crate::model::tasks::file_hash;
use crate::world::World;
use tessera_core::{Input, ResolveFailure, TileSet};
use tessera_protocol::ids::{FrameNumber, JobId};
use tessera_protocol::status::FrameFile;

/// Length of every file: a gigabyte, so that its space is worth something in seconds.
const FILE_BYTES: u64 = 1_000_000_000;

impl World {
    /// The resolver of the coordinator is done with a frame, one way or the other.
    pub(crate) fn on_resolved(&mut self, job: JobId, frame: FrameNumber) -> Checked {
        let retry = |text: &str| ResolveFailure::Retry(text.to_owned());
        if self.chance(Fault::ResolveRetry) {
            return self.input(Input::FrameResolveFailed {
                job,
                frame,
                failure: retry("the disk is full"),
            });
        }
        if self.chance(Fault::ResolveFatal) {
            let failure = ResolveFailure::Fatal("no format takes it".to_owned());
            return self.input(Input::FrameResolveFailed { job, frame, failure });
        }
        if self.chance(Fault::ResolveLost) {
            let failure =
                ResolveFailure::Lost(self.some_committed(job, frame), "it is torn".to_owned());
            return self.input(Input::FrameResolveFailed { job, frame, failure });
        }
        if let Some(failure) = self.unreadable(job, frame) {
            return self.input(Input::FrameResolveFailed { job, frame, failure });
        }
        let Some(book) = self.ledger.believed.jobs.get(&job) else { return Ok(()) };
        let file = |extension: String| FrameFile {
            format: extension,
            hash: file_hash(job, frame),
            length: FILE_BYTES,
            pixels_sha256: [2; 32],
        };
        self.blobs.put(file_hash(job, frame), self.now);
        let mut files: Vec<FrameFile> = book.kind().extensions().into_iter().map(file).collect();
        if self.chance(Fault::ResolveMiscount) {
            files.pop();
        }
        if self.chance(Fault::ResolveRepeated) {
            self.input(Input::FrameResolved { job, frame, files: files.clone(), exposure: None })?;
            self.input(Input::FrameResolveFailed { job, frame, failure: retry("late") })?;
        }
        self.input(Input::FrameResolved { job, frame, files, exposure: None })
    }

    /// The resolver has measured a round of a frame, or could not.
    pub(crate) fn on_measured(
        &mut self,
        job: JobId,
        frame: FrameNumber,
        (round, noisy): (u32, TileSet),
    ) -> Checked {
        if self.chance(Fault::ResolveRetry) {
            let failure = ResolveFailure::Retry("the disk does not answer".to_owned());
            return self.input(Input::FrameResolveFailed { job, frame, failure });
        }
        if let Some(failure) = self.unreadable(job, frame) {
            return self.input(Input::FrameResolveFailed { job, frame, failure });
        }
        if self.chance(Fault::ResolveRepeated) {
            self.input(Input::RoundMeasured { job, frame, round, noisy: noisy.clone() })?;
        }
        self.input(Input::RoundMeasured { job, frame, round, noisy })
    }
}
