//! The space in which kernels see a scene: moved and scaled, where single precision would lose what
//! the file says. One space holds for a whole job.

use crate::math::{Affine, Vec3, add, scale, sub};
use serde::{Deserialize, Serialize};

/// Largest exponent of two that a space scales by, up or down.
pub const EXPONENT_MAX: i32 = 100;

/// How many times a scene's size may lie between it and the origin before it is moved. Rays start
/// 256 units in the last place off a surface, which is then 0.2 % of the size.
const DISTANCE_MAX: f64 = 64.0;
/// Distance in metres from which a scene is moved where that brings it a little nearer: rays start
/// 6 cm off a surface there.
const FAR: f64 = 4096.0;
/// How many times its size a scene must be away to be moved from [`FAR`] on.
const FAR_DISTANCE_MAX: f64 = 2.0;
/// Size in metres below which a scene is enlarged: the step of 2^-16 by which rays leave surfaces
/// near the origin is then 0.4 % of it.
const SIZE_MIN: f64 = 1.0 / 256.0;
/// Size up to which it is enlarged, in powers of two.
const SIZE_ENLARGED: f64 = 16.0;
/// Extent in metres, with its cameras, above which a scene of large things is reduced. Hits are
/// known to a few units in the last place of their largest coordinate, and surfaces at a coordinate
/// of 0 are left by steps of 2^-16.
const EXTENT_LARGE: f64 = 512.0;
/// Extent down to which it is reduced, in powers of two.
const EXTENT_REDUCED: f64 = 128.0;
/// Size above which most things stay where they can. Small things, such as a house below a sky,
/// need the digits that those steps take.
const THING_MIN: f64 = 0.25;
/// Extent above which every scene is reduced, in powers of two down to it: films hold depths and
/// positions below 2^18, and squares of areas stay below 2^96.
const EXTENT_MAX: f64 = 131_072.0;
/// Distance in metres from the origin at which a camera is the better origin, if things are small
/// there. Rays start half a metre off a surface.
pub(crate) const CAMERA_FAR: f64 = 32_768.0;
/// How many times their size things must be away from the origin to be small.
pub(crate) const SMALL: f64 = 1024.0;
/// Share of a scene's size by which a camera may be outside of its bounds and still be among its
/// things.
const CAMERA_MARGIN: f64 = 0.125;

/// A space that kernels see a scene in: a point `p` of the file is at `(p - origin) * 2^exponent`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkingSpace {
    /// Place in the file's own space, in metres, that is the origin.
    pub origin: [f64; 3],
    /// Exponent of two of the scale, at most [`EXPONENT_MAX`] in magnitude.
    pub exponent: i32,
}

/// Choice of a job's working space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum SpaceChoice {
    /// The space that suits the pose at time 0.
    #[default]
    Measured,
    /// This space.
    Given(WorkingSpace),
}

impl WorkingSpace {
    /// The file's own space.
    pub const FILE: Self = Self { origin: [0.0; 3], exponent: 0 };

    /// Returns whether every number has its place and size.
    pub fn is_valid(&self) -> bool {
        self.origin.iter().all(|coordinate| coordinate.is_finite())
            && (-EXPONENT_MAX..=EXPONENT_MAX).contains(&self.exponent)
    }

    /// Returns whether the scene is at another place than in the file.
    pub(crate) fn is_moved(&self) -> bool {
        self.origin != [0.0; 3]
    }

    /// Returns the factor on every length.
    pub(crate) fn factor(&self) -> f64 {
        libm::ldexp(1.0, self.exponent)
    }

    /// Returns a length of the file as kernels see it.
    pub(crate) fn length(&self, length: f32) -> f32 {
        (f64::from(length) * self.factor()) as f32
    }

    /// Returns a point of the file as kernels see it.
    pub(crate) fn point(&self, point: Vec3) -> Vec3 {
        scale(sub(point, self.origin), self.factor())
    }

    /// Returns the place in the file of a point that kernels see.
    pub(crate) fn file_point(&self, point: Vec3) -> Vec3 {
        add(scale(point, 1.0 / self.factor()), self.origin)
    }

    /// Returns a map to the file's space as one to this space.
    pub(crate) fn place(&self, world: &Affine) -> Affine {
        Affine {
            linear: world.linear.map(|row| scale(row, self.factor())),
            offset: self.point(world.offset),
        }
    }

