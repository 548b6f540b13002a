//! A farm in this process: a coordinator and nodes on loopback, with a temporary store. Knows no
//! job.

use crate::args::devices::DeviceArgs;
use crate::client::Farm;
use crate::commands::node::with_devices;
use crate::error::{CliError, Status};
use crate::rusage::usage;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;
use tessera_coordinator::{Config, Coordinator, RunningCoordinator, Settings};
use tessera_node::device::cuda::probe;
use tessera_node::import::ImportLimits;
use tessera_node::{
    Config as NodeConfig, DeviceSpec, Ended, Finishes, FramePrepared, Node, NodeStatus,
    RunningNode, SentBytes,
};
use tessera_protocol::FrameNumber;
use tessera_protocol::client::Role;
use tessera_transport::Lifetimes;
use tessera_transport::error::chain;
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};

/// Results of a device that are all compared, before fewer are: it is the kernel that is looked at,
/// more than the devices.
const CHECK_FIRST: u32 = 2;

/// Coordinator and nodes of this process.
pub(crate) struct LocalFarm {
    coordinator: RunningCoordinator,
    /// Its nodes.
    pub(crate) nodes: Vec<RunningNode>,
    /// The way to it.
    pub(crate) farm: Farm,
    /// CPU seconds that the process had used when the first unit began.
    cpu_before: JoinHandle<f64>,
    /// Frames that its nodes have prepared.
    prepared: mpsc::UnboundedReceiver<FramePrepared>,
}

/// What a frame took before its samples.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FrameCost {
    /// Its preparation: the longest, where it was prepared more than once.
    pub(crate) preparation: Duration,
    /// What CUDA devices were sent of its scene; of frames that show the same, the first has it.
    pub(crate) uploaded_bytes: u64,
}

/// What all nodes of a local farm have in common.
struct OfNodes {
    /// Whether those that fail are left out as long as one works.
    is_one_enough: bool,
    import: ImportLimits,
    finishes: Finishes,
}

/// Gives a node's folder an identity, without the way over a token.
fn enrol(coordinator: &RunningCoordinator, data: &Path, name: &str) -> Result<(), CliError> {
    let folder = tessera_node::DataFolder::open(data)
        .map_err(|error| CliError::new(Status::Failure, error))?;
    let identity = coordinator.issue(Role::Node, name, Some(folder.node()))?;
    Ok(identity.save(&folder.identity())?)
}

/// Waits for the first unit on any device.
async fn cpu_at_first_unit(nodes: Vec<watch::Receiver<NodeStatus>>) -> f64 {
    let mut first = JoinSet::new();
    for mut node in nodes {
        // An error is a node that has ended. Then there is nothing to wait for.
        first.spawn(async move { drop(node.wait_for(|status| status.first_unit.is_some()).await) });
    }
    first.join_next().await;
    usage().0
}

impl LocalFarm {
    /// Starts `count` nodes, which share the threads of these devices. Everything is stored in one
    /// folder. Nothing is compared, since all its nodes are this process. `finishes` says which of
    /// them finish frames; the coordinator does where none does.
    pub(crate) async fn start(
        folder: &Path,
        devices: &DeviceArgs,
        (count, import): (u16, ImportLimits),
        finishes: Finishes,
    ) -> Result<Self, CliError> {
        let plan = (0..count).map(|index| (format!("node-{index}"), devices.clone())).collect();
        let of_nodes = OfNodes { is_one_enough: false, import, finishes };
        Self::start_nodes(folder, (plan, of_nodes), Settings::without_checks).await
    }

    /// Starts a node for each CUDA device of these, so that their results of a user's kernel are
    /// compared. Of devices that one name stands for, those that fail are left out as long as one
    /// works, as a node does. Blocks while the devices are listed.
    pub(crate) async fn start_compared(
        folder: &Path,
        devices: &DeviceArgs,
    ) -> Result<Self, CliError> {
        let (plan, is_one_enough) = apart(folder, devices);
        let compared = |settings| Settings { check_first: CHECK_FIRST, ..settings };
        let (import, finishes) = (ImportLimits::default(), Finishes::Never);
        let of_nodes = OfNodes { is_one_enough, import, finishes };
        Self::start_nodes(folder, (plan, of_nodes), compared).await
    }

