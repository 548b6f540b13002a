//! Options of commands that ask a farm for something.

use super::farm::{FarmArgs, parse_ttl};
use super::local::ImportArgs;
use super::picture::{FormatArg, PictureArgs};
use clap::Args;
use std::path::PathBuf;
use tessera_protocol::FrameSet;

/// Options of `submit`.
#[derive(Debug, Args)]
pub struct SubmitArgs {
    /// The picture.
    #[command(flatten)]
    pub picture: PictureArgs,
    /// File formats: exr, png (8 bits), png16
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        default_value = "exr",
        help_heading = "Picture"
    )]
    pub format: Vec<FormatArg>,
    /// Name of the job and of its files [default: the scene's]
    #[arg(long, value_name = "NAME", help_heading = "Job")]
    pub name: Option<String>,
    /// Share of the farm relative to other jobs, 0 to 100
    #[arg(long, value_name = "N", default_value_t = 50, help_heading = "Job")]
    pub priority: u8,
    /// Give it to nodes of this pool alone [default: any node]
    #[arg(long, value_name = "POOL", help_heading = "Job")]
    pub pool: Option<String>,
    /// Wait for the job's end; the exit status says how it ended
    #[arg(long, conflicts_with = "watch", help_heading = "Job")]
    pub wait: bool,
    /// Follow the job to its end
    #[arg(long, help_heading = "Job")]
    pub watch: bool,
    /// Check everything and say what would be submitted, but do not
    #[arg(long, conflicts_with_all = ["wait", "watch"], help_heading = "Job")]
    pub dry_run: bool,
    /// What reading the scene may take.
    #[command(flatten)]
    pub import: ImportArgs,
    /// JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}

/// Options of listings.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}

/// Options of `nodes`.
#[derive(Debug, Args)]
pub struct NodesArgs {
    /// One node, with everything about its devices: its name or id
    pub node: Option<String>,
    /// JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}

/// Options of `job`.
#[derive(Debug, Args)]
pub struct JobArgs {
    /// Job: its id, or the beginning of it
    pub job: String,
    /// List its frames too
    #[arg(long)]
    pub frames: bool,
    /// JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}

/// Options of `watch`.
#[derive(Debug, Args)]
pub struct WatchArgs {
    /// Job: its id, or the beginning of it
    pub job: String,
    /// A line of JSON at each change
    #[arg(long)]
    pub json: bool,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}

/// Options of `wait`.
#[derive(Debug, Args)]
pub struct WaitArgs {
    /// Job: its id, or the beginning of it
    pub job: String,
    /// Give up after this time: 90s, 30m, 24h [default: never]
    #[arg(long, value_name = "TIME", value_parser = parse_ttl)]
    pub timeout: Option<u64>,
    /// The job's last state as JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}

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

/// Options of `cancel`.
#[derive(Debug, Args)]
pub struct CancelArgs {
    /// Jobs: ids, or their beginnings
    #[arg(required = true)]
    pub jobs: Vec<String>,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}

/// Options of `pause` and `resume`.
#[derive(Debug, Args)]
pub struct PauseArgs {
    /// Jobs: ids, or their beginnings
    #[arg(required = true)]
    pub jobs: Vec<String>,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}

/// Options of `retry`.
#[derive(Debug, Args)]
pub struct RetryArgs {
    /// Jobs: ids, or their beginnings
    #[arg(required = true)]
    pub jobs: Vec<String>,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}

/// Options of `drain` and `undrain`.
#[derive(Debug, Args)]
pub struct NodeNameArgs {
    /// Name or id of the node
    pub node: String,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}
