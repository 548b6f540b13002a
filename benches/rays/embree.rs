//! Embree 4 through its C interface (`embree4/rtcore.h`), loaded when the bench runs: one triangle
//! mesh, single rays.

use libloading::Library;
use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::path::Path;
use tessera_kernels::rays::Ray;
use tessera_layout::Triangle;

const GEOMETRY_TRIANGLE: c_int = 0;
const BUFFER_INDEX: c_int = 0;
const BUFFER_VERTEX: c_int = 1;
const FORMAT_UINT3: c_int = 0x5003;
const FORMAT_FLOAT3: c_int = 0x9003;
const INVALID: u32 = u32::MAX;

/// `RTCRayHit`, of a library whose instances are one level deep, with room for a longer one.
#[repr(C, align(16))]
struct RayHit {
    origin: [f32; 3],
    near: f32,
    direction: [f32; 3],
    time: f32,
    far: f32,
    mask: u32,
    id: u32,
    flags: u32,
    normal: [f32; 3],
    u: f32,
    v: f32,
    primitive: u32,
    geometry: u32,
    instances: [u32; 5],
}

const _: () = assert!(size_of::<RayHit>() == 96);

impl RayHit {
    fn new(ray: &Ray) -> Self {
        Self {
            origin: ray.origin,
            near: 0.0,
            direction: ray.direction,
            time: 0.0,
            far: ray.t_max,
            mask: INVALID,
            id: 0,
            flags: 0,
            normal: [0.0; 3],
            u: 0.0,
            v: 0.0,
            primitive: INVALID,
            geometry: INVALID,
            instances: [INVALID; 5],
        }
    }
}

type Handle = *mut c_void;
type Query = unsafe extern "C" fn(Handle, *mut RayHit, Handle);

/// A device with one scene.
pub(crate) struct Embree {
    /// Never unloaded: threads of its own end after the process has begun to.
    library: &'static Library,
    device: Handle,
    scene: Handle,
    corners: Vec<f32>,
    indices: Vec<[u32; 3]>,
    intersect: Query,
    occluded: Query,
}

impl Embree {
    /// Loads the library and builds a scene of the triangles at its default quality.
    ///
    /// # Panics
    /// Where the library is none, or lacks the instruction set (`avx2`, `avx512`).
    pub(crate) fn new(path: &Path, isa: &str, triangles: &[Triangle]) -> Self {
        // SAFETY: the user names the library to run.
        let library = unsafe { Library::new(path) }
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let library: &'static Library = Box::leak(Box::new(library));
        let settings = CString::new(format!("isa={isa},threads=0")).expect("no zero in it");
        // SAFETY: the signatures are those of rtcore.h.
        let (device, intersect, occluded) = unsafe {
            let new_device =
                function::<unsafe extern "C" fn(*const c_char) -> Handle>(library, "rtcNewDevice");
            let device = new_device(settings.as_ptr());
            (device, function(library, "rtcIntersect1"), function(library, "rtcOccluded1"))
        };
        assert!(!device.is_null(), "Embree makes no device with {isa}");
        let mut corners: Vec<f32> =
            triangles.iter().flat_map(|t| [t.v0, t.v1, t.v2]).flatten().collect();
        // It reads sixteen bytes at each corner.
        corners.push(0.0);
        let indices =
            (0..triangles.len() as u32).map(|id| [3 * id, 3 * id + 1, 3 * id + 2]).collect();
        let mut made = Self {
            library,
            device,
            scene: std::ptr::null_mut(),
            corners,
            indices,
            intersect,
            occluded,
        };
        made.scene = made.build();
        made
    }

    fn build(&self) -> Handle {
        type Of = unsafe extern "C" fn(Handle);
        type Shared =
            unsafe extern "C" fn(Handle, c_int, c_uint, c_int, *const c_void, usize, usize, usize);
        // SAFETY: the signatures are those of rtcore.h; the buffers live as long as `self`, and are
        // not changed.
        unsafe {
            let library = self.library;
            let scene = function::<unsafe extern "C" fn(Handle) -> Handle>(library, "rtcNewScene")(
                self.device,
            );
            let new_geometry = function::<unsafe extern "C" fn(Handle, c_int) -> Handle>(
                library,
                "rtcNewGeometry",
            );
            let geometry = new_geometry(self.device, GEOMETRY_TRIANGLE);
            let share = function::<Shared>(library, "rtcSetSharedGeometryBuffer");
            let (indices, corners) = (self.indices.as_ptr().cast(), self.corners.as_ptr().cast());
            share(geometry, BUFFER_INDEX, 0, FORMAT_UINT3, indices, 0, 12, self.indices.len());
            share(
                geometry,
                BUFFER_VERTEX,
                0,
                FORMAT_FLOAT3,
                corners,
                0,
                12,
                3 * self.indices.len(),
            );
            function::<Of>(library, "rtcCommitGeometry")(geometry);
            function::<unsafe extern "C" fn(Handle, Handle) -> c_uint>(
                library,
                "rtcAttachGeometry",
            )(scene, geometry);
            function::<Of>(library, "rtcReleaseGeometry")(geometry);
            function::<Of>(library, "rtcCommitScene")(scene);
            let error = function::<unsafe extern "C" fn(Handle) -> c_int>(
                library,
                "rtcGetDeviceError",
            )(self.device);
            assert_eq!(error, 0, "Embree's error");
            scene
        }
    }

    /// Builds the same scene once more, for its time.
    pub(crate) fn build_again(&self) {
        let scene = self.build();
        self.release(scene);
    }

    fn release(&self, scene: Handle) {
        // SAFETY: it was made by `build`, and nobody has it any more.
        unsafe { function::<unsafe extern "C" fn(Handle)>(self.library, "rtcReleaseScene")(scene) }
    }

    /// Distances of the closest hits, infinite for a miss.
    pub(crate) fn closest(&self, rays: &[Ray]) -> Vec<f32> {
        let trace = |ray: &Ray| {
            let mut query = RayHit::new(ray);
            // SAFETY: the scene is committed, and the query has the layout and alignment of
            // RTCRayHit.
            unsafe { (self.intersect)(self.scene, &mut query, std::ptr::null_mut()) };
            if query.geometry == INVALID { f32::INFINITY } else { query.far }
        };
        rays.iter().map(trace).collect()
    }

    /// Whether anything is in each ray's way.
    pub(crate) fn any(&self, rays: &[Ray]) -> Vec<bool> {
        let trace = |ray: &Ray| {
            let mut query = RayHit::new(ray);
            // SAFETY: as in `closest`; RTCRay is the first part of RTCRayHit.
            unsafe { (self.occluded)(self.scene, &mut query, std::ptr::null_mut()) };
            query.far < 0.0
        };
        rays.iter().map(trace).collect()
    }
}

impl Drop for Embree {
    fn drop(&mut self) {
        self.release(self.scene);
        // SAFETY: nothing of the device is left.
        unsafe {
            function::<unsafe extern "C" fn(Handle)>(self.library, "rtcReleaseDevice")(self.device)
        }
    }
}

/// A function of the library.
///
/// # Safety
/// `F` is its type.
unsafe fn function<F: Copy>(library: &Library, name: &str) -> F {
    // SAFETY: the caller knows the type.
    let found = unsafe { library.get::<F>(name.as_bytes()) };
    *found.unwrap_or_else(|error| panic!("{name}: {error}"))
}