    async fn start_nodes(
        folder: &Path,
        (plan, of_nodes): (Vec<(String, DeviceArgs)>, OfNodes),
        settings: impl FnOnce(Settings) -> Settings,
    ) -> Result<Self, CliError> {
        let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut config =
            Config::new(folder.join("coordinator"), listen, tessera_node::fingerprint());
        // No node of an earlier run can come back, and the folder goes away anyway.
        config.settings.settle = Duration::ZERO;
        config.settings = settings(config.settings);
        config.disk_reserve_bytes = 0;
        config.lifetimes = Lifetimes::LONGEST;
        let coordinator = Coordinator::start(config).await?;
        let address = coordinator.local_address();
        let all = std::thread::available_parallelism().map_or(1, usize::from);
        let (mut nodes, mut unfit) = (Vec::new(), None);
        let (listener, prepared) = mpsc::unbounded_channel();
        for (index, (name, devices)) in plan.iter().enumerate() {
            let threads = devices.threads.map_or(all, |threads| threads as usize);
            let data = folder.join(name);
            let mut config =
                with_devices(NodeConfig::new(address.to_string(), &data, name), devices);
            config.finishes = of_nodes.finishes;
            config.prepared = Some(listener.clone());
            config.import = of_nodes.import.clone();
            config.threads = Some(share(threads, plan.len(), index));
            enrol(&coordinator, &data, name)?;
            match Node::start(config) {
                Ok(node) => nodes.push(node),
                Err(error) if of_nodes.is_one_enough => {
                    let reason = chain(&error);
                    tracing::warn!(device = name, reason, "device left out");
                    unfit.get_or_insert(error);
                }
                Err(error) => return Err(error.into()),
            }
        }
        if let Some(error) = unfit.filter(|_| nodes.is_empty()) {
            return Err(error.into());
        }
        let identity = coordinator.issue(Role::Admin, "local", None)?;
        let cpu_before =
            tokio::spawn(cpu_at_first_unit(nodes.iter().map(RunningNode::watch).collect()));
        let farm = Farm::new(address.into(), identity);
        Ok(Self { coordinator, nodes, farm, cpu_before, prepared })
    }

    /// Returns the sum of the work of all nodes.
    pub(crate) fn status(&self) -> NodeStatus {
        self.nodes.iter().map(RunningNode::status).fold(NodeStatus::default(), |sum, one| {
            NodeStatus {
                committed: sum.committed + one.committed,
                busy: sum.busy + one.busy,
                preparing: sum.preparing.max(one.preparing),
                rays: sum.rays + one.rays,
                first_unit: sum.first_unit.into_iter().chain(one.first_unit).min_by_key(|of| of.at),
                ..NodeStatus::default()
            }
        })
    }

    /// Returns what each frame took that was prepared since the last call. For one job.
    pub(crate) fn prepared(&mut self) -> BTreeMap<FrameNumber, FrameCost> {
        let mut costs = BTreeMap::<FrameNumber, FrameCost>::new();
        let mut counts: Vec<(FrameNumber, SentBytes)> = Vec::new();
        while let Ok(FramePrepared { frame, took, sent, .. }) = self.prepared.try_recv() {
            let cost = costs.entry(frame).or_default();
            cost.preparation = took.max(cost.preparation);
            counts.extend(sent.map(|sent| (frame, sent)));
        }
        counts.sort_by_key(|(frame, _)| *frame);
        for (index, (frame, sent)) in counts.iter().enumerate() {
            let is_counted = counts[..index].iter().any(|(_, other)| other.is_of_same(sent));
            if let Some(cost) = costs.get_mut(frame).filter(|_| !is_counted) {
                cost.uploaded_bytes += sent.count();
            }
        }
        costs
    }

    /// Ends the farm; how much CPU time the process had used before the first unit, if there was
    /// one.
    pub(crate) async fn stop(self) -> Option<f64> {
        let cpu_before =
            if self.cpu_before.is_finished() { self.cpu_before.await.ok() } else { None };
        for mut node in self.nodes {
            node.stop_now();
            if let Err(error) = node.join().await {
                tracing::debug!(%error, "a node ended with an error");
            }
        }
        if let Err(error) = self.coordinator.shutdown().await {
            tracing::debug!(%error, "the coordinator ended with an error");
        }
        cpu_before
    }
}

