//! Options of `node`.

use super::devices::DeviceArgs;
use super::import::ImportArgs;
use super::time::{parse_grace, parse_ttl};
use clap::Args;
use std::path::PathBuf;

/// Options of `node`.
#[derive(Debug, Args)]
#[command(
    after_help = "SIGTERM drains it: what is in work is finished and delivered, the rest handed \
        back (see --hand-in-after). A second signal hands all of it back and ends it at once."
)]
pub struct NodeArgs {
    /// The coordinator
    #[arg(
        long,
        value_name = "HOST:PORT",
        env = "TESSERA_COORDINATOR",
        default_value = "127.0.0.1:7420"
    )]
    pub coordinator: String,
    /// File with a join token; needed once, while the data folder holds no identity
    #[arg(long, value_name = "FILE", env = "TESSERA_TOKEN_FILE")]
    pub token_file: Option<PathBuf>,
    /// The node's own folder: identity, scene cache, results not yet delivered [default:
    /// $XDG_DATA_HOME/tessera/node]
    #[arg(long, value_name = "DIR", env = "TESSERA_NODE_DATA")]
    pub data: Option<PathBuf>,
    /// Name for people [default: the host's name]
    #[arg(long, value_name = "NAME", env = "TESSERA_NODE_NAME")]
    pub name: Option<String>,
    /// The pool of this node: jobs for a pool get its nodes alone (a token for a pool puts nodes
    /// there by itself)
    #[arg(long, value_name = "POOL", env = "TESSERA_POOL")]
    pub pool: Option<String>,
    /// How the devices are used.
    #[command(flatten)]
    pub devices: DeviceArgs,
    /// Disk space for scene files, MiB
    #[arg(long, value_name = "MIB", default_value_t = 16 << 10)]
    pub cache: u64,
    /// What reading a scene may take.
    #[command(flatten)]
    pub import: ImportArgs,
    /// Leave, with success, once it has had work and the farm has none for it (for 5 s)
    #[arg(long, help_heading = "Batch")]
    pub once: bool,
    /// Leave, with success, when no work has come for so long: 90s, 30m, 24h
    #[arg(long, value_name = "TIME", value_parser = parse_ttl, help_heading = "Batch")]
    pub max_idle: Option<u64>,
    /// After SIGTERM, finish units for so long and no longer: 0s, 20s, 5m; then they end early, and
    /// the samples that they have are handed in
    #[arg(long, value_name = "TIME", value_parser = parse_grace)]
    pub hand_in_after: Option<u64>,
    /// Whose notices that this machine is taken back are waited for: auto, off, aws, gcp or azure;
    /// then the node leaves within 25 s
    #[arg(
        long,
        value_name = "CLOUD",
        env = "TESSERA_SPOT",
        default_value_t = tessera_node::spot::Spot::Auto,
    )]
    pub spot: tessera_node::spot::Spot,
}
