//! Options of `token create`, `token list` and `token revoke`.

use super::farm::{FarmArgs, ListArgs};
use super::time::parse_ttl;
use clap::{Args, Subcommand};
use tessera_protocol::client::Role;

/// What to do with tokens.
#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Make a join token; prints the token alone
    Create(TokenCreateArgs),
    /// List tokens that have not expired, without their secrets
    List(ListArgs),
    /// A token lets nobody in any more; who has used it stays (see `deny`)
    Revoke(RevokeArgs),
}

/// Options of `token create`.
#[derive(Debug, Args)]
pub struct TokenCreateArgs {
    /// What it lets its bearer become: node, viewer, artist, operator or admin
    #[arg(long, value_name = "ROLE")]
    pub role: Role,
    /// The pool that nodes become part of by it; it stands in their certificates
    #[arg(long, value_name = "POOL")]
    pub pool: Option<String>,
    /// The name that its bearer must have, a node's or a person's; it stands in the certificate
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// How long it is good for: 90s, 30m, 24h, 7d
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = parse_ttl)]
    pub ttl: u64,
    /// How often it may be used
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub uses: u32,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
    /// JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Options of `token revoke`.
#[derive(Debug, Args)]
pub struct RevokeArgs {
    /// Its id, or the beginning of it, as `token list` shows it
    pub id: String,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}
