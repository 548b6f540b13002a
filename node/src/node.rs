//! A node as its owner sees it: started, watched, drained, stopped. Several may run in one process.

use crate::config::Config;
use crate::device;
use crate::folder::DataFolder;
use crate::shell::event::Command;
use crate::shell::{Shell, Vitals};
use crate::status::{Ended, NodeError, NodeStatus};
use std::time::{Duration, Instant};
use tessera_protocol::NodeId;
use tessera_protocol::device::DeviceInfo;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

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
