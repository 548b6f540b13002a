//! Options of `authority show` and `authority rotate`.

use super::farm::{FarmArgs, ListArgs};
use clap::{Args, Subcommand};

/// What to do with the farm's authority.
#[derive(Debug, Subcommand)]
pub enum AuthorityCommand {
    /// Show the authority, and until when a former one is trusted
    Show(ListArgs),
    /// Replace the authority; the old one stays trusted until every certificate has been renewed
    Rotate(RotateArgs),
}

/// Options of `authority rotate`.
#[derive(Debug, Args)]
pub struct RotateArgs {
    /// How long the old authority stays trusted: 0s, 90s, 24h, 7d [default: the longest lifetime
    /// plus grace of any certificate]
    #[arg(long, value_name = "TIME", value_parser = super::time::parse_grace)]
    pub overlap: Option<u64>,
    /// Print JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}
