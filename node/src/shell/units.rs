//! The units on the devices: started and ended; and the scenes that are held for them.

use super::event::{AnyFrame, Event, Prepared};
use super::logs::source_of;
use super::results::Attempt;
use super::{Given, Shell};
use crate::agent::Rendered;
use crate::device::{
    CancelToken, DeviceError, DeviceUnit, Finish, TextSink, UnitOutput, Whose, Work,
};
use crate::job::unit_params;
use crate::status::FirstUnit;
use std::sync::Arc;
use std::time::{Instant, SystemTime};
use tessera_protocol::logs::{LogSource, Severity};
use tessera_protocol::node::{Assignment, Failure, MemoryShortage, NodeToCoordinator, Task};
use tessera_protocol::{JobKind, Lease};

impl Shell {
    pub(super) fn tell_scenes(&mut self) {
        let held = self.preparing.scenes();
        let told = std::mem::replace(&mut self.scenes_told, held.clone());
        for (these, others, now_held) in [(&held, &told, true), (&told, &held, false)] {
            for scene in these.iter().filter(|scene| !others.contains(scene)) {
                self.send(NodeToCoordinator::Scene { scene: *scene, held: now_held });
            }
        }
    }

    pub(super) fn start(
        &mut self,
        device: usize,
        assignment: Assignment,
        kind: &JobKind,
        frame: Prepared,
    ) {
        let (lease, events) = (assignment.lease(), self.sender.clone());
        let cancel = CancelToken::default();
        let tile = match assignment.task {
            Task::Tile { tile, samples } => Some((tile, samples)),
            Task::Chunk { .. } | Task::Finish(_) => None,
        };
        let Prepared { frame, claim, preparation } = frame;
        let now = Instant::now();
        let at = SystemTime::now();
        let given = Given { device, cancel: cancel.clone(), at, tile, _claim: claim };
        self.given.insert(lease, given);
        if let Some(info) = self.devices_told.get(device) {
            self.config.log.given(&info.slot, lease, &cancel);
        }
        self.pulse.given(device, now);
        let finish: Finish = Box::new(move |result| {
            let _ = events.send(Event::Rendered { device, lease, result });
        });
        let first = FirstUnit { at: now, prepared_in: preparation.whole() };
        self.counted.first_unit.get_or_insert(first);
        let work = match (kind, frame, assignment.task) {
            (JobKind::Render(spec), AnyFrame::Scene(frame), Task::Tile { tile, samples }) => {
                Work::Render { frame, params: unit_params(spec, assignment.frame, tile, samples) }
            }
            (_, AnyFrame::Compute(job), Task::Chunk { first, count, .. }) => {
                let events = self.sender.clone();
                let text: TextSink = Arc::new(move |text| {
                    let _ = events.send(Event::KernelText { lease, text });
                });
                let owner = self.owners.of(lease.unit.job);
                let whose = owner.map_or(Whose::Unknown, Whose::Owner);
                Work::Compute { job, whose, first, count, text }
            }
            (_, AnyFrame::Piece(piece), Task::Finish(_)) => Work::Finish(piece),
            // The agent has checked that job and unit have the same kind, and frames are prepared
            // for their job's kind.
            _ => {
                return finish(Err(DeviceError::Failed(
                    "a unit of another kind than its job".into(),
                )));
            }
        };
        self.devices[device].submit(DeviceUnit { work, cancel, finish });
    }

    pub(super) fn on_rendered(
        &mut self,
        device: usize,
        lease: Lease,
        result: Result<UnitOutput, DeviceError>,
    ) {
        let given = self.given.remove(&lease);
        self.config.log.ended(lease);
        if let Some(given) = &given {
            let slot = self.devices_told.get(device).map_or("", |info| info.slot.as_str());
            self.spans.rendered((lease, slot), given.at, &result);
        }
        let tile = given.and_then(|given| given.tile);
        let samples = tile.map(|(_, samples)| samples);
        // Look at the devices first, so that a device that has just failed does not get its units
        // back.
        self.look_at_devices();
        self.pulse.ended(device, Instant::now());
        self.counted.rays += result.as_ref().map_or(0, |output| output.rays);
        let is_piece = matches!(result, Err(DeviceError::Piece(_)));
        let (rendered, output) = match result {
            Ok(output) => (Rendered::Done(output.device_time), Some(output)),
            Err(DeviceError::Cancelled) => (Rendered::Cancelled, None),
            Err(DeviceError::NoCompiler(reason)) => {
                self.lose_compiler(&reason);
                (Rendered::Cancelled, None)
            }
            Err(DeviceError::Failed(reason)) => (Rendered::Failed(Failure::Device(reason)), None),
            Err(DeviceError::Worker(reason)) => (Rendered::Failed(Failure::Worker(reason)), None),
            Err(DeviceError::TimedOut(reason)) => {
                (Rendered::Failed(Failure::TimedOut(reason)), None)
            }
            Err(DeviceError::Piece(reason)) => (Rendered::Failed(Failure::Kernel(reason)), None),
            Err(DeviceError::Unable(reason)) => (Rendered::Failed(Failure::Unable(reason)), None),
            Err(DeviceError::Program(reason)) => (Rendered::Failed(Failure::Program(reason)), None),
            Err(DeviceError::Kernel(reason)) => (Rendered::Failed(Failure::Kernel(reason)), None),
            Err(error @ DeviceError::OutOfMemory { needed, available }) => {
                let reason = error.to_string();
                let shortage = MemoryShortage { device: device as u8, needed, available, reason };
                (Rendered::Failed(Failure::OutOfMemory(shortage)), None)
            }
        };
        if let Rendered::Failed(failure) = &rendered {
            let source = if is_piece { LogSource::Finishing } else { source_of(failure) }.name();
            let (severity, reason) = (Severity::Error.name(), failure.reason());
            tracing::warn!(%lease, source, severity, reason, "unit failed");
        }
        let wanted = self.agent.on_rendered(device, lease, rendered);
        if let (true, Some(output)) = (wanted, output) {
            let (done, of) = (output.sums.samples, samples.map_or(0, |samples| samples.count));
            if done < of {
                tracing::info!(%lease, done, of, "the samples that are done are handed in");
            }
            let attempt = Attempt {
                lease,
                device: device as u8,
                first_sample: samples.map_or(0, |samples| samples.first),
                waited: self.agent.waited(lease),
            };
            let queue = self.session.as_ref().map(|session| &session.live);
            let live = tile.and_then(|tile| self.live.order(queue, lease, tile));
            self.results.store(attempt, output, live);
        }
    }
}
