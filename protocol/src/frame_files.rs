//! Files of finished frames that nodes put into the farm's store, so that their bytes do not pass
//! the coordinator: one node puts them together, and another one looks at what is there.

use crate::addresses::Addresses;
use crate::ids::{Fingerprint, FrameNumber, JobId};
use crate::job::RawJobSpec;
use crate::status::FrameFile;
use crate::stream::StoredPart;
use serde::{Deserialize, Serialize};

/// Asks what a node was called for ([`crate::node::CoordinatorToNode::MakeFiles`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilesRequest {
    /// Number of the order.
    pub order: u64,
}

/// Answers a [`FilesRequest`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum FilesReply {
    /// What is to be done. The node ends with a [`FilesReport`].
    Order(Box<FilesOrder>),
    /// There is nothing to do any more.
    Over,
}

/// The files of a frame are to be put together from its pieces, or from the chunks of a compute
/// job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FilesOrder {
    /// Job of the frame.
    pub job: JobId,
    /// Number of the frame.
    pub frame: FrameNumber,
    /// Spec of the job. Only its kind is set, with the exposure that was metered.
    pub spec: Box<RawJobSpec>,
    /// Fingerprint of the frame's results, which the files name.
    pub fingerprint: Option<Fingerprint>,
    /// Samples per pixel, which the files of a picture name. With a noise, it is the most that a
    /// pixel has.
    pub samples: u32,
    /// Mean of the samples per pixel, in frames that are sampled to a noise.
    pub samples_mean: Option<f64>,
    /// Addresses of the objects with pieces.
    pub addresses: Addresses,
    /// The pieces in the order of their units, each with its position as place.
    pub pieces: Vec<StoredPart>,
    /// What is to be done with the files.
    pub purpose: FilesPurpose,
}

/// What is to be done with the files of a frame. There is an address for each of them, in the order
/// in which they are made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FilesPurpose {
    /// They are put there, if nothing is there.
    Put(Vec<String>),
    /// They are compared with what another node has put there.
    Compare(Vec<String>),
}

impl FilesPurpose {
    /// Returns the addresses.
    pub fn addresses(&self) -> &[String] {
        match self {
            Self::Put(addresses) | Self::Compare(addresses) => addresses,
        }
    }
}

/// What came of a [`FilesOrder`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FilesReport {
    /// The pieces make these files, and these are there.
    Made(Vec<FrameFile>),
    /// The pieces make these files, and something else is there.
    Differs(Vec<FrameFile>),
    /// The files cannot be made, or not be compared, for this reason.
    Failed(String),
}
