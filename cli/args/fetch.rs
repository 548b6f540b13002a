//! Options of `fetch`.

use super::farm::FarmArgs;
use clap::Args;
use std::path::PathBuf;
use tessera_protocol::FrameSet;

/// Options of `fetch`.
#[derive(Debug, Args)]
#[command(
    after_help = "In a folder, files are named NAME.0001.exr and so on, those of a kernel's named \
        outputs NAME.0001.OUTPUT.npy. A pattern is as for render, with {output} for such a name. \
        Complete files are not fetched again, interrupted downloads continue, and every \
        file is checked before it gets its name."
)]
pub struct FetchArgs {
    /// Job, by its id, the beginning of one, or its name
    pub job: String,
    /// Folder, or a pattern such as out/frame.####.exr
    #[arg(short, long, value_name = "DIR|PATTERN", default_value = ".")]
    pub output: PathBuf,
    /// Fetch only these frames: 5, 1-100, 1-100x2, or a comma-separated list of these
    #[arg(long, value_name = "SPEC")]
    pub frames: Option<FrameSet>,
    /// Print a line of JSON for each file
    #[arg(long)]
    pub json: bool,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}
