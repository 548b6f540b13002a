//! How every frame of a compute job is cut: ranges of indices, all as long as the first but the
//! last. Total and pure.

use crate::compute::ComputeSpec;
use crate::ids::UnitIndex;

/// The chunks of a frame. The index of a unit is that of its chunk, in the order of indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunks {
    indices: u64,
    chunk: u32,
}

impl Chunks {
    /// The chunks of a checked spec.
    pub fn of(spec: &ComputeSpec) -> Self {
        Self { indices: spec.domain.len().max(1), chunk: spec.chunk_indices() }
    }

    /// Returns the number of units of a frame, at most `FRAME_UNITS_MAX` for a checked spec.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute::{Domain, Element, Program};

    fn spec(domain: &str) -> ComputeSpec {
        let domain: Domain = domain.parse().unwrap();
        ComputeSpec::new(Program::Builtin("merge".into()), domain)
    }

    #[test]
    fn a_frame_of_several_steps_is_one_chunk() {
        let stepped = ComputeSpec { steps: 2, ..spec("4096x2048") };
        assert_eq!(Chunks::of(&stepped).units(), 1);
        assert_eq!(Chunks::of(&stepped).range(UnitIndex(0)), Some((0, 1 << 23)));
        assert_eq!(Chunks::of(&spec("4096x2048")).units(), 128);
    }

    #[test]
    fn chunks_of_blocks_are_whole_rows_of_them() {
        let blocks = |domain, block: &str, channels| {
            let block = Some(block.parse().unwrap());
            Chunks::of(&ComputeSpec { block, channels, ..spec(domain) })
        };
        // 66 rows of 1,000 indices hold 65,536; blocks are 16 rows high.
        assert_eq!(blocks("1000x1000", "16x16", 1).range(UnitIndex(0)), Some((0, 80_000)));
        assert_eq!(blocks("1000x1000", "512", 1).range(UnitIndex(0)), Some((0, 65_536)));
        assert_eq!(blocks("100x100x100", "8x8x8", 1).range(UnitIndex(0)), Some((0, 80_000)));
        // 16 MiB are 65,536 indices of 64 channels: 65 rows, of which 64 are whole blocks.
        assert_eq!(blocks("1000x1000", "16x16", 64).range(UnitIndex(0)), Some((0, 64_000)));
        assert_eq!(blocks("30x5", "16x16", 1).range(UnitIndex(0)), Some((0, 150)));
    }

    fn ranges(indices: [u32; 3], change: impl FnOnce(&mut ComputeSpec)) -> Vec<(u64, u32)> {
        let [width, height, depth] = indices;
        let domain = Domain { width, height, depth };
        let mut spec = ComputeSpec::new(Program::Builtin("merge".into()), domain);
        change(&mut spec);
        let chunks = Chunks::of(&spec);
        (0..chunks.units()).filter_map(|unit| chunks.range(UnitIndex(unit))).collect()
    }

    #[test]
    fn chunks_are_multiples_except_at_the_end() {
        let aligned = ranges([96, 2000, 1], |spec| spec.chunk_align = 1536);
        // 65,536 is rounded up to 43 times 1,536; the domain is 125 times 1,536.
        assert_eq!(aligned, [(0, 66_048), (66_048, 66_048), (132_096, 59_904)]);
        assert!(aligned.iter().all(|(_, count)| count % 1536 == 0));
        let ragged = ranges([96, 2001, 1], |spec| spec.chunk_align = 1536);
        assert_eq!(ragged[..2], aligned[..2]);
        assert_eq!(ragged[2], (132_096, 60_000), "the domain is no multiple");
        assert_eq!(ranges([96, 2000, 1], |_| {})[0], (0, 65_536));
    }

    #[test]
    fn chunks_are_rounded_down_where_bytes_are_short() {
        let wide = |align: u32| {
            ranges([1 << 20, 64, 4], |spec| {
                (spec.channels, spec.element, spec.chunk_align) = (4, Element::F64, align);
            })[0]
        };
        // 32 bytes an index: 524,288 of them at most.
        assert_eq!(wide(1), (0, 524_288));
        assert_eq!(wide(300_000), (0, 300_000));
        assert_eq!(wide(1000), (0, 524_000));
    }
}
