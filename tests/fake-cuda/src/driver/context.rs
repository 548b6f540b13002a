//! A context: the memory and the streams of one device in one process, and whether it is still
//! alive. Speaks no C.

use super::launch;
use super::queue::{Operation, Queue, Source};
use super::{Driver, complain, driver, locked};
use crate::config::{FaultKind, Occasion};
use crate::fault;
use crate::shared::Holder;
use crate::status::Status;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tessera_ptx::{Machine, Settings};

/// A driver gives out memory in pieces of this many bytes.
const GRANULE: u64 = 512;

/// A context.
pub(crate) struct Context {
    /// Index among the driver's targets.
    pub(crate) target: usize,
    /// The device's memory and what executes on it; locked while a kernel does.
    pub(crate) machine: Mutex<Machine>,
    pub(crate) queue: Queue,
    pub(crate) holder: Holder,
    /// Ranges that copies may touch: allocations and module variables. Beside the machine, so that
    /// it can be asked while a kernel executes.
    ranges: Mutex<BTreeMap<u64, u64>>,
    failed: AtomicU32,
}

impl Context {
    /// Starts a context with its thread.
    pub(crate) fn start(driver: &Driver, target: usize) -> Result<Arc<Context>, Status> {
        let holder = driver.shared.hold(target).map_err(|error| {
            complain(&error);
            Status::UNKNOWN
        })?;
        let holder = holder.ok_or(Status::DEVICE_UNAVAILABLE)?;
        if driver.device_of(target).exclusive && driver.shared.has_others(&holder) {
            holder.leave(&driver.shared);
            return Err(Status::DEVICE_UNAVAILABLE);
        }
        let memory = driver.targets[target].memory;
        if !holder.take(&driver.shared, driver.device_of(target).context_bytes, memory) {
            holder.leave(&driver.shared);
            return Err(Status::OUT_OF_MEMORY);
        }
        // The holder counts the bytes: the machine must only not be the first to say no.
        let memory_bytes = memory.saturating_mul(2);
        let settings =
            Settings { memory_bytes, doubles: true, approximate: true, ..Settings::default() };
        let context = Arc::new(Context {
            target,
            machine: Mutex::new(Machine::new(settings)),
            queue: Queue::new(target as u64 + 1),
            holder,
            ranges: Mutex::default(),
            failed: AtomicU32::new(0),
        });
        let worker = context.clone();
        let name = format!("fake-cuda-{target}");
        let started = std::thread::Builder::new().name(name).spawn(move || worker.work());
        started.map(|_| context).map_err(|_| Status::OUT_OF_MEMORY)
    }

    /// Executes what streams hold, until the context ends.
    fn work(&self) {
        while let Some(operation) = self.queue.take() {
            if driver().is_lost(self.target) {
                self.fail(Status::UNKNOWN);
            }
            if self.failed.load(SeqCst) == 0
                && let Err(status) = self.execute(operation)
            {
                self.fail(status);
            }
            self.queue.done();
        }
    }

    fn execute(&self, operation: Operation) -> Result<(), Status> {
        match operation {
            Operation::Upload { to, from } => {
                self.pause_before_copy();
                let bytes = match from {
                    Source::Staged(bytes) => bytes,
                    Source::Pinned(host) => host.read(),
                };
                self.page().uploaded_bytes.fetch_add(bytes.len() as u64, SeqCst);
                locked(&self.machine).write(to, &bytes).map_err(|_| Status::ILLEGAL_ADDRESS)
            }
            Operation::Download { from, to } => {
                self.pause_before_copy();
                let mut bytes = vec![0; to.length];
                locked(&self.machine)
                    .read(from, &mut bytes)
                    .map_err(|_| Status::ILLEGAL_ADDRESS)?;
                to.write(&bytes);
                Ok(())
            }
            Operation::Copy { from, to, bytes } => {
                self.pause_before_copy();
                locked(&self.machine).copy(to, from, bytes).map_err(|_| Status::ILLEGAL_ADDRESS)
            }
            Operation::Fill { at, pattern, count } => {
                let bytes = pattern.repeat(count);
                locked(&self.machine).write(at, &bytes).map_err(|_| Status::ILLEGAL_ADDRESS)
            }
            Operation::Launch(launch) => launch::execute(self, &launch),
            Operation::Record { event, mark } => {
                event.pass(mark);
                Ok(())
            }
            Operation::Wait { .. } => Ok(()),
            Operation::Call { function, data } => {
                launch::call_host(function, data);
                Ok(())
            }
            Operation::Free { address } => {
                self.free_now(address).map_err(|_| Status::ILLEGAL_ADDRESS)
            }
        }
    }

