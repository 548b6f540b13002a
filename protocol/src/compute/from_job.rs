//! Inputs that are finished frames of another job: which frames, and how their files get into the
//! spec once they are there.

use super::input::{FrameInput, InputArray, InputFile};
use super::spec::ComputeSpec;
use crate::frames::FrameSet;
use crate::ids::{BlobHash, FrameNumber, JobId};
use crate::job::after::{After, Until};
use crate::job::error::{SpecError, wrong};
use crate::limits::FRAME_FILES_MAX;

impl ComputeSpec {
    /// Returns the inputs from a job.
    pub fn inputs_from(&self, job: JobId) -> impl Iterator<Item = &InputArray> {
        let is_from =
            move |input: &&InputArray| input.from.as_ref().is_some_and(|from| from.job == job);
        self.inputs.iter().filter(is_from)
    }

    /// Returns the frames of another job that this one reads: its only one for all, else those of
    /// the same numbers. The error is the first that is not there.
    pub fn frames_read(&self, of: &FrameSet) -> Result<Vec<FrameNumber>, FrameNumber> {
        if of.len() == 1 {
            return Ok(of.iter().collect());
        }
        match self.frames.iter().find(|number| of.position(*number).is_none()) {
            Some(missing) => Err(missing),
            None => Ok(self.frames.iter().collect()),
        }
    }

    /// Enters the files of an input from a job, one for all frames or one for each.
    pub fn set_found(&mut self, name: &str, files: Vec<InputFile>) {
        let Some(first) = files.first().copied() else { return };
        if let Some(input) = self.inputs.iter_mut().find(|input| input.name == name) {
            (input.hash, input.length) = (first.hash, first.length);
        }
        self.frame_inputs.retain(|input| input.name != name);
        if files.len() > 1 {
            self.frame_inputs.push(FrameInput { name: name.to_owned(), files });
            self.frame_inputs.sort_by(|a, b| a.name.cmp(&b.name));
        }
    }

    /// Drops what was found: the spec as it was submitted.
    pub fn forget_found(&mut self) {
        let Self { inputs, frame_inputs, .. } = self;
        for input in inputs.iter_mut().filter(|input| input.from.is_some()) {
            (input.hash, input.length) = (BlobHash::default(), 0);
            frame_inputs.retain(|of_frames| of_frames.name != input.name);
        }
    }
}

/// Checks that a job waits for the jobs that its inputs are from, until these are found. Nodes get
/// them found, and nothing of what the job waited for.
pub(crate) fn check(spec: &ComputeSpec, after: &[After]) -> Result<(), SpecError> {
    let from = spec.inputs.iter().filter_map(|input| Some((input, input.from.as_ref()?)));
    for (input, from) in from {
        let (name, job) = (&input.name, from.job);
        if !input.is_found()
            && !after.iter().any(|after| after.job == job && after.until == Until::Success)
        {
            let text = format!("`{name}` is from job {job}, whose success this job must wait for");
            return wrong("input", text);
        }
        let length = from.file.len();
        if !(1..=crate::limits::IDENTIFIER_MAX + ".npy".len()).contains(&length) {
            return wrong(
                "input",
                format!("`{name}` is from a file whose name has {length} bytes"),
            );
        }
        if spec.frames.len() as usize > FRAME_FILES_MAX {
            let text = format!("{} frames are more than {FRAME_FILES_MAX}", spec.frames.len());
            return wrong("input", format!("`{name}` is from a job: {text}"));
        }
    }
    Ok(())
}
