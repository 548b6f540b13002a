//! Options of `nodes`.

use super::farm::FarmArgs;
use clap::Args;

/// Options of `nodes`.
#[derive(Debug, Args)]
pub struct NodesArgs {
    /// Node to show with its devices, by name or id
    pub node: Option<String>,
    /// Print JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}
