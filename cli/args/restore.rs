//! Options of `restore`.

use super::blobs::BlobArgs;
use super::store::StoreArgs;
use clap::Args;
use std::path::PathBuf;

/// Options of `restore`.
#[derive(Debug, Args)]
#[command(
    after_help = "A coordinator started on the folder continues from the time of the backup. Never \
        run it beside the one that was backed up: nodes and commands that have seen the restored \
        one refuse the other.\n\nWith --store and --blobs, the state goes to a database that is \
        empty and the files to a bucket that no farm uses, of any region; a farm that had them \
        there goes to other ones in the same way. DIR needs room for the whole backup meanwhile."
)]
pub struct RestoreArgs {
    /// Backup file
    pub backup: PathBuf,
    /// Data folder to create; must be absent or empty
    #[arg(long, value_name = "DIR", env = "TESSERA_DATA")]
    pub data: PathBuf,
    /// Where the farm's state goes.
    #[command(flatten)]
    pub store: StoreArgs,
    /// Where its files go.
    #[command(flatten)]
    pub blobs: BlobArgs,
    /// Print JSON on standard output
    #[arg(long)]
    pub json: bool,
}
