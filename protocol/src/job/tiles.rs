//! The grid of a job's tiles. Does not say how a tile is sampled.

use super::window::{Window, length};
use crate::tile::TileRect;

/// The tiles of a job, row by row from the top: the cells of the frame's grid that touch the window
/// to render. A crop has the same tiles as the whole frame, but fewer. The grid goes on beyond the
/// frame, for overscan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TileGrid {
    /// Frame and rendered window. It cuts the tiles, and [`TileRect`] counts from its top left.
    canvas: Window,
    /// Edge of a cell in pixels.
    edge: i32,
    /// Cell of the first tile; the frame's top left pixel is in cell 0.
    first_column: i32,
    first_row: i32,
    columns: u32,
    rows: u32,
}

impl TileGrid {
    /// Creates the grid of the cells of `edge` pixels that touch the window `rendered` of the frame
    /// `frame`.
    pub(super) fn new(frame: &Window, rendered: &Window, edge: u32) -> Self {
        let edge = length(edge.max(1));
        let cells = |first: i32, end: i32| {
            (end.saturating_sub(1).div_euclid(edge) - first + 1).max(1).unsigned_abs()
        };
        let (first_column, first_row) =
            (rendered.left.div_euclid(edge), rendered.top.div_euclid(edge));
        let (columns, rows) =
            (cells(first_column, rendered.right), cells(first_row, rendered.bottom));
        let canvas = frame.around(rendered);
        Self { canvas, edge, first_column, first_row, columns, rows }
    }

    /// Returns the number of tiles in a row.
    pub fn columns(&self) -> u32 {
        self.columns
    }

    /// Returns the number of rows of tiles.
    pub fn rows(&self) -> u32 {
        self.rows
    }

    /// Returns the number of tiles.
    pub fn count(&self) -> u32 {
        self.columns.saturating_mul(self.rows)
    }

    /// Returns the number of pixels of the largest tile that the grid can have.
    pub fn tile_pixels_max(&self) -> u64 {
        let edge = self.edge.unsigned_abs();
        u64::from(edge.min(self.canvas.width())) * u64::from(edge.min(self.canvas.height()))
    }

    /// Returns the number of pixels of all tiles.
    pub fn pixels(&self) -> u64 {
        let first = self.window(0);
        let last = self.window(self.count().saturating_sub(1));
        first.zip(last).map_or(0, |(first, last)| first.around(&last).pixels())
    }

    /// Returns the pixels of a tile; None beyond the last.
    pub fn window(&self, tile: u32) -> Option<Window> {
        if tile >= self.count() {
            return None;
        }
        let left = (self.first_column + length(tile % self.columns)).saturating_mul(self.edge);
        let top = (self.first_row + length(tile / self.columns)).saturating_mul(self.edge);
        let (right, bottom) = (left.saturating_add(self.edge), top.saturating_add(self.edge));
        Some(Window { left, top, right, bottom }.cut(&self.canvas))
    }

    /// Returns a tile as messages name it; None beyond the last.
    pub fn rect(&self, tile: u32) -> Option<TileRect> {
        let window = self.window(tile)?;
        let from = |start: i32, edge: i32| start.saturating_sub(edge).max(0).unsigned_abs();
        Some(TileRect {
            x: from(window.left, self.canvas.left),
            y: from(window.top, self.canvas.top),
            width: window.width(),
            height: window.height(),
        })
    }

    /// Returns the pixels of a tile as messages name it; None if it is not within the canvas.
    pub fn window_of(&self, rect: &TileRect) -> Option<Window> {
        let along = |first: i32, start: u32, length: u32| {
            let left = i64::from(first) + i64::from(start);
            let right = left + i64::from(length);
            Some((i32::try_from(left).ok()?, i32::try_from(right).ok()?))
        };
        let (left, right) = along(self.canvas.left, rect.x, rect.width)?;
        let (top, bottom) = along(self.canvas.top, rect.y, rect.height)?;
        let window = Window { left, top, right, bottom };
        (window.pixels() > 0 && self.canvas.contains(&window)).then_some(window)
    }
}
