//! Receives reports from the worker that watches the devices (`../worker/monitor.rs`), and passes
//! them to the devices. Without NVML there are no reports, and devices work all the same.

use super::child::{Child, Heard};
use super::command::WorkerCommand;
use super::event::Event;
use super::shared::Shared;
use crate::device::reading::{DeviceReading, same_uuid};
use crate::device::worker::message::{Order, Report};
use crate::device::xid::{XidAction, XidTable};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time between two readings of the devices.
const PERIOD: Duration = Duration::from_secs(1);
/// A watcher without a report for this long hangs in the driver. It is ended, and another one is
/// started.
const SILENCE: Duration = Duration::from_secs(60);
/// Longest wait for the first reading at the start of a node. Earlier events are not reported.
const FIRST_LOOK: Duration = Duration::from_secs(5);
/// Wait before another watcher is started.
const RESTART: Duration = Duration::from_secs(30);

/// One device, as far as the monitor needs it.
pub(crate) struct Listener {
    pub(super) shared: Arc<Shared>,
    pub(super) events: Sender<Event>,
}

impl Listener {
    fn uuid(&self) -> String {
        self.shared.info().cuda.map(|cuda| cuda.uuid).unwrap_or_default()
    }
}

/// Watches the devices until it is dropped.
pub(crate) struct Monitor {
    stop: Sender<()>,
    thread: Option<JoinHandle<()>>,
}

impl Monitor {
    /// Watches these devices; returns when they have been looked at once, or cannot be.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub(crate) fn start(
        command: WorkerCommand,
        listeners: Vec<Listener>,
        table: XidTable,
    ) -> std::io::Result<Self> {
        let (stop, stopped) = channel();
        let (looked, first_look) = channel();
        let watching =
            Watching { command, listeners, table, readings: Vec::new(), first: Some(looked) };
        let thread = std::thread::Builder::new().name("monitor".into());
        let thread = thread.spawn(move || watching.run(&stopped))?;
        // Continue in either case: without NVML devices work all the same.
        let _ = first_look.recv_timeout(FIRST_LOOK);
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        let _ = self.stop.send(());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Watching {
    command: WorkerCommand,
    listeners: Vec<Listener>,
    table: XidTable,
    readings: Vec<DeviceReading>,
    /// Notified of the first reading, or of the end without one.
    first: Option<Sender<()>>,
}

impl Watching {
    fn run(mut self, stopped: &Receiver<()>) {
        while self.watch(stopped) {
            self.first = None;
            if !matches!(stopped.recv_timeout(RESTART), Err(RecvTimeoutError::Timeout)) {
                return;
            }
        }
    }

    /// Runs one watcher to its end. Returns false if there is no NVML, or no device is left to
    /// watch.
    fn watch(&mut self, stopped: &Receiver<()>) -> bool {
        let (sender, heard) = channel();
        let child = Child::start(&self.command, None, "monitor", move |heard| {
            let _ = sender.send(heard);
        });
        let Ok(child) = child else { return true };
        child.order(Order::Watch { period: PERIOD });
        let mut last = Instant::now();
        loop {
            if !matches!(stopped.try_recv(), Err(std::sync::mpsc::TryRecvError::Empty)) {
                return false;
            }
            match heard.recv_timeout(Duration::from_millis(100)) {
                Ok(Heard::Report(report, _)) => {
                    last = Instant::now();
                    if matches!(&report, Report::Readings(readings) if readings.is_empty()) {
                        tracing::info!(
                            "no NVML: temperatures, power and driver events are not watched"
                        );
                        return false;
                    }
                    self.on_report(report);
                }
                Ok(Heard::Gone(reason)) => {
                    tracing::warn!(reason, "the watcher of the devices ended");
                    return true;
                }
                Err(RecvTimeoutError::Timeout) if last.elapsed() > SILENCE => {
                    tracing::warn!("the watcher of the devices does not answer; starting another");
                    return true;
                }
                Err(_) => {}
            }
        }
    }

    fn on_report(&mut self, report: Report) {
        match report {
            Report::Readings(readings) => {
                for listener in &self.listeners {
                    let uuid = listener.uuid();
                    if let Some(reading) = readings.iter().find(|reading| reading.is(&uuid)) {
                        listener
                            .shared
                            .measured(reading.telemetry.clone(), |info| reading.complete(info));
                    }
                }
                self.readings = readings;
                // Dropping the sender ends the wait.
                self.first = None;
            }
            Report::Xid { uuid, code } => self.on_xid(&uuid, code),
            _ => {}
        }
    }

    /// Passes an event of a device to all its slices.
    fn on_xid(&self, device: &str, code: u64) {
        let (action, meaning) = self.table.look_up(code);
        for listener in &self.listeners {
            let uuid = listener.uuid();
            let reading = self.readings.iter().find(|reading| reading.is(&uuid));
            let parent = reading.and_then(|reading| reading.mig_parent.as_deref());
            if same_uuid(&uuid, device) || parent.is_some_and(|parent| same_uuid(parent, device)) {
                let event = Event::Xid { code, action, meaning: meaning.to_owned() };
                // A closed device does not receive events.
                let _ = listener.events.send(event);
            }
        }
        if action != XidAction::Note {
            tracing::warn!(device, xid = code, meaning, "driver event");
        }
    }
}
