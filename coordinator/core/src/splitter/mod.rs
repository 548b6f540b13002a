//! Spec to units: which pixels and samples each unit of a frame has. Total and pure; chooses no
//! order of work.

mod finishing;

use tessera_protocol::compute::Chunks;
use tessera_protocol::ids::{BlobHash, UnitIndex};
use tessera_protocol::job::{Bands, JobKind, RenderSpec, TileGrid, Window};
use tessera_protocol::limits::{FRAME_UNITS_MAX, JOB_UNITS_MAX};
use tessera_protocol::node::{SampleRange, Task, TileRect};
use tessera_protocol::rounds::Rounds;

/// Camera samples that a unit has at most where the splitter chooses: a CPU traces 0.2 to 5 million
/// paths a second, so that a unit keeps it busy for 0.4 to 10 s. Passes are evened out, so that a
/// unit of several passes has at least half of it (2^20).
pub const UNIT_CAMERA_SAMPLES: u64 = 1 << 21;
/// Camera samples below which the splitter makes no more passes for the sake of
/// [`FRAME_UNITS_WANTED`]: a third of a second of one CPU thread, against some milliseconds that a
/// unit costs.
pub const UNIT_CAMERA_SAMPLES_LEAST: u64 = 1 << 18;
/// Units that a frame should have where the splitter chooses, so that two nodes end it within a
/// hundredth of each other. A farm as fast as `n` of its fastest devices ends it about one of their
/// units after the lower bound, within `1 + n / 256` of it: 1.15 for 38.
pub const FRAME_UNITS_WANTED: u64 = 256;

/// How every frame of a job is cut, by the kind of the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    /// A render job's tiles and sample passes.
    Tiles(Grid),
    /// A compute job's ranges of indices.
    Chunks(Chunks),
}

impl Split {
    /// Computes the split of a checked job.
    pub fn of(kind: &JobKind) -> Self {
        match kind {
            JobKind::Render(render) => Self::Tiles(Grid::of(render)),
            JobKind::Compute(compute) => Self::Chunks(Chunks::of(compute)),
        }
    }

    /// Returns the number of units of a frame without finishing units, at most [`FRAME_UNITS_MAX`]
    /// for a checked spec.
    pub fn units(&self) -> u32 {
        match self {
            Self::Tiles(grid) => grid.units(),
            Self::Chunks(chunks) => chunks.units(),
        }
    }

    /// Returns the number of tiles of a frame; without tiles, of its units.
    pub(crate) fn tiles(&self) -> u32 {
        match self {
            Self::Tiles(grid) => grid.tiles(),
            Self::Chunks(chunks) => chunks.units(),
        }
    }

    /// Whether a unit of an untouched frame may be leased: with rounds, only units of the first
    /// round.
    pub(crate) fn begins_with(&self, unit: UnitIndex) -> bool {
        let Self::Tiles(grid) = self else { return true };
        !self.is_finishing(unit)
            && grid.rounds.is_none_or(|rounds| rounds.round_of(grid.tile_and_pass(unit).1) == 1)
    }

    /// Returns the units and work of an untouched frame, as far as known: with rounds, those of the
    /// first round.
    pub(crate) fn first_work(&self) -> (u32, u64) {
        let Self::Tiles(grid) = self else { return (self.units(), self.frame_camera_samples()) };
        let Some(rounds) = grid.rounds else { return (self.units(), self.frame_camera_samples()) };
        let samples = grid.cells.pixels() * u64::from(rounds.samples(1));
        (grid.tiles() * rounds.passes_through(1), samples)
    }

    /// Whether frames are sampled in rounds.
    pub(crate) fn has_rounds(&self) -> bool {
        matches!(self, Self::Tiles(grid) if grid.rounds.is_some())
    }

    /// Returns the work of a frame in camera samples or indices; with rounds, the most that is
    /// possible.
    pub fn frame_camera_samples(&self) -> u64 {
        match self {
            Self::Tiles(grid) => grid.frame_camera_samples(),
            Self::Chunks(chunks) => chunks.indices(),
        }
    }

    /// Returns the work of a unit in camera samples or indices; 0 beyond the last.
    pub fn unit_camera_samples(&self, unit: UnitIndex) -> u64 {
        match self {
            Self::Tiles(grid) => grid.unit_camera_samples(unit),
            Self::Chunks(chunks) => chunks.range(unit).map_or(0, |(_, count)| u64::from(count)),
        }
    }

    /// Returns the samples per pixel of a unit, or its indices; 0 beyond the last.
    pub fn unit_size(&self, unit: UnitIndex) -> u32 {
        match self {
            Self::Tiles(grid) => grid.unit(unit).map_or(0, |(_, samples)| samples.count),
            Self::Chunks(chunks) => chunks.range(unit).map_or(0, |(_, count)| count),
        }
    }

    /// Returns the work of so many samples per pixel of a unit, in camera samples or indices.
    pub fn camera_samples(&self, unit: UnitIndex, size: u32) -> u64 {
        match self {
            Self::Tiles(grid) => {
                let pixels = |(tile, _): (TileRect, SampleRange)| {
                    u64::from(tile.width) * u64::from(tile.height)
                };
                grid.unit(unit).map_or(0, pixels) * u64::from(size)
            }
            Self::Chunks(_) => u64::from(size),
        }
    }

    /// Returns the task of a unit, with the result that is fed to its frame; None beyond the last.
    pub fn task(&self, unit: UnitIndex, feed: Option<BlobHash>) -> Option<Task> {
        match self {
            Self::Tiles(grid) => {
                grid.unit(unit).map(|(tile, samples)| Task::Tile { tile, samples })
            }
            Self::Chunks(chunks) => {
                chunks.range(unit).map(|(first, count)| Task::Chunk { first, count, feed })
            }
        }
    }
}

