//! Options of `backup`.

use super::farm::FarmArgs;
use clap::Args;
use std::path::PathBuf;

/// Options of `backup`.
#[derive(Debug, Args)]
#[command(
    after_help = "With --data the backup holds the farm's keys too, whether its coordinator runs or not: keep it as private as the folder. Without,\n\
                  a coordinator that runs anywhere is asked, by an admin, and the backup holds \
                  everything but keys."
)]
pub struct BackupArgs {
    /// File to write; must not be there yet
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// The coordinator's data folder, on its own machine
    #[arg(long, value_name = "DIR", env = "TESSERA_DATA")]
    pub data: Option<PathBuf>,
    /// JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}
