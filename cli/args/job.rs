//! Options of `job`.

use super::farm::FarmArgs;
use clap::Args;

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
