//! Options of `wait`.

use super::farm::FarmArgs;
use super::time::parse_ttl;
use clap::Args;

/// Options of `wait`.
#[derive(Debug, Args)]
pub struct WaitArgs {
    /// Job, by its id, the beginning of one, or its name
    pub job: String,
    /// Give up after this time: 90s, 30m, 24h [default: never]
    #[arg(long, value_name = "TIME", value_parser = parse_ttl)]
    pub timeout: Option<u64>,
    /// Print the final state of the job as JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}
