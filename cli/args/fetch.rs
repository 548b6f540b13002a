//! Options of `fetch`.

use super::farm::FarmArgs;
use clap::Args;
use std::path::PathBuf;
use tessera_protocol::FrameSet;

/// Options of `fetch`.
#[derive(Debug, Args)]
#[command(
    after_help = "In a folder, files are named NAME.0001.exr and so on, those of a kernel's named \
        outputs NAME.0001.OUTPUT.npy. NAME is the job's name, with _ for each of < > : \" | ? *. \
        If another job of this name has its frames there, these go to the folder NAME-JOB in it. \
        A pattern is as for render. In both, {job} stands for the job's id and {name} for its \
        name; in a pattern, {output} stands for the name of an output.\n\n\
        Complete files are not fetched again, interrupted downloads continue, and every \
        file is checked before it gets its name. A file that is there and is not this job's own \
        is never replaced without --overwrite: the others are fetched, and the status is 9."
)]
pub struct FetchArgs {
    /// Job, by its id, the beginning of one, or its name
    pub job: String,
    /// Folder, or a pattern such as out/frame.####.exr; {job} and {name} stand for the job's
    #[arg(short, long, value_name = "DIR|PATTERN", default_value = ".")]
    pub output: PathBuf,
    /// Fetch only these frames: 5, 1-100, 1-100x2, or a comma-separated list of these
    #[arg(long, value_name = "SPEC")]
    pub frames: Option<FrameSet>,
    /// Replace files that are not this job's
    #[arg(long)]
    pub overwrite: bool,
    /// Print a line of JSON for each file
    #[arg(long)]
    pub json: bool,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}
