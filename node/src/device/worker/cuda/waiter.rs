//! The thread that waits for the end of units on the device, and sends their results. It gives no
//! commands to the device.

use super::driver::{Call, Context};
use super::lane::Lane;
use super::task::Task;
use crate::device::worker::Outlet;
use crate::device::worker::message::Report;
use std::sync::mpsc::{Receiver, SyncSender};
use std::time::{Duration, Instant};

/// Shortest time between two reports of progress.
const TELL: Duration = Duration::from_millis(200);

/// How a plan was enqueued.
pub(super) enum Done {
    /// Completely: there will be sums.
    Sums,
    /// All units were cancelled before it was enqueued completely.
    Cancelled,
}

/// A plan that was enqueued.
pub(super) struct Waiting {
    pub(super) lane: Lane,
    /// Its units, in order.
    pub(super) units: Vec<u64>,
    /// Fewest bytes that each unit needs on the device.
    pub(super) device_bytes: Vec<u64>,
    pub(super) done: Done,
}

/// Waits for plans in their order until there are no more.
pub(super) fn run(
    context: Context,
    plans: &Receiver<Waiting>,
    outlet: &Outlet,
    free: &SyncSender<Task>,
) -> Call<()> {
    context.bind()?;
    while let Ok(Waiting { mut lane, units, device_bytes, done }) = plans.recv() {
        let mut told = Instant::now();
        let progress = |permille| {
            // All get on together, and the first is the one that is watched.
            if let Some(unit) = units.first().copied().filter(|_| told.elapsed() >= TELL) {
                told = Instant::now();
                outlet.send(&Report::Progress { unit, permille }, &[]);
            }
        };
        let nanos = lane.wait(progress)?;
        match done {
            Done::Cancelled => {
                for unit in &units {
                    outlet.send(&Report::Cancelled { unit: *unit }, &[]);
                }
            }
            Done::Sums => lane.results(|index, sums, rays| {
                let (unit, device_nanos) = (units[index], nanos[index]);
                let device_bytes = device_bytes[index];
                let report = Report::Rendered { unit, rays, device_nanos, device_bytes };
                outlet.send(&report, sums);
            }),
        }
        // The renderer ends only with the process.
        let _ = free.send(Task::Free { lane, units });
    }
    Ok(())
}
