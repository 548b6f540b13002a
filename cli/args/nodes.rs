//! Options of `nodes`.

use super::farm::FarmArgs;
use clap::Args;

/// Options of `nodes`.
#[derive(Debug, Args)]
pub struct NodesArgs {
    /// One node, with everything about its devices: its name or id
    pub node: Option<String>,
    /// JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}
