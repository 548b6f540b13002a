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

/// How a unit was enqueued.
pub(super) enum Done {
    /// Completely: there will be sums.
    Sums,
    /// It was cancelled before it was enqueued completely.
    Cancelled,
}

/// A unit that was enqueued.
pub(super) struct Waiting {
    pub(super) lane: Lane,
    pub(super) unit: u64,
    /// Fewest bytes that the unit needs on the device.
    pub(super) device_bytes: u64,
    pub(super) done: Done,
}

/// Waits for units in their order until there are no more.
pub(super) fn run(
    context: Context,
    units: &Receiver<Waiting>,
    outlet: &Outlet,
    free: &SyncSender<Task>,
) -> Call<()> {
    context.bind()?;
    while let Ok(Waiting { mut lane, unit, device_bytes, done }) = units.recv() {
        let mut told = Instant::now();
        let progress = |permille| {
            if told.elapsed() >= TELL {
                told = Instant::now();
                outlet.send(&Report::Progress { unit, permille }, &[]);
            }
        };
        let nanos = lane.wait(progress)?;
        match done {
            Done::Cancelled => outlet.send(&Report::Cancelled { unit }, &[]),
            Done::Sums => {
                let (sums, rays) = lane.results();
                outlet.send(
                    &Report::Rendered { unit, rays, device_nanos: nanos, device_bytes },
                    sums,
                );
            }
        }
        // The renderer ends only with the process.
        let _ = free.send(Task::Free { lane, unit });
    }
    Ok(())
}
