//! Options of `web`.

use super::farm::FarmArgs;
use clap::Args;

/// Options of `web`.
#[derive(Debug, Args)]
#[command(
    after_help = "The link signs one browser in as this identity, once, within two minutes. \
    Pages are at --http of the coordinator, 127.0.0.1:7421 unless it says otherwise: from another \
    machine, reach that by ssh -L 7421:127.0.0.1:7421 HOST."
)]
pub struct WebArgs {
    /// Print the link, and open no browser
    #[arg(long)]
    pub print: bool,
    /// Print JSON on standard output, and open no browser
    #[arg(long)]
    pub json: bool,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}
