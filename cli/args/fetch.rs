//! Options of `fetch`.

use super::farm::FarmArgs;
use clap::Args;
use std::path::PathBuf;
use tessera_protocol::FrameSet;

/// Options of `fetch`.
#[derive(Debug, Args)]
#[command(
    after_help = "A folder gets NAME.0001.exr and so on; a pattern is as for `render`. Files that are there and whole are not fetched again,\n\
                        interrupted ones go on, and every file is checked before it gets its name."
)]
pub struct FetchArgs {
    /// Job: its id, or the beginning of it
    pub job: String,
    /// Folder, or a pattern such as out/frame.####.exr
    #[arg(short, long, value_name = "DIR|PATTERN", default_value = ".")]
    pub output: PathBuf,
    /// Only these frames
    #[arg(long, value_name = "SPEC")]
    pub frames: Option<FrameSet>,
    /// A line of JSON for each file
    #[arg(long)]
    pub json: bool,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}
