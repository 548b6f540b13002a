//! Options of `members list`, `members keep` and `members remove`.

use super::farm::{FarmArgs, ListArgs};
use clap::{ArgGroup, Args, Subcommand};

/// What to do with members.
#[derive(Debug, Subcommand)]
pub enum MembersCommand {
    /// List who holds which name, with the number of each identity
    List(ListArgs),
    /// Decide which of two copies of an identity counts
    Keep(KeepArgs),
    /// Take a name away from its holder; the name is free, and jobs stay with the old number
    Remove(RemoveArgs),
}

/// Options of `members keep`.
#[derive(Debug, Args)]
#[command(
    group(ArgGroup::new("copy").required(true).args(["newer", "older"])),
    after_help = "Certificates have serial numbers that grow with each renewal. When an older one \
        is shown after a newer one, there are two copies of the identity, and neither counts until \
        you decide. tessera members list says from where each one came. Ask at the right machine \
        or person which one they have, keep that one, and the other copy is out for good. If you \
        are not sure, keep none: tessera token create --role ROLE --name NAME --replace makes a \
        token with which the right one enrols anew. Afterwards find out how it was copied."
)]
pub struct KeepArgs {
    /// Member: name, node id, or # and the identity's number
    #[arg(value_name = "MEMBER")]
    pub who: String,
    /// Keep the copy with the newer certificate
    #[arg(long)]
    pub newer: bool,
    /// Keep the copy that came with the older certificate
    #[arg(long)]
    pub older: bool,
    /// Print JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}

/// Options of `members remove`.
#[derive(Debug, Args)]
pub struct RemoveArgs {
    /// Member: name, node id, or # and the identity's number
    #[arg(value_name = "MEMBER")]
    pub who: String,
    /// Print JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}
