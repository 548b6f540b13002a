//! A node as its owner sees it: started, watched, drained, stopped. Several may run in one process.

use crate::cache::CacheError;
use crate::config::Config;
use crate::device::{self, DeviceOpenError};
use crate::folder::{DataFolder, FolderError};
use crate::outbox::OutboxError;
use crate::shell::event::Command;
use crate::shell::{Shell, Vitals};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tessera_protocol::NodeId;
use tessera_protocol::device::DeviceInfo;
use tessera_transport::{AddressError, ConnectError, EnrolError, IdentityError, TokenError};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

/// Why a node does not start, or ends.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// Its folder.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// Its cache.
    #[error("cannot open the scene cache")]
    Cache(#[source] CacheError),
    /// Its outbox.
    #[error("cannot open the outbox")]
    Outbox(#[source] OutboxError),
    /// Its devices.
    #[error(transparent)]
    Device(#[from] DeviceOpenError),
    /// Its name.
    #[error(
        "node name {0:?} is not 1 to 128 letters, digits and `.`, `_`, `-`, `@`; choose another"
    )]
    Name(String),
    /// The coordinator's address.
    #[error(transparent)]
    Address(AddressError),
    /// The join token.
    #[error(transparent)]
    Token(TokenError),
    /// No identity, and nothing to get one with.
    #[error(
        "no identity at `{0}` and no join token; make one with `tessera token create --role node`"
    )]
    NoToken(PathBuf),
    /// The identity cannot be read or kept.
    #[error(transparent)]
    Identity(IdentityError),
    /// The identity is of another node.
    #[error("the identity at `{0}` is not of this node; remove it and enrol again")]
    OtherNode(PathBuf),
    /// The identity is of another pool.
    #[error(
        "this node's certificate says that it is of pool `{fixed}`, and it was started for pool `{claimed}`; leave --pool away, or \
         remove its identity and enrol it with a token for that pool"
    )]
    OtherPool {
        /// Pool in its certificate.
        fixed: String,
        /// Pool that it was started with.
        claimed: String,
    },
    /// The coordinator does not let it join the farm.
    #[error(transparent)]
    Enrol(EnrolError),
    /// No session, and none will come without a person's help.
    #[error(transparent)]
    Connect(ConnectError),
    /// The coordinator does not want it.
    #[error("the coordinator refuses this node: {0}")]
    Refused(String),
    /// Its own task failed: a fault of this program.
    #[error("the node's task failed: {0}")]
    Fault(String),
}

/// How a node ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Drained; this many results were not acknowledged in time and stay in the outbox for the next
    /// start.
    Drained {
        /// How many.
        unacknowledged: usize,
    },
    /// Stopped at once.
    Stopped,
}

/// What a node is doing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeStatus {
    /// A session with the coordinator stands.
    pub connected: bool,
    /// It takes no new work.
    pub draining: bool,
    /// Leases waiting, running or being stored.
    pub held: usize,
    /// Results in the outbox.
    pub finished: usize,
    /// Units whose results were acknowledged since the start.
    pub committed: u64,
    /// Device time spent since the start, all devices together.
    pub busy: Duration,
    /// Time spent on preparing frames since the start (fetching, loading, building hierarchies),
    /// each frame's counted.
    pub preparing: Duration,
    /// Rays traced in units that were finished since the start.
    pub rays: u64,
    /// When the first unit was handed to a device.
    pub first_unit_at: Option<Instant>,
}

/// Starts nodes.
#[derive(Debug)]
pub struct Node;

impl Node {
    /// Opens the data folder and the devices, and begins to dial; returns before there is a
    /// session. Of several CUDA devices it waits for the first that is fit for work: the others get
    /// theirs as they become ready. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// What is wrong on this machine. What the coordinator says comes with [`RunningNode::join`].
    pub fn start(config: Config) -> Result<RunningNode, NodeError> {
        let folder = DataFolder::open(&config.data)?;
        let devices = device::open_first(&config)?;
        let id = folder.node();
        let (publish, status) = watch::channel(NodeStatus::default());
        let (commands, orders) = mpsc::channel(4);
        let (pulse, vitals) =
            watch::channel(Vitals { turned: Instant::now(), stalled: Duration::ZERO });
        let infos = devices.devices.iter().map(|device| device.info()).collect();
        let compiler = devices.compiler;
        let shell = Shell::open(config, folder, devices, (publish, pulse))?;
        let task = Some(tokio::spawn(shell.run(orders)));
        Ok(RunningNode { id, devices: infos, compiler, commands, status, vitals, task })
    }
}

/// A node that runs. Dropped without [`Self::join`], it stops at once.
#[derive(Debug)]
pub struct RunningNode {
    id: NodeId,
    devices: Vec<DeviceInfo>,
    compiler: Option<(u32, u32)>,
    commands: mpsc::Sender<Command>,
    status: watch::Receiver<NodeStatus>,
    vitals: watch::Receiver<Vitals>,
    /// None once it has been waited for to the end.
    task: Option<JoinHandle<Result<Ended, NodeError>>>,
}

impl RunningNode {
    /// The node's id.
    pub fn id(&self) -> NodeId {
        self.id
    }

    /// Finish what has begun, give back the rest, wait (at most [`Config::drain_wait`]) until all
    /// results are acknowledged, leave. Returns at once; [`Self::join`] waits for the end.
    pub fn drain(&self) {
        self.order(Command::Drain);
    }

    /// End what has begun at the next sample that all its pixels have, hand those samples in, and
    /// then as [`Self::drain`]. What a device cannot end early it finishes. Returns at once;
    /// [`Self::join`] waits for the end.
    pub fn hand_in(&self) {
        self.order(Command::HandIn);
    }

    /// Leave at once: every unit is given back, what has begun is lost, what is finished stays in
    /// the outbox. Returns at once.
    pub fn stop_now(&self) {
        self.order(Command::Stop);
    }

    /// Its devices, as they were found at its start.
    pub fn devices(&self) -> &[DeviceInfo] {
        &self.devices
    }

    /// Version of the NVRTC that its devices' workers found at its start; None where it has no CUDA
    /// device, or they found none.
    pub fn compiler(&self) -> Option<(u32, u32)> {
        self.compiler
    }

    /// Whether its loop turns and its devices get on.
    pub fn vitals(&self) -> Vitals {
        *self.vitals.borrow()
    }

    /// What it is doing now.
    pub fn status(&self) -> NodeStatus {
        self.status.borrow().clone()
    }

    /// What it is doing, and every change of that.
    pub fn watch(&self) -> watch::Receiver<NodeStatus> {
        self.status.clone()
    }

    /// Waits for its end. May be dropped and called again.
    ///
    /// # Errors
    /// Why it could not go on. [`NodeError::Fault`] where its end has been told already.
    pub async fn join(&mut self) -> Result<Ended, NodeError> {
        let Some(task) = &mut self.task else {
            return Err(NodeError::Fault("its end has been told already".into()));
        };
        let joined = task.await;
        self.task = None;
        joined.unwrap_or_else(|error| Err(NodeError::Fault(error.to_string())))
    }

    fn order(&self, command: Command) {
        // Full: such an order waits already, four deep. Closed: it has ended, and join says how.
        let _ = self.commands.try_send(command);
    }
}
