//! Pictures of frames that are being rendered: the means of a tile's samples, merged by their
//! numbers of samples.

use std::collections::{BTreeMap, BTreeSet};
use tessera_protocol::compute::half_to_f64;
use tessera_protocol::job::{RenderSpec, TileGrid, Window};
use tessera_protocol::live::{LiveTile, live_size, live_step};
use tessera_protocol::node::TileRect;
use tessera_protocol::{FrameNumber, UnitIndex};

/// Frames that are kept: as many as are likely rendered at a time. A 4K frame has 96 MiB of tiles.
const FRAMES_MAX: usize = 8;
/// R, G and B.
const COLORS: usize = 3;

/// Pixels that have changed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Patch {
    /// Place in the picture.
    pub(crate) left: u32,
    pub(crate) top: u32,
    pub(crate) width: u32,
    pub(crate) height: u32,
    /// R, G and B of each pixel, row by row.
    pub(crate) values: Vec<f32>,
}

/// Frames of a job as far as they are known.
#[derive(Debug)]
pub(crate) struct Pictures {
    grid: TileGrid,
    data: Window,
    frames: BTreeMap<FrameNumber, Picture>,
}

#[derive(Debug, Default)]
struct Picture {
    tiles: BTreeMap<(u32, u32), Tile>,
    seen: BTreeSet<(UnitIndex, u32)>,
}

#[derive(Debug)]
struct Tile {
    samples: u32,
    /// The mean so far, with as many values as live tiles have.
    mean: Vec<f32>,
}

impl Pictures {
    /// Nothing is known yet.
    pub(crate) fn new(render: &RenderSpec) -> Self {
        Self { grid: render.tiles(), data: render.data_window(), frames: BTreeMap::new() }
    }

    /// Returns width and height of a picture in pixels.
    pub(crate) fn size(&self) -> (u32, u32) {
        (self.data.width(), self.data.height())
    }

    /// Adds a live tile. Returns the pixels that have changed; None if they were there before, or
    /// are not in the picture.
    pub(crate) fn add(&mut self, tile: &LiveTile) -> Option<Patch> {
        let window = self.grid.window_of(&tile.tile)?.from(&self.data);
        let (unit, size) = (tile.lease.unit, self.size());
        while self.frames.len() >= FRAMES_MAX && !self.frames.contains_key(&unit.frame) {
            self.frames.pop_first();
        }
        let picture = self.frames.entry(unit.frame).or_default();
        if !picture.seen.insert((unit.unit, tile.samples.first)) {
            return None;
        }
        let count = tile.values.0.len() / 2;
        let new = || Tile { samples: 0, mean: vec![0.0; count] };
        let kept = picture.tiles.entry((tile.tile.x, tile.tile.y)).or_insert_with(new);
        if kept.mean.len() != count {
            return None;
        }
        kept.merge(tile);
        patch(&kept.mean, &tile.tile, &window, size)
    }
}

impl Tile {
    fn merge(&mut self, tile: &LiveTile) {
        self.samples = self.samples.saturating_add(tile.samples.count);
        let share = tile.samples.count as f32 / self.samples as f32;
        for (mean, pair) in self.mean.iter_mut().zip(tile.values.0.chunks_exact(2)) {
            let value = half_to_f64(u16::from_le_bytes([pair[0], pair[1]])) as f32;
            // What is no number is no light.
            let value = if value.is_finite() { value } else { 0.0 };
            *mean += (value - *mean) * share;
        }
    }
}

