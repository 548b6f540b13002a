//! Options of `fsck`.

use clap::Args;
use std::path::PathBuf;

/// Options of `fsck`.
#[derive(Debug, Args)]
#[command(
    after_help = "The coordinator must be stopped; nothing is repaired. Each finding says what it means and what to do. Status 1 where something\n\
                  that was promised is lost; notes alone leave status 0."
)]
pub struct FsckArgs {
    /// The coordinator's data folder
    #[arg(long, value_name = "DIR", env = "TESSERA_DATA")]
    pub data: PathBuf,
    /// Look for blobs by name and length, and do not read them
    #[arg(long)]
    pub quick: bool,
    /// JSON on standard output
    #[arg(long)]
    pub json: bool,
}
