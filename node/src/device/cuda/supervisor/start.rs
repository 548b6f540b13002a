//! A worker's start: its process, and whether it could open the device.

use super::{FirstStart, Live, Phase, Stage, Supervisor};
use crate::device::DeviceError;
use crate::device::cuda::child::Child;
use crate::device::cuda::event::Event;
use crate::device::cuda::flight::Flights;
use crate::device::cuda::health::Fault;
use crate::device::worker::message::{Opened, Order, Refusal};
use std::time::Instant;
use tessera_protocol::device::DeviceState;

impl Supervisor {
    pub(super) fn start(&mut self) {
        self.state.workers += 1;
        let (worker, sender) = (self.state.workers, self.sender.clone());
        let heard = move |heard| {
            // The receiver is gone once the device is closed.
            let _ = sender.send(Event::Heard(worker, heard));
        };
        let visible = self.device.by_uuid.then_some(self.device.uuid.as_str());
        self.shared.set_state(DeviceState::Testing);
        match Child::start(&self.command, visible, &self.label, heard) {
            Ok(child) => {
                let (now, flights) = (Instant::now(), Flights::default());
                child.order(Order::Open {
                    ordinal: self.device.ordinal,
                    uuid: self.device.uuid.clone(),
                    cubins: self.state.cubins.clone(),
                });
                let has_cubins = self.state.cubins.is_some();
                let live = Live { child, flights, phase: Phase::Opening, born: now, has_cubins };
                self.state.stage = Stage::Up(Box::new(live));
            }
            Err(error) => {
                let reason = format!("cannot start `{}`: {error}", self.command.program.display());
                self.fail(Fault::Worker, &reason, DeviceError::Worker);
            }
        }
    }

    pub(super) fn on_opened(&mut self, opened: &Opened) {
        tracing::info!(
            device = self.label,
            name = opened.device.name,
            cuda = opened.driver_version,
            free_bytes = opened.free_bytes,
            start_millis = opened.start.as_millis(),
            compile_millis = opened.compile.as_millis(),
            machine_code = ?opened.code.cubin,
            "device opened"
        );
        if let Some(reason) = &opened.code.passed_over {
            tracing::warn!(
                device = self.label,
                reason,
                "installed machine code of the kernels is not used"
            );
        }
        self.shared.opened(opened);
        if self.state.multiprocessors != opened.device.multiprocessors {
            self.state.tests.clear();
            self.state.multiprocessors = opened.device.multiprocessors;
        }
        self.state.batch_paths = opened.batch_paths;
        self.state.proof.begin();
        if let Stage::Up(live) = &mut self.state.stage {
            live.phase = Phase::Testing;
        }
        self.give_tests(Instant::now());
    }

    pub(super) fn on_refused(&mut self, refusal: Refusal) {
        match self.first.take() {
            Some(first) => {
                self.quarantine(&refusal.to_string());
                // The caller that opens the device waits for this.
                let _ = first.send(FirstStart::Refused(refusal));
            }
            None => self.fail(Fault::Worker, &refusal.to_string(), DeviceError::Worker),
        }
    }
}
