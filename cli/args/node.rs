//! Options of `node`.

use super::devices::DeviceArgs;
use super::import::ImportArgs;
use super::time::{parse_grace, parse_ttl};
use crate::WorkHours;
use clap::Args;
use std::path::PathBuf;

/// Options of `node`.
#[derive(Debug, Args)]
#[command(
    after_help = "SIGTERM drains the node: it finishes and delivers the units it works on and \
        hands back the rest (see --hand-in-after). A second signal hands everything back and stops \
        the node at once."
)]
pub struct NodeArgs {
    /// Address of the coordinator, or of several of which one leads
    #[arg(
        long,
        value_name = "HOST:PORT,...",
        env = "TESSERA_COORDINATOR",
        default_value = "127.0.0.1:7420"
    )]
    pub coordinator: String,
    /// File with a join token; needed only while the data folder holds no identity
    #[arg(long, value_name = "FILE", env = "TESSERA_TOKEN_FILE")]
    pub token_file: Option<PathBuf>,
    /// Data folder of the node: identity, scene cache, undelivered results [default:
    /// $XDG_DATA_HOME/tessera/node]
    #[arg(long, value_name = "DIR", env = "TESSERA_NODE_DATA")]
    pub data: Option<PathBuf>,
    /// Name of the node, as users see it [default: the host name]
    #[arg(long, value_name = "NAME", env = "TESSERA_NODE_NAME")]
    pub name: Option<String>,
    /// Pool of the node; jobs for a pool run only on its nodes. A token made for a pool sets it too
    #[arg(long, value_name = "POOL", env = "TESSERA_POOL")]
    pub pool: Option<String>,
    /// How the devices are used.
    #[command(flatten)]
    pub devices: DeviceArgs,
    /// Disk space for scene files, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 16 << 10)]
    pub cache: u64,
    /// Confinement of the processes that read scenes and drive devices. With
    /// "require" the node refuses to start where the kernel lacks seccomp or Landlock; "on" does
    /// what it can; "off" is for debuggers
    #[arg(
        long,
        value_name = "MODE",
        env = "TESSERA_SANDBOX",
        default_value_t = tessera_node::Sandbox::On,
    )]
    pub sandbox: tessera_node::Sandbox,
    /// What reading a scene may take.
    #[command(flatten)]
    pub import: ImportArgs,
    /// Exit with success once the node has had work and the farm has had none for it for 5 s
    #[arg(long, help_heading = "Batch")]
    pub once: bool,
    /// Exit with success after this time without work: 90s, 30m, 24h
    #[arg(long, value_name = "TIME", value_parser = parse_ttl, help_heading = "Batch")]
    pub max_idle: Option<u64>,
    /// Hours in which the node works, by this machine's clock: 20:00-07:00, or with days and
    /// commas "mon-fri 20:00-07:00, sat-sun 00:00-24:00"; outside of them it leaves the farm and
    /// its devices [default: always]
    #[arg(long, value_name = "HOURS", env = "TESSERA_HOURS")]
    pub hours: Option<WorkHours>,
    /// Time to finish units after SIGTERM, or after the end of --hours: 0s, 20s, 5m; then the
    /// samples rendered so far are handed in [default: no limit]
    #[arg(long, value_name = "TIME", value_parser = parse_grace)]
    pub hand_in_after: Option<u64>,
    /// Cloud whose notices about taking this machine back are watched: auto, off, aws, gcp or
    /// azure; after one, the node leaves within 25 s
    #[arg(
        long,
        value_name = "CLOUD",
        env = "TESSERA_SPOT",
        default_value_t = tessera_node::spot::Spot::Auto,
    )]
    pub spot: tessera_node::spot::Spot,
}
