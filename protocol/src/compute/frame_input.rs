//! Inputs that have another file for each frame.

use super::input::{FrameInput, InputArray};
use super::spec::ComputeSpec;
use crate::ids::{BlobHash, FrameNumber};
use crate::job::error::{SpecError, wrong};
use crate::limits::FRAME_FILES_MAX;

impl ComputeSpec {
    /// Returns the inputs of a frame: those that have a file for each frame with that frame's. A
    /// feed is not looked at.
    pub fn inputs_at(&self, frame: FrameNumber) -> Vec<InputArray> {
        let position = self.frames.position(frame).unwrap_or(0) as usize;
        let mut inputs = self.inputs.clone();
        for FrameInput { name, files } in &self.frame_inputs {
            let input = inputs.iter_mut().find(|input| input.name == *name);
            if let (Some(input), Some(file)) = (input, files.get(position)) {
                (input.hash, input.length) = (file.hash, file.length);
            }
        }
        inputs
    }

    /// Returns the name, hash and length of the files of later frames.
    pub(super) fn later_files(&self) -> impl Iterator<Item = (&str, BlobHash, u64)> {
        self.frame_inputs.iter().flat_map(|input| {
            input.files.iter().skip(1).map(|file| (input.name.as_str(), file.hash, file.length))
        })
    }
}

/// Checks that every such input has a file for each frame, and that the files can be its values.
pub(super) fn check(spec: &ComputeSpec) -> Result<(), SpecError> {
    if !spec.frame_inputs.windows(2).all(|pair| pair[0].name < pair[1].name) {
        return wrong("input", "inputs with a file a frame must be in the order of their names");
    }
    let files: usize = spec.frame_inputs.iter().map(|input| input.files.len()).sum();
    if files > FRAME_FILES_MAX {
        let text = format!("{files} files for the frames are more than {FRAME_FILES_MAX}");
        return wrong("input", text);
    }
    for FrameInput { name, files } in &spec.frame_inputs {
        let Some(input) = spec.inputs.iter().find(|input| input.name == *name) else {
            return wrong("input", format!("`{name}` has files for frames, but is not an input"));
        };
        if spec.feed.as_ref() == Some(name) {
            let text = format!("`{name}` has a file for each frame, so no frame can be fed to it");
            return wrong("feed", text);
        }
        if files.len() as u64 != u64::from(spec.frames.len()) {
            let text =
                format!("`{name}` has {} files for {} frames", files.len(), spec.frames.len());
            return wrong("input", text);
        }
        if files.first().map(|file| (file.hash, file.length)) != Some((input.hash, input.length)) {
            return wrong("input", format!("`{name}` is not the first of its files"));
        }
        if let Some(file) = files.iter().find(|file| !input.fits(file.length)) {
            let text =
                format!("`{name}` of shape {:?} cannot have {} bytes", input.shape, file.length);
            return wrong("input", text);
        }
    }
    Ok(())
}
