//! What a kernel is told about one unit, and the film it fills.

use bytemuck::{Pod, Zeroable};

/// Fractional bits of a film sum: a sample's value v is added as `round(v * 2^24)`.
pub const FILM_FRACTION_BITS: u32 = 24;

/// Largest magnitude of one sample's value; larger ones are clamped and counted. With 2^20 samples
/// a pixel at most, a sum stays below 2^(18 + 20 + 24) = 2^62, inside an i64.
pub const FILM_VALUE_MAX: f32 = 262_144.0;

/// Film channels at most: beauty 3, albedo 3, normal 3, depth 1, position 3, coverage 1, half 3,
/// and room for more.
pub const CHANNELS_MAX: u32 = 32;
/// Most panes that a path goes straight through without counting them as scatterings.
pub const PASSES_MAX: u32 = 16;

/// Arbitrary output variables. A unit's channels are the beauty's three, then those of the chosen
/// AOVs in this order, but coverage before the half.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Aov {
    /// Linear albedo of the first hit (base colour for dielectrics, F0 for metals), 3 channels; 1
    /// on the environment's behalf is never written: a miss adds 0.
    Albedo = 1,
    /// World-space shading normal of the first hit, facing the camera, 3 channels; a miss adds 0.
    Normal = 2,
    /// Distance along the camera's view axis of the first hit, metres, 1 channel; a miss adds 0.
    Depth = 4,
    /// World-space position of the first hit, metres, 3 channels; a miss adds 0.
    Position = 8,
    /// The beauty of the second half of the samples, 3 channels; the others add 0. An index alone
    /// says which half a sample belongs to: the latter half of those from 2^k to 2^(k + 1) are in
    /// the second, and of the first two samples the second. How far it is from that of the first
    /// half tells how noisy a pixel is.
    Half = 16,
    /// Share of the pixel that surfaces cover, 1 channel: 0 where the camera's ray leaves the
    /// scene, and through panes what they do not let through. The camera then sees no environment.
    Coverage = 32,
}

/// Pixel reconstruction filter, sampled (filter importance sampling): every sample lands in exactly
/// one pixel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum PixelFilter {
    /// One pixel wide.
    Box = 0,
    /// Standard deviation 0.5 px, cut at 2 px.
    Gaussian = 1,
    /// Four-term Blackman-Harris over 3.3 px.
    BlackmanHarris = 2,
}

/// One unit: 64 bytes. The film is planar: channel c of pixel (x, y) of the tile is at
/// `(c * height + y) * width + x`.
#[derive(Clone, Copy, Debug, PartialEq, Default, Pod, Zeroable)]
#[repr(C, align(16))]
pub struct UnitParams {
    /// Frame size in pixels.
    pub frame_width: u32,
    /// Frame size in pixels.
    pub frame_height: u32,
    /// Left edge of the tile, inclusive; negative left of the frame.
    pub x: i32,
    /// Top edge of the tile, inclusive (row 0 is the top row of the picture); negative above the
    /// frame.
    pub y: i32,
    /// Tile width in pixels, >= 1.
    pub width: u32,
    /// Tile height in pixels, >= 1.
    pub height: u32,
    /// First sample index.
    pub first_sample: u32,
    /// Samples per pixel in this unit, >= 1.
    pub sample_count: u32,
    /// The job's seed.
    pub seed: u32,
    /// Scatterings at most; a path has at most `depth + 1` edges, and [`PASSES_MAX`] more in a
    /// scene with panes.
    pub depth: u32,
    /// Union of [`Aov`] bits.
    pub aovs: u32,
    /// A [`PixelFilter`].
    pub filter: u32,
    /// Frame number: an animation gets other random numbers on every frame.
    pub frame: u32,
    /// What light that was scattered more than once adds to a sample at a time is at most this in
    /// its largest component, the others in proportion; 0: there is no bound. It hides fireflies
    /// and makes pictures darker.
    pub clamp: f32,
    /// Zero.
    pub reserved: [u32; 2],
}

impl UnitParams {
    /// Channels of this unit's film.
    pub fn channels(&self) -> u32 {
        let three = |aov: Aov| if self.aovs & aov as u32 != 0 { 3 } else { 0 };
        let one = |aov: Aov| u32::from(self.aovs & aov as u32 != 0);
        3 + three(Aov::Albedo)
            + three(Aov::Normal)
            + one(Aov::Depth)
            + three(Aov::Position)
            + one(Aov::Coverage)
            + three(Aov::Half)
    }
}

const _: () = assert!(size_of::<UnitParams>() == 64);
