//! Cameras as the kernels read them.

use bytemuck::{Pod, Zeroable};

/// What a camera projects like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum CameraKind {
    /// Pinhole, or thin lens where `lens_radius` > 0.
    Perspective = 0,
    /// Parallel rays.
    Orthographic = 1,
}

/// A camera: 112 bytes. Looks along its own -Z with +Y up (glTF 2.0, §3.10).
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C, align(16))]
pub struct Camera {
    /// Row-major 3×4: world point = `world_from_camera` × (camera point, 1). Its 3×3 part is
    /// orthonormal.
    pub world_from_camera: [f32; 12],
    /// A [`CameraKind`].
    pub kind: u32,
    /// Perspective: tan(hfov / 2). Orthographic: half the width in metres.
    pub half_width: f32,
    /// Perspective: tan(vfov / 2). Orthographic: half the height in metres.
    pub half_height: f32,
    /// Lens radius in metres, 0 for a pinhole (perspective only).
    pub lens_radius: f32,
    /// Distance in metres along the view axis of the plane in focus.
    pub focus_distance: f32,
    /// Near clip in metres along the view axis, >= 0.
    pub near: f32,
    /// Far clip in metres along the view axis; infinite where the file has none.
    pub far: f32,
    /// Corners of the lens, [`BLADES_MIN`] to [`BLADES_MAX`]; 0 for a round one.
    pub blades: u32,
    /// Turns from the lens's +x to its first corner, counter-clockwise where one looks along the
    /// view axis.
    pub blade_turn: f32,
    /// Distance from the lens's centre to its sides, over its radius: cos(π / blades).
    pub blade_apothem: f32,
    /// Half the length of its sides, over its radius: sin(π / blades).
    pub blade_half_side: f32,
    /// Shift of the picture over the image plane to the right, in halves of its width.
    pub shift_x: f32,
    /// Shift of the picture over the image plane upwards, in halves of its height.
    pub shift_y: f32,
    /// Zero.
    pub reserved: [u32; 3],
}

/// Fewest corners of a lens that is not round.
pub const BLADES_MIN: u32 = 3;
/// Most corners of a lens that is not round. What has more is round to the eye.
pub const BLADES_MAX: u32 = 16;

const _: () = assert!(size_of::<Camera>() == 112);
