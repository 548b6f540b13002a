//! The node as a member of the farm: it joins in each session, hears what operators wish of it, and
//! leaves.

use super::Shell;
use super::delivery::Delivery;
use super::event::Session;
use crate::config::Finishes;
use std::time::Instant;
use tessera_protocol::device::DeviceKind;
use tessera_protocol::node::{CoordinatorToNode, Join, NodeToCoordinator};

impl Shell {
    pub(super) fn join(&mut self, session: Session) {
        self.scenes_told = self.preparing.scenes();
        self.look_at_devices();
        let join = Join {
            node: self.folder.node(),
            name: self.config.name.clone(),
            pool: self.config.pool.clone(),
            process: self.folder.process(),
            devices: self.devices_told.clone(),
            capacity: self.agent.capacity(),
            running: self.agent.held(),
            finished: self.agent.finished(),
            scenes: self.scenes_told.clone(),
            nvrtc: self.opened.compiler,
            unconfined: self.config.sandbox.check().ok().flatten(),
            finishing: self.finishes().then(tessera_finishing::fingerprint),
        };
        self.heartbeats = 0;
        self.live.clear();
        let connection = session.connection.clone();
        self.delivery = Some(Delivery::new(&self.results, session.number, connection));
        self.session = Some(session);
        self.send(NodeToCoordinator::Join(join));
        self.agent.on_connected();
    }

    /// Returns whether this node finishes frames.
    fn finishes(&self) -> bool {
        match self.config.finishes {
            Finishes::Always => true,
            Finishes::WithCuda => {
                self.devices_told.iter().any(|device| device.kind == DeviceKind::Cuda)
            }
            Finishes::Never => false,
        }
    }

    /// Logs what an operator wishes of the node.
    pub(super) fn note_wishes(&mut self, message: &CoordinatorToNode) {
        match message {
            CoordinatorToNode::Leave => {
                let why = "drained by an operator, with --leave".to_owned();
                self.leaves_because.get_or_insert(why);
                tracing::warn!(
                    "an operator drains this node and lets it leave: what is in work \
                    will be finished and delivered"
                );
            }
            CoordinatorToNode::Drained { drained: true } => {
                tracing::warn!(
                    "an operator has drained this node: it stays connected, and gets \
                    no work until `tessera undrain`"
                );
            }
            CoordinatorToNode::Drained { drained: false } => {
                tracing::info!("an operator gives this node work again");
            }
            _ => {}
        }
    }

    /// Returns whether a drained node has waited long enough for the last acknowledgements.
    pub(super) fn waited_enough(&mut self) -> bool {
        if !self.agent.is_draining() || self.agent.is_working() {
            self.idle_since = None;
            return false;
        }
        self.idle_since.get_or_insert_with(Instant::now).elapsed() >= self.config.drain_wait
    }

    /// Closes the session and releases the devices.
    pub(super) async fn leave(mut self) {
        for given in self.given.values() {
            given.cancel.cancel();
        }
        // Before the end of the session, so that the dialler knows that we ended it.
        if let Some(hang_up) = self.hang_up.take() {
            let why = self.leaves_because.take().unwrap_or_else(|| "stopped".to_owned());
            // The receiver is gone if the dialler has given up already.
            let _ = hang_up.send(why);
        }
        (self.session, self.delivery) = (None, None);
        if let Err(error) = self.dialling.await {
            tracing::warn!(%error, "the session's task failed");
        }
        // A device's threads end with their blocks. Wait for them on a thread for blocking work.
        let devices = (self.devices, self.opened);
        if tokio::task::spawn_blocking(move || drop(devices)).await.is_err() {
            tracing::warn!("a device ended with an error");
        }
    }
}
