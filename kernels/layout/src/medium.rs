//! What is inside of closed surfaces, as the kernels read it, and which of several such bodies a
//! place belongs to.

use bytemuck::{Pod, Zeroable};

/// Media of a scene at most, air included: the nest of media around a path is four numbers of 8
/// bits.
pub const MEDIA_MAX: usize = 1 << 8;

/// KHR_materials_dispersion: half of the spread of indices over `ior - 1`, for a dispersion of 1.
const DISPERSION_SPREAD: f32 = 0.025;

/// A homogeneous medium: 32 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C, align(16))]
pub struct Medium {
    /// Absorption, 1/m, >= 0 (KHR_materials_volume).
    pub absorption: [f32; 3],
    /// Index of refraction of green light, >= 1.
    pub ior: f32,
    /// How much less red's index is, and how much greater blue's; >= 0. See
    /// [`Medium::half_spread_of`].
    pub half_spread: f32,
    /// Where bodies overlap, the place belongs to the one with the greatest; of equal ones, to the
    /// one that a path entered last.
    pub priority: i32,
    /// Zero.
    pub reserved: [u32; 2],
}

impl Medium {
    /// What is around everything: the first medium of every scene that has any. Whatever else is
    /// there comes before it.
    pub const AIR: Medium = Medium {
        absorption: [0.0; 3],
        ior: 1.0,
        half_spread: 0.0,
        priority: i32::MIN,
        reserved: [0; 2],
    };

    /// Clear glass, as glTF has it where a material says no more than that it is closed.
    pub const GLASS: Medium = Medium { ior: 1.5, priority: 0, ..Medium::AIR };

    /// [`Medium::half_spread`] of KHR_materials_dispersion's number, 20 over the Abbe number:
    /// `(ior - 1) * 0.025 * dispersion`, as its text has it.
    pub fn half_spread_of(ior: f32, dispersion: f32) -> f32 {
        (ior - 1.0) * DISPERSION_SPREAD * dispersion
    }
}

const _: () = assert!(size_of::<Medium>() == 32);
