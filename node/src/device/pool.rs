//! The CPU's threads, which render small blocks of the units in the queue. Owns order and
//! cancellation; knows no kernel.
//!
//! A thread takes the next block of the first unit that has one. So all threads are busy until the
//! last block of the last unit: while some finish a unit's last blocks, the others have begun the
//! next unit.
//!
//! Blocks go through a tile's samples run by run. A unit that is cut ends with the present run. All
//! pixels then have the same number of samples, and the result is a film.

use super::rate::Rate;
use super::{CancelToken, DeviceError, DeviceUnit, Finish, PreparedFrame, UnitOutput, Work};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tessera_kernels::CheckedScene;
use tessera_layout::UnitParams;
use tessera_protocol::TileSums;

/// Renders one rectangle of one unit on the calling thread. Adds to a film of that rectangle, which
/// is zero before, and returns the number of rays. The result must not depend on how a unit is
/// divided into rectangles.
pub(super) type BlockRenderer =
    dyn Fn(&CheckedScene, &UnitParams, &mut [i64]) -> Result<u64, DeviceError> + Send + Sync;

/// Edge of a block in pixels.
const BLOCK_EDGE: u32 = 16;
/// Approximate number of camera samples in a block. They take some milliseconds, so that a cancel
/// takes effect soon and units end evenly.
const BLOCK_SAMPLES: u32 = 4096;
/// Most camera samples in a run of a whole tile, unless one sample per pixel is more. They take
/// some seconds on a slow core, so that a unit that is cut ends soon.
const RUN_SAMPLES: u32 = 1 << 19;

/// The threads and their queue.
pub(super) struct Pool {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    rate: Arc<Mutex<Rate>>,
}

struct Shared {
    renderer: Box<BlockRenderer>,
    queue: Mutex<VecDeque<Queued>>,
    work: Condvar,
    stop: AtomicBool,
    /// Sum of the time that threads have spent in blocks, in nanoseconds.
    busy_nanos: AtomicU64,
    threads: u32,
}

/// A unit with blocks that no thread has taken.
struct Queued {
    unit: Arc<Unit>,
    next: u64,
}

struct Unit {
    frame: Arc<PreparedFrame>,
    params: UnitParams,
    cancel: CancelToken,
    blocks: Blocks,
    progress: Mutex<Progress>,
}

struct Progress {
    /// Number of blocks that have not ended, taken or not.
    open: u64,
    /// Number of blocks in the result. A unit that was cut has fewer than all.
    blocks: u64,
    sums: Option<TileSums>,
    rays: u64,
    nanos: u64,
    error: Option<DeviceError>,
    finish: Option<Finish>,
}

/// Division of a unit: runs of samples, and in each run rectangles row by row.
#[derive(Clone, Copy)]
struct Blocks {
    across: u32,
    down: u32,
    runs: u32,
    samples: u32,
}

impl Blocks {
    fn of(params: &UnitParams) -> Self {
        let pixels = params.width.saturating_mul(params.height).max(1);
        let most = (BLOCK_SAMPLES / (BLOCK_EDGE * BLOCK_EDGE)).min(RUN_SAMPLES / pixels);
        let samples = most.min(params.sample_count).max(1);
        Self {
            across: params.width.div_ceil(BLOCK_EDGE),
            down: params.height.div_ceil(BLOCK_EDGE),
            runs: params.sample_count.div_ceil(samples),
            samples,
        }
    }

    fn count(&self) -> u64 {
        u64::from(self.across) * u64::from(self.down) * u64::from(self.runs)
    }

    /// Returns the number of blocks of a run.
    fn places(&self) -> u64 {
        u64::from(self.across) * u64::from(self.down)
    }

    /// Returns the samples of all pixels in the first blocks, which must end with a run.
    fn samples_in(&self, params: &UnitParams, blocks: u64) -> u32 {
        let runs = (blocks / self.places()) as u32;
        runs.saturating_mul(self.samples).min(params.sample_count)
    }

