//! Options about the store of a coordinator, and those of `store migrate`.

use super::blobs::BlobCredentialArgs;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Where the state is.
#[derive(Clone, Args)]
pub struct StoreArgs {
    /// Where the farm's state is: sled, in the data folder, or
    /// postgres://USER@HOST:PORT/DB?OPTIONS
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "TESSERA_STORE",
        default_value = "sled",
        help_heading = "Store"
    )]
    pub store: String,
    /// Where its password is.
    #[command(flatten)]
    pub password: PasswordArgs,
}

/// Where a store's password is.
#[derive(Clone, Debug, Args)]
pub struct PasswordArgs {
    /// File with the store's password, one line that others cannot read [default: PGPASSWORD, then
    /// PGPASSFILE or ~/.pgpass]
    #[arg(long, value_name = "FILE", env = "TESSERA_STORE_PASSWORD_FILE", help_heading = "Store")]
    pub store_password_file: Option<PathBuf>,
}

/// The address may have a password in it.
impl std::fmt::Debug for StoreArgs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoreArgs").field("password", &self.password).finish_non_exhaustive()
    }
}

/// What to do with a store.
#[derive(Debug, Subcommand)]
pub enum StoreCommand {
    /// Copy the state or the files of a stopped farm to another place, and use that from now on
    Migrate(MigrateArgs),
}

/// Options of `store migrate`.
#[derive(Args)]
#[command(
    after_help = "The coordinator must be stopped. DIR is the farm's data folder, which is needed \
        with all places: it has the farm's authority and results.\n\nState goes between sled:DIR \
        and postgres://USER@HOST:PORT/DB, which must be empty. Everything that was copied is read \
        back and compared before the folder changes over.\n\nFiles go between disk:DIR and \
        s3://BUCKET/PREFIX, which no farm uses. Each is checked by its hash. An interrupted copy \
        goes on where it was.\n\nWhat was there before stays, in DIR/former, in the database or \
        in the bucket."
)]
pub struct MigrateArgs {
    /// Where the state or the files are: sled:DIR, postgres://USER@HOST:PORT/DB, disk:DIR or
    /// s3://BUCKET/PREFIX
    #[arg(long, value_name = "ADDRESS")]
    pub from: String,
    /// Where they go
    #[arg(long, value_name = "ADDRESS")]
    pub to: String,
    /// Where the password is.
    #[command(flatten)]
    pub password: PasswordArgs,
    /// Who asks the bucket.
    #[command(flatten)]
    pub credentials: BlobCredentialArgs,
    /// Print JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// An address may have a password in it.
impl std::fmt::Debug for MigrateArgs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MigrateArgs").field("json", &self.json).finish_non_exhaustive()
    }
}
