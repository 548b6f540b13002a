//! Options of `pause` and `resume`.

use super::farm::FarmArgs;
use clap::Args;

/// Options of `pause` and `resume`.
#[derive(Debug, Args)]
pub struct PauseArgs {
    /// Jobs, by id or its beginning
    #[arg(required = true)]
    pub jobs: Vec<String>,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}
