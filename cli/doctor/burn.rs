//! Burn-in: loads every device for a while with frames whose films are known, and compares every
//! film. Finds wrong results, not only crashes.

use super::devices::{describe, is_gpu};
use crate::error::{CliError, Status};
use crate::standard::{Film, Frame, Look};
use serde::Serialize;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tessera_node::device::{CpuDevice, Device};
use tessera_protocol::device::DeviceTelemetry;
use tessera_transport::error::chain;

/// Frames that a device has at a time: one is computed while the other is compared.
const FRAMES_AT_A_TIME: usize = 2;
/// Samples per pixel where a GPU takes part: fewer leave it with nothing to do between two units.
const GPU_SPP: u32 = 64;
/// Time between two lines of progress.
const REPORT: Duration = Duration::from_secs(5);

/// Result of one device.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Burned {
    /// Name of the device.
    pub(crate) device: String,
    /// Frames rendered and compared.
    pub(crate) frames: u64,
    /// Films with a wrong bit.
    pub(crate) wrong: u64,
    /// Camera samples per second.
    pub(crate) samples_per_second: f64,
    /// Share of the time in which it was busy, by its own account.
    pub(crate) busy: f64,
    /// How it was at the end.
    pub(crate) telemetry: DeviceTelemetry,
    /// Why it gave up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) failure: Option<String>,
}

impl Burned {
    /// Returns whether films were compared and all of them were right.
    pub(crate) fn is_well(&self) -> bool {
        self.wrong == 0 && self.failure.is_none() && self.frames > 0
    }
}

/// Frames and the films that they must come to.
struct Answers(Vec<(Frame, Film)>);

impl Answers {
    /// Returns the film of the CPU, whose bits every device must have.
    fn of_cpu(spp: u32) -> Result<Self, CliError> {
        let failed = |error: &dyn std::error::Error| CliError::new(Status::Failure, chain(error));
        let cpu = CpuDevice::open(None, None).map_err(|error| failed(&error))?;
        let with_film = |frame: Frame| {
            let frame = frame.with_spp(spp);
            let film = frame.render(&cpu).map_err(|error| failed(&error))?;
            Ok((frame, film))
        };
        Ok(Self(
            Frame::library(Look::BURN)?
                .into_iter()
                .map(with_film)
                .collect::<Result<_, CliError>>()?,
        ))
    }
}

/// One device at work.
#[derive(Default)]
struct Tally {
    frames: AtomicU64,
    wrong: AtomicU64,
    failure: Mutex<Option<String>>,
}

impl Tally {
    /// Renders and compares until the end, at least once, or until the device fails.
    fn work(&self, device: &dyn Device, answers: &Answers, first: usize, end: Instant) {
        for (frame, film) in answers.0.iter().cycle().skip(first) {
            match frame.render(device) {
                Ok(found) => {
                    self.frames.fetch_add(1, Ordering::Relaxed);
                    self.wrong.fetch_add(u64::from(!found.is_same(film)), Ordering::Relaxed);
                }
                Err(error) => *self.failure() = Some(chain(&error)),
            }
            if Instant::now() >= end || self.failure().is_some() {
                return;
            }
        }
    }

