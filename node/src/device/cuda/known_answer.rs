//! The known answer: a unit whose sums every device must give, bit for bit, before it gets work. It
//! finds wrong results, not only crashes. The answer is rendered on the CPU, once per process and
//! size. Runs nothing on a device.

use crate::device::PreparedFrame;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tessera_kernels::CheckedScene;
use tessera_kernels::host::{RayCounts, best_isa, render_unit};
use tessera_layout::UnitParams;
use tessera_scenes::{EnvironmentSource, FlattenOptions, LoadOptions, load};

/// A room with a lamp, diffuse walls, a box of copper and a box of plastic.
const SCENE: &str = include_str!("known_answer.gltf");
/// Edge of the picture in pixels.
const EDGE: u32 = 16;
/// Paths for each multiprocessor: two warps, so that each of them takes part.
const PATHS_PER_MULTIPROCESSOR: u32 = 64;
/// Most samples per pixel: 64 Ki paths, which take far less than a second on any CPU.
const SAMPLES_MAX: u32 = 256;
/// Id of the scene on devices. The ids of frames count up from 1.
const SCENE_ID: u64 = u64::MAX;

/// The test for a device with a given number of multiprocessors.
#[derive(Clone)]
pub(super) struct KnownAnswer {
    pub(super) frame: Arc<PreparedFrame>,
    pub(super) params: UnitParams,
    sums: Arc<Vec<i64>>,
}

impl KnownAnswer {
    /// The test, and its answer by the host's kernels.
    ///
    /// # Errors
    /// The built-in scene cannot be prepared: no place for temporary files, or a fault of this
    /// program.
    pub(super) fn of(multiprocessors: u32) -> Result<Self, String> {
        static ANSWERS: Mutex<BTreeMap<u32, Arc<Vec<i64>>>> = Mutex::new(BTreeMap::new());
        let frame = frame()?;
        let paths = multiprocessors.saturating_mul(PATHS_PER_MULTIPROCESSOR);
        let params = params((paths / (EDGE * EDGE)).clamp(1, SAMPLES_MAX));
        let mut answers = ANSWERS.lock().unwrap_or_else(PoisonError::into_inner);
        let sums = match answers.get(&params.sample_count) {
            Some(sums) => sums.clone(),
            None => {
                let sums = Arc::new(render(&frame.scene, &params)?);
                answers.entry(params.sample_count).or_insert(sums).clone()
            }
        };
        Ok(Self { frame, params, sums })
    }

    /// Returns whether these little-endian sums are those that every device must give.
    pub(super) fn is(&self, sums: &[u8]) -> bool {
        let expected = self.sums.iter().flat_map(|sum| sum.to_le_bytes());
        sums.len() == self.sums.len() * 8 && sums.iter().copied().eq(expected)
    }
}

fn frame() -> Result<Arc<PreparedFrame>, String> {
    static FRAME: OnceLock<Result<Arc<PreparedFrame>, String>> = OnceLock::new();
    FRAME.get_or_init(|| Ok(Arc::new(PreparedFrame::new(scene()?, SCENE_ID)))).clone()
}

fn scene() -> Result<CheckedScene, String> {
    let text = |error: &dyn std::error::Error| crate::scene::chain(error);
    let folder = tempfile::tempdir().map_err(|error| text(&error))?;
    std::fs::write(folder.path().join("scene.gltf"), SCENE).map_err(|error| text(&error))?;
    let environment = EnvironmentSource::Constant([0.3, 0.4, 0.5]);
    let options = LoadOptions { environment, ..LoadOptions::default() };
    let loaded =
        load(Path::new(folder.path()), "scene.gltf", &options).map_err(|error| text(&error))?;
    let flat = loaded.flatten(&FlattenOptions::still(EDGE, EDGE)).map_err(|error| text(&error))?;
    CheckedScene::new(Arc::new(flat)).map_err(|error| text(&error))
}

fn params(samples: u32) -> UnitParams {
    UnitParams {
        frame_width: EDGE,
        frame_height: EDGE,
        width: EDGE,
        height: EDGE,
        sample_count: samples,
        seed: 20,
        depth: 4,
        aovs: 15,
        filter: 1,
        frame: 1,
        job_samples: samples,
        ..UnitParams::default()
    }
}

fn render(scene: &CheckedScene, params: &UnitParams) -> Result<Vec<i64>, String> {
    let mut film = vec![0i64; (params.width * params.height * params.channels()) as usize];
    let mut counts = RayCounts::default();
    render_unit(best_isa(), scene, params, &mut film, &mut counts)
        .map_err(|error| error.to_string())?;
    Ok(film)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_exact_sums_pass_the_known_answer() {
        let answer = KnownAnswer::of(4).unwrap();
        assert_eq!(answer.params.sample_count, 1);
        let mut sums: Vec<u8> = answer.sums.iter().flat_map(|sum| sum.to_le_bytes()).collect();
        assert!(answer.is(&sums));
        assert!(!answer.is(&sums[1..]));
        for index in [0, sums.len() / 2, sums.len() - 8] {
            sums[index] ^= 1;
            assert!(!answer.is(&sums));
            sums[index] ^= 1;
        }
        // Light, walls and both boxes must be visible. A picture with only one value would find
        // nothing.
        let distinct: std::collections::BTreeSet<i64> = answer.sums.iter().copied().collect();
        assert!(distinct.len() > 500, "{}", distinct.len());
    }

    #[test]
    fn larger_devices_get_a_larger_known_answer() {
        assert_eq!(KnownAnswer::of(132).unwrap().params.sample_count, 33);
        assert_eq!(KnownAnswer::of(0).unwrap().params.sample_count, 1);
        assert_eq!(params(SAMPLES_MAX).sample_count, 256);
    }
}
