//! Options of `cancel`.

use super::change::ChangeArgs;
use clap::Args;

/// Options of `cancel`.
#[derive(Debug, Args)]
pub struct CancelArgs {
    /// Reason, for the notes of the jobs
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub reason: String,
    /// Which jobs of which farm.
    #[command(flatten)]
    pub jobs: ChangeArgs,
}
