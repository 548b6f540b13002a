//! The devices as the agent and the coordinator are told of them.

use super::Shell;
use tessera_protocol::device::{DeviceInfo, DeviceState};
use tessera_protocol::node::NodeToCoordinator;

/// Returns the state of devices whose outputs cannot be stored.
fn no_room(problem: &str) -> DeviceState {
    DeviceState::Quarantined {
        reason: format!("its node has no room for results: {problem}"),
        remedy: "make room on that disk; then it continues by itself".to_owned(),
    }
}

impl Shell {
    /// Tells the agent which devices take units now, and the coordinator which devices have
    /// changed.
    pub(super) fn look_at_devices(&mut self) {
        let mut infos: Vec<DeviceInfo> = self.devices.iter().map(|device| device.info()).collect();
        if let Some(problem) = self.no_room.values().next() {
            // Their outputs could not be stored.
            let ready = infos.iter_mut().filter(|info| info.state == DeviceState::Ready);
            ready.for_each(|info| info.state = no_room(problem));
        }
        if infos == self.devices_told {
            return;
        }
        for (index, info) in infos.iter().enumerate() {
            self.agent.set_usable(index, info.state == DeviceState::Ready);
        }
        self.devices_told = infos;
        self.send(NodeToCoordinator::Devices(self.devices_told.clone()));
    }

    /// Handles the loss of a compiler that was there at the start. A node reports its abilities
    /// when it joins, so it joins again without the compiler. Units that need the compiler then go
    /// elsewhere without a counted attempt, and no more of them come.
    pub(super) fn lose_compiler(&mut self, reason: &str) {
        if self.opened.compiler.take().is_none() {
            return;
        }
        tracing::warn!(
            reason,
            "NVRTC is gone; kernels that come as CUDA C++ are for other nodes until this one is \
                restarted"
        );
        if let Some(session) = self.session.take() {
            self.agent.on_disconnected();
            use tessera_transport::{CloseCode, close::close};
            close(&session.connection, CloseCode::Done, "joins again without a compiler");
        }
    }
}
