//! Options of commands about identities: who is shut out, and which tokens are good no more.

use super::farm::FarmArgs;
use clap::{Args, Subcommand};

/// Options of `token revoke`.
#[derive(Debug, Args)]
pub struct RevokeArgs {
    /// Its id, or the beginning of it, as `token list` shows it
    pub id: String,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}

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

/// Options of `audit`.
#[derive(Debug, Args)]
#[command(
    after_help = "Status 1 where the chain is broken: an entry was changed, taken out or cut off."
)]
pub struct AuditArgs {
    /// How many of the newest entries to print, up to 1000
    #[arg(
        long,
        value_name = "N",
        default_value_t = 100,
        value_parser = clap::value_parser!(u32).range(0..=1000),
    )]
    pub last: u32,
    /// JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}

/// What to do with the farm's authority.
#[derive(Debug, Subcommand)]
pub enum AuthorityCommand {
    /// Show it, and whether a former one is trusted beside it
    Show(super::users::ListArgs),
    /// Put a new one in its place; the old one is trusted beside it until every certificate has
    /// been renewed
    Rotate(RotateArgs),
}

/// Options of `authority rotate`.
#[derive(Debug, Args)]
pub struct RotateArgs {
    /// How long the old one is trusted still: 0s, 90s, 24h, 7d [default: the longest life and grace
    /// of any certificate]
    #[arg(long, value_name = "TIME", value_parser = super::farm::parse_grace)]
    pub overlap: Option<u64>,
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
