//! Finished frames: they stay finished, and keep their bytes.

use crate::told::{Asked, Broken, JobSeen, broken};
use std::collections::BTreeMap;
use tessera_protocol::ids::{BlobHash, FrameNumber, JobId};

/// Frames that somebody was shown finished.
#[derive(Debug, Default)]
pub(crate) struct Frames(BTreeMap<JobId, BTreeMap<FrameNumber, (Asked, BlobHash)>>);

impl Frames {
    pub(crate) fn finished(
        &mut self,
        now: Asked,
        job: JobId,
        frame: FrameNumber,
        hash: BlobHash,
    ) -> Result<(), Broken> {
        let (_, first) = *self.0.entry(job).or_default().entry(frame).or_insert((now, hash));
        match first == hash {
            true => Ok(()),
            false => broken("P3", format!("{job}/{frame} is {hash} now, and was {first}")),
        }
    }

    pub(crate) fn unfinished(
        &self,
        asked: Asked,
        job: JobId,
        frame: FrameNumber,
    ) -> Result<(), Broken> {
        match self.0.get(&job).and_then(|frames| frames.get(&frame)) {
            Some((since, _)) if *since <= asked => {
                broken("P3", format!("{job}/{frame} was finished, and is not any more"))
            }
            _ => Ok(()),
        }
    }

    /// A job's count of frames.
    pub(crate) fn counted(&self, asked: Asked, seen: &JobSeen) -> Result<(), Broken> {
        let JobSeen { job, frames, frames_done, .. } = *seen;
        if frames_done > frames {
            return broken("P2", format!("job {job} has {frames_done} of {frames} frames"));
        }
        let known = self.0.get(&job).into_iter().flat_map(BTreeMap::values);
        let finished = known.filter(|(since, _)| *since <= asked).count();
        match (frames_done as usize) < finished {
            true => broken(
                "P3",
                format!("job {job} has {frames_done} frames, and {finished} were finished before"),
            ),
            false => Ok(()),
        }
    }
}