    fn pause_before_copy(&self) {
        let micros = driver().device_of(self.target).pause_micros_per_copy;
        if micros > 0 {
            std::thread::sleep(Duration::from_micros(micros));
        }
    }

    /// The context is dead from now on, with this error for whoever asks; what waits is forgotten.
    pub(crate) fn fail(&self, status: Status) {
        // The first error is the one that stays.
        let _ = self.failed.compare_exchange(0, status.0, SeqCst, SeqCst);
        self.queue.discard();
    }

    /// The error that this context died of, if it did.
    pub(crate) fn alive(&self) -> Result<(), Status> {
        if driver().is_lost(self.target) {
            self.fail(Status::UNKNOWN);
        }
        match self.failed.load(SeqCst) {
            0 => Ok(()),
            code => Err(Status(code)),
        }
    }

    /// Waits for a stream, or for all, and says how it went.
    pub(crate) fn finish(&self, lane: Option<u64>) -> Result<(), Status> {
        self.queue.wait_for(lane, || self.alive().is_err());
        self.alive()
    }

    /// New memory, poisoned. Its bytes are counted for all processes at once.
    pub(crate) fn allocate(&self, bytes: u64) -> Result<u64, Status> {
        self.alive()?;
        let (driver, page) = (driver(), self.page());
        page.allocations.fetch_add(1, SeqCst);
        if let Some(FaultKind::OutOfMemory) =
            fault::strike(driver.faults(self.target), page, Occasion::Allocation, ("", 0))
        {
            return Err(Status::OUT_OF_MEMORY);
        }
        let counted = bytes.max(1).next_multiple_of(GRANULE);
        let memory = driver.targets[self.target].memory;
        if !self.holder.take(&driver.shared, counted, memory) {
            // What streams are about to free counts as free, as in CUDA's own pools.
            self.finish(None)?;
            if !self.holder.take(&driver.shared, counted, memory) {
                return Err(Status::OUT_OF_MEMORY);
            }
        }
        let allocated = locked(&self.machine).allocate(bytes);
        let Ok(address) = allocated else {
            self.holder.give(&driver.shared, counted);
            return Err(Status::OUT_OF_MEMORY);
        };
        self.admit(address, bytes);
        Ok(address)
    }

    /// Gives memory back at once.
    pub(crate) fn free_now(&self, address: u64) -> Result<(), Status> {
        locked(&self.machine).free(address).map_err(|_| Status::INVALID_VALUE)?;
        if let Some(bytes) = locked(&self.ranges).remove(&address) {
            self.holder.give(&driver().shared, bytes.max(1).next_multiple_of(GRANULE));
        }
        Ok(())
    }

    /// Lets copies touch a range.
    pub(crate) fn admit(&self, address: u64, bytes: u64) {
        locked(&self.ranges).insert(address, bytes);
    }

    /// Lets copies no longer touch a range.
    pub(crate) fn withdraw(&self, address: u64) {
        locked(&self.ranges).remove(&address);
    }

    /// Refuses a range that no allocation of this context holds, as CUDA does when it is asked and
    /// not when it copies.
    pub(crate) fn holds(&self, address: u64, bytes: u64) -> Result<(), Status> {
        if bytes == 0 {
            return Ok(());
        }
        let (start, length) = self.range(address)?;
        let is_inside = address.checked_add(bytes).is_some_and(|end| end <= start + length);
        is_inside.then_some(()).ok_or(Status::INVALID_VALUE)
    }

    /// Start and length of the allocation that an address lies in.
    pub(crate) fn range(&self, address: u64) -> Result<(u64, u64), Status> {
        let ranges = locked(&self.ranges);
        let before = ranges.range(..=address).next_back().map(|(start, length)| (*start, *length));
        before
            .filter(|(start, length)| address < start + length.max(&1))
            .ok_or(Status::INVALID_VALUE)
    }

    /// All ranges, to compare memory before and after.
    pub(crate) fn ranges(&self) -> Vec<(u64, u64)> {
        locked(&self.ranges).iter().map(|(start, length)| (*start, *length)).collect()
    }

    /// The target's counters.
    pub(crate) fn page(&self) -> &'static crate::shared::TargetPage {
        &driver().shared.targets[self.target]
    }

    /// Ends the context when its work is done, and gives everything back.
    pub(crate) fn end(&self) {
        self.queue.wait_for(None, || self.alive().is_err());
        self.queue.close();
        self.holder.leave(&driver().shared);
    }
}
