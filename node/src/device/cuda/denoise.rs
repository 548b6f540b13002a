//! Passes of the denoiser on a CUDA device, for the finishing units that threads of the host make.
//! A device is asked once it has shown, on a small picture, that it gives the host's bits and is
//! faster than a thread of the host. Owns that decision; the compute lane does the work.

use super::compute::Door;
use super::event::Event;
use crate::compute::{PreparedPass, planes_of};
use crate::config::DenoiseOn;
use crate::device::host_thread::{Denoises, Made};
use crate::device::{CancelToken, DeviceError, DeviceUnit, UnitOutput, Whose, Work};
use std::ops::Range;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tessera_kernels::denoise::{
    CHANNELS, Fitted, Pass, Rows, Scratch, TILE_HEIGHT, TILE_WIDTH, best_isa, tile,
};
use tessera_transport::error::chain;

/// Time between two looks at whether the unit was cancelled.
const TICK: Duration = Duration::from_millis(20);
/// Time after which a device is asked again that has failed, or is short of memory.
const AGAIN: Duration = Duration::from_secs(300);
/// How often a device can try to be faster than the host. The first time it may load the kernel,
/// and rendering takes turns with it.
const TRIES: usize = 6;
/// A device that takes so many times as long as the host need not try again at once.
const HOPELESS: u32 = 200;

/// The denoiser of one device.
pub(super) struct DeviceDenoiser {
    pub(super) slot: String,
    pub(super) setting: DenoiseOn,
    /// Way to the device's compute lane.
    pub(super) door: Arc<Door>,
    pub(super) supervisor: Sender<Event>,
    pub(super) verdict: Mutex<Verdict>,
}

/// Whether the device computes passes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Verdict {
    /// It was not tried yet.
    #[default]
    Unknown,
    Yes,
    /// Not before this time.
    No(Instant),
}

impl Denoises for DeviceDenoiser {
    fn pass(&self, rows: &Rows<'_>, wanted: Range<usize>, cancel: &CancelToken) -> Option<Made> {
        // A unit of a user may take minutes. The host has the pass sooner.
        let is_free = self.door.is_idle() && !self.door.is_short_of_memory(AGAIN);
        // A trial takes a while, in which units may have come.
        if !is_free || !self.is_fit(cancel) || !self.door.is_idle() {
            return None;
        }
        match self.compute(rows, &wanted, cancel) {
            Ok(made) => made,
            Err(DeviceError::Cancelled) => None,
            Err(error) => {
                self.leave(&chain(&error));
                None
            }
        }
    }
}

impl DeviceDenoiser {
    /// Returns whether the device is to be asked. The first time it is tried.
    fn is_fit(&self, cancel: &CancelToken) -> bool {
        let mut verdict = self.verdict.lock().unwrap_or_else(PoisonError::into_inner);
        match *verdict {
            _ if self.setting == DenoiseOn::Cpu => return false,
            Verdict::Yes => return true,
            Verdict::No(until) if Instant::now() < until => return false,
            Verdict::No(_) | Verdict::Unknown => {}
        }
        let device = &self.slot;
        *verdict = match self.try_out(cancel) {
            Ok(Trial::Fit { took, host }) => {
                tracing::info!(device, ?took, ?host, "frames are denoised on this device");
                Verdict::Yes
            }
            Ok(Trial::Slow { took, host }) => {
                tracing::info!(device, ?took, ?host, "the processor denoises: it is faster");
                Verdict::No(Instant::now() + AGAIN)
            }
            Ok(Trial::Wrong) => {
                let reason = "it denoises a known picture wrongly";
                tracing::warn!(device, reason, "the processor denoises, and the device is tested");
                // The receiver is gone once the device is closed.
                let _ = self.supervisor.send(Event::Doubt);
                Verdict::No(Instant::now() + AGAIN)
            }
            Err(DeviceError::Cancelled) => Verdict::Unknown,
            Err(error) => {
                tracing::warn!(device, reason = chain(&error), "the processor denoises");
                Verdict::No(Instant::now() + AGAIN)
            }
        };
        matches!(*verdict, Verdict::Yes)
    }

    /// Asks the device no more for a while.
    fn leave(&self, reason: &str) {
        tracing::warn!(device = self.slot, reason, "the processor denoises");
        let mut verdict = self.verdict.lock().unwrap_or_else(PoisonError::into_inner);
        *verdict = Verdict::No(Instant::now() + AGAIN);
    }

