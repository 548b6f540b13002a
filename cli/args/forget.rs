//! Options of `forget`.

use super::farm::FarmArgs;
use clap::Args;

/// Options of `forget`.
#[derive(Debug, Args)]
pub struct ForgetArgs {
    /// Ended jobs, by id or its beginning
    #[arg(required = true)]
    pub jobs: Vec<String>,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}
