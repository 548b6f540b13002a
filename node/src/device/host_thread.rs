//! A thread of the host beside a device's own: it takes compute chunks and finishing units one
//! after another, and divides each among several threads. A device may help to denoise.

use super::cpu_compute::compute;
use super::pool::text_of;
use super::{CancelToken, DeviceError, DeviceUnit, UnitOutput, Work};
use crate::piece::PreparedPiece;
use rayon::ThreadPool;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tessera_finishing::{FinishError, Passes, Running};
use tessera_kernels::denoise::Rows;
use tessera_kernels::host::Isa;
use tessera_protocol::limits::RESULT_BYTES_MAX;
use tessera_transport::error::chain;

/// Most threads: more than any machine has, but few enough that a typing error does no harm.
const THREADS_MAX: usize = 4096;

/// Makes the piece of a finishing unit.
type Finisher = dyn Fn(&PreparedPiece, &Running<'_>) -> Result<Vec<u8>, FinishError> + Send + Sync;

/// The fitted colours of some rows, and the device time that they took.
pub(super) type Made = (Vec<Vec<f32>>, Duration);

/// A device that computes passes of the denoiser.
pub(super) trait Denoises: Send + Sync {
    /// Computes a pass, as [`Passes::pass`] does; None if the host has to.
    fn pass(&self, rows: &Rows<'_>, wanted: Range<usize>, cancel: &CancelToken) -> Option<Made>;
}

/// Passes for one unit.
struct UnitPasses<'a> {
    device: &'a dyn Denoises,
    cancel: &'a CancelToken,
    /// Device time so far.
    nanos: AtomicU64,
}

impl Passes for UnitPasses<'_> {
    fn pass(&self, rows: &Rows<'_>, wanted: Range<usize>) -> Option<Vec<Vec<f32>>> {
        let (planes, time) = self.device.pass(rows, wanted, self.cancel)?;
        self.nanos.fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
        Some(planes)
    }
}

/// Returns the number of threads to use: as many as asked for, or as this process may use.
pub(super) fn host_threads(wanted: Option<usize>) -> usize {
    let usable = || std::thread::available_parallelism().map_or(1, usize::from);
    wanted.unwrap_or_else(usable).clamp(1, THREADS_MAX)
}

/// A unit, and what its device has of it.
type Sent = (DeviceUnit, Arc<OfDevice>);

/// The thread, which several devices may share.
pub(super) struct HostThread {
    units: Option<Sender<Sent>>,
    thread: Option<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
}

impl HostThread {
    pub(super) fn start(threads: usize, isa: Isa) -> std::io::Result<Self> {
        Self::start_with(threads, isa, Box::new(|piece, running| piece.make(running)))
    }

    fn start_with(threads: usize, isa: Isa, finisher: Box<Finisher>) -> std::io::Result<Self> {
        let (units, received) = channel::<Sent>();
        let stop = Arc::new(AtomicBool::new(false));
        let worker = Worker { isa, finisher, threads, pool: None, stop: stop.clone() };
        let body = move || {
            let mut worker = worker;
            while let Ok((unit, of_device)) = received.recv() {
                of_device.time.begin(Instant::now());
                let result = worker.run(&unit, of_device.denoiser.as_deref());
                of_device.time.end(Instant::now());
                (unit.finish)(result);
            }
        };
        let thread = std::thread::Builder::new().name("host".into()).spawn(body)?;
        Ok(Self { units: Some(units), thread: Some(thread), stop })
    }
}

impl Drop for HostThread {
    fn drop(&mut self) {
        // Units that have not begun end as cancelled.
        self.stop.store(true, Ordering::Release);
        drop(self.units.take());
        if let Some(thread) = self.thread.take() {
            // The thread does not panic.
            let _ = thread.join();
        }
    }
}

/// The way of one device to its thread, and the time that its units took there.
pub(crate) struct HostLane {
    thread: Arc<HostThread>,
    of_device: Arc<OfDevice>,
}

/// What the thread has of one device.
#[derive(Default)]
struct OfDevice {
    time: HostTime,
    denoiser: Option<Arc<dyn Denoises>>,
}

impl HostLane {
    pub(super) fn new(thread: Arc<HostThread>) -> Self {
        Self { thread, of_device: Arc::default() }
    }

    /// Has the device help with its units.
    pub(super) fn with_denoiser(self, denoiser: Arc<dyn Denoises>) -> Self {
        let of_device = OfDevice { denoiser: Some(denoiser), ..OfDevice::default() };
        Self { of_device: Arc::new(of_device), ..self }
    }

