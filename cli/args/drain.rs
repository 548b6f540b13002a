//! Options of `drain` and `undrain`.

use super::farm::FarmArgs;
use clap::Args;

/// Options of `drain`.
#[derive(Debug, Args)]
#[command(
    after_help = "The node finishes the units that it has begun, hands back the others, stays \
        connected and is idle until tessera undrain: also over restarts of the node and of the \
        coordinator, and also if it is absent now. With --leave its process ends with status 0, \
        so that a service manager that restarts only failed processes leaves it stopped. When it \
        is started again it is still drained, and stays."
)]
pub struct DrainArgs {
    /// Node, by name or id
    pub node: String,
    /// Let the node end too, once it has finished; its exit status is 0
    #[arg(long)]
    pub leave: bool,
    /// Print the node as JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}

/// Options of `undrain`.
#[derive(Debug, Args)]
#[command(
    after_help = "Works for absent nodes too: they get work when they come back. It also ends the \
        quarantine of a node that gave wrong results, and the pause of one that keeps failing."
)]
pub struct UndrainArgs {
    /// Node, by name or id
    pub node: String,
    /// Print the node as JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}
