//! Options of `token create`, `token list` and `token revoke`.

use super::farm::{FarmArgs, ListArgs};
use super::time::parse_ttl;
use clap::{Args, Subcommand};
use tessera_protocol::client::Role;

/// What to do with tokens.
#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Create a token; prints only the token
    Create(TokenCreateArgs),
    /// List unexpired tokens, without their secrets: admins see all, others their own
    List(ListArgs),
    /// Revoke a token, or end a browser's session; identities that a token created stay valid (see
    /// tessera deny)
    Revoke(RevokeArgs),
}

/// Options of `token create`.
#[derive(Debug, Args)]
pub struct TokenCreateArgs {
    /// Role of the identities it creates: node, viewer, artist, operator or admin; with --api, the
    /// most that a program may do [default with --api: all that its owner may]
    #[arg(long, value_name = "ROLE", required_unless_present = "api")]
    pub role: Option<Role>,
    /// Create a token for HTTP requests of a program, instead of one to join with
    #[arg(long, conflicts_with_all = ["pool", "name", "replace", "uses"])]
    pub api: bool,
    /// With --api, whom the program acts for: a name, or # and the number of an identity; for
    /// admins [default: this identity]
    #[arg(long, value_name = "NAME", requires = "api")]
    pub owner: Option<String>,
    /// Pool of the nodes that join with it, recorded in their certificates
    #[arg(long, value_name = "POOL")]
    pub pool: Option<String>,
    /// Name that the joining node or user must have, recorded in the certificate [default: any]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Let the bearer take over a name that is held, with its jobs: the present holder's
    /// certificates stop counting at once
    #[arg(long, requires = "name")]
    pub replace: bool,
    /// How long the token is valid: 90s, 30m, 24h, 7d
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = parse_ttl)]
    pub ttl: u64,
    /// How many times the token can be used
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub uses: u32,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
    /// Print JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Options of `token revoke`.
#[derive(Debug, Args)]
pub struct RevokeArgs {
    /// Token, by id or its beginning, as token list shows it
    pub id: String,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}
