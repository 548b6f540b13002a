//! Exposure that is metered in a job's first frame. The spec has it once that frame is finished.

use super::Job;
use crate::state::frame::Frame;
use tessera_protocol::ids::FrameNumber;
use tessera_protocol::job::{JobKind, JobSpec};

impl Job {
    /// Returns the frame in which the exposure is metered, as long as it is not known.
    pub(crate) fn to_be_metered(&self) -> Option<FrameNumber> {
        let frame = self.kind().render()?.metered_frame()?;
        let is_done = matches!(self.frame(frame), Some(Frame::Done(_)));
        (!is_done).then_some(frame)
    }

    /// Whether the frame in which the exposure is metered has failed, so that no other frame can
    /// be finished.
    pub(crate) fn lost_its_exposure(&self) -> bool {
        let frame = self.to_be_metered().and_then(|frame| self.frame(frame));
        matches!(frame, Some(Frame::Failed(_)))
    }

    /// Sets the exposure that was metered.
    pub(in crate::state) fn meter(&mut self, stops: f32) -> Result<(), String> {
        if self.to_be_metered().is_none() || !(-64.0..=64.0).contains(&stops) {
            return Err(format!("job {} is exposed by {stops} stops", self.id));
        }
        set_exposure(&mut self.spec, stops);
        Ok(())
    }

    /// Whether the job was submitted with this spec.
    pub(crate) fn was_submitted_as(&self, spec: &JobSpec) -> bool {
        let [mut own, spec] = [&self.spec, spec].map(|spec| {
            let mut spec = spec.clone();
            set_exposure(&mut spec, 0.0);
            if let JobKind::Compute(compute) = &mut spec.kind {
                compute.forget_found();
            }
            spec
        });
        self.undo.clone().apply(&mut own);
        own == spec
    }
}

/// Sets the exposure of a job whose exposure is metered.
fn set_exposure(spec: &mut JobSpec, stops: f32) {
    if let JobKind::Render(render) = &mut spec.kind
        && render.auto_exposure
    {
        render.exposure = stops;
    }
}
