//! A node for its owner: started, watched, drained, stopped. A process can run several.

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

/// Entry point that starts a node.
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
        match config.sandbox.check()? {
            Some(lacking) => tracing::warn!(sandbox = %config.sandbox, "{lacking}"),
            None => tracing::debug!(sandbox = %config.sandbox, "the kernel can confine workers"),
        }
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

/// A running node. If it is dropped without [`Self::join`], it stops at once.
#[derive(Debug)]
pub struct RunningNode {
    id: NodeId,
    devices: Vec<DeviceInfo>,
    compiler: Option<(u32, u32)>,
    commands: mpsc::Sender<Command>,
    status: watch::Receiver<NodeStatus>,
    vitals: watch::Receiver<Vitals>,
    /// None once the node's end has been waited for.
    task: Option<JoinHandle<Result<Ended, NodeError>>>,
}

impl RunningNode {
    /// Returns the node's id.
    pub fn id(&self) -> NodeId {
        self.id
    }

    /// Drains the node: finishes the units that have begun, returns the others, waits at most
    /// [`Config::drain_wait`] for the acknowledgements, and leaves. Returns at once; [`Self::join`]
    /// waits for the end.
    pub fn drain(&self) {
        self.leave("stopped");
    }

    /// Drains the node like [`Self::drain`]. The coordinator is told why it leaves.
    pub fn leave(&self, why: &str) {
        self.order(Command::Leave(why.to_owned()));
    }

    /// Ends the units that have begun at the next sample that all pixels have, hands these samples
    /// in, and continues like [`Self::drain`]. A unit that a device cannot end early is finished.
    /// Returns at once; [`Self::join`] waits for the end.
    pub fn hand_in(&self) {
        self.order(Command::HandIn);
    }

    /// Leaves at once: every unit is returned, unfinished work is lost, and finished results stay
    /// in the outbox. Returns at once.
    pub fn stop_now(&self) {
        self.order(Command::Stop);
    }

    /// Returns the devices as they were found at the start.
    pub fn devices(&self) -> &[DeviceInfo] {
        &self.devices
    }

    /// Returns the version of NVRTC that the devices' workers found at the start; None if there is
    /// no CUDA device, or they found none.
    pub fn compiler(&self) -> Option<(u32, u32)> {
        self.compiler
    }

    /// Returns whether the node's loop runs and its devices make progress.
    pub fn vitals(&self) -> Vitals {
        *self.vitals.borrow()
    }

    /// Returns the present activity of the node.
    pub fn status(&self) -> NodeStatus {
        self.status.borrow().clone()
    }

    /// Returns a receiver of the node's activity and its changes.
    pub fn watch(&self) -> watch::Receiver<NodeStatus> {
        self.status.clone()
    }

    /// Waits for its end. May be dropped and called again.
    ///
    /// # Errors
    /// Why it could not continue. [`NodeError::Fault`] where its end has been told already.
    pub async fn join(&mut self) -> Result<Ended, NodeError> {
        let Some(task) = &mut self.task else {
            return Err(NodeError::Fault("its end has been told already".into()));
        };
        let joined = task.await;
        self.task = None;
        joined.unwrap_or_else(|error| Err(NodeError::Fault(error.to_string())))
    }

    fn order(&self, command: Command) {
        // If it is full, four such commands are already waiting. If it is closed, the node has
        // ended, and join says how.
        let _ = self.commands.try_send(command);
    }
}