/// Returns the pixels of a tile that are in the picture.
fn patch(mean: &[f32], rect: &TileRect, window: &Window, size: (u32, u32)) -> Option<Patch> {
    let inside = |from: i32, to: i32, most: u32| {
        let (from, to) = (from.max(0).unsigned_abs(), to.max(0).unsigned_abs().min(most));
        (from < to).then_some((from, to))
    };
    let (left, right) = inside(window.left, window.right, size.0)?;
    let (top, bottom) = inside(window.top, window.bottom, size.1)?;
    let (step, (across, _)) = (live_step(rect), live_size(rect));
    let mut values = Vec::with_capacity(((right - left) * (bottom - top)) as usize * COLORS);
    for y in top..bottom {
        // A pixel of the picture is at or after the tile's edge.
        let row = (i64::from(y) - i64::from(window.top)) as u32 / step * across;
        for x in left..right {
            let at = (row + (i64::from(x) - i64::from(window.left)) as u32 / step) as usize;
            values.extend_from_slice(mean.get(at * COLORS..(at + 1) * COLORS)?);
        }
    }
    Some(Patch { left, top, width: right - left, height: bottom - top, values })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tessera_protocol::compute::half_of_f64;
    use tessera_protocol::job::CropSpec;
    use tessera_protocol::live::{LIVE_VALUE_BYTES, LiveValues};
    use tessera_protocol::node::SampleRange;
    use tessera_protocol::{Epoch, JobId, Lease, UnitKey};

    fn render() -> RenderSpec {
        RenderSpec { width: 200, height: 100, tile: 128, ..RenderSpec::new("a.gltf", Vec::new()) }
    }

    fn tile(rect: TileRect, (unit, first, count): (u32, u32, u32), value: f64) -> LiveTile {
        let unit = UnitKey { job: JobId::default(), frame: FrameNumber(1), unit: UnitIndex(unit) };
        let (across, down) = live_size(&rect);
        let values = half_of_f64(value).to_le_bytes().repeat((across * down) as usize * COLORS);
        assert_eq!(values.len(), (across * down) as usize * LIVE_VALUE_BYTES);
        LiveTile {
            lease: Lease { unit, epoch: Epoch(1) },
            tile: rect,
            samples: SampleRange { first, count },
            values: LiveValues(values),
        }
    }

    #[test]
    fn means_count_by_their_samples_and_once() {
        let mut pictures = Pictures::new(&render());
        let rect = render().tiles().rect(1).expect("it has two tiles");
        assert_eq!((rect.x, rect.width, rect.height), (128, 72, 100));
        let first = pictures.add(&tile(rect, (1, 0, 16), 1.0)).expect("it is new");
        assert_eq!((first.left, first.top, first.width, first.height), (128, 0, 72, 100));
        assert!(first.values.len() == 72 * 100 * COLORS && first.values.iter().all(|v| *v == 1.0));
        let second = pictures.add(&tile(rect, (3, 16, 48), 3.0)).expect("other samples");
        assert!(second.values.iter().all(|value| *value == 2.5));
        assert_eq!(pictures.add(&tile(rect, (3, 16, 48), 9.0)), None, "it was there before");
        let nothing = pictures.add(&tile(rect, (5, 64, 64), f64::INFINITY)).expect("it is new");
        assert!(nothing.values.iter().all(|value| *value == 1.25));
    }

    #[test]
    fn a_crop_has_the_pixels_of_its_own_window() {
        let crop = CropSpec { x: 130, y: 10, width: 20, height: 30 };
        let spec = RenderSpec { crop: Some(crop), ..render() };
        let mut pictures = Pictures::new(&spec);
        assert_eq!(pictures.size(), (20, 30));
        let rect = spec.tiles().rect(0).expect("it has a tile");
        let patch = pictures.add(&tile(rect, (0, 0, 1), 0.5)).expect("it is in the picture");
        assert_eq!((patch.left, patch.top, patch.width, patch.height), (0, 0, 20, 30));
        let outside = TileRect { x: 4000, ..rect };
        assert_eq!(pictures.add(&tile(outside, (7, 0, 1), 0.5)), None);
    }

    #[test]
    fn a_few_frames_are_kept() {
        let mut pictures = Pictures::new(&render());
        let rect = render().tiles().rect(0).expect("it has two tiles");
        for frame in 0..100 {
            let mut live = tile(rect, (0, 0, 1), 0.5);
            live.lease.unit.frame = FrameNumber(frame);
            assert!(pictures.add(&live).is_some());
            assert!(pictures.frames.len() <= FRAMES_MAX);
        }
    }
}
