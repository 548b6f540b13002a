//! Options of `sweep`.

use super::farm::FarmArgs;
use clap::Args;

/// Options of `sweep`.
#[derive(Debug, Args)]
#[command(
    after_help = "Cancels and deletes all jobs of the user with their frames, and the uploaded \
        files that no job of another user uses. It cannot be undone: fetch what is still wanted."
)]
pub struct SweepArgs {
    /// User whose jobs, frames and files are deleted: the name, or # and the number of the
    /// identity
    #[arg(long, value_name = "NAME", required = true)]
    pub owner: String,
    /// Only say what would be deleted
    #[arg(long)]
    pub dry_run: bool,
    /// Print JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}
