//! Options of `doctor`.

use super::blobs::BlobCredentialArgs;
use super::devices::DeviceArgs;
use super::store::PasswordArgs;
use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Options of `doctor`.
#[derive(Args)]
#[command(
    after_help = "Prints one line per check: ok, warn or fail. Exit status 1 if a check fails.\n\n\
        With --store it looks at what a coordinator keeps, and not at this machine as a node: \
        whether commits survive a power cut and the loss of a machine or zone, and whether other \
        coordinators can go on. It changes nothing there."
)]
pub struct DoctorArgs {
    /// Also check whether this coordinator can be reached
    #[arg(long, value_name = "HOST:PORT,...", env = "TESSERA_COORDINATOR")]
    pub coordinator: Option<String>,
    /// Data folder of the node [default: $XDG_DATA_HOME/tessera/node]
    #[arg(long, value_name = "DIR", env = "TESSERA_NODE_DATA")]
    pub data: Option<PathBuf>,
    /// Disk space that the node may use for scene files, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 16 << 10)]
    pub cache: u64,
    /// Also check whether a coordinator could listen on this UDP address; may be given more than
    /// once
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: Vec<SocketAddr>,
    /// Also load every device for this many seconds and compare every result
    #[arg(long, value_name = "SECS", value_parser = clap::value_parser!(u64).range(1..=604_800))]
    pub burn: Option<u64>,
    /// Check a coordinator's store instead: sled, or postgres://USER@HOST:PORT/DB?OPTIONS
    #[arg(long, value_name = "ADDRESS", help_heading = "Store", conflicts_with = "burn")]
    pub store: Option<String>,
    /// Where its password is.
    #[command(flatten)]
    pub password: PasswordArgs,
    /// Where that coordinator's files are: disk, or s3://BUCKET/PREFIX?OPTIONS
    #[arg(
        long,
        value_name = "ADDRESS",
        help_heading = "Store",
        default_value = "disk",
        requires = "store"
    )]
    pub blobs: String,
    /// Who asks there.
    #[command(flatten)]
    pub credentials: BlobCredentialArgs,
    /// How the devices are used.
    #[command(flatten)]
    pub devices: DeviceArgs,
    /// Print JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// The store's address may have a password in it.
impl std::fmt::Debug for DoctorArgs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DoctorArgs").field("devices", &self.devices).finish_non_exhaustive()
    }
}
