//! Options of `drain` and `undrain`.

use super::farm::FarmArgs;
use clap::Args;

/// Options of `drain` and `undrain`.
#[derive(Debug, Args)]
pub struct DrainArgs {
    /// Node, by name or id
    pub node: String,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}
