//! Options of `deny` and `allow`.

use super::farm::FarmArgs;
use clap::Args;

/// Options of `deny`.
#[derive(Debug, Args)]
#[command(
    after_help = "It takes effect at once: connections end, a node gets no work, nothing is \
        renewed, no token lets it in again."
)]
pub struct DenyArgs {
    /// A node's or a person's name, or a node's id; node:NAME or user:NAME where both have it
    /// [default: list who is denied]
    #[arg(value_name = "IDENTITY")]
    pub who: Option<String>,
    /// Why, for whoever asks later
    #[arg(long, value_name = "TEXT", default_value = "", requires = "who")]
    pub reason: String,
    /// JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}

/// Options of `allow`.
#[derive(Debug, Args)]
pub struct AllowArgs {
    /// As `deny` lists it
    #[arg(value_name = "IDENTITY")]
    pub who: String,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}
