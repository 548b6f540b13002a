//! The shape of launches and of a frame's steps: threads of a block, the chunks that blocks of two
//! or three axes need, shared memory. Launches nothing.

use super::Domain;
use super::block::Block;
use super::spec::{ComputeSpec, Program};
use crate::job::error::{SpecError, wrong};
use crate::limits::*;

/// Number of chunks that a frame should have if the spec leaves their length open, so that a few
/// nodes finish it within some hundredths of each other.
const FRAME_CHUNKS_WANTED: u64 = 256;
/// Smallest chunk, in indices, that is made to reach [`FRAME_CHUNKS_WANTED`]: a device has more
/// threads than that.
const CHUNK_INDICES_LEAST: u64 = 1 << 16;
/// Largest chunk, in indices, where the spec leaves its length open.
const CHUNK_INDICES_MOST: u64 = 1 << 20;

/// Returns the least common multiple of two numbers; 0 if one of them is, and the largest
/// number where it is larger.
pub fn least_common_multiple(a: u64, b: u64) -> u64 {
    let (mut divisor, mut rest) = (a, b);
    while rest > 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    (a / divisor.max(1)).saturating_mul(b)
}

impl ComputeSpec {
    /// Returns how many indices a chunk has a whole multiple of, unless it is the last of its
    /// frame: of what its blocks and `chunk_align` need.
    pub fn chunk_multiple(&self) -> u64 {
        least_common_multiple(self.block_multiple(), self.chunk_align.max(1).into())
    }

    /// Returns the indices of a row of blocks of two or three axes, or in a domain of three axes of
    /// a layer of them; 1 for other blocks.
    fn block_multiple(&self) -> u64 {
        let Some(block) = self.block.filter(|block| !block.is_line()) else { return 1 };
        let Domain { width, height, depth } = self.domain;
        let row = u64::from(width);
        match depth {
            1 => row.saturating_mul(block.y.into()),
            _ => row.saturating_mul(height.into()).saturating_mul(block.z.into()),
        }
    }

    /// Returns the indices of a chunk of a checked spec; the last one of a frame can have fewer. A
    /// frame of several steps is one chunk. Where the spec leaves their length open: a
    /// `FRAME_CHUNKS_WANTED`th of the domain, at least `CHUNK_INDICES_LEAST` and at most
    /// `CHUNK_INDICES_MOST` and as many as the bytes of a result allow; longer where a frame or
    /// the job would have more units than the limits. A multiple of what blocks and the kernel
    /// need: rounded up, or down where that would be too many bytes.
    pub fn chunk_indices(&self) -> u32 {
        let indices = self.domain.len().max(1);
        let chunk = match (self.steps, self.chunk) {
            (2.., _) => indices,
            (_, 0) => self.chosen_chunk(indices),
            (_, chunk) => u64::from(chunk),
        };
        chunk.min(indices).clamp(1, u64::from(u32::MAX)) as u32
    }

    /// Returns the length of a chunk where the spec leaves it open.
    fn chosen_chunk(&self, indices: u64) -> u64 {
        let frames = u64::from(self.frames.len()).max(1);
        let units_max = FRAME_UNITS_MAX.min(JOB_UNITS_MAX / frames).max(1);
        let wanted = indices.div_ceil(FRAME_CHUNKS_WANTED);
        let sensible = wanted.clamp(CHUNK_INDICES_LEAST, CHUNK_INDICES_MOST);
        let multiple = self.chunk_multiple().max(1);
        let most = (CHUNK_BYTES_MAX / self.index_bytes().max(1)).min(self.chunk_indices_max());
        let whole = (most / multiple).max(1).saturating_mul(multiple);
        sensible.max(indices.div_ceil(units_max)).next_multiple_of(multiple).min(whole)
    }

