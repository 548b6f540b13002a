//! The test for a device: a unit, and the sums that it must have.

use super::host::{AnswerError, check_host};
use super::scene::{SceneKind, sums_of};
use super::units::{Kind, params, samples};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tessera_kernels::CheckedScene;
use tessera_kernels::host::best_isa;
use tessera_layout::UnitParams;

/// The test for a device with a given number of multiprocessors.
#[derive(Clone)]
pub(crate) struct KnownAnswer {
    pub(crate) scene: CheckedScene,
    /// Id of the scene on devices.
    pub(crate) id: u64,
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
        let scene = kind.scene.scene().map_err(AnswerError::Impossible)?;
        let params = params(samples(kind, multiprocessors));
        let mut answers = ANSWERS.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (kind.scene, params.sample_count);
        let sums = match answers.get(&key) {
            Some(sums) => sums.clone(),
            None => {
                let sums = sums_of(best_isa(), &scene, &params);
                let sums = sums.map_err(|error| AnswerError::Impossible(error.to_string()))?;
                answers.entry(key).or_insert(Arc::new(sums)).clone()
            }
        };
        Ok(Self { scene, id: kind.scene.id(), params, sums })
    }

    /// Returns whether these little-endian sums are those that every device must give.
    pub(crate) fn is(&self, sums: &[u8]) -> bool {
        let expected = self.sums.iter().flat_map(|sum| sum.to_le_bytes());
        sums.len() == self.sums.len() * 8 && sums.iter().copied().eq(expected)
    }
}

#[cfg(test)]
mod tests {
    use super::super::scene::EDGE;
    use super::super::units::SAMPLES_MAX;
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
        const { assert!(EDGE * EDGE * SAMPLES_MAX <= 2048) };
    }

    #[test]
    fn a_unit_is_of_the_kind_of_its_kernels() {
        for kind in every_kind() {
            let answer = KnownAnswer::of(kind, 4).unwrap();
            let large = UnitParams { width: 256, height: 256, ..answer.params };
            let of = |params: &UnitParams| Kind::of(&answer.scene, params);
            assert_eq!(of(&answer.params), Kind { staged: false, ..kind });
            assert_eq!(of(&large), Kind { staged: true, ..kind });
        }
    }
}
