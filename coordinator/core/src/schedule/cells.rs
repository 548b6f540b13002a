//! Places of a frame's units, and what one device has done in each. Pure; decides nothing.

use crate::splitter::Split;
use tessera_protocol::ids::UnitIndex;

/// Most rows of cells of a frame.
const ROWS_MOST: u32 = 16;
/// Most cells of a frame.
const CELLS_MOST: u32 = 256;
/// Weight of a device's earlier units when a new one arrives: some hundred units, so that a speed
/// of long ago says little.
const KEEP: f32 = 0.995;
/// Weight of a new unit at which all are scaled back.
const GAIN_MOST: f32 = 1e4;

/// How a frame's units lie in cells: a tile is a cell, or several where a frame has many. Ranges of
/// indices lie in one row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// Columns and rows of tiles, each at least 1.
    tiles: (u32, u32),
    /// Units of a tile, at least 1.
    passes: u32,
    /// Columns and rows of cells, each at least 1.
    cells: (u32, u32),
}

impl Layout {
    /// The layout of a job's frames.
    pub(crate) fn of(split: &Split) -> Self {
        let (columns, rows, passes) = match split {
            Split::Tiles(grid) => (grid.columns(), grid.rows(), grid.passes()),
            Split::Chunks(chunks) => (chunks.units(), 1, 1),
        };
        let (columns, rows) = (columns.max(1), rows.max(1));
        let cell_rows = rows.min(ROWS_MOST);
        let cells = (columns.min(CELLS_MOST / cell_rows), cell_rows);
        Self { tiles: (columns, rows), passes: passes.max(1), cells }
    }

    /// Returns the number of cells, at least 1.
    pub(crate) fn cells(self) -> usize {
        (self.cells.0 * self.cells.1) as usize
    }

    /// Returns the cell of a unit.
    pub(crate) fn cell_of(self, unit: UnitIndex) -> usize {
        let tile = unit.0 / self.passes;
        let scaled = |at: u32, (cells, tiles): (u32, u32)| {
            (u64::from(at) * u64::from(cells) / u64::from(tiles)).min(u64::from(cells) - 1) as usize
        };
        let row = scaled(tile / self.tiles.0, (self.cells.1, self.tiles.1));
        let column = scaled(tile % self.tiles.0, (self.cells.0, self.tiles.0));
        row * self.cells.0 as usize + column
    }

    /// Returns the distance of two cells' middles, in cells.
    pub(crate) fn distance(self, one: usize, other: usize) -> f64 {
        let columns = self.cells.0 as usize;
        let across = (one % columns).abs_diff(other % columns) as f64;
        let down = (one / columns).abs_diff(other / columns) as f64;
        across.hypot(down)
    }
}

/// Units that a device has done in a cell, with their samples and seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cell {
    pub(crate) units: f32,
    pub(crate) samples: f32,
    pub(crate) secs: f32,
}

impl Cell {
    fn add(&mut self, other: Self) {
        self.units += other.units;
        self.samples += other.samples;
        self.secs += other.secs;
    }

    fn times(self, factor: f32) -> Self {
        let Self { units, samples, secs } = self;
        Self { units: units * factor, samples: samples * factor, secs: secs * factor }
    }
}

/// What one device has done in each cell; older units count less.
#[derive(Clone, Debug)]
pub(crate) struct Cells {
    /// By cell, in order, of those with units.
    done: Vec<(u16, Cell)>,
    /// Weight of the next unit.
    gain: f32,
}

impl Default for Cells {
    fn default() -> Self {
        Self { done: Vec::new(), gain: 1.0 }
    }
}

impl Cells {
    /// Adds a unit.
    pub(crate) fn add(&mut self, at: usize, samples: u64, secs: f64) {
        let at = at.min(CELLS_MOST as usize - 1) as u16;
        let place = match self.done.binary_search_by_key(&at, |(cell, _)| *cell) {
            Ok(place) => place,
            Err(place) => {
                self.done.insert(place, (at, Cell::default()));
                place
            }
        };
        let unit = Cell { units: 1.0, samples: samples as f32, secs: secs as f32 };
        self.done[place].1.add(unit.times(self.gain));
        self.gain /= KEEP;
        if self.gain > GAIN_MOST {
            let factor = 1.0 / self.gain;
            self.done.iter_mut().for_each(|(_, cell)| *cell = cell.times(factor));
            self.gain = 1.0;
        }
    }

    /// Returns the cells that have units, in order, the newest unit with a weight of 1.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, Cell)> + '_ {
        let factor = 1.0 / (self.gain * KEEP);
        self.done.iter().map(move |(at, cell)| (usize::from(*at), cell.times(factor)))
    }

    /// Returns the sums of so many equal ranges of a frame's cells.
    pub(crate) fn in_ranges(&self, cells: usize, ranges: usize) -> Vec<Cell> {
        let mut sums = vec![Cell::default(); ranges];
        for (at, cell) in self.iter() {
            sums[(at * ranges / cells.max(1)).min(ranges - 1)].add(cell);
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(columns: u32, rows: u32, passes: u32) -> Layout {
        let cell_rows = rows.min(ROWS_MOST);
        let cells = (columns.min(CELLS_MOST / cell_rows), cell_rows);
        Layout { tiles: (columns, rows), passes, cells }
    }

    #[test]
    fn a_tile_is_a_cell_where_there_are_few() {
        let few = layout(10, 6, 4);
        assert_eq!(few.cells(), 60);
        let cells: Vec<usize> = [0, 3, 4, 39, 40, 239].map(|at| few.cell_of(UnitIndex(at))).into();
        assert_eq!(cells, [0, 0, 1, 9, 10, 59]);
        assert_eq!((few.distance(0, 11), few.distance(9, 10)), (2f64.sqrt(), 9f64.hypot(1.0)));
        let many = layout(120, 68, 1);
        assert_eq!(many.cells(), 256);
        assert_eq!(many.cell_of(UnitIndex(120 * 68 - 1)), 255);
        assert_eq!(many.cell_of(UnitIndex(8 + 120 * 5)), 17, "second row and column of cells");
        assert_eq!(many.cell_of(UnitIndex(u32::MAX)) / 16, 15);
        let row = layout(100_000, 1, 1);
        assert_eq!((row.cells(), row.cell_of(UnitIndex(99_999))), (256, 255));
    }

    #[test]
    fn older_units_count_less() {
        let mut cells = Cells::default();
        (0..3000).for_each(|_| cells.add(7, 100, 1.0));
        (0..600).for_each(|_| cells.add(3, 100, 2.0));
        let [(3, newer), (7, older)] = cells.iter().collect::<Vec<_>>()[..] else { panic!() };
        assert!((newer.units + older.units - 200.0).abs() < 0.5, "{newer:?} {older:?}");
        assert!((older.units - 200.0 * KEEP.powi(600)).abs() < 0.2, "{older:?}");
        assert!((newer.secs / newer.samples - 0.02).abs() < 1e-4, "{newer:?}");
        let halves = cells.in_ranges(8, 2);
        assert_eq!((halves[0].units, halves[1].units), (newer.units, older.units));
    }
}
