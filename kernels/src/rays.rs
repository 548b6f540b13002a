//! Single rays on the CPU, for tests, benchmarks and tools: the queries of the path tracer, in
//! batches. Does not shade.

use crate::CheckedScene;
use crate::float_mode::FloatMode;
use crate::host::RenderError;
use crate::isa::{Isa, available_isas};
use tessera_layout::{NONE, SceneView};

/// Points `origin + t * direction` with 0 < t <= `t_max`. The direction can have any length, and t
/// is in units of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct Ray {
    /// Origin in metres, in world space.
    pub origin: [f32; 3],
    /// Direction; finite and not zero.
    pub direction: [f32; 3],
    /// End of the ray; may be infinite.
    pub t_max: f32,
}

/// A hit at `(1 - u - v) * v0 + u * v1 + v * v2`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct Hit {
    /// Distance in units of the direction's length; 0 for a miss.
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

/// Optical depth from which on no light goes through. `OPTICAL_DEPTH_OPAQUE` in `alpha.h`.
pub const OPTICAL_DEPTH_OPAQUE: u32 = 32 << 20;

type TraceClosest = unsafe extern "C" fn(*const SceneView, *const Ray, u64, *mut Hit);
type TraceShadow = unsafe extern "C" fn(*const SceneView, *const Ray, u64, *mut u32);

macro_rules! entries {
    ($closest:ident, $shadow:ident) => {
        unsafe extern "C" {
            fn $closest(scene: *const SceneView, rays: *const Ray, count: u64, hits: *mut Hit);
            fn $shadow(
                scene: *const SceneView,
                rays: *const Ray,
                count: u64,
                optical_depths: *mut u32,
            );
        }
    };
}

#[cfg(target_arch = "x86_64")]
entries!(tessera_trace_closest_v2, tessera_trace_shadow_v2);
#[cfg(target_arch = "x86_64")]
entries!(tessera_trace_closest_v3, tessera_trace_shadow_v3);
#[cfg(not(target_arch = "x86_64"))]
entries!(tessera_trace_closest_base, tessera_trace_shadow_base);

#[cfg(target_arch = "x86_64")]
fn entry(isa: Isa) -> Option<(TraceClosest, TraceShadow)> {
    match isa {
        Isa::Base => None,
        Isa::V2 => Some((tessera_trace_closest_v2, tessera_trace_shadow_v2)),
        Isa::V3 => Some((tessera_trace_closest_v3, tessera_trace_shadow_v3)),
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn entry(isa: Isa) -> Option<(TraceClosest, TraceShadow)> {
    (isa == Isa::Base).then_some((tessera_trace_closest_base, tessera_trace_shadow_base))
}

fn available(isa: Isa) -> Result<(TraceClosest, TraceShadow), RenderError> {
    entry(isa).filter(|_| available_isas().contains(&isa)).ok_or(RenderError::Unsupported(isa))
}

/// The closest hit of each ray, on this thread. The alpha of triangles is decided with the ray's
/// index as its key.
///
/// # Errors
/// [`RenderError::Unsupported`] where the processor lacks `isa`.
pub fn trace_closest(
    isa: Isa,
    scene: &CheckedScene,
    rays: &[Ray],
) -> Result<Vec<Hit>, RenderError> {
    let (closest, _) = available(isa)?;
    let view = scene.view();
    let mut hits = vec![Hit::MISS; rays.len()];
    let _mode = FloatMode::strict();
    // SAFETY: the scene is checked and outlives the call; both slices have `rays.len()` entries of
    // the C layout.
    unsafe { closest(&view, rays.as_ptr(), rays.len() as u64, hits.as_mut_ptr()) };
    Ok(hits)
}

/// The optical depth of what stands in each ray's way, on this thread: the sum of -log2 of the
/// shares that surfaces let through, in 2^-20, and [`OPTICAL_DEPTH_OPAQUE`] where nothing goes
/// through.
///
/// # Errors
/// [`RenderError::Unsupported`] where the processor lacks `isa`.
pub fn trace_shadow(isa: Isa, scene: &CheckedScene, rays: &[Ray]) -> Result<Vec<u32>, RenderError> {
    let (_, shadow) = available(isa)?;
    let view = scene.view();
    let mut optical_depths = vec![0; rays.len()];
    let _mode = FloatMode::strict();
    // SAFETY: as in `trace_closest`.
    unsafe { shadow(&view, rays.as_ptr(), rays.len() as u64, optical_depths.as_mut_ptr()) };
    Ok(optical_depths)
}