    /// Returns whether something says at which indices chunks may begin: `chunk_align`, or a block
    /// of two or three axes. A block of one axis does not, and chunks of any length hold some.
    pub fn says_chunks(&self) -> bool {
        self.chunk_align > 0 || self.block.is_some_and(|block| !block.is_line())
    }

    /// Returns the most indices of a chunk that a grid of blocks covers. A grid has at most
    /// [`GRID_EDGE_MAX`] blocks along its second and third axis.
    pub fn chunk_indices_max(&self) -> u64 {
        match self.block.is_some_and(|block| !block.is_line()) {
            true => self.block_multiple().saturating_mul(GRID_EDGE_MAX),
            false => u64::from(u32::MAX),
        }
    }

    /// Returns the grid of blocks that covers a chunk of `count` indices. A chunk of a block of two
    /// or three axes is whole rows, or whole layers where the domain has three axes.
    pub fn grid(&self, block: Block, count: u32) -> [u32; 3] {
        if block.is_line() {
            return [count.div_ceil(block.x.max(1)).max(1), 1, 1];
        }
        let Domain { width, height, depth } = self.domain;
        let rows = count.div_ceil(width.max(1));
        let (rows, layers) = match depth {
            1 => (rows, 1),
            _ => (height, rows.div_ceil(height.max(1))),
        };
        let edges = [(width, block.x), (rows, block.y), (layers, block.z)];
        edges.map(|(edge, threads)| edge.div_ceil(threads.max(1)).max(1))
    }

    /// Returns the most bytes of values that a chunk writes.
    pub fn chunk_bytes_max(&self) -> u64 {
        if self.steps > 1 { STEPPED_BYTES_MAX } else { CHUNK_BYTES_MAX }
    }
}

/// Checks the steps of a frame and the shape of its launches.
pub(super) fn check(spec: &ComputeSpec) -> Result<(), SpecError> {
    check_steps(spec)?;
    check_launch(spec)
}

/// Checks the steps of a frame.
fn check_steps(spec: &ComputeSpec) -> Result<(), SpecError> {
    if !(1..=STEPS_MAX).contains(&spec.steps) {
        return wrong("steps", format!("{} is not in 1 to {STEPS_MAX}", spec.steps));
    }
    if spec.steps == 1 {
        return Ok(());
    }
    if spec.feed.is_none() {
        let text = "several steps in a frame need --feed NAME: the input that is the result of the \
            step before";
        return wrong("steps", text);
    }
    let indices = spec.domain.len();
    if spec.chunk > 0 && u64::from(spec.chunk) < indices {
        let text = format!(
            "a frame of several steps is one chunk of all its {indices} indices; leave it out"
        );
        return wrong("chunk", text);
    }
    let bytes = indices.saturating_mul(spec.index_bytes());
    if bytes > STEPPED_BYTES_MAX {
        let text = format!(
            "{bytes} bytes of values are more than the {STEPPED_BYTES_MAX} of a frame of several \
                steps, which is one chunk; use a smaller domain, or --frames without --steps"
        );
        return wrong("domain", text);
    }
    Ok(())
}

/// Checks block and shared memory.
fn check_launch(spec: &ComputeSpec) -> Result<(), SpecError> {
    let is_own = !matches!(spec.program, Program::Builtin(_));
    if spec.shared_bytes > 0 && !is_own {
        return wrong("shared", "a built-in kernel has its own shared memory");
    }
    if spec.shared_bytes > SHARED_BYTES_MAX {
        let text = format!(
            "{} bytes are more than the {SHARED_BYTES_MAX} that any device has",
            spec.shared_bytes
        );
        return wrong("shared", text);
    }
    let Some(block) = spec.block else { return Ok(()) };
    if !is_own {
        return wrong("block", "a built-in kernel has its own blocks");
    }
    let edges = (1..=BLOCK_THREADS_MAX).contains(&block.x)
        && (1..=BLOCK_THREADS_MAX).contains(&block.y)
        && (1..=BLOCK_DEPTH_MAX).contains(&block.z);
    if !edges || block.threads() > BLOCK_THREADS_MAX {
        let text = format!(
            "{block} is {} threads; a block has 1 to {BLOCK_THREADS_MAX}, and at most \
                {BLOCK_DEPTH_MAX} along its third axis",
            block.threads()
        );
        return wrong("block", text);
    }
    check_chunks_of(spec, block)
}

