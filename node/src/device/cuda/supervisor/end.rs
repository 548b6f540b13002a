//! A worker's end, and a device's: after faults, and after events of the driver.

use super::{FirstStart, Live, Phase, Stage, Supervisor};
use crate::device::DeviceError;
use crate::device::cuda::event::Event;
use crate::device::cuda::health::{Fault, Next};
use crate::device::xid::XidAction;
use std::time::{Duration, Instant};
use tessera_protocol::device::DeviceState;

/// A worker younger than this is not restarted because of a driver event, which was caused by the
/// worker before it.
const YOUNG: Duration = Duration::from_secs(2);

impl Supervisor {
    pub(super) fn on_xid(&mut self, code: u64, action: XidAction, meaning: &str) {
        self.shared.xid(code, Instant::now());
        tracing::warn!(
            device = self.label,
            xid = code,
            meaning,
            ?action,
            "the driver reports an event"
        );
        let reason = format!("Xid {code}: {meaning}");
        match (action, &self.state.stage) {
            (XidAction::Note, _) | (_, Stage::Out) => {}
            // The process of the kernel has ended because of it. The known-answer test shows
            // whether the device is healthy.
            (XidAction::Restart, Stage::Up(_))
                if self.shared.is_under_user_kernel(Instant::now()) =>
            {
                self.on_event(Event::Doubt);
            }
            (XidAction::Restart, Stage::Up(live)) if live.born.elapsed() >= YOUNG => {
                self.fail(Fault::Worker, &reason, DeviceError::Failed);
            }
            (XidAction::Restart, _) => {}
            (XidAction::Drain, Stage::Up(_)) => {
                // From now on no unit begins. The units that have begun are finished, then `give`
                // ends the worker.
                self.shared.quarantine(&reason);
                self.state.draining = Some(reason);
            }
            (XidAction::Drain, Stage::Down { .. }) => self.quarantine(&reason),
            (XidAction::Quarantine, _) => {
                self.end_worker(&reason, DeviceError::Failed);
                self.quarantine(&reason);
            }
        }
    }

    /// Ends the worker after a fault. The device's health decides what comes next.
    pub(super) fn fail(
        &mut self,
        fault: Fault,
        reason: &str,
        error: impl FnOnce(String) -> DeviceError,
    ) {
        if self.may_be_cubins() {
            self.distrust_cubins(reason);
        }
        if let Some(event) = self.state.draining.take() {
            self.end_worker(reason, error);
            return self.quarantine(&event);
        }
        self.shared.set_state(DeviceState::Testing);
        let next = self.health.on_fault(fault);
        match next {
            Next::Restart(wait) => {
                tracing::warn!(
                    device = self.label,
                    reason,
                    wait_millis = wait.as_millis(),
                    "worker ended; starting another"
                );
                self.end_worker(reason, error);
                self.state.stage = Stage::Down { until: Instant::now() + wait };
            }
            Next::Quarantine => {
                self.shared.quarantine(reason);
                self.end_worker(reason, error);
                self.quarantine(reason);
            }
        }
    }

    /// Whether installed machine code may be at fault: the worker has some, and has not shown yet
    /// that its kernels, or those that it is asked about, compute what they should.
    pub(super) fn may_be_cubins(&self) -> bool {
        let Stage::Up(live) = &self.state.stage else { return false };
        live.has_cubins && (live.phase != Phase::Serving || self.state.proof.asks_anew())
    }

    /// From now on the driver compiles the kernels.
    fn distrust_cubins(&mut self, reason: &str) {
        self.state.cubins = None;
        tracing::warn!(
            device = self.label,
            reason,
            "installed machine code of the kernels is not used any more"
        );
    }

    /// Starts another worker after one whose kernels have not shown yet that they compute what they
    /// should. As long as machine code may be at fault, the device is not blamed.
    pub(super) fn start_without_cubins(&mut self, reason: &str) {
        self.distrust_cubins(reason);
        self.state.held.give_up();
        self.shared.set_state(DeviceState::Testing);
        self.end_worker(reason, |_| DeviceError::Cancelled);
        self.state.stage = Stage::Down { until: Instant::now() };
    }

    /// Ends the worker. Its present unit has failed; the others go back to be rendered elsewhere.
    pub(super) fn end_worker(&mut self, reason: &str, error: impl FnOnce(String) -> DeviceError) {
        self.state.draining = None;
        self.state.short.clear();
        let stage = std::mem::replace(&mut self.state.stage, Stage::Out);
        if let Stage::Up(live) = stage {
            let Live { child, mut flights, .. } = *live;
            drop(child);
            flights.end_all(&error(format!("{}: {reason}", self.label)));
        }
    }

    pub(super) fn quarantine(&mut self, reason: &str) {
        tracing::error!(
            device = self.label,
            reason,
            failures = self.health.failures(),
            "device quarantined"
        );
        self.shared.quarantine(reason);
        self.state.stage = Stage::Out;
        self.state.held.give_up();
        self.return_queue();
        if let Some(first) = self.first.take() {
            let _ = first.send(FirstStart::Faulty(reason.to_owned()));
        }
    }

    /// Sends the units that no worker has back, to be rendered elsewhere.
    pub(super) fn return_queue(&mut self) {
        for unit in std::mem::take(&mut self.state.queue) {
            (unit.finish)(Err(DeviceError::Cancelled));
        }
    }
}
