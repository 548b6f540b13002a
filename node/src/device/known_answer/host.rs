//! The CPU's kernels, compared with sums that are stored here. So a program that was built wrongly
//! does no work, and judges no device.

use super::scene::{SceneKind, sums_of};
use super::units::params;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use tessera_kernels::CheckedScene;
use tessera_kernels::host::{Isa, RenderError};
use tessera_layout::UnitParams;

/// Samples per pixel of the stored sums: 512 paths for each scene.
const SAMPLES: u32 = 2;
/// First half of the BLAKE3 of each scene's sums, little endian.
/// `the_stored_answers_are_those_of_the_kernels` prints what they are.
const STORED: [(SceneKind, &str); 4] = [
    (SceneKind { instances: false, layers: false }, "ed5b701356d1a55de2b537f2f2666129"),
    (SceneKind { instances: false, layers: true }, "d6d808ecca05d719a45596b22f7270b5"),
    (SceneKind { instances: true, layers: false }, "91631dac5e258f7576dff156ac51d9b7"),
    (SceneKind { instances: true, layers: true }, "cf2a6d54c0359618ac1dc44b159b18ae"),
];

/// Why the CPU's kernels cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// The kernels compute other numbers than they should.
    #[error(
        "the kernels for {isa} do not give the known answer of the {scene}: they would make wrong \
            pixels. Build tessera again without flags of your own (CXX, CXXFLAGS); if it stays so, \
            have the processor and its memory checked"
    )]
    Wrong {
        /// Build of the kernels.
        isa: Isa,
        /// Scene whose sums are wrong.
        scene: &'static str,
    },
    /// The scenes cannot be prepared or rendered.
    #[error("no known-answer test: {0}")]
    Impossible(String),
}

/// Compares the kernels of this build with the stored answers, once in a process.
///
/// # Errors
/// [`AnswerError`]: these kernels must not be used.
pub(crate) fn check_host(isa: Isa) -> Result<(), AnswerError> {
    static CHECKED: Mutex<BTreeMap<Isa, Result<(), AnswerError>>> = Mutex::new(BTreeMap::new());
    let mut checked = CHECKED.lock().unwrap_or_else(PoisonError::into_inner);
    checked
        .entry(isa)
        .or_insert_with(|| check(isa, |scene, unit| sums_of(isa, scene, unit)))
        .clone()
}

/// [`check_host`] of anything that renders.
fn check(
    isa: Isa,
    mut render: impl FnMut(&CheckedScene, &UnitParams) -> Result<Vec<i64>, RenderError>,
) -> Result<(), AnswerError> {
    for (kind, stored) in STORED {
        let scene = kind.scene().map_err(AnswerError::Impossible)?;
        let sums = render(&scene, &params(SAMPLES));
        let sums = sums.map_err(|error| AnswerError::Impossible(error.to_string()))?;
        if hash_of(&sums) != stored {
            return Err(AnswerError::Wrong { isa, scene: kind.name() });
        }
    }
    Ok(())
}

fn hash_of(sums: &[i64]) -> String {
    let mut hasher = blake3::Hasher::new();
    for sum in sums {
        hasher.update(&sum.to_le_bytes());
    }
    hasher.finalize().to_hex()[..32].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tessera_kernels::host::{available_isas, best_isa};

    #[test]
    fn the_stored_answers_are_those_of_the_kernels() {
        for isa in available_isas() {
            let found = STORED.map(|(kind, _)| {
                let scene = kind.scene().unwrap();
                hash_of(&sums_of(isa, &scene, &params(SAMPLES)).unwrap())
            });
            assert_eq!(found, STORED.map(|(_, stored)| stored), "{isa}");
        }
    }

    #[test]
    fn a_build_that_computes_wrongly_is_refused() {
        for isa in available_isas() {
            assert_eq!(check_host(isa), Ok(()), "{isa}");
        }
        let isa = best_isa();
        for (wrong, (stored, _)) in STORED.iter().enumerate() {
            let mut at = 0;
            let checked = check(isa, |scene, unit| {
                let mut sums = sums_of(isa, scene, unit)?;
                let middle = sums.len() / 2;
                sums[middle] ^= i64::from(at == wrong);
                at += 1;
                Ok(sums)
            });
            let error = checked.unwrap_err();
            assert_eq!(error, AnswerError::Wrong { isa, scene: stored.name() });
            assert!(error.to_string().contains("CXXFLAGS"), "{error}");
        }
    }
}
