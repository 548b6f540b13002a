//! Finishing units of a frame: its bands from the top, then the assembly of several. Their indices
//! follow those of the units that are sampled. Total and pure.

use super::Split;
use std::ops::Range;
use tessera_protocol::ids::UnitIndex;
use tessera_protocol::node::Piece;

impl Split {
    /// Returns the number of finishing units of a frame; 0 if the coordinator finishes it.
    pub fn finishing(&self) -> u32 {
        match self {
            Self::Tiles(grid) => grid.bands().units(),
            Self::Chunks(_) => 0,
        }
    }

    /// Returns the number of all units of a frame, finishing units included.
    pub fn all_units(&self) -> u32 {
        self.units() + self.finishing()
    }

    /// Returns what a finishing unit makes; None for any other unit.
    pub fn piece(&self, unit: UnitIndex) -> Option<Piece> {
        let Self::Tiles(grid) = self else { return None };
        let bands = grid.bands();
        let index = unit.0.checked_sub(self.units())?;
        match bands.band(index) {
            Some((_, rows)) if bands.count() == 1 => Some(Piece::Frame { rows }),
            Some((first, rows)) => Some(Piece::Band { first, rows }),
            None => (index < bands.units()).then_some(Piece::Assembly),
        }
    }

    /// Whether a unit is one of those that finish a frame.
    pub(crate) fn is_finishing(&self, unit: UnitIndex) -> bool {
        unit.0 >= self.units()
    }

    /// Returns the finishing units of a frame.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = UnitIndex> + use<> {
        (self.units()..self.all_units()).map(UnitIndex)
    }

    /// Returns the indices of the bands among the units.
    pub(crate) fn bands(&self) -> Range<u32> {
        let count = match self {
            Self::Tiles(grid) => grid.bands().count(),
            Self::Chunks(_) => 0,
        };
        self.units()..self.units() + count
    }

    /// Returns the unit that assembles a frame of several bands.
    pub(crate) fn assembly(&self) -> Option<UnitIndex> {
        (self.finishing() > 1).then(|| UnitIndex(self.all_units() - 1))
    }

    /// Returns the pixels that a finishing unit makes or puts together; 0 for any other unit.
    pub(crate) fn finished_pixels(&self, unit: UnitIndex) -> u64 {
        let Self::Tiles(grid) = self else { return 0 };
        let width = u64::from(grid.columns()) * u64::from(grid.tile_rect(0).map_or(0, |t| t.width));
        match self.piece(unit) {
            Some(Piece::Band { rows, .. } | Piece::Frame { rows }) => u64::from(rows) * width,
            // It computes on no pixel anew.
            Some(Piece::Assembly) => u64::from(grid.bands().height()) * width / 8,
            None => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tessera_protocol::job::{JobKind, RenderSpec};

    fn split(width: u32, height: u32) -> Split {
        let mut render = RenderSpec::new("a.gltf", Vec::new());
        (render.width, render.height, render.tile) = (width, height, 8);
        render.denoise = true;
        Split::of(&JobKind::Render(render))
    }

    #[test]
    fn finishing_units_follow_those_that_are_sampled() {
        let split = split(100, 96);
        let units = split.units();
        assert_eq!((split.finishing(), split.all_units()), (3, units + 3));
        let pieces: Vec<_> = split.pieces().map(|unit| split.piece(unit).unwrap()).collect();
        let band = |first, rows| Piece::Band { first, rows };
        assert_eq!(pieces, [band(0, 64), band(64, 32), Piece::Assembly]);
        assert_eq!(
            (split.piece(UnitIndex(units - 1)), split.piece(UnitIndex(units + 3))),
            (None, None)
        );
        assert_eq!(
            (split.bands(), split.assembly()),
            (units..units + 2, Some(UnitIndex(units + 2)))
        );
    }

    #[test]
    fn one_band_is_the_whole_frame() {
        let whole = split(80, 64);
        let unit = UnitIndex(whole.units());
        assert_eq!(whole.piece(unit), Some(Piece::Frame { rows: 64 }));
        assert_eq!((whole.finishing(), whole.assembly()), (1, None));
        assert_eq!(split(64, 64).finishing(), 0);
    }
}
