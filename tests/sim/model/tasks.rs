//! What the units of a job are, worked out anew from the description of the splitter.

use crate::model::finishing::pieces_of;
use crate::model::rounds::{is_in_rounds, pass_of, passes_of};
use tessera_protocol::compute::ComputeSpec;
use tessera_protocol::ids::{BlobHash, FrameNumber, JobId, UnitIndex, UnitKey};
use tessera_protocol::job::{JobKind, RenderSpec};
use tessera_protocol::node::{Finish, SampleRange, Task, TileRect};

/// The frame whose result this one reads.
pub(crate) fn frame_before(kind: &JobKind, frame: FrameNumber) -> Option<FrameNumber> {
    kind.compute().filter(|compute| compute.feed.is_some())?;
    kind.frames().iter().take_while(|other| *other < frame).last()
}

/// Hash of a frame's files.
pub(crate) fn file_hash(job: JobId, frame: FrameNumber) -> BlobHash {
    BlobHash::of(format!("{job}/{frame}").as_bytes())
}

/// What a unit is, worked out anew from the description of the splitter; None beyond the last.
pub(crate) fn task_of(kind: &JobKind, unit: UnitKey) -> Option<Task> {
    match kind {
        JobKind::Render(render) => tile_of(render, unit.unit).or_else(|| piece_of(kind, unit)),
        JobKind::Compute(compute) => {
            let before = frame_before(kind, unit.frame);
            chunk_of(compute, unit.unit, before.map(|before| file_hash(unit.job, before)))
        }
    }
}

/// What a unit behind those of the samples makes.
fn piece_of(kind: &JobKind, unit: UnitKey) -> Option<Task> {
    let index = unit.unit.0.checked_sub(units_of(unit.job, kind))?;
    let piece = pieces_of(kind).get(index as usize).copied()?;
    let exposure_bits = kind.render()?.exposure.to_bits();
    Some(Task::Finish(Finish { piece, exposure_bits }))
}

fn chunk_of(compute: &ComputeSpec, unit: UnitIndex, feed: Option<BlobHash>) -> Option<Task> {
    let indices = compute.domain.len();
    // A plan's domains are so small that one whose chunks are left open is one chunk.
    let each = if compute.chunk == 0 { indices } else { u64::from(compute.chunk) };
    let first = u64::from(unit.0) * each;
    (first < indices).then(|| Task::Chunk { first, count: each.min(indices - first) as u32, feed })
}

fn tile_of(render: &RenderSpec, unit: UnitIndex) -> Option<Task> {
    // A plan's pictures are so small that a unit of all samples never is too large.
    let each = if render.unit_samples == 0 { render.spp } else { render.unit_samples };
    let adaptive = is_in_rounds(render);
    let passes = if adaptive { passes_of(render.spp) } else { render.spp.div_ceil(each) };
    let (tile, pass) = (unit.0 / passes, unit.0 % passes);
    let crop = render.crop.map_or([0, 0, render.width, render.height], |crop| {
        [crop.x, crop.y, crop.width, crop.height]
    });
    let across = Axis::of(render, render.width, crop[0], crop[2]);
    let down = Axis::of(render, render.height, crop[1], crop[3]);
    let (x, width) = across.tile(tile % across.count());
    let (y, height) =
        (tile / across.count() < down.count()).then(|| down.tile(tile / across.count()))?;
    let even = |first| SampleRange { first, count: each.min(render.spp - first) };
    let samples = if adaptive { pass_of(render, pass)? } else { even(pass * each) };
    Some(Task::Tile { tile: TileRect { x, y, width, height }, samples })
}

/// Tiles along one axis of a frame: cells of the grid from which something is asked for.
struct Axis {
    tile: i64,
    /// What is asked for, and what holds it and the frame.
    asked: [i64; 2],
    canvas: [i64; 2],
}

impl Axis {
    fn of(render: &RenderSpec, frame: u32, start: u32, length: u32) -> Self {
        let [tile, frame, start, length, overscan] =
            [render.tile, frame, start, length, render.overscan].map(i64::from);
        let asked = [start - overscan, start + length + overscan];
        Self { tile, asked, canvas: [asked[0].min(0), asked[1].max(frame)] }
    }

    fn first(&self) -> i64 {
        self.asked[0].div_euclid(self.tile)
    }

    fn count(&self) -> u32 {
        ((self.asked[1] - 1).div_euclid(self.tile) - self.first() + 1) as u32
    }

    /// Place, counted from the canvas, and length of a tile.
    fn tile(&self, index: u32) -> (u32, u32) {
        let start = (self.first() + i64::from(index)) * self.tile;
        let (left, right) = (start.max(self.canvas[0]), (start + self.tile).min(self.canvas[1]));
        ((left - self.canvas[0]) as u32, (right - left) as u32)
    }
}

/// Units of a frame, without those that finish it.
pub(crate) fn units_of(job: JobId, kind: &JobKind) -> u32 {
    let frame = kind.frames().get(0).unwrap_or(FrameNumber(0));
    let key = |unit| UnitKey { job, frame, unit: UnitIndex(unit) };
    let is_there = |unit: &u32| match kind {
        JobKind::Render(render) => tile_of(render, UnitIndex(*unit)).is_some(),
        JobKind::Compute(_) => task_of(kind, key(*unit)).is_some(),
    };
    (0..).take_while(is_there).count() as u32
}