    /// Has the device and a thread of the host compute the same.
    fn try_out(&self, cancel: &CancelToken) -> Result<Trial, DeviceError> {
        let picture = TrialPicture::new();
        let rows = picture.rows();
        let failed = |error: String| DeviceError::Failed(error);
        let mut scratch = Scratch::default();
        let mut on_host = || {
            let began = Instant::now();
            let made = tile(best_isa(), &rows, (0, 0), &mut scratch);
            let made = made.map_err(|error| failed(error.to_string()))?.to_vec();
            Ok((made, began.elapsed()))
        };
        on_host()?;
        let (wanted, host) = on_host()?;
        let mut least = Duration::MAX;
        for _ in 0..TRIES {
            let made = self.compute(&rows, &(0..TILE_HEIGHT), cancel)?;
            let (found, took) = made.ok_or_else(|| failed("there is no kernel".into()))?;
            if bits(&found) != bits(&wanted) {
                return Ok(Trial::Wrong);
            }
            least = least.min(took);
            if least < host || self.setting == DenoiseOn::Gpu {
                return Ok(Trial::Fit { took: least, host });
            }
            if least > host * HOPELESS {
                break;
            }
        }
        Ok(Trial::Slow { took: least, host })
    }

    /// Computes a pass on the device; None if it cannot be one of its jobs.
    fn compute(
        &self,
        rows: &Rows<'_>,
        wanted: &Range<usize>,
        cancel: &CancelToken,
    ) -> Result<Option<Made>, DeviceError> {
        let Some(pass) = PreparedPass::new(rows, wanted) else { return Ok(None) };
        let job = Arc::new(pass.job);
        let (mut values, mut time) = (Vec::new(), Duration::ZERO);
        for (first, count) in pass.chunks {
            let (job, whose) = (job.clone(), Whose::Frames);
            let text = Arc::new(|_| {});
            let work = Work::Compute { job, whose, first, count, text };
            let output = self.run(work, cancel)?;
            values.extend(output.chunk);
            time += output.device_time;
        }
        Ok(Some((planes_of(&values), time)))
    }

    /// Runs a unit of the compute lane to its end, or until `cancel` is cancelled.
    fn run(&self, work: Work, cancel: &CancelToken) -> Result<UnitOutput, DeviceError> {
        let (sender, ended) = channel();
        let own = CancelToken::default();
        let finish = Box::new(move |result| drop(sender.send(result)));
        self.door.submit(DeviceUnit { work, cancel: own.clone(), finish });
        loop {
            match ended.recv_timeout(TICK) {
                Ok(result) => return result,
                Err(RecvTimeoutError::Timeout) if cancel.is_cancelled() => {
                    own.cancel();
                    return Err(DeviceError::Cancelled);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(DeviceError::Cancelled),
            }
        }
    }
}

fn bits(planes: &[Vec<f32>]) -> Vec<u32> {
    planes.iter().flatten().map(|value| value.to_bits()).collect()
}

/// What came of a device's trial. `took` is its time, `host` that of a thread of the host.
enum Trial {
    Fit { took: Duration, host: Duration },
    Slow { took: Duration, host: Duration },
    Wrong,
}

/// A noisy picture of the size of one tile.
struct TrialPicture(Vec<Vec<f32>>);

impl TrialPicture {
    fn new() -> Self {
        let random = |seed: usize| {
            let bits = (seed as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let bits = (bits ^ bits >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            (bits >> 40) as f32 / (1u64 << 24) as f32
        };
        let value = |channel: usize, x: usize, y: usize| match channel {
            0..3 => 0.4 + 0.3 * random((y * TILE_WIDTH + x) * 3 + channel),
            3..6 => 0.2 + 0.2 * random((y * TILE_WIDTH + x) * 7 + channel),
            6..12 => {
                if x < 30 {
                    0.7
                } else {
                    0.1 * channel as f32
                }
            }
            _ => 2.0 + y as f32 * 0.01,
        };
        let plane = |channel| {
            let places = (0..TILE_HEIGHT).flat_map(|y| (0..TILE_WIDTH).map(move |x| (x, y)));
            places.map(|(x, y)| value(channel, x, y)).collect()
        };
        Self((0..CHANNELS).map(plane).collect())
    }

    fn rows(&self) -> Rows<'_> {
        Rows {
            pass: Pass::First,
            fitted: Fitted::WithHalf,
            width: TILE_WIDTH,
            height: TILE_HEIGHT,
            first_row: 0,
            samples: 2,
            channels: std::array::from_fn(|channel| self.0[channel].as_slice()),
        }
    }
}
