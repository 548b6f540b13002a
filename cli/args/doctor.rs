//! Options of `doctor`.

use super::devices::DeviceArgs;
use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Options of `doctor`.
#[derive(Debug, Args)]
#[command(
    after_help = "Prints one line per check: ok, warn or fail. Exit status 1 if a check fails."
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
    /// How the devices are used.
    #[command(flatten)]
    pub devices: DeviceArgs,
    /// Print JSON on standard output
    #[arg(long)]
    pub json: bool,
}
