//! Options of `fsck`.

use super::blobs::BlobArgs;
use super::store::StoreArgs;
use clap::Args;
use std::path::PathBuf;

/// Options of `fsck`.
#[derive(Debug, Args)]
#[command(
    after_help = "The coordinator must be stopped, and nothing is repaired. Each finding says what \
        it means and what to do. Exit status 1 if something promised is lost; 0 if there are only \
        notes."
)]
pub struct FsckArgs {
    /// Data folder of the coordinator
    #[arg(long, value_name = "DIR", env = "TESSERA_DATA")]
    pub data: PathBuf,
    /// Where its state is.
    #[command(flatten)]
    pub store: StoreArgs,
    /// Where its files are.
    #[command(flatten)]
    pub blobs: BlobArgs,
    /// Check blobs only by name and length, without reading them
    #[arg(long)]
    pub quick: bool,
    /// Print JSON on standard output
    #[arg(long)]
    pub json: bool,
}
