//! Options of `drain` and `undrain`.

use super::farm::FarmArgs;
use clap::Args;

/// Options of `drain` and `undrain`.
#[derive(Debug, Args)]
pub struct DrainArgs {
    /// Name or id of the node
    pub node: String,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}
