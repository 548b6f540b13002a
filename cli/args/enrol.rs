//! Options of `enrol`.

use super::farm::FarmArgs;
use clap::Args;
use std::path::PathBuf;

/// Options of `enrol`.
#[derive(Debug, Args)]
pub struct EnrolArgs {
    /// File with a join token for a user
    #[arg(long, value_name = "FILE", env = "TESSERA_TOKEN_FILE")]
    pub token_file: PathBuf,
    /// Name of the user [default: the login name]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Replace an existing identity
    #[arg(long)]
    pub replace: bool,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}
