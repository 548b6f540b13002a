//! Bare rays on the CPU, for tests, benchmarks and tools: the queries that the path tracer makes, in batches. Does not
//! shade.

use crate::CheckedScene;
use crate::float_mode::FloatMode;
use crate::host::RenderError;
use crate::isa::{Isa, available_isas};
use tessera_layout::{NONE, SceneView};

/// Points `origin + t * direction` with 0 < t <= `t_max`. The direction needs no unit length; t counts in its lengths.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct Ray {
    /// Metres, world space.
    pub origin: [f32; 3],
    /// Finite, not zero.
    pub direction: [f32; 3],
    /// May be infinite.
    pub t_max: f32,
}

/// A hit at `(1 - u - v) * v0 + u * v1 + v * v2`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct Hit {
    /// Distance in lengths of the direction; 0 for a miss.
    pub t: f32,
    /// Triangle id, or [`NONE`] for a miss.
    pub triangle: u32,
    /// Weight of the second corner.
    pub u: f32,
    /// Weight of the third corner.
    pub v: f32,
}

const _: () = assert!(size_of::<Ray>() == 28 && size_of::<Hit>() == 16);

impl Hit {
    /// No hit at all.
    pub const MISS: Hit = Hit { t: 0.0, triangle: NONE, u: 0.0, v: 0.0 };
}

type TraceClosest = unsafe extern "C" fn(*const SceneView, *const Ray, u64, *mut Hit);
type TraceAny = unsafe extern "C" fn(*const SceneView, *const Ray, u64, *mut u8);

macro_rules! entries {
    ($closest:ident, $any:ident) => {
        unsafe extern "C" {
            fn $closest(scene: *const SceneView, rays: *const Ray, count: u64, hits: *mut Hit);
            fn $any(scene: *const SceneView, rays: *const Ray, count: u64, blocked: *mut u8);
        }
    };
}

#[cfg(target_arch = "x86_64")]
entries!(tessera_trace_closest_v2, tessera_trace_any_v2);
#[cfg(target_arch = "x86_64")]
entries!(tessera_trace_closest_v3, tessera_trace_any_v3);
#[cfg(not(target_arch = "x86_64"))]
entries!(tessera_trace_closest_base, tessera_trace_any_base);

#[cfg(target_arch = "x86_64")]
fn entry(isa: Isa) -> Option<(TraceClosest, TraceAny)> {
    match isa {
        Isa::Base => None,
        Isa::V2 => Some((tessera_trace_closest_v2, tessera_trace_any_v2)),
        Isa::V3 => Some((tessera_trace_closest_v3, tessera_trace_any_v3)),
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn entry(isa: Isa) -> Option<(TraceClosest, TraceAny)> {
    (isa == Isa::Base).then_some((tessera_trace_closest_base, tessera_trace_any_base))
}

fn available(isa: Isa) -> Result<(TraceClosest, TraceAny), RenderError> {
    entry(isa).filter(|_| available_isas().contains(&isa)).ok_or(RenderError::Unsupported(isa))
}

/// The closest hit of each ray, on this thread. The alpha of triangles is decided with the ray's index as its key.
///
/// # Errors
/// [`RenderError::Unsupported`] where the processor lacks `isa`.
pub fn trace_closest(isa: Isa, scene: &CheckedScene, rays: &[Ray]) -> Result<Vec<Hit>, RenderError> {
    let (closest, _) = available(isa)?;
    let view = scene.view();
    let mut hits = vec![Hit::MISS; rays.len()];
    let _mode = FloatMode::strict();
    // SAFETY: the scene is checked and outlives the call; both slices have `rays.len()` entries of the C layout.
    unsafe { closest(&view, rays.as_ptr(), rays.len() as u64, hits.as_mut_ptr()) };
    Ok(hits)
}

/// Whether anything is in each ray's way, on this thread; keys as in [`trace_closest`].
///
/// # Errors
/// [`RenderError::Unsupported`] where the processor lacks `isa`.
pub fn trace_any(isa: Isa, scene: &CheckedScene, rays: &[Ray]) -> Result<Vec<bool>, RenderError> {
    let (_, any) = available(isa)?;
    let view = scene.view();
    let mut blocked = vec![0u8; rays.len()];
    let _mode = FloatMode::strict();
    // SAFETY: as in `trace_closest`.
    unsafe { any(&view, rays.as_ptr(), rays.len() as u64, blocked.as_mut_ptr()) };
    Ok(blocked.into_iter().map(|byte| byte != 0).collect())
}
