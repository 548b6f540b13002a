//! Options of `job`.

use super::farm::FarmArgs;
use clap::Args;

/// Options of `job`.
#[derive(Debug, Args)]
pub struct JobArgs {
    /// Job, by its id, the beginning of one, or its name
    pub job: String,
    /// List the frames too
    #[arg(long)]
    pub frames: bool,
    /// Print JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}