/// How every frame of a render job is cut: a grid of tiles, each in sample passes. Unit = tile ×
/// passes + pass, tiles row by row from the top. A crop has only the tiles that it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    cells: TileGrid,
    spp: u32,
    /// Samples per pixel of a pass; 0 if rounds decide.
    pass_samples: u32,
    rounds: Option<Rounds>,
    bands: Bands,
}

impl Grid {
    /// The grid of a checked spec.
    ///
    /// Where the spec leaves the samples of a unit open (0), with `t` the pixels of a whole tile:
    /// as many as fit in [`UNIT_CAMERA_SAMPLES`] (at least 1, at most spp), then evened:
    /// `passes = ⌈spp / ⌊2^21 / t⌋⌉`, `samples = ⌈spp / passes⌉`. A frame of few tiles gets more
    /// passes, up to [`FRAME_UNITS_WANTED`] units of at least [`UNIT_CAMERA_SAMPLES_LEAST`]. A
    /// frame or job that would have more units than the limits gets fewer, longer passes. Where
    /// frames are sampled in rounds, those say what a pass is.
    pub fn of(spec: &RenderSpec) -> Self {
        let mut grid = Self {
            cells: spec.tiles(),
            spp: spec.spp.max(1),
            pass_samples: spec.unit_samples,
            rounds: spec.rounds(),
            bands: Bands::of(spec),
        };
        if grid.pass_samples == 0 && grid.rounds.is_none() {
            grid.pass_samples = grid.even_samples(u64::from(spec.frames.len()).max(1));
        }
        grid
    }

    fn even_samples(&self, frames: u64) -> u32 {
        let tile_pixels = self.cells.tile_pixels_max();
        let samples = (UNIT_CAMERA_SAMPLES / tile_pixels).max(1);
        let tiles = u64::from(self.tiles());
        let passes_max =
            (FRAME_UNITS_MAX / tiles).min(JOB_UNITS_MAX / tiles.saturating_mul(frames)).max(1);
        let wanted = FRAME_UNITS_WANTED / tiles;
        let sensible = tile_pixels * u64::from(self.spp) / UNIT_CAMERA_SAMPLES_LEAST;
        let least = u64::from(self.spp).div_ceil(samples);
        let passes = least.max(wanted.min(sensible)).min(u64::from(self.spp)).min(passes_max);
        u64::from(self.spp).div_ceil(passes) as u32
    }

    /// Returns the number of tiles in a row.
    pub fn columns(&self) -> u32 {
        self.cells.columns()
    }

    /// Returns the number of rows of tiles.
    pub fn rows(&self) -> u32 {
        self.cells.rows()
    }

    /// Returns the number of tiles of a frame.
    pub fn tiles(&self) -> u32 {
        self.cells.count()
    }

    /// Returns the bands in which nodes finish a frame.
    pub fn bands(&self) -> Bands {
        self.bands
    }

    /// Returns the number of sample passes of a tile.
    pub fn passes(&self) -> u32 {
        self.rounds.map_or_else(|| self.spp.div_ceil(self.pass_samples), |rounds| rounds.passes())
    }

    /// Returns the rounds that frames are sampled in; None if every tile has all passes.
    pub fn rounds(&self) -> Option<Rounds> {
        self.rounds
    }

    /// Returns the number of units of a frame, at most [`FRAME_UNITS_MAX`] for a checked spec.
    pub fn units(&self) -> u32 {
        self.tiles() * self.passes()
    }

    /// Returns the camera samples of a frame: pixels of its tiles × spp.
    pub fn frame_camera_samples(&self) -> u64 {
        self.cells.pixels() * u64::from(self.spp)
    }

    /// Returns a tile as nodes are told; None beyond the last.
    pub fn tile_rect(&self, tile: u32) -> Option<TileRect> {
        self.cells.rect(tile)
    }

    /// Returns the pixels of a tile, counted from the frame's top left; None beyond the last.
    pub fn tile_window(&self, tile: u32) -> Option<Window> {
        self.cells.window(tile)
    }

    /// Returns the samples of a pass; None beyond the last.
    pub fn sample_range(&self, pass: u32) -> Option<SampleRange> {
        if let Some(rounds) = self.rounds {
            return rounds.sample_range(pass);
        }
        if pass >= self.passes() {
            return None;
        }
        let first = pass * self.pass_samples;
        Some(SampleRange { first, count: self.pass_samples.min(self.spp - first) })
    }

    /// Returns the pixels and samples of a unit; None beyond the last.
    pub fn unit(&self, unit: UnitIndex) -> Option<(TileRect, SampleRange)> {
        let (tile, pass) = self.tile_and_pass(unit);
        Some((self.tile_rect(tile)?, self.sample_range(pass)?))
    }

    /// Returns the tile and the pass of a unit.
    pub fn tile_and_pass(&self, unit: UnitIndex) -> (u32, u32) {
        (unit.0 / self.passes(), unit.0 % self.passes())
    }

    /// Returns the unit of a tile and a pass; None beyond the last of either.
    pub fn unit_of(&self, tile: u32, pass: u32) -> Option<UnitIndex> {
        (tile < self.tiles() && pass < self.passes())
            .then(|| UnitIndex(tile * self.passes() + pass))
    }

    /// Returns the camera samples of a unit: its pixels × its samples; 0 beyond the last.
    pub fn unit_camera_samples(&self, unit: UnitIndex) -> u64 {
        self.unit(unit).map_or(0, |(tile, samples)| {
            u64::from(tile.width) * u64::from(tile.height) * u64::from(samples.count)
        })
    }
}
