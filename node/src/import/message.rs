//! What a process and its scene importer say to each other. Both are the same build, so these
//! messages have no versions; they are bounded (`device/worker/frame.rs`) and checked all the same.

use super::arrays::FrameHead;
use crate::device::worker::SandboxReport;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use tessera_scenes::{FlattenOptions, LoadOptions, SceneReport};

/// To the importer. The first is always [`Order::Begin`], the second [`Order::Load`].
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Order {
    /// Who you are: confine yourself, then say [`Answer::Ready`].
    Begin {
        /// Process id of the parent; an importer whose parent is another one ends itself.
        parent: u32,
        /// Folders and files that it may read.
        readable: Vec<PathBuf>,
        /// Whether to keep to them, and off the network.
        confine: bool,
        /// Memory that it may take, bytes.
        memory_bytes: u64,
        /// Threads.
        threads: u64,
    },
    /// Load the scene: [`Answer::Loaded`] or [`Answer::Refused`].
    Load {
        /// Its folder.
        folder: PathBuf,
        /// Its main file, within the folder.
        main: String,
        /// Limits, light at infinity.
        options: LoadOptions,
    },
    /// Flatten a frame: [`Answer::Frame`] or [`Answer::Refused`].
    Flatten {
        /// Which.
        options: FlattenOptions,
    },
}

/// From the importer.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Answer {
    /// Confined, as far as it goes.
    Ready(SandboxReport),
    /// The scene is loaded.
    Loaded {
        /// What is in it.
        report: Box<SceneReport>,
    },
    /// A frame, whose new arrays follow in order.
    Frame(Box<FrameHead>),
    /// The scene, or what was asked of it, is not in order.
    Refused {
        /// What is wrong, and where.
        problem: String,
        /// A file is not there.
        absent: bool,
    },
}
