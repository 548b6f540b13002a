//! Options of `deny` and `allow`.

use super::farm::FarmArgs;
use clap::Args;

/// Options of `deny`.
#[derive(Debug, Args)]
#[command(after_help = "Takes effect at once: connections are closed, a node gets no work, no \
        certificate is renewed, and no token lets the identity in again.")]
pub struct DenyArgs {
    /// Node or user by name, by node id, or by # and the identity's number [default: list who is
    /// denied]
    #[arg(value_name = "IDENTITY")]
    pub who: Option<String>,
    /// Reason, shown in the list and in the audit log
    #[arg(long, value_name = "TEXT", default_value = "", requires = "who")]
    pub reason: String,
    /// Print JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}

/// Options of `allow`.
#[derive(Debug, Args)]
pub struct AllowArgs {
    /// Identity, as deny lists it
    #[arg(value_name = "IDENTITY")]
    pub who: String,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}
