//! Options of `restore`.

use clap::Args;
use std::path::PathBuf;

/// Options of `restore`.
#[derive(Debug, Args)]
#[command(
    after_help = "A coordinator started on the folder continues from the time of the backup. Never \
        run it beside the one that was backed up."
)]
pub struct RestoreArgs {
    /// Backup file
    pub backup: PathBuf,
    /// Data folder to create; must be absent or empty
    #[arg(long, value_name = "DIR", env = "TESSERA_DATA")]
    pub data: PathBuf,
    /// Print JSON on standard output
    #[arg(long)]
    pub json: bool,
}