    /// Returns block `index` of `params` as a separate unit.
    fn params(&self, params: &UnitParams, index: u64) -> UnitParams {
        let run = (index / self.places()) as u32;
        let place = (index % self.places()) as u32;
        let (left, top) = (place % self.across * BLOCK_EDGE, place / self.across * BLOCK_EDGE);
        UnitParams {
            x: params.x + left as i32,
            y: params.y + top as i32,
            width: BLOCK_EDGE.min(params.width - left),
            height: BLOCK_EDGE.min(params.height - top),
            first_sample: params.first_sample + run * self.samples,
            sample_count: self.samples.min(params.sample_count - run * self.samples),
            ..*params
        }
    }
}

impl Pool {
    pub(super) fn start(threads: u32, renderer: Box<BlockRenderer>) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            renderer,
            queue: Mutex::default(),
            work: Condvar::new(),
            stop: AtomicBool::new(false),
            busy_nanos: AtomicU64::new(0),
            threads,
        });
        let mut pool = Self { shared, threads: Vec::new(), rate: Arc::default() };
        for index in 0..threads {
            let shared = pool.shared.clone();
            let thread = std::thread::Builder::new().name(format!("render-{index}"));
            pool.threads.push(thread.spawn(move || shared.run())?);
        }
        Ok(pool)
    }

    /// Takes a tile of a render job. Other units are not for these threads.
    pub(super) fn submit(&self, unit: DeviceUnit) {
        let DeviceUnit { work: Work::Render { frame, params }, cancel, finish } = unit else {
            return (unit.finish)(Err(DeviceError::Failed("this pool renders".into())));
        };
        let blocks = Blocks::of(&params);
        let progress = Progress {
            open: blocks.count(),
            blocks: blocks.count(),
            sums: None,
            rays: 0,
            nanos: 0,
            error: None,
            finish: Some(self.measured(u64::from(params.width) * u64::from(params.height), finish)),
        };
        let unit = Arc::new(Unit { frame, params, cancel, blocks, progress: Mutex::new(progress) });
        self.shared.queue().push_back(Queued { unit, next: 0 });
        self.shared.work.notify_all();
    }

    /// Returns what measures a unit of so many pixels at its end, and then does what it did.
    fn measured(&self, pixels: u64, finish: Finish) -> Finish {
        let rate = self.rate.clone();
        Box::new(move |result| {
            if let Ok(output) = &result {
                let samples = pixels * u64::from(output.sums.samples);
                let mut rate = rate.lock().unwrap_or_else(PoisonError::into_inner);
                rate.measure(samples, output.device_time);
            }
            finish(result);
        })
    }

    /// Returns the camera samples per second of device time over the last units; 0 before the
    /// first.
    pub(super) fn samples_per_second(&self) -> f64 {
        self.rate.lock().unwrap_or_else(PoisonError::into_inner).samples_per_second()
    }

    pub(super) fn busy(&self) -> Duration {
        Duration::from_nanos(
            self.shared.busy_nanos.load(Ordering::Relaxed) / u64::from(self.shared.threads),
        )
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        // Take and release the lock, so that no thread is between its check of `stop` and its
        // sleep.
        drop(self.shared.queue());
        self.shared.work.notify_all();
        for thread in self.threads.drain(..) {
            // A thread catches the panics of its blocks. If it panicked all the same, it has
            // nothing to return.
            let _ = thread.join();
        }
        let left = std::mem::take(&mut *self.shared.queue());
        for queued in left {
            queued.unit.skip(&queued, self.shared.threads);
        }
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, VecDeque<Queued>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        while let Some((unit, index)) = self.take() {
            self.render(&unit, index);
        }
    }

    /// Returns the next block, or None when the pool stops.
    fn take(&self) -> Option<(Arc<Unit>, u64)> {
        let mut queue = self.queue();
        loop {
            if self.stop.load(Ordering::Acquire) {
                return None;
            }
            let Some(first) = queue.front_mut() else {
                queue = self.work.wait(queue).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let cancel = &first.unit.cancel;
            let between_runs = first.next.is_multiple_of(first.unit.blocks.places());
            let ended = match first.next {
                0 => !cancel.begin(),
                _ => cancel.is_cancelled() || (between_runs && cancel.is_cut()),
            };
            if ended {
                if let Some(queued) = queue.pop_front() {
                    // The callback may take time or other locks, so it never runs under this lock.
                    drop(queue);
                    queued.unit.skip(&queued, self.threads);
                    queue = self.queue();
                }
                continue;
            }
            if first.next == 0 {
                cancel.advance(0);
            }
            let taken = (first.unit.clone(), first.next);
            first.next += 1;
            if first.next == first.unit.blocks.count() {
                queue.pop_front();
            }
            return Some(taken);
        }
    }

    fn render(&self, unit: &Unit, index: u64) {
        let params = unit.blocks.params(&unit.params, index);
        let channels = params.channels() as usize;
        let start = Instant::now();
        let rendered = catch_unwind(AssertUnwindSafe(|| {
            let mut film = vec![0i64; params.width as usize * params.height as usize * channels];
            (self.renderer)(&unit.frame.scene, &params, &mut film).map(|rays| (film, rays))
        }));
        let nanos = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.busy_nanos.fetch_add(nanos, Ordering::Relaxed);
        let rendered = rendered.unwrap_or_else(|panic| {
            Err(DeviceError::Failed(format!("render thread panicked: {}", text_of(&*panic))))
        });
        if rendered.is_err() {
            // The unit has failed, so its other blocks need not run.
            unit.cancel.cancel();
        }
        unit.end_block(&params, rendered, nanos, self.threads);
    }
}