    fn failure(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.failure.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Keeps all devices busy for `time`, and reports progress to `hear`. Blocks.
///
/// # Errors
///
/// If the CPU cannot compute the right films. Failures of devices are in the result.
pub(crate) fn burn(
    devices: &[Arc<dyn Device>],
    time: Duration,
    hear: &mut dyn FnMut(String),
) -> Result<Vec<Burned>, CliError> {
    let gpu = devices.iter().any(|device| is_gpu(&**device));
    let look = Look { spp: if gpu { GPU_SPP } else { Look::BURN.spp }, ..Look::BURN };
    let answers = Answers::of_cpu(look.spp)?;
    let tallies: Vec<Tally> = devices.iter().map(|_| Tally::default()).collect();
    let busy_before: Vec<Duration> = devices.iter().map(|device| device.busy()).collect();
    let start = Instant::now();
    let end = start + time;
    std::thread::scope(|scope| {
        let mut working = Vec::new();
        for (device, tally) in devices.iter().zip(&tallies) {
            for first in 0..FRAMES_AT_A_TIME {
                let answers = &answers;
                working.push(scope.spawn(move || tally.work(&**device, answers, first, end)));
            }
        }
        let mut report = start + REPORT;
        while working.iter().any(|thread| !thread.is_finished()) {
            std::thread::sleep(Duration::from_millis(50).min(time));
            if Instant::now() >= report {
                report += REPORT;
                devices
                    .iter()
                    .zip(&tallies)
                    .for_each(|(device, tally)| hear(line(&**device, tally)));
            }
        }
    });
    let elapsed = start.elapsed().as_secs_f64().max(1e-9);
    let both = devices.iter().zip(&tallies).zip(busy_before);
    Ok(both
        .map(|((device, tally), before)| sum(&**device, tally, before, (elapsed, look)))
        .collect())
}

fn line(device: &dyn Device, tally: &Tally) -> String {
    let (frames, wrong) =
        (tally.frames.load(Ordering::Relaxed), tally.wrong.load(Ordering::Relaxed));
    format!(
        "{}: {frames} frames, {wrong} wrong{}",
        device.info().slot,
        condition(&device.telemetry())
    )
}

/// Heat, power, clock, and what holds the clock down, as far as the device says.
pub(crate) fn condition(telemetry: &DeviceTelemetry) -> String {
    let mut text = String::new();
    if let Some(degrees) = telemetry.temperature {
        text += &format!(", {degrees} °C");
    }
    if let Some(milliwatts) = telemetry.power_milliwatts {
        text += &format!(", {} W", milliwatts / 1000);
    }
    if let Some(clock) = telemetry.clock_mhz {
        text += &format!(", {clock} MHz");
    }
    if !telemetry.throttles.is_empty() {
        text += &format!(", held down by {}", telemetry.throttles.join(", "));
    }
    text
}

fn sum(
    device: &dyn Device,
    tally: &Tally,
    busy_before: Duration,
    (elapsed, look): (f64, Look),
) -> Burned {
    let frames = tally.frames.load(Ordering::Relaxed);
    Burned {
        device: describe(&device.info()),
        frames,
        wrong: tally.wrong.load(Ordering::Relaxed),
        samples_per_second: (frames * look.samples()) as f64 / elapsed,
        busy: (device.busy().saturating_sub(busy_before).as_secs_f64() / elapsed).min(1.0),
        telemetry: device.telemetry(),
        failure: tally.failure().clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tessera_node::device::{DeviceError, DeviceUnit, UnitOutput};
    use tessera_protocol::device::DeviceInfo;

    /// The CPU with a fault: one bit of the second unit is another, or the second unit fails.
    struct Faulty {
        cpu: CpuDevice,
        units: AtomicU64,
        fails: bool,
    }

    impl Device for Faulty {
        fn info(&self) -> DeviceInfo {
            self.cpu.info()
        }

        fn submit(&self, unit: DeviceUnit) {
            let hit = self.units.fetch_add(1, Ordering::Relaxed) == 1;
            let fails = self.fails;
            let finish = unit.finish;
            let changed = move |result: Result<UnitOutput, DeviceError>| {
                finish(match result {
                    Ok(_) if hit && fails => Err(DeviceError::Failed("smoke".into())),
                    Ok(mut output) if hit => {
                        output.sums.values[99] ^= 1 << 20;
                        Ok(output)
                    }
                    other => other,
                });
            };
            self.cpu.submit(DeviceUnit { finish: Box::new(changed), ..unit });
        }

        fn busy(&self) -> Duration {
            self.cpu.busy()
        }
    }

    fn faulty(fails: bool) -> Arc<dyn Device> {
        Arc::new(Faulty {
            cpu: CpuDevice::open(None, None).unwrap(),
            units: AtomicU64::new(0),
            fails,
        })
    }

    #[test]
    fn a_wrong_bit_and_a_failure_are_found() {
        let sound: Arc<dyn Device> = Arc::new(CpuDevice::open(None, None).unwrap());
        let devices = [sound, faulty(false), faulty(true)];
        let burned = burn(&devices, Duration::from_millis(1), &mut |_| {}).unwrap();
        assert!(burned[0].is_well(), "{:?}", burned[0]);
        assert!(burned[1].wrong > 0 && !burned[1].is_well(), "{:?}", burned[1]);
        assert_eq!(burned[2].failure.as_deref(), Some("device failed: smoke"), "{:?}", burned[2]);
    }
}
