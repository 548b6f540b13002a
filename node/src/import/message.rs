//! Messages between a process and its scene importer. Both are the same build, so these messages
//! have no version. They are still bounded (`device/worker/frame.rs`) and checked.

use super::arrays::FrameHead;
use crate::device::worker::SandboxReport;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use tessera_scenes::{FlattenOptions, LoadOptions, SceneReport};

/// An order to the importer. The first is always [`Order::Begin`], the second [`Order::Load`].
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Order {
    /// Confine yourself, then send [`Answer::Ready`].
    Begin {
        /// Process id of the parent. An importer with another parent ends itself.
        parent: u32,
        /// Folders and files that the importer can read.
        readable: Vec<PathBuf>,
        /// Whether to restrict it to them, and to close the network.
        confine: bool,
        /// Memory in bytes that the importer can use.
        memory_bytes: u64,
        /// Number of threads for the importer.
        threads: u64,
        /// Folder for a record of its system calls.
        record: Option<PathBuf>,
        /// Whether the parent uses only an importer that is confined.
        is_required: bool,
    },
    /// Load the scene. Answered by [`Answer::Loaded`] or [`Answer::Refused`].
    Load {
        /// Folder of the scene.
        folder: PathBuf,
        /// Main file within the folder.
        main: String,
        /// Limits, and the light from infinity.
        options: LoadOptions,
    },
    /// Flatten a frame. Answered by [`Answer::Frame`] or [`Answer::Refused`].
    Flatten {
        /// Options of the frame.
        options: FlattenOptions,
    },
}

/// An answer of the importer.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Answer {
    /// The importer is confined as far as possible.
    Ready(SandboxReport),
    /// The importer cannot work on this machine.
    NotReady {
        /// Description of the fault, which is not the scene's.
        problem: String,
    },
    /// The scene is loaded.
    Loaded {
        /// Content of the scene.
        report: Box<SceneReport>,
    },
    /// The head of a frame. The importer then takes the files for its new arrays, in one byte.
    Frame(Box<FrameHead>),
    /// The files of the frame are filled.
    Filled,
    /// The scene or the request is not valid.
    Refused {
        /// Description and place of the fault.
        problem: String,
        /// Whether a file is missing.
        absent: bool,
        /// Whether it needs more memory than it may use.
        memory: bool,
    },
}
