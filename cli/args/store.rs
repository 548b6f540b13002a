//! Options about the store of a coordinator, and those of `store migrate`.

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
    /// Copy the state of a stopped farm to another store, and use that from now on
    Migrate(MigrateArgs),
}

/// Options of `store migrate`.
#[derive(Args)]
#[command(
    after_help = "The coordinator must be stopped, and the other store empty. One of the two is \
        sled:DIR, the farm's data folder, which is needed with both stores: it has the farm's \
        authority, files and results. Everything that was copied is read back and compared before \
        the folder changes over. The old journal stays, in DIR/former or in the database."
)]
pub struct MigrateArgs {
    /// Where the state is: sled:DIR or postgres://USER@HOST:PORT/DB
    #[arg(long, value_name = "ADDRESS")]
    pub from: String,
    /// Where it goes: postgres://USER@HOST:PORT/DB or sled:DIR
    #[arg(long, value_name = "ADDRESS")]
    pub to: String,
    /// Where the password is.
    #[command(flatten)]
    pub password: PasswordArgs,
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
