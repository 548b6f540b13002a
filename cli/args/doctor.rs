//! Options of `doctor`.

use super::devices::DeviceArgs;
use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Options of `doctor`.
#[derive(Debug, Args)]
#[command(after_help = "A line for each check: ok, warn or fail. Status 1 where one fails.")]
pub struct DoctorArgs {
    /// Also see whether this coordinator can be reached, HOST:PORT
    #[arg(long, value_name = "HOST:PORT", env = "TESSERA_COORDINATOR")]
    pub coordinator: Option<String>,
    /// The node's own folder [default: $XDG_DATA_HOME/tessera/node]
    #[arg(long, value_name = "DIR", env = "TESSERA_NODE_DATA")]
    pub data: Option<PathBuf>,
    /// Disk space that the node may fill with scene files, MiB
    #[arg(long, value_name = "MIB", default_value_t = 16 << 10)]
    pub cache: u64,
    /// Also see whether a coordinator could listen at this UDP address; may be given more than once
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: Vec<SocketAddr>,
    /// Also keep every device busy for so many seconds, and compare every result
    #[arg(long, value_name = "SECS", value_parser = clap::value_parser!(u64).range(1..=604_800))]
    pub burn: Option<u64>,
    /// How the devices are used.
    #[command(flatten)]
    pub devices: DeviceArgs,
    /// JSON on standard output
    #[arg(long)]
    pub json: bool,
}
