//! Options of `forget`.

use super::farm::FarmArgs;
use clap::Args;

/// Options of `forget`.
#[derive(Debug, Args)]
pub struct ForgetArgs {
    /// Jobs that have ended: ids, or their beginnings
    #[arg(required = true)]
    pub jobs: Vec<String>,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}
