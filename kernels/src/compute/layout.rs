//! Data of a launch and of a module's variables, with the same layout as in `tessera.cuh` and
//! `compute/array.h`.

use bytemuck::{Pod, Zeroable};

/// A chunk as a kernel gets it (`TesseraChunk`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct ChunkParams {
    /// First index of the domain.
    pub first: u64,
    /// Number of indices.
    pub count: u32,
    /// Width of the domain.
    pub width: u32,
    /// Height of the domain.
    pub height: u32,
    /// Depth of the domain.
    pub depth: u32,
    /// Number of values at each index.
    pub channels: u32,
    /// Number of the frame.
    pub frame: u32,
    /// Number of the launch within the frame, from 0.
    pub step: u32,
    /// Number of launches of the frame.
    pub steps: u32,
    /// Seed of random numbers.
    pub seed: u64,
    /// Address of the values, in the memory where the kernel runs.
    pub out: u64,
}

/// An input as a kernel sees it (`TesseraArray`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct ArrayParams {
    /// Address of the values, in the memory where the kernel runs.
    pub data: u64,
    /// Number of the element's type, as in `TesseraElement`.
    pub element: u32,
    /// Number of axes.
    pub rank: u32,
    /// Slowest axis first; 1 beyond the rank.
    pub shape: [u64; 4],
    /// Number of values.
    pub length: u64,
}

/// A named output as a kernel sees it (`TesseraOutput`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct OutputParams {
    /// Address of the values, in the memory where the kernel runs.
    pub data: u64,
    /// Number of the element's type, as in `TesseraElement`.
    pub element: u32,
    /// Number of values at each index.
    pub channels: u32,
}

const _: () = assert!(size_of::<OutputParams>() == OutputParams::BYTES);
const _: () = assert!(size_of::<ChunkParams>() == ChunkParams::BYTES);
const _: () = assert!(size_of::<ArrayParams>() == ArrayParams::BYTES);

impl ChunkParams {
    /// `sizeof(TesseraChunk)`
    pub const BYTES: usize = 56;

    /// Reads the bytes that a launch passes; None if their number is another.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytemuck::try_pod_read_unaligned(bytes).ok()
    }

    /// Returns the bytes that a launch passes.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        bytemuck::must_cast(*self)
    }
}

impl ArrayParams {
    /// Number of bytes that a kernel reads of an array.
    pub const BYTES: usize = 56;
    /// `sizeof(TesseraArray)` and `alignof(TesseraArray)` in users' kernels. No other structure
    /// should have both, since PTX has no names of types.
    pub const VARIABLE_BYTES: u64 = 256;

    /// Describes an array of at most four axes at an address. Further axes are left out.
    pub fn new(data: u64, element: u32, axes: &[u64]) -> Self {
        let mut shape = [1; 4];
        for (target, axis) in shape.iter_mut().zip(axes) {
            *target = *axis;
        }
        let length = shape.iter().fold(1u64, |length, axis| length.saturating_mul(*axis));
        Self { data, element, rank: axes.len().min(4) as u32, shape, length }
    }

    /// Returns the bytes that are written into a variable.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        bytemuck::must_cast(*self)
    }
}

impl OutputParams {
    /// Number of bytes that a kernel reads of an output.
    pub const BYTES: usize = 16;
    /// `sizeof(TesseraOutput)` in users' kernels. No other structure should have this size and
    /// [`Self::VARIABLE_ALIGN`].
    pub const VARIABLE_BYTES: u64 = 384;
    /// `alignof(TesseraOutput)`
    pub const VARIABLE_ALIGN: u64 = 128;

    /// Returns the bytes that are written into a variable.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        bytemuck::must_cast(*self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_those_of_the_structures() {
        let chunk = ChunkParams {
            first: 1 << 40,
            count: 2,
            width: 3,
            height: 4,
            depth: 5,
            channels: 6,
            frame: 7,
            step: 8,
            steps: 9,
            seed: 10,
            out: 11,
        };
        let words: [u64; 7] = [1 << 40, 2 | 3 << 32, 4 | 5 << 32, 6 | 7 << 32, 8 | 9 << 32, 10, 11];
        assert_eq!(chunk.to_bytes(), words.map(u64::to_le_bytes).as_flattened());
        assert_eq!(ChunkParams::from_bytes(&chunk.to_bytes()), Some(chunk));
        assert_eq!(ChunkParams::from_bytes(&[0; 48]), None);
        let array = ArrayParams::new(1 << 50, 3, &[5, 6, 7]);
        assert_eq!((array.rank, array.shape, array.length), (3, [5, 6, 7, 1], 210));
        let words: [u64; 7] = [1 << 50, 3 | 3 << 32, 5, 6, 7, 1, 210];
        assert_eq!(array.to_bytes(), words.map(u64::to_le_bytes).as_flattened());
        let output = OutputParams { data: 1 << 50, element: 3, channels: 2 };
        let words: [u64; 2] = [1 << 50, 3 | 2 << 32];
        assert_eq!(output.to_bytes(), words.map(u64::to_le_bytes).as_flattened());
    }
}
