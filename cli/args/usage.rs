//! Options of `usage`.

use super::farm::FarmArgs;
use clap::Args;

/// Options of `usage`.
#[derive(Debug, Args)]
#[command(after_help = "Operators and admins see everybody; others see themselves.")]
pub struct UsageArgs {
    /// Only this user or node: its name, or # and the number of its identity
    #[arg(long, value_name = "NAME")]
    pub owner: Option<String>,
    /// Print JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}
