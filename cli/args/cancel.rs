//! Options of `cancel`.

use super::farm::FarmArgs;
use clap::Args;

/// Options of `cancel`.
#[derive(Debug, Args)]
pub struct CancelArgs {
    /// Jobs, by id or its beginning
    #[arg(required_unless_present = "owner")]
    pub jobs: Vec<String>,
    /// Cancel all open jobs of this user: the name, or `#` and the number of the identity
    #[arg(long, value_name = "NAME", conflicts_with = "jobs")]
    pub owner: Option<String>,
    /// Reason, which tessera job and tessera audit show
    #[arg(long, value_name = "TEXT", conflicts_with = "owner")]
    pub reason: Option<String>,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}
