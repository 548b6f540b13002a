//! The units of the known answers, and the sums that they must have.

use super::scene::{EDGE, SceneKind, sums_of};
use super::{AnswerError, check_host};
use crate::device::PreparedFrame;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use tessera_kernels::CheckedScene;
use tessera_kernels::cuda::Shape;
use tessera_kernels::host::best_isa;
use tessera_layout::UnitParams;

/// Paths for each multiprocessor: two warps, so that each of them takes part.
const PATHS_PER_MULTIPROCESSOR: u32 = 64;
/// Most samples per pixel of the compact room: 64 Ki paths, which take far less than a second on
/// any CPU.
const COMPACT_SAMPLES_MAX: u32 = 256;
/// Most samples per pixel of the others, which test kernels and not every multiprocessor: 2,048
/// paths.
const SAMPLES_MAX: u32 = 8;

/// The kernels that a unit is computed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Kind {
    /// Kind of the scene.
    pub(crate) scene: SceneKind,
    /// Whether the paths go through the stages together.
    pub(crate) staged: bool,
}

impl Kind {
    /// Returns the kind of a unit.
    pub(crate) fn of(scene: &CheckedScene, params: &UnitParams) -> Self {
        Self { scene: SceneKind::of(scene), staged: Shape::of(params) == Shape::Staged }
    }

    /// Returns the kinds of one set of kernels, as a device loads it: the one with instances or the
    /// one without.
    pub(crate) fn of_set(instances: bool) -> [Self; 4] {
        let kind = |layers, staged| Self { scene: SceneKind { instances, layers }, staged };
        [kind(false, false), kind(false, true), kind(true, false), kind(true, true)]
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shape = if self.staged { "staged" } else { "compact" };
        write!(formatter, "the {shape} kernels for the {}", self.scene.name())
    }
}

/// The test for a device with a given number of multiprocessors.
#[derive(Clone)]
pub(crate) struct KnownAnswer {
    pub(crate) frame: Arc<PreparedFrame>,
    pub(crate) params: UnitParams,
    sums: Arc<Vec<i64>>,
}

impl KnownAnswer {
    /// The test, and its answer by the host's kernels, which are checked first.
    ///
    /// # Errors
    /// The host's kernels are wrong, or a scene cannot be prepared: no place for temporary files,
    /// or a fault of this program.
    pub(crate) fn of(kind: Kind, multiprocessors: u32) -> Result<Self, AnswerError> {
        type Answers = BTreeMap<(SceneKind, u32), Arc<Vec<i64>>>;
        static ANSWERS: Mutex<Answers> = Mutex::new(BTreeMap::new());
        check_host(best_isa())?;
        let frame = kind.scene.frame().map_err(AnswerError::Impossible)?;
        let params = params(samples(kind, multiprocessors));
        let mut answers = ANSWERS.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (kind.scene, params.sample_count);
        let sums = match answers.get(&key) {
            Some(sums) => sums.clone(),
            None => {
                let sums = sums_of(best_isa(), &frame.scene, &params);
                let sums = sums.map_err(|error| AnswerError::Impossible(error.to_string()))?;
                answers.entry(key).or_insert(Arc::new(sums)).clone()
            }
        };
        Ok(Self { frame, params, sums })
    }

    /// Returns whether these little-endian sums are those that every device must give.
    pub(crate) fn is(&self, sums: &[u8]) -> bool {
        let expected = self.sums.iter().flat_map(|sum| sum.to_le_bytes());
        sums.len() == self.sums.len() * 8 && sums.iter().copied().eq(expected)
    }
}

/// Returns the samples per pixel of a test.
fn samples(kind: Kind, multiprocessors: u32) -> u32 {
    let is_compact_room = kind == Kind::of_set(false)[0];
    let most = if is_compact_room { COMPACT_SAMPLES_MAX } else { SAMPLES_MAX };
    let paths = multiprocessors.saturating_mul(PATHS_PER_MULTIPROCESSOR);
    (paths / (EDGE * EDGE)).clamp(1, most)
}

/// Returns the whole picture with so many samples per pixel.
pub(super) fn params(samples: u32) -> UnitParams {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn every_kind() -> impl Iterator<Item = Kind> {
        [false, true].into_iter().flat_map(Kind::of_set)
    }

    #[test]
    fn only_exact_sums_pass_the_known_answer() {
        let mut pictures = BTreeSet::new();
        for kind in every_kind() {
            let answer = KnownAnswer::of(kind, 4).unwrap();
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
            let distinct: BTreeSet<i64> = answer.sums.iter().copied().collect();
            assert!(distinct.len() > 500, "{kind}: {}", distinct.len());
            pictures.insert(sums);
        }
        assert_eq!(pictures.len(), 4, "each scene has its own picture, in both shapes");
    }

    #[test]
    fn larger_devices_get_a_larger_known_answer() {
        let samples = |kind, multiprocessors| {
            KnownAnswer::of(kind, multiprocessors).unwrap().params.sample_count
        };
        let compact = Kind::of_set(false)[0];
        assert_eq!((samples(compact, 132), samples(compact, 0)), (33, 1));
        for kind in every_kind().filter(|kind| *kind != compact) {
            assert_eq!((samples(kind, 132), samples(kind, 4)), (8, 1), "{kind}");
        }
        assert!(EDGE * EDGE * SAMPLES_MAX <= 2048);
    }

    #[test]
    fn a_unit_is_of_the_kind_of_its_kernels() {
        for kind in every_kind() {
            let answer = KnownAnswer::of(kind, 4).unwrap();
            let large = UnitParams { width: 256, height: 256, ..answer.params };
            let of = |params: &UnitParams| Kind::of(&answer.frame.scene, params);
            assert_eq!(of(&answer.params), Kind { staged: false, ..kind });
            assert_eq!(of(&large), Kind { staged: true, ..kind });
        }
    }
}
