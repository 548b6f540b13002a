//! How a frame stands: one variant for each stage of its life.

use super::{Text, brief};

/// A stage of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// None of its units has been leased.
    NotBegun { units: u32, before: u32 },
    /// Nodes work on it.
    AtWork { who: String, left: u32 },
    /// Units of it are open, and none is in work.
    Open { left: u32 },
    /// Results wait until another node has rendered them again.
    InCheck { results: usize },
    /// Nodes finish it.
    Finishing { left: u32, who: String },
    /// The coordinator makes its files, or measures a round.
    Files,
    /// It is done.
    Done { files: usize },
}

impl Stage {
    /// Returns the word of the stage.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::NotBegun { .. } => "not_begun",
            Self::AtWork { .. } => "at_work",
            Self::Open { .. } => "open",
            Self::InCheck { .. } => "in_check",
            Self::Finishing { .. } => "finishing",
            Self::Files => "files",
            Self::Done { .. } => "done",
        }
    }

    /// Returns why, and what helps.
    pub(crate) fn text(&self) -> Text {
        match self {
            Self::NotBegun { units, before } => brief(
                format!(
                    "none of its {units} units has begun: frames are made in their order, and \
                        {before} before it are not done"
                ),
                "",
            ),
            Self::AtWork { who, left } => {
                brief(format!("{left} units are left; in work on {who}"), "")
            }
            Self::Open { left } => brief(format!("{left} units are left, and none is in work"), ""),
            Self::InCheck { results } => brief(
                format!("{results} of its results are rendered again by another node"),
                "another node that may have the job, if there is none: `tessera nodes`",
            ),
            Self::Finishing { left, who } => {
                brief(format!("its samples are complete; {left} pieces are finished on {who}"), "")
            }
            Self::Files => brief("its samples are complete; the coordinator makes its files", ""),
            Self::Done { files } => {
                brief(format!("it is done, and has {files} files"), "`tessera fetch` brings them")
            }
        }
    }
}