impl Unit {
    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end_block(
        &self,
        block: &UnitParams,
        rendered: Result<(Vec<i64>, u64), DeviceError>,
        nanos: u64,
        threads: u32,
    ) {
        let samples =
            u64::from(block.width) * u64::from(block.height) * u64::from(block.sample_count);
        self.cancel.advance(samples);
        let mut progress = self.progress();
        progress.nanos += nanos;
        match rendered {
            Ok((film, rays)) => {
                progress.rays += rays;
                let whole = &self.params;
                let sums = progress.sums.get_or_insert_with(|| {
                    // The edges of a unit were checked against the protocol's limit before.
                    TileSums::empty(whole.width as u16, whole.height as u16, whole.channels() as u8)
                });
                add_block(sums, whole, block, &film);
            }
            // The error says more than that the rest was skipped after it.
            Err(error) => progress.error = Some(error),
        }
        self.close(progress, 1, threads);
    }

    /// Skips the blocks that no thread has taken.
    fn skip(&self, queued: &Queued, threads: u32) {
        let mut progress = self.progress();
        // A pool that stops may leave its units anywhere.
        let is_film = queued.next > 0 && queued.next.is_multiple_of(self.blocks.places());
        match self.cancel.is_cut() && is_film {
            true => progress.blocks = queued.next,
            false => progress.error = progress.error.take().or(Some(DeviceError::Cancelled)),
        }
        self.close(progress, self.blocks.count() - queued.next, threads);
    }

    fn close(&self, mut progress: MutexGuard<'_, Progress>, ended: u64, threads: u32) {
        progress.open -= ended;
        if progress.open > 0 {
            return;
        }
        let result = match (progress.error.take(), progress.sums.take()) {
            (None, Some(mut sums)) => {
                sums.samples = self.blocks.samples_in(&self.params, progress.blocks);
                let device_time = Duration::from_nanos(progress.nanos / u64::from(threads));
                Ok(UnitOutput {
                    sums,
                    chunk: None,
                    piece: None,
                    rays: progress.rays,
                    device_time,
                    device_bytes: 0,
                })
            }
            (error, _) => Err(error.unwrap_or(DeviceError::Cancelled)),
        };
        let finish = progress.finish.take();
        drop(progress);
        if let Some(finish) = finish {
            finish(result);
        }
    }
}

/// Adds a block's planes to those of its unit.
fn add_block(sums: &mut TileSums, whole: &UnitParams, block: &UnitParams, film: &[i64]) {
    let (left, top) = ((block.x - whole.x) as usize, (block.y - whole.y) as usize);
    let (width, height) = (block.width as usize, block.height as usize);
    let (stride, rows) = (whole.width as usize, whole.height as usize);
    for (row, values) in film.chunks_exact(width).enumerate() {
        let (channel, row) = (row / height, row % height);
        let start = (channel * rows + top + row) * stride + left;
        for (sum, value) in sums.values[start..start + width].iter_mut().zip(values) {
            *sum = sum.wrapping_add(*value);
        }
    }
}

/// Returns the message of a panic.
pub(super) fn text_of(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
