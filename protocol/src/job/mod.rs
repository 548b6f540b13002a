//! The request for a job: raw when it arrives, checked once, valid from then on.

pub(crate) mod after;
pub(crate) mod asset;
mod bands;
mod camera;
mod choice;
pub mod described;
mod display;
mod edit;
pub(crate) mod error;
mod exr;
mod film;
mod frame_array;
mod notify;
pub mod options;
mod output;
mod part;
mod raw;
mod render;
mod retry;
mod space;
mod tiles;
mod window;

pub use after::{After, AfterText, Until, independent_runs};
pub use asset::{AssetFile, is_confined_path};
pub use bands::{Bands, FINISH_PIXELS_MIN};
pub use camera::{ApertureSpec, BladesSpec, CameraSpec, FocusSpec, LensSpec, LookAtSpec};
pub use choice::ChoiceSpec;
pub use display::{JPEG_QUALITY_DEFAULT, LookSpec, ToneMapSpec};
pub use edit::JobEdit;
pub use error::SpecError;
pub use exr::{ExrCompressionSpec, ExrDepthSpec, ExrLayerDepth, ExrLayerSpec};
pub use frame_array::FrameArray;
pub use notify::is_target_name;
pub use output::{AovSpec, FormatSpec};
pub use raw::{JobForm, RawJobSpec};
pub use render::{EnvironmentSpec, FilterSpec, HALF_CHANNELS, LightUnitsSpec, RenderSpec};
pub use retry::RetryPolicy;
pub use space::{SPACE_EXPONENT_MAX, SpaceSpec};
pub use tiles::TileGrid;
pub use window::{CropSpec, Window};

use crate::compute::ComputeSpec;
use crate::frames::FrameSet;
use crate::ids::BlobHash;
use crate::limits::*;
use error::wrong;
use serde::{Deserialize, Serialize};

/// Share of the farm that a job gets by default.
pub const PRIORITY_DEFAULT: u8 = 50;
/// Largest priority.
pub const PRIORITY_MAX: u8 = 100;

/// A job spec whose values have been checked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobSpec {
    /// Name for people and for files: 1 to [`NAME_MAX`] bytes that begin and end a file's name well
    /// and need no escaping; see [`crate::names`].
    pub name: String,
    /// Share of the farm relative to others, 0 to [`PRIORITY_MAX`].
    pub priority: u8,
    /// Work of the job.
    pub kind: JobKind,
    /// Device memory in bytes that every unit needs, as the client predicts; 0 if it cannot tell.
    /// Measurements of devices count for more.
    pub device_bytes: u64,
    /// Only nodes of this pool can have units of the job; None allows any node. A name has 1 to
    /// [`NAME_MAX`] letters, digits and `.`, `_`, `-`, `@`.
    pub pool: Option<String>,
    /// How often and how long the farm tries before it gives the job up.
    pub retry: RetryPolicy,
    /// Most nodes that work on the job at a time, 1 to [`NODES_MAX`]; None is no bound. Nodes that
    /// check results come beside them.
    pub max_nodes: Option<u32>,
    /// Jobs that this one waits for, at most [`AFTER_MAX`], each once.
    pub after: Vec<After>,
    /// Seconds since the Unix epoch before which no unit of the job begins, at most
    /// [`NOT_BEFORE_MAX`]; None lets it begin at once.
    pub not_before: Option<u64>,
    /// Name that the jobs of one submission share, by which all of them are selected together, with
    /// the characters of a job's name; None where a job stands alone.
    pub batch: Option<String>,
    /// Targets of events that get those of this job besides others, at most [`NOTIFY_MAX`], each
    /// once.
    pub notify: Vec<String>,
}

/// Kind of a job, with its options.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum JobKind {
    /// Frames of a scene.
    Render(RenderSpec),
    /// A kernel over a domain.
    Compute(ComputeSpec),
}

impl JobSpec {
    /// Creates a job with every option at its default.
    pub fn new(name: impl Into<String>, kind: JobKind) -> Self {
        Self {
            name: name.into(),
            priority: PRIORITY_DEFAULT,
            kind,
            device_bytes: 0,
            pool: None,
            retry: RetryPolicy::default(),
            max_nodes: None,
            after: Vec::new(),
            not_before: None,
            batch: None,
            notify: Vec::new(),
        }
    }
}

