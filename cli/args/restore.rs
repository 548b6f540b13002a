//! Options of `restore`.

use clap::Args;
use std::path::PathBuf;

/// Options of `restore`.
#[derive(Debug, Args)]
#[command(
    after_help = "A coordinator started on the folder goes on from the moment of the backup. Never \
        run it beside the one that was backed up."
)]
pub struct RestoreArgs {
    /// The backup
    pub backup: PathBuf,
    /// Data folder to make; absent or empty
    #[arg(long, value_name = "DIR", env = "TESSERA_DATA")]
    pub data: PathBuf,
    /// JSON on standard output
    #[arg(long)]
    pub json: bool,
}
