//! Options of commands about what a coordinator keeps: checks, backups, restores, forgetting.

use super::farm::FarmArgs;
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

/// Options of `forget`.
#[derive(Debug, Args)]
pub struct ForgetArgs {
    /// Jobs that have ended: ids, or their beginnings
    #[arg(required = true)]
    pub jobs: Vec<String>,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}