/// The CUDA devices that are meant, each for a node of its own, if there are several; otherwise one
/// node for all devices. And whether one of them is enough, since one name stands for all.
fn apart(folder: &Path, devices: &DeviceArgs) -> (Vec<(String, DeviceArgs)>, bool) {
    let config = with_devices(NodeConfig::new(String::new(), folder, "probe"), devices);
    let all = |spec: &DeviceSpec| matches!(spec, DeviceSpec::Auto | DeviceSpec::Cuda(None));
    let found = match devices.device.iter().any(all) {
        // Without a driver, the node says what is wrong.
        true => probe(&config).ok().and_then(|probed| probed.devices.ok()),
        false => None,
    };
    let is_one_enough = found.is_some();
    let mut specs: Vec<DeviceSpec> = match found {
        Some(found) => (0..found.len() as u32).map(|index| DeviceSpec::Cuda(Some(index))).collect(),
        None => devices.device.clone(),
    };
    let mut seen = Vec::new();
    specs.retain(|spec| {
        let is_new = matches!(spec, DeviceSpec::Cuda(Some(_))) && !seen.contains(spec);
        seen.push(*spec);
        is_new
    });
    if specs.len() < 2 {
        return (vec![("node-0".to_owned(), devices.clone())], false);
    }
    let alone = |spec: DeviceSpec| {
        (spec.to_string().replace(':', "-"), DeviceArgs { device: vec![spec], ..devices.clone() })
    };
    (specs.into_iter().map(alone).collect(), is_one_enough)
}

/// Threads of one of several nodes: at least one each.
fn share(threads: usize, nodes: usize, index: usize) -> usize {
    (threads / nodes + usize::from(index < threads % nodes)).max(1)
}

/// Waits until a node ends by itself, which it should not.
pub(crate) async fn node_failed(nodes: &mut [RunningNode]) -> CliError {
    let mut ends: Vec<_> = nodes.iter_mut().map(|node| Box::pin(node.join())).collect();
    let ended = std::future::poll_fn(|context| {
        for end in &mut ends {
            if let std::task::Poll::Ready(ended) = end.as_mut().poll(context) {
                return std::task::Poll::Ready(ended);
            }
        }
        std::task::Poll::Pending
    });
    match ended.await {
        Err(error) => error.into(),
        Ok(Ended::Drained { .. } | Ended::Stopped) => {
            CliError::new(Status::Failure, "a node has left the farm")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{apart, share};
    use crate::args::devices::DeviceArgs;
    use tessera_node::DeviceSpec;

    #[test]
    fn each_of_several_cuda_devices_gets_a_node() {
        let names = |device: &[DeviceSpec]| {
            let device = device.to_vec();
            let devices = DeviceArgs { device, watchdog: None, threads: None, isa: None };
            let plan = apart(std::path::Path::new("/nowhere"), &devices).0.into_iter();
            plan.map(|(name, devices)| (name, devices.device)).collect::<Vec<_>>()
        };
        let [one, other] = [0, 1].map(|index| DeviceSpec::Cuda(Some(index)));
        let alone = |spec| vec![("node-0".to_owned(), vec![spec])];
        assert_eq!(names(&[one]), alone(one));
        assert_eq!(names(&[DeviceSpec::Cpu]), alone(DeviceSpec::Cpu));
        let both = [("cuda-0".to_owned(), vec![one]), ("cuda-1".to_owned(), vec![other])];
        assert_eq!(names(&[one, other, one, DeviceSpec::Cpu]), both);
    }

    #[test]
    fn nodes_share_the_threads_and_each_gets_one() {
        let shares = |threads, nodes| {
            (0..nodes).map(|index| share(threads, nodes, index)).collect::<Vec<_>>()
        };
        assert_eq!(shares(8, 3), [3, 3, 2]);
        assert_eq!(shares(1, 3), [1, 1, 1]);
    }
}
