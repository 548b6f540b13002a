//! What a launch passes and what is written into a module's variables: mirrors of `tessera.cuh` and
//! `compute/array.h`.

/// A chunk as a kernel gets it (`TesseraChunk`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct ChunkParams {
    /// First index of the domain.
    pub first: u64,
    /// Indices.
    pub count: u32,
    /// The domain's edges.
    pub width: u32,
    /// See `width`.
    pub height: u32,
    /// See `width`.
    pub depth: u32,
    /// Values at each index.
    pub channels: u32,
    /// Number of the frame.
    pub frame: u32,
    /// Seed of random numbers.
    pub seed: u64,
    /// Address of the values, where the kernel runs.
    pub out: u64,
}

/// An input as a kernel sees it (`TesseraArray`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct ArrayParams {
    /// Address of the values, where the kernel runs.
    pub data: u64,
    /// Number of the element's type: f32, f64, i32, u32, i64, u64 from 0.
    pub element: u32,
    /// Axes.
    pub rank: u32,
    /// Slowest axis first; 1 beyond the rank.
    pub shape: [u64; 4],
    /// Values in all.
    pub length: u64,
}

const _: () = assert!(size_of::<ChunkParams>() == ChunkParams::BYTES);
const _: () = assert!(size_of::<ArrayParams>() == ArrayParams::BYTES);

impl ChunkParams {
    /// `sizeof(TesseraChunk)`
    pub const BYTES: usize = 48;

    /// As a launch passes it.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let small = [self.count, self.width, self.height, self.depth, self.channels, self.frame];
        bytes[..8].copy_from_slice(&self.first.to_le_bytes());
        for (target, value) in bytes[8..32].chunks_exact_mut(4).zip(small) {
            target.copy_from_slice(&value.to_le_bytes());
        }
        bytes[32..40].copy_from_slice(&self.seed.to_le_bytes());
        bytes[40..].copy_from_slice(&self.out.to_le_bytes());
        bytes
    }
}

impl ArrayParams {
    /// `sizeof(TesseraArray)`
    pub const BYTES: usize = 56;

    /// An array of at most four axes at an address; further axes are left out.
    pub fn new(data: u64, element: u32, axes: &[u64]) -> Self {
        let mut shape = [1; 4];
        for (target, axis) in shape.iter_mut().zip(axes) {
            *target = *axis;
        }
        let length = shape.iter().fold(1u64, |length, axis| length.saturating_mul(*axis));
        Self { data, element, rank: axes.len().min(4) as u32, shape, length }
    }

    /// As it is written into a variable.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let kind = u64::from(self.element) | u64::from(self.rank) << 32;
        let [a, b, c, d] = self.shape;
        for (target, value) in
            bytes.chunks_exact_mut(8).zip([self.data, kind, a, b, c, d, self.length])
        {
            target.copy_from_slice(&value.to_le_bytes());
        }
        bytes
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
            seed: 8,
            out: 9,
        };
        // SAFETY: plain numbers without padding: the sizes are asserted above.
        let as_is: [u8; 48] = unsafe { std::mem::transmute(chunk) };
        assert_eq!(chunk.to_bytes(), as_is);
        let array = ArrayParams::new(1 << 50, 3, &[5, 6, 7]);
        assert_eq!((array.rank, array.shape, array.length), (3, [5, 6, 7, 1], 210));
        // SAFETY: as above.
        let as_is: [u8; 56] = unsafe { std::mem::transmute(array) };
        assert_eq!(array.to_bytes(), as_is);
    }
}