/// Checks that chunks of whole blocks are possible.
fn check_chunks_of(spec: &ComputeSpec, block: Block) -> Result<(), SpecError> {
    let (indices, multiple) = (spec.domain.len(), spec.block_multiple());
    let Domain { height, depth, .. } = spec.domain;
    let what = if depth == 1 { "rows" } else { "layers" };
    let least = multiple.min(indices);
    let bytes = least.saturating_mul(spec.index_bytes());
    if bytes > spec.chunk_bytes_max() {
        let text = format!(
            "{block} threads need chunks of whole {what} of blocks, here {least} indices, which \
                write {bytes} bytes, more than {}",
            spec.chunk_bytes_max()
        );
        return wrong("block", text);
    }
    let chunk = u64::from(spec.chunk);
    if chunk > 0 && chunk < indices && !chunk.is_multiple_of(multiple) {
        let text = format!(
            "{chunk} indices are not whole {what} of blocks of {block}: give a multiple of \
                {multiple}"
        );
        return wrong("chunk", text);
    }
    let longest = match (spec.steps, chunk) {
        (2.., _) => indices,
        (_, 0) => 0,
        (_, chunk) => chunk.min(indices),
    };
    let tall = depth > 1 && u64::from(height.div_ceil(block.y)) > GRID_EDGE_MAX;
    if longest > spec.chunk_indices_max() || (tall && !block.is_line()) {
        let text = format!(
            "{block} threads are too few for this domain: a grid has at most {GRID_EDGE_MAX} \
                blocks along its second and third axis"
        );
        return wrong("block", text);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(domain: &str, block: &str) -> ComputeSpec {
        let domain = domain.parse().expect("a domain");
        let block = Some(block.parse().expect("a block"));
        ComputeSpec { block, ..ComputeSpec::new(Program::Builtin("merge".into()), domain) }
    }

    #[test]
    fn a_block_is_written_as_it_is_read() {
        for text in ["512", "16x16", "8x8x8", "8x1x4"] {
            assert_eq!(text.parse::<Block>().unwrap().to_string(), text);
        }
        assert_eq!("8x1".parse(), Ok(Block::line(8)));
        for bad in ["", "x", "1x2x3x4", "-1", "1.5", "1x"] {
            assert!(bad.parse::<Block>().is_err(), "{bad}");
        }
    }

    #[test]
    fn chunks_are_whole_rows_or_layers_of_blocks() {
        let multiple = |domain, block| spec(domain, block).chunk_multiple();
        assert_eq!(multiple("100x70", "512"), 1);
        assert_eq!(multiple("100x70", "16x16"), 1600);
        assert_eq!(multiple("100x70x9", "16x16"), 7000);
        assert_eq!(multiple("100x70x9", "8x8x4"), 28_000);
    }

    #[test]
    fn a_grid_covers_its_chunk() {
        let grid = |domain, block: &str, count| {
            spec(domain, block).grid(block.parse().expect("a block"), count)
        };
        assert_eq!(grid("100x70", "512", 7000), [14, 1, 1]);
        assert_eq!(grid("100x70", "16x16", 7000), [7, 5, 1]);
        assert_eq!(grid("100x70", "16x16", 1600), [7, 1, 1]);
        assert_eq!(grid("100x70", "16x4x4", 800), [7, 2, 1]);
        assert_eq!(grid("100x70x9", "16x16", 14_000), [7, 5, 2]);
        assert_eq!(grid("100x70x9", "8x8x4", 63_000), [13, 9, 3]);
    }
}
