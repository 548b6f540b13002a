//! How every frame of a compute job is cut: ranges of indices, all as long as the first but the
//! last. Total and pure.

use tessera_protocol::compute::ComputeSpec;
use tessera_protocol::ids::UnitIndex;
use tessera_protocol::limits::{CHUNK_BYTES_MAX, FRAME_UNITS_MAX, JOB_UNITS_MAX};

/// Number of chunks that a frame should have if the splitter chooses, so that a few nodes finish it
/// within some hundredths of each other.
pub const FRAME_CHUNKS_WANTED: u64 = 256;
/// Smallest chunk, in indices, that the splitter makes to reach [`FRAME_CHUNKS_WANTED`]: a device
/// has more threads than that.
pub const CHUNK_INDICES_LEAST: u64 = 1 << 16;
/// Largest chunk, in indices, that the splitter chooses.
pub const CHUNK_INDICES_MOST: u64 = 1 << 20;

/// The chunks of a frame. The index of a unit is that of its chunk, in the order of indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunks {
    indices: u64,
    chunk: u32,
}

impl Chunks {
    /// The chunks of a checked spec. Where it leaves their length open: a [`FRAME_CHUNKS_WANTED`]th
    /// of the domain, at least [`CHUNK_INDICES_LEAST`] and at most [`CHUNK_INDICES_MOST`] and as
    /// many as the bytes of a result allow; longer where a frame or the job would have more units
    /// than the limits.
    pub fn of(spec: &ComputeSpec) -> Self {
        let indices = spec.domain.len().max(1);
        let chunk = match spec.chunk {
            0 => {
                let frames = u64::from(spec.frames.len()).max(1);
                let units_max = FRAME_UNITS_MAX.min(JOB_UNITS_MAX / frames).max(1);
                let wanted = indices.div_ceil(FRAME_CHUNKS_WANTED);
                let sensible = wanted.clamp(CHUNK_INDICES_LEAST, CHUNK_INDICES_MOST);
                sensible
                    .max(indices.div_ceil(units_max))
                    .min(CHUNK_BYTES_MAX / spec.index_bytes().max(1))
            }
            chunk => u64::from(chunk),
        };
        Self { indices, chunk: chunk.min(indices).clamp(1, u64::from(u32::MAX)) as u32 }
    }

    /// Returns the number of units of a frame, at most [`FRAME_UNITS_MAX`] for a checked spec.
    pub fn units(&self) -> u32 {
        u32::try_from(self.indices.div_ceil(u64::from(self.chunk))).unwrap_or(u32::MAX)
    }

    /// Returns the number of indices of a frame.
    pub fn indices(&self) -> u64 {
        self.indices
    }

    /// Returns the first index and the number of indices of a unit; None beyond the last.
    pub fn range(&self, unit: UnitIndex) -> Option<(u64, u32)> {
        let first = u64::from(unit.0) * u64::from(self.chunk);
        let left = self.indices.checked_sub(first).filter(|left| *left > 0)?;
        Some((first, u64::from(self.chunk).min(left) as u32))
    }
}
