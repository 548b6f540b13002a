//! Options of `backup`.

use super::farm::FarmArgs;
use clap::Args;
use std::path::PathBuf;

/// Options of `backup`.
#[derive(Debug, Args)]
#[command(
    after_help = "With --data, the backup also holds the farm's keys, whether the coordinator runs \
        or not: keep it as private as the folder. Without --data, an admin asks a running \
        coordinator, and the backup holds everything but the keys and the deny-list."
)]
pub struct BackupArgs {
    /// File to write; must not exist yet
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Data folder of a coordinator on this machine
    #[arg(long, value_name = "DIR", env = "TESSERA_DATA")]
    pub data: Option<PathBuf>,
    /// Print JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}
