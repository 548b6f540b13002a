//! Measures how fast devices render scenes, and compares with an earlier measurement.

use crate::standard::{Frame, Look};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};
use tessera_node::device::{Device, DeviceError};

/// Version of the file's form; a file of another is refused.
pub(crate) const VERSION: u32 = 1;
/// How long a round should be: far above the clock's grain and a launch, short enough for several.
const ROUND: Duration = Duration::from_secs(1);
/// Samples per pixel that are chosen between.
const SPP: (u32, u32) = (16, 1 << 14);

/// All measurements of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Bench {
    /// [`VERSION`].
    pub(crate) version: u32,
    /// The build that measured.
    pub(crate) build: String,
    /// Its kernels, hexadecimal.
    pub(crate) fingerprint: String,
    /// Results of the measurement.
    pub(crate) results: Vec<Measured>,
}

/// One device on one scene.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Measured {
    /// Name of the scene.
    pub(crate) scene: String,
    /// The device as its maker calls it.
    pub(crate) device: String,
    /// Name of the device in `--device`.
    pub(crate) slot: String,
    /// Size in pixels.
    pub(crate) width: u32,
    /// Size in pixels.
    pub(crate) height: u32,
    /// Samples per pixel of a round.
    pub(crate) spp: u32,
    /// Camera samples per second: the median of the rounds.
    pub(crate) samples_per_second: f64,
    /// Rays, closest and any hit, per second: of the same round.
    pub(crate) rays_per_second: f64,
    /// Seconds of each round, in order.
    pub(crate) seconds: Vec<f64>,
    /// Samples per second over those of the baseline.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) ratio: Option<f64>,
}

/// Renders a frame again and again: once to warm up and to choose the samples, where they are not
/// given, then `rounds` times.
pub(crate) fn measure(
    device: &dyn Device,
    frame: &Frame,
    rounds: usize,
    spp: Option<u32>,
) -> Result<Measured, DeviceError> {
    let chosen = match spp {
        Some(spp) => {
            frame.with_spp(spp).render(device)?;
            spp
        }
        None => calibrate(device, frame)?,
    };
    let frame = frame.with_spp(chosen);
    let mut measured = Vec::new();
    for _ in 0..rounds.max(1) {
        let start = Instant::now();
        let film = frame.render(device)?;
        measured.push((start.elapsed().as_secs_f64().max(1e-9), film.rays()));
    }
    let seconds = measured.iter().map(|(seconds, _)| *seconds).collect();
    measured.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (median, rays) = measured[measured.len() / 2];
    let look = Look { spp: chosen, ..Look::BENCH };
    let info = device.info();
    Ok(Measured {
        scene: frame.name.clone(),
        device: info.name,
        slot: info.slot,
        width: look.width,
        height: look.height,
        spp: chosen,
        samples_per_second: look.samples() as f64 / median,
        rays_per_second: rays as f64 / median,
        seconds,
        ratio: None,
    })
}

/// Samples per pixel with which a round is long enough on this device.
fn calibrate(device: &dyn Device, frame: &Frame) -> Result<u32, DeviceError> {
    let mut spp = SPP.0;
    // The first guess pays for uploads and cold caches, the second does not.
    for _ in 0..2 {
        let start = Instant::now();
        frame.with_spp(spp).render(device)?;
        spp = choose(start.elapsed() * SPP.0 / spp);
    }
    Ok(spp)
}

/// Samples per pixel, a power of two, with which a frame takes about [`ROUND`], given what the
/// fewest take.
fn choose(fewest: Duration) -> u32 {
    let factor = ROUND.as_secs_f64() / fewest.as_secs_f64().max(1e-9);
    let exponent = factor.log2().round().clamp(0.0, f64::from((SPP.1 / SPP.0).ilog2()));
    SPP.0 << exponent as u32
}

impl Bench {
    /// Sets the ratios: against the same scene on a device of the same name, else on the only
    /// device that the baseline has it of.
    pub(crate) fn compare(&mut self, baseline: &Self) {
        for result in &mut self.results {
            let of_scene = || baseline.results.iter().filter(|before| before.scene == result.scene);
            let same = of_scene().find(|before| before.device == result.device);
            let only = || of_scene().next().filter(|_| of_scene().count() == 1);
            let before = same.or_else(only).map(|before| before.samples_per_second);
            result.ratio =
                before.filter(|rate| *rate > 0.0).map(|rate| result.samples_per_second / rate);
        }
    }

    /// Results that are below a ratio, or that the baseline knows nothing of.
    pub(crate) fn below(&self, ratio: f64) -> Vec<&Measured> {
        self.results
            .iter()
            .filter(|result| result.ratio.is_none_or(|found| found < ratio))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bench(rates: &[(&str, &str, f64)]) -> Bench {
        let results = rates.iter().map(|(scene, device, rate)| Measured {
            scene: (*scene).into(),
            device: (*device).into(),
            slot: "cpu".into(),
            width: 512,
            height: 512,
            spp: 16,
            samples_per_second: *rate,
            rays_per_second: 0.0,
            seconds: vec![1.0],
            ratio: None,
        });
        Bench {
            version: VERSION,
            build: String::new(),
            fingerprint: String::new(),
            results: results.collect(),
        }
    }

    #[test]
    fn a_round_takes_about_a_second_on_any_device() {
        assert_eq!(choose(Duration::from_secs(9)), 16);
        assert_eq!(choose(Duration::from_millis(250)), 64);
        assert_eq!(choose(Duration::from_nanos(1)), 1 << 14);
    }

    #[test]
    fn ratios_are_of_the_same_scene_and_device() {
        let mut now = bench(&[("a", "x", 90.0), ("b", "x", 50.0), ("c", "x", 10.0)]);
        now.compare(&bench(&[("a", "y", 1.0), ("a", "x", 100.0), ("b", "y", 100.0)]));
        let ratios: Vec<_> = now.results.iter().map(|result| result.ratio).collect();
        assert_eq!(ratios, [Some(0.9), Some(0.5), None]);
        let below: Vec<_> = now.below(0.8).iter().map(|result| result.scene.as_str()).collect();
        assert_eq!(below, ["b", "c"]);
    }
}
