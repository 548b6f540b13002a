//! Options of `retry`.

use super::farm::FarmArgs;
use clap::Args;

/// Options of `retry`.
#[derive(Debug, Args)]
pub struct RetryArgs {
    /// Jobs, by id or its beginning
    #[arg(required = true)]
    pub jobs: Vec<String>,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}
