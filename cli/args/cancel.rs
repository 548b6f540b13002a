//! Options of `cancel`.

use super::farm::FarmArgs;
use clap::Args;

/// Options of `cancel`.
#[derive(Debug, Args)]
pub struct CancelArgs {
    /// Jobs, by id or its beginning
    #[arg(required = true)]
    pub jobs: Vec<String>,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}