    /// Returns the space that suits a scene better than this one, or this one. First a scene is
    /// moved, since its size is known only then.
    pub(crate) fn improved(&self, scene: &Extent) -> Self {
        let Extent { size, reach, .. } = *scene;
        if !(reach.is_finite() && reach > 0.0) {
            return *self;
        }
        let is_far = reach > DISTANCE_MAX * size || reach > FAR && reach > FAR_DISTANCE_MAX * size;
        if is_far {
            return self.moved_to(scene.center, (0.25 * size).max(reach * POWER_MINUS_24));
        }
        if let Some(camera) = scene.cameras.first().filter(|camera| scene.is_far_inside(**camera)) {
            return self.moved_to(*camera, 1.0);
        }
        let factor = if size < SIZE_MIN {
            power_below(SIZE_ENLARGED / size)
        } else if scene.with_cameras > EXTENT_LARGE {
            let wanted = (EXTENT_REDUCED / scene.with_cameras).max(THING_MIN / scene.thing);
            power_below(wanted.min(EXTENT_MAX / scene.with_cameras).min(1.0))
        } else {
            1.0
        };
        let exponent = if factor.is_finite() { libm::ilogb(factor) } else { 0 };
        Self { exponent: exponent.clamp(-EXPONENT_MAX, EXPONENT_MAX), ..*self }
    }

    /// Returns the space with its origin at a place, to a multiple of a power of two up to `step`:
    /// a round number is as good, and is easier to read. The place is relative to this origin.
    fn moved_to(&self, place: Vec3, step: f64) -> Self {
        let grid = power_below(step);
        let origin = add(self.origin, place).map(|c| libm::rint(c / grid) * grid + 0.0);
        Self { origin, ..*self }
    }
}

/// 2^-24.
const POWER_MINUS_24: f64 = 1.0 / 16_777_216.0;

/// How large a scene is and how far away, in metres of the file. Places are relative to the origin
/// of a space.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Extent {
    /// Longest edge of the bounds.
    pub(crate) size: f64,
    /// Largest coordinate of the bounds.
    pub(crate) reach: f64,
    /// Middle of the bounds.
    center: Vec3,
    /// Longest edge of the bounds of geometry and cameras.
    with_cameras: f64,
    /// Size of most things, as far as it was asked for.
    thing: f64,
    /// Places of the cameras.
    pub(crate) cameras: Vec<Vec3>,
}

impl Extent {
    /// Measures a scene: `bounds` are those of its geometry, and `cameras` the places of its
    /// cameras, as they are seen in `space`. `thing` returns the size there of most things, which
    /// is asked only of large scenes.
    pub(crate) fn of(
        space: &WorkingSpace,
        bounds: (Vec3, Vec3),
        cameras: &[Vec3],
        thing: impl FnOnce() -> f64,
    ) -> Self {
        let metres = 1.0 / space.factor();
        let (lower, upper) = (scale(bounds.0, metres), scale(bounds.1, metres));
        let cameras: Vec<Vec3> = cameras.iter().map(|place| scale(*place, metres)).collect();
        let fold = |corner: Vec3, pick: fn(f64, f64) -> f64| {
            cameras.iter().fold(corner, |corner, camera| {
                std::array::from_fn(|axis| pick(corner[axis], camera[axis]))
            })
        };
        let size = largest(sub(upper, lower));
        Self {
            thing: if size > EXTENT_LARGE { thing() * metres } else { size },
            size,
            reach: largest(lower).max(largest(upper)),
            center: scale(add(lower, upper), 0.5),
            with_cameras: largest(sub(fold(upper, f64::max), fold(lower, f64::min))),
            cameras,
        }
    }

    /// Returns whether a camera is far from the origin and among the scene's things, which are
    /// small.
    pub(crate) fn is_far_inside(&self, camera: Vec3) -> bool {
        let margin = (0.5 + CAMERA_MARGIN) * self.size;
        let far = CAMERA_FAR.max(SMALL * self.thing);
        largest(camera) > far && largest(sub(camera, self.center)) < margin
    }
}

fn largest(v: Vec3) -> f64 {
    v.iter().fold(0.0, |largest, c| c.abs().max(largest))
}

/// Returns the largest power of two that is not above a positive number.
fn power_below(value: f64) -> f64 {
    libm::ldexp(1.0, libm::ilogb(value))
}
