//! Options of `jobs`.

use super::farm::FarmArgs;
use super::selection::SelectionArgs;
use clap::Args;

/// Options of `jobs`.
#[derive(Debug, Args)]
#[command(after_help = "Without a selection all jobs are listed, the newest last. An id may be \
    shortened, as the table shows it; the same options select the same jobs for cancel, pause, \
    resume, retry and forget.")]
pub struct JobsArgs {
    /// Which jobs.
    #[command(flatten)]
    pub which: SelectionArgs,
    /// Print JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}
