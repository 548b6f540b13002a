//! Options of `watch`.

use super::farm::FarmArgs;
use clap::Args;

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
