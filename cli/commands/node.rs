//! `node`: runs one until it is told to leave.

use super::token::read_token;
use crate::args::farm::NodeArgs;
use crate::args::local::DeviceArgs;
use crate::config;
use crate::error::{CliError, Status};
use crate::signals::Stops;
use tessera_node::{Config, Ended, Node};

/// `tessera node`.
pub(crate) async fn run(args: NodeArgs) -> Result<Status, CliError> {
    let mut stops = Stops::listen()?;
    let mut node = Node::start(node_config(&args)?)?;
    tracing::info!(node = %node.id(), coordinator = args.coordinator, "node started");
    let mut asked = false;
    loop {
        tokio::select! {
            ended = node.join() => return conclude(ended?),
            () = stops.next() => {
                match asked {
                    false => {
                        tracing::info!("draining: what is in work will be finished and delivered; a second signal ends it at once");
                        node.drain();
                    }
                    true => node.stop_now(),
                }
                asked = true;
            }
        }
    }
}

fn conclude(ended: Ended) -> Result<Status, CliError> {
    match ended {
        Ended::Drained { unacknowledged: 0 } => tracing::info!("drained"),
        Ended::Drained { unacknowledged } => {
            tracing::warn!(
                unacknowledged,
                "drained; some results are not acknowledged and are delivered at the next start"
            );
        }
        Ended::Stopped => tracing::info!("stopped at once; finished results are delivered at the next start"),
    }
    Ok(Status::Done)
}

fn node_config(args: &NodeArgs) -> Result<Config, CliError> {
    let data = args.data.clone().or_else(|| config::data_folder().map(|folder| folder.join("node")));
    let data = data.ok_or_else(|| {
        CliError::new(Status::Usage, "this user has no home folder")
            .hint("say where the node's folder is: --data DIR")
    })?;
    let name = args.name.clone().unwrap_or_else(host_name);
    let mut config = with_devices(Config::new(&args.coordinator, data, name), &args.devices);
    config.token = args.token_file.as_deref().map(read_token).transpose()?;
    config.cache_bytes = args.cache.saturating_mul(1 << 20);
    Ok(config)
}

/// A node's settings with these devices.
pub(crate) fn with_devices(mut config: Config, devices: &DeviceArgs) -> Config {
    config.devices = devices.device.clone();
    config.threads = devices.threads.map(|threads| threads as usize);
    config.isa = devices.isa;
    config
}

/// The host's name as far as a node may have it, or `node`.
fn host_name() -> String {
    let mut buffer = [0u8; 256];
    // SAFETY: the pointer and length are of one buffer; the call ends the name with a zero where there is room for one.
    let failed = unsafe { libc::gethostname(buffer.as_mut_ptr().cast(), buffer.len() - 1) } != 0;
    let end = buffer.iter().position(|byte| *byte == 0).unwrap_or(0);
    let name: String = String::from_utf8_lossy(&buffer[..end])
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '@'))
        .take(tessera_protocol::limits::NAME_MAX)
        .collect();
    if failed || name.is_empty() { "node".into() } else { name }
}
