//! The units of the known answers, and the kernels that each of them is for.

use super::scene::{EDGE, SceneKind};
use std::fmt;
use tessera_kernels::CheckedScene;
use tessera_kernels::cuda::Shape;
use tessera_layout::UnitParams;

/// Paths for each multiprocessor: two warps, so that each of them takes part.
const PATHS_PER_MULTIPROCESSOR: u32 = 64;
/// Most samples per pixel of the compact room: 64 Ki paths, which take far less than a second on
/// any CPU.
const COMPACT_SAMPLES_MAX: u32 = 256;
/// Most samples per pixel of the others, which test kernels and not every multiprocessor: 2,048
/// paths.
pub(super) const SAMPLES_MAX: u32 = 8;

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

/// Returns the samples per pixel of a test.
pub(super) fn samples(kind: Kind, multiprocessors: u32) -> u32 {
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
        ..UnitParams::default()
    }
}
