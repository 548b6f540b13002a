//! Options of `audit`.

use super::farm::FarmArgs;
use clap::Args;

/// Options of `audit`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status 1 if the chain is broken: an entry was changed, removed or cut off."
)]
pub struct AuditArgs {
    /// Number of newest entries to print, up to 1000
    #[arg(
        long,
        value_name = "N",
        default_value_t = 100,
        value_parser = clap::value_parser!(u32).range(0..=1000),
    )]
    pub last: u32,
    /// Print JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}
