//! The node's regular reports of itself: heartbeats for the coordinator, and its status for the
//! program around it.

use super::Shell;
use super::event::{AnyFrame, Prepared};
use crate::agent::FrameKey;
use crate::frame_prepared::FramePrepared;
use crate::status::NodeStatus;
use std::time::{Duration, Instant};
use tessera_protocol::device::{DeviceState, DeviceTelemetry};
use tessera_protocol::node::{Heartbeat, Progress};

impl Shell {
    pub(super) fn beat(&mut self) {
        let now = Instant::now();
        let before = std::mem::replace(&mut self.last_beat, now);
        let usable = self.devices_told.iter().filter(|info| info.state == DeviceState::Ready);
        let worked = (self.busy(), usable.count());
        let busy = self.busy_share.beat(worked, now);
        self.heartbeats += 1;
        let heartbeat = Heartbeat {
            sequence: self.heartbeats,
            leases: self.agent.held(),
            outbox: self.agent.finished().len() as u32,
            working: self.working(),
            busy,
            devices: self.telemetry(now - before),
            progress: self.progress(),
        };
        if let Some(session) = &self.session {
            // A heartbeat that cannot be written in time is useless later.
            let _ = session.heartbeats.try_send(heartbeat);
        }
    }

    /// Returns the number of units and frames that the node works on.
    fn working(&self) -> u32 {
        let begun = self.given.values().filter(|given| given.cancel.has_begun()).count();
        u32::try_from(begun + self.agent.in_preparation()).unwrap_or(u32::MAX)
    }

    /// Returns the progress of units whose devices report it.
    fn progress(&self) -> Vec<Progress> {
        let told = self.given.iter().filter_map(|(lease, given)| {
            let (device, done) = (u8::try_from(given.device).ok()?, given.cancel.done()?);
            Some(Progress { lease: *lease, device, done })
        });
        told.collect()
    }

    /// Returns the state of the devices for a heartbeat.
    fn telemetry(&mut self, since: Duration) -> Vec<DeviceTelemetry> {
        let mut telemetry = Vec::new();
        for (index, (device, before)) in self.devices.iter().zip(&mut self.busy_before).enumerate()
        {
            let busy = device.busy();
            let share = busy.saturating_sub(std::mem::replace(before, busy)).as_secs_f32()
                / since.as_secs_f32().max(1e-3);
            let position = u8::try_from(index).unwrap_or(u8::MAX);
            telemetry.push(DeviceTelemetry {
                device: position,
                busy: share.clamp(0.0, 1.0),
                ..device.telemetry()
            });
        }
        telemetry
    }

    /// Tells the program around the node of a prepared frame, if it listens.
    pub(super) fn tell_prepared(&self, frame: FrameKey, prepared: &Prepared) {
        if let Some(listener) = self.config.prepared.as_ref().filter(|_| !frame.is_piece()) {
            let took = prepared.preparation.of_frame();
            let sent = match &prepared.frame {
                AnyFrame::Scene(scene) => Some(scene.sent().clone()),
                AnyFrame::Compute(_) | AnyFrame::Piece(_) => None,
            };
            let (job, frame) = (frame.job(), frame.frame());
            // It may have stopped to listen.
            let _ = listener.send(FramePrepared { job, frame, took, sent });
        }
    }

    fn busy(&self) -> Duration {
        self.devices.iter().map(|device| device.busy()).sum()
    }

    pub(super) fn publish(&self) {
        let status = NodeStatus {
            connected: self.session.is_some(),
            draining: self.agent.is_draining(),
            drained: self.agent.is_drained(),
            held: self.agent.held().len(),
            finished: self.agent.finished().len(),
            busy: self.busy(),
            ..self.counted.clone()
        };
        self.status.send_if_modified(|current| {
            let changed = *current != status;
            *current = status;
            changed
        });
    }
}
