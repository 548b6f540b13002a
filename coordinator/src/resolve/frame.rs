//! A frame that is to be resolved: its options, its results and its rounds.

use crate::spool::SpoolIndex;
use tessera_core::FrameRounds;
use tessera_protocol::job::RenderSpec;
use tessera_protocol::{Fingerprint, FrameNumber, JobId};

/// A frame that has all its units in its spool.
#[derive(Debug)]
pub struct Frame<'a> {
    /// Job of the frame.
    pub job: JobId,
    /// Number of the frame.
    pub frame: FrameNumber,
    /// Options of the job.
    pub spec: &'a RenderSpec,
    /// Fingerprint of the results.
    pub fingerprint: Option<Fingerprint>,
    /// Results of the frame.
    pub spool: &'a SpoolIndex,
    /// Rounds of each tile; None for a frame that is not sampled in rounds.
    pub rounds: Option<&'a FrameRounds>,
}

impl Frame<'_> {
    /// Returns what files say of the frame.
    pub(crate) fn described(&self) -> tessera_finishing::Frame<'_> {
        tessera_finishing::Frame {
            job: self.job,
            frame: self.frame,
            spec: self.spec,
            fingerprint: self.fingerprint,
            samples: self.samples(),
            samples_mean: self.rounds.map(FrameRounds::mean_samples),
        }
    }

    /// Returns the samples per pixel. With a noise, it is the most that a pixel has.
    fn samples(&self) -> u32 {
        match (self.spec.time_secs, self.rounds) {
            (Some(_), Some(rounds)) => rounds.newest_samples(),
            _ => self.spec.spp,
        }
    }
}
