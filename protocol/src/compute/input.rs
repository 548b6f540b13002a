//! What a kernel reads: arrays from files, or from frames of another job.

use super::{Element, npy};
use crate::ids::{BlobHash, JobId};
use crate::limits::BLOB_BYTES_MAX;
use serde::{Deserialize, Serialize};

/// End of the name of a rendered frame's file that can be an input.
pub(crate) const PICTURE: &str = "exr";

/// An array that a kernel reads from a file, through the kernel's variable of this name: from a
/// `.npy` file, or from a frame of another job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputArray {
    /// Name of the variable.
    pub name: String,
    /// Hash of the file. Of an input from a job all zeros, until its frame is finished.
    pub hash: BlobHash,
    /// Length of the file in bytes; 0 as long as the hash is not known.
    pub length: u64,
    /// Type of the values, as the file's header says.
    pub element: Element,
    /// Shape of the array, as the file's header says; at most [`npy::AXES_MAX`] axes.
    pub shape: Vec<u64>,
    /// Job whose frames the input is from; None for a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<FromJob>,
}

impl InputArray {
    /// Returns whether a `.npy` file of this length can hold the array.
    pub(super) fn fits(&self, length: u64) -> bool {
        if self.from.is_some() {
            // A frame's file is compressed, and its length is not known from the beginning.
            return length <= BLOB_BYTES_MAX && self.bytes() <= BLOB_BYTES_MAX;
        }
        let values = self.shape.iter().try_fold(1u64, |product, axis| product.checked_mul(*axis));
        let bytes = values.and_then(|values| values.checked_mul(self.element.bytes() as u64));
        let most = npy::HEADER_BYTES_MAX as u64 + 12;
        length <= BLOB_BYTES_MAX && bytes.is_some_and(|b| b < length && length - b <= most)
    }
}

/// Hash and length of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputFile {
    /// Hash of the file.
    pub hash: BlobHash,
    /// Length of the file in bytes.
    pub length: u64,
}

/// The files of an input, one for each frame of the job. All of them have the element and the shape
/// that the input says, and the input itself is the first of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameInput {
    /// Name of the input.
    pub name: String,
    /// Files in the order of the frames.
    pub files: Vec<InputFile>,
}

/// Where an input from a job is found: the job that the other one waits for, and the file of its
/// frames. Each frame reads the frame of its number, or all of them the only one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FromJob {
    /// Job that makes the frames.
    pub job: JobId,
    /// End of the name of a frame's file: `exr` for a rendered frame; `npy`, or with the name of
    /// an output `flux.npy`, for a result.
    pub file: String,
}

impl InputArray {
    /// Returns the size of the values in bytes.
    pub fn bytes(&self) -> u64 {
        let edges = self.shape.iter().fold(1u64, |product, edge| product.saturating_mul(*edge));
        edges.saturating_mul(self.element.bytes() as u64)
    }

    /// Returns whether the file is known.
    pub fn is_found(&self) -> bool {
        self.hash != BlobHash::default()
    }

    /// Returns whether the file is a picture, whose channels are the last axis.
    pub fn is_picture(&self) -> bool {
        self.from.as_ref().is_some_and(|from| from.file == PICTURE)
    }
}