impl JobKind {
    /// Returns the frames of the job.
    pub fn frames(&self) -> &FrameSet {
        match self {
            Self::Render(render) => &render.frames,
            Self::Compute(compute) => &compute.frames,
        }
    }

    /// Returns the file extensions of a finished frame, in the order of its formats. A file of a
    /// named output has the name before it: `flux.npy`.
    pub fn extensions(&self) -> Vec<String> {
        match self {
            Self::Render(render) => {
                render.formats.iter().map(|format| format.extension().to_owned()).collect()
            }
            Self::Compute(compute) => compute.extensions(),
        }
    }

    /// Returns a name for people, hash and length of every file that the job needs.
    pub fn files(&self) -> Vec<(&str, BlobHash, u64)> {
        match self {
            Self::Render(render) => render
                .files
                .iter()
                .map(|file| (file.path.as_str(), file.hash, file.length))
                .collect(),
            Self::Compute(compute) => compute.files().collect(),
        }
    }

    /// Returns the hash of everything that a node's prepared data depends on. Nodes cache by it.
    pub fn data_hash(&self) -> BlobHash {
        match self {
            Self::Render(render) => render.scene_hash(),
            Self::Compute(compute) => compute.data_hash(),
        }
    }

    /// Returns the options of a render job; None for another kind.
    pub fn render(&self) -> Option<&RenderSpec> {
        match self {
            Self::Render(render) => Some(render),
            Self::Compute(_) => None,
        }
    }

    /// Returns the options of a compute job; None for another kind.
    pub fn compute(&self) -> Option<&ComputeSpec> {
        match self {
            Self::Compute(compute) => Some(compute),
            Self::Render(_) => None,
        }
    }
}

/// Checks every field of a job.
fn check(spec: &JobSpec) -> Result<(), SpecError> {
    check_name(&spec.name)?;
    check_place(spec.priority, spec.pool.as_deref(), spec.max_nodes)?;
    spec.retry.check()?;
    after::check(&spec.after)?;
    check_start(spec.not_before)?;
    notify::check(&spec.notify)?;
    if let Some(batch) = &spec.batch {
        crate::names::check(batch).or_else(|problem| wrong("batch", problem))?;
    }
    match &spec.kind {
        JobKind::Render(render) => render::check(render),
        JobKind::Compute(compute) => {
            crate::compute::check(compute)?;
            crate::compute::from_job::check(compute, &spec.after)
        }
    }
}

/// Checks what says when and where units of a job are worked on.
fn check_place(priority: u8, pool: Option<&str>, max_nodes: Option<u32>) -> Result<(), SpecError> {
    if priority > PRIORITY_MAX {
        wrong("priority", format!("{priority} is not in 0 to {PRIORITY_MAX}"))?;
    }
    if let Some(pool) = pool.filter(|pool| !is_label(pool)) {
        wrong(
            "pool",
            format!("{pool:?} is not 1 to {NAME_MAX} letters, digits and `.`, `_`, `-`, `@`"),
        )?;
    }
    match max_nodes {
        Some(nodes) if !(1..=NODES_MAX).contains(&nodes) => {
            wrong("max-nodes", format!("{nodes} is not in 1 to {NODES_MAX}"))
        }
        _ => Ok(()),
    }
}

/// Checks when units of a job may begin.
fn check_start(not_before: Option<u64>) -> Result<(), SpecError> {
    match not_before {
        Some(secs) if secs > NOT_BEFORE_MAX => {
            wrong("not-before", format!("{secs} is no time before the year 10000"))
        }
        _ => Ok(()),
    }
}

/// Returns whether a pool can have this name. Names in certificates have the same characters.
pub fn is_label(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._-@".contains(&byte);
    (1..=NAME_MAX).contains(&name.len()) && name.bytes().all(fits)
}

fn check_name(name: &str) -> Result<(), SpecError> {
    crate::names::check(name).or_else(|problem| wrong("name", problem))
}
