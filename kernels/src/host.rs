//! Rendering on the CPU: one unit at a time, on the calling thread.

use crate::CheckedScene;
use crate::float_mode::FloatMode;
pub use crate::isa::{Isa, UnknownIsa, available_isas, best_isa};
use tessera_layout::{SceneView, UnitParams};

/// Largest frame edge in pixels, so that every pixel of a frame has its own 32-bit index.
pub const FRAME_EDGE_MAX: u32 = 65_535;
/// Most pixels between an edge of the frame and a pixel beyond it. A pixel's random numbers are its
/// own up to there, and its place is exact.
pub const BEYOND_MAX: u32 = 8192;
/// Most samples per pixel, so that a film sum fits into an `i64` (see
/// [`tessera_layout::FILM_VALUE_MAX`]).
pub const SAMPLES_MAX: u32 = 1 << 20;
/// Most scattering events of a path.
pub const DEPTH_MAX: u32 = 1024;

/// Cost and faults of units. Each unit adds to the counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct RayCounts {
    /// Number of closest-hit rays: camera rays and scattered rays.
    pub closest: u64,
    /// Number of any-hit rays, which go towards lights.
    pub any: u64,
    /// Number of samples in which a value was clamped to [`tessera_layout::FILM_VALUE_MAX`].
    pub clamped: u64,
    /// Number of samples that count as black because a value was NaN or infinite. It should be 0.
    pub non_finite: u64,
}

impl RayCounts {
    /// Reads the counts that a device of this machine wrote: four little-endian 64-bit numbers.
    pub fn from_bytes(bytes: &[u8; 32]) -> Self {
        let word = |at: usize| {
            bytes[8 * at..8 * at + 8].iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
        };
        Self { closest: word(0), any: word(1), clamped: word(2), non_finite: word(3) }
    }
}

/// Why a unit was not rendered. The film is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// This processor cannot run that build.
    #[error("this processor cannot run kernels built for {0}")]
    Unsupported(Isa),
    /// A number of the unit is out of range.
    #[error("unit out of range: {0}")]
    Unit(&'static str),
    /// The film is not as long as the unit's channels × pixels.
    #[error("film has {found} sums where the unit needs {expected}")]
    Film {
        /// Length of the film.
        found: usize,
        /// channels × width × height.
        expected: usize,
    },
}

/// The C entry of one host build.
pub(crate) type RenderUnit =
    unsafe extern "C" fn(*const SceneView, *const UnitParams, *mut i64, *mut RayCounts);

#[cfg(target_arch = "x86_64")]
unsafe extern "C" {
    fn tessera_render_unit_v2(
        view: *const SceneView,
        unit: *const UnitParams,
        film: *mut i64,
        counts: *mut RayCounts,
    );
    fn tessera_render_unit_v3(
        view: *const SceneView,
        unit: *const UnitParams,
        film: *mut i64,
        counts: *mut RayCounts,
    );
}

#[cfg(not(target_arch = "x86_64"))]
unsafe extern "C" {
    fn tessera_render_unit_base(
        view: *const SceneView,
        unit: *const UnitParams,
        film: *mut i64,
        counts: *mut RayCounts,
    );
}

#[cfg(target_arch = "x86_64")]
fn entry(isa: Isa) -> Option<RenderUnit> {
    match isa {
        Isa::Base => None,
        Isa::V2 => Some(tessera_render_unit_v2),
        Isa::V3 => Some(tessera_render_unit_v3),
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn entry(isa: Isa) -> Option<RenderUnit> {
    (isa == Isa::Base).then_some(tessera_render_unit_base)
}

/// Renders a unit on this thread and adds its sums to `film` and its rays to `counts`.
///
/// The result depends only on the scene and the unit: not on `isa`, the compiler, the machine, or
/// how a frame is cut into tiles and sample ranges. The film is planar, `unit.channels()` × height
/// × width, in units of 2^-24.
///
/// # Errors
/// [`RenderError`] where the processor lacks `isa`, the unit is out of range, or the film's length
/// does not fit it.
pub fn render_unit(
    isa: Isa,
    scene: &CheckedScene,
    unit: &UnitParams,
    film: &mut [i64],
    counts: &mut RayCounts,
) -> Result<(), RenderError> {
    let available = available_isas().contains(&isa);
    let render = entry(isa).filter(|_| available).ok_or(RenderError::Unsupported(isa))?;
    // SAFETY: `render` is this crate's own kernel, and the processor has its instruction set.
    unsafe { render_unit_with(render, scene, unit, film, counts) }
}

/// [`render_unit`] through any entry.
///
/// # Safety
/// `render` must be `tessera_render_unit` of `entry/host.cpp`, built for a processor like this one.
pub(crate) unsafe fn render_unit_with(
    render: RenderUnit,
    scene: &CheckedScene,
    unit: &UnitParams,
    film: &mut [i64],
    counts: &mut RayCounts,
) -> Result<(), RenderError> {
    check_unit(unit)?;
    let expected = unit.channels() as usize * unit.width as usize * unit.height as usize;
    if film.len() != expected {
        return Err(RenderError::Film { found: film.len(), expected });
    }
    let view = scene.view();
    let _mode = FloatMode::strict();
    // SAFETY: `view` points into a scene whose indices were all checked and which cannot change
    // while it is borrowed; the unit was checked, the film has its length, and `counts` has the
    // layout of the C struct (compared by a test).
    unsafe { render(&view, unit, film.as_mut_ptr(), counts) };
    Ok(())
}

/// Checks that every number of a unit is in range.
pub(crate) fn check_unit(unit: &UnitParams) -> Result<(), RenderError> {
    let within = |start: u32, length: u32, end: u32| {
        length >= 1 && start.checked_add(length).is_some_and(|stop| stop <= end)
    };
    let near = |start: i32, length: u32, edge: u32| {
        let from = i64::from(start) + i64::from(BEYOND_MAX);
        let end = i64::from(edge) + 2 * i64::from(BEYOND_MAX);
        length >= 1 && from >= 0 && from + i64::from(length) <= end
    };
    let checks = [
        ((1..=FRAME_EDGE_MAX).contains(&unit.frame_width), "frame width"),
        ((1..=FRAME_EDGE_MAX).contains(&unit.frame_height), "frame height"),
        (near(unit.x, unit.width, unit.frame_width), "tile far from the frame across"),
        (near(unit.y, unit.height, unit.frame_height), "tile far from the frame downwards"),
        (within(unit.first_sample, unit.sample_count, SAMPLES_MAX), "samples"),
        (unit.depth <= DEPTH_MAX, "depth"),
        (unit.aovs <= 63, "aovs"),
        (unit.filter <= 2, "filter"),
    ];
    match checks.iter().find(|(good, _)| !good) {
        None => Ok(()),
        Some((_, what)) => Err(RenderError::Unit(what)),
    }
}