    /// Takes a compute or finishing unit.
    pub(super) fn submit(&self, unit: DeviceUnit) {
        let unsent = match &self.thread.units {
            Some(units) => {
                units.send((unit, self.of_device.clone())).err().map(|unsent| unsent.0.0)
            }
            None => Some(unit),
        };
        if let Some(unit) = unsent {
            (unit.finish)(Err(DeviceError::Cancelled));
        }
    }

    /// Returns the time that units of this device took. It grows during a unit.
    pub(super) fn busy(&self) -> Duration {
        self.of_device.time.at(Instant::now())
    }
}

/// Time that units of one device took, and since when one of them runs.
#[derive(Debug, Default)]
struct HostTime(Mutex<(Duration, Option<Instant>)>);

impl HostTime {
    fn state(&self) -> MutexGuard<'_, (Duration, Option<Instant>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, now: Instant) {
        self.state().1 = Some(now);
    }

    fn end(&self, now: Instant) {
        let mut state = self.state();
        let began = state.1.take();
        state.0 += began.map_or(Duration::ZERO, |began| now.saturating_duration_since(began));
    }

    fn at(&self, now: Instant) -> Duration {
        let (ended, began) = *self.state();
        ended + began.map_or(Duration::ZERO, |began| now.saturating_duration_since(began))
    }
}

/// What the thread has.
struct Worker {
    isa: Isa,
    finisher: Box<Finisher>,
    threads: usize,
    /// Made when it is first needed, because most nodes only render.
    pool: Option<ThreadPool>,
    stop: Arc<AtomicBool>,
}

impl Worker {
    fn run(
        &mut self,
        unit: &DeviceUnit,
        denoiser: Option<&dyn Denoises>,
    ) -> Result<UnitOutput, DeviceError> {
        if self.stop.load(Ordering::Acquire) || !unit.cancel.begin() {
            return Err(DeviceError::Cancelled);
        }
        if self.pool.is_none() {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(self.threads).build();
            let pool = pool.map_err(|error| DeviceError::Failed(format!("no threads: {error}")))?;
            self.pool = Some(pool);
        }
        let Some(pool) = &self.pool else { return Err(DeviceError::Cancelled) };
        let cancel = &unit.cancel;
        let passes = denoiser.map(|device| UnitPasses { device, cancel, nanos: AtomicU64::new(0) });
        let work = || self.work(&unit.work, (cancel, passes.as_ref()), pool);
        let result = catch_unwind(AssertUnwindSafe(work));
        result.unwrap_or_else(|panic| {
            Err(DeviceError::Failed(format!("a thread panicked: {}", text_of(&*panic))))
        })
    }

    fn work(
        &self,
        work: &Work,
        (cancel, passes): (&CancelToken, Option<&UnitPasses<'_>>),
        pool: &ThreadPool,
    ) -> Result<UnitOutput, DeviceError> {
        match work {
            Work::Compute { job, first, count, .. } => {
                let began = Instant::now();
                cancel.advance(0);
                let chunk = pool.install(|| compute(job, (*first, *count), self.isa, cancel))?;
                Ok(UnitOutput::of_chunk(chunk, began.elapsed(), 0))
            }
            Work::Finish(piece) => {
                let before = processor_time(pool);
                let running = Running {
                    stop: Some(cancel.stop()),
                    passes: passes.map(|passes| passes as &dyn Passes),
                };
                let made = pool.install(|| (self.finisher)(piece, &running));
                let made = made.map_err(error_of)?;
                if made.len() > RESULT_BYTES_MAX {
                    return Err(error_of(FinishError::TooLarge));
                }
                // Part of the time the threads wait, or tiles have the processors.
                let took = processor_time(pool).saturating_sub(before) / self.threads as u32;
                let nanos = passes.map_or(0, |passes| passes.nanos.load(Ordering::Relaxed));
                Ok(UnitOutput::of_piece(made, took + Duration::from_nanos(nanos)))
            }
            Work::Render { .. } => Err(DeviceError::Failed("this thread does not render".into())),
        }
    }
}

/// Returns the processor time of all threads of a pool since their start.
fn processor_time(pool: &ThreadPool) -> Duration {
    let own = |_: rayon::BroadcastContext<'_>| {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
    };
    pool.broadcast(own).into_iter().sum()
}

fn error_of(error: FinishError) -> DeviceError {
    let reason = chain(&error);
    match error {
        FinishError::Stopped => DeviceError::Cancelled,
        FinishError::Results(_)
        | FinishError::Shape { .. }
        | FinishError::Chunk { .. }
        | FinishError::Piece(_)
        | FinishError::Denoise(_)
        | FinishError::Encode(_)
        | FinishError::TooLarge => DeviceError::Piece(reason),
        FinishError::Write(_) | FinishError::Store(_) => DeviceError::Failed(reason),
    }
}

#[cfg(test)]
#[path = "host_thread_tests.rs"]
mod tests;
