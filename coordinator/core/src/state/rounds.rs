//! The rounds of a frame that is sampled until its noise is low enough, or for a time: which round
//! is open, and after which round each tile has ended. Data only: the shell measures, and `frames`
//! decides when.

use crate::splitter::{Grid, Split};
use crate::state::bitmap::Bitmap;
use serde::{Deserialize, Serialize};
use tessera_protocol::ids::UnitIndex;
use tessera_protocol::node::TileRect;
use tessera_protocol::rounds::Rounds;

/// A set of tiles of one frame, stored as bits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TileSet(Vec<u8>);

impl TileSet {
    /// Whether a tile is in the set.
    pub fn contains(&self, tile: u32) -> bool {
        self.0.get(tile as usize / 8).is_some_and(|byte| byte >> (tile % 8) & 1 == 1)
    }

    /// Number of bytes that the set takes.
    fn len(&self) -> usize {
        self.0.len()
    }
}

impl FromIterator<u32> for TileSet {
    fn from_iter<I: IntoIterator<Item = u32>>(tiles: I) -> Self {
        let mut bytes = Vec::new();
        for tile in tiles {
            let place = tile as usize / 8;
            if place >= bytes.len() {
                bytes.resize(place + 1, 0);
            }
            bytes[place] |= 1 << (tile % 8);
        }
        Self(bytes)
    }
}

/// The rounds of a frame in the form of a snapshot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct WrittenRounds {
    /// Newest round, from 1.
    pub(crate) round: u32,
    /// For each tile, the round after which it ended, or 0 if it continues.
    pub(crate) ended: Vec<u8>,
    /// Last round that was ever opened.
    pub(crate) opened: u32,
    /// Share of the farm's time that was used, in milliseconds, if it is counted.
    pub(crate) spent_millis: u64,
}

/// The rounds of one frame. Depends only on the measurements, so that it is the same wherever the
/// frame is rendered.
#[derive(Clone, Debug, PartialEq)]
pub struct FrameRounds {
    grid: Grid,
    rounds: Rounds,
    /// Round that is open, or is complete but not measured; from 1.
    round: u32,
    /// For each tile, the round after which it ended, or 0 if it continues.
    ended: Vec<u8>,
    /// Last round that was ever opened. Greater than `round` if units have been taken back since.
    opened: u32,
    /// Share of the farm's time that was used until the last round ended, in milliseconds, if it is
    /// counted.
    spent_millis: u64,
    /// Number of units of all rounds so far, and below their camera samples; both follow from
    /// `ended`.
    units: u32,
    camera_samples: u64,
}

impl FrameRounds {
    /// Returns the rounds of a frame that has not begun; None if it is not sampled in rounds.
    pub fn of(split: &Split) -> Option<Self> {
        let Split::Tiles(grid) = *split else { return None };
        let ended = vec![0; grid.tiles() as usize];
        let rounds = grid.rounds()?;
        let rounds = Self {
            grid,
            rounds,
            round: 1,
            ended,
            opened: 1,
            spent_millis: 0,
            units: 0,
            camera_samples: 0,
        };
        Some(rounds.counted())
    }

    /// Restores the rounds from a snapshot; None if they contradict themselves.
    pub(crate) fn restored(split: &Split, written: WrittenRounds) -> Option<Self> {
        let WrittenRounds { round, ended, opened, spent_millis } = written;
        let rounds = Self::of(split)?;
        let known = 1..=rounds.rounds.count();
        let sound = known.contains(&round)
            && known.contains(&opened)
            && round <= opened
            && ended.len() == rounds.ended.len()
            && ended.iter().all(|end| u32::from(*end) <= round);
        sound.then(|| Self { round, ended, opened, spent_millis, ..rounds }.counted())
    }

    fn counted(mut self) -> Self {
        (self.units, self.camera_samples) = (0, 0);
        for tile in 0..self.tiles() {
            self.units += self.passes(tile);
            let pixels = self.grid.tile_rect(tile).map_or(0, pixels_of);
            self.camera_samples += pixels * u64::from(self.samples(tile));
        }
        self
    }

    /// Round that is open, or is complete but not measured; from 1.
    pub fn round(&self) -> u32 {
        self.round
    }

    /// Returns the number of the last possible round.
    pub fn round_max(&self) -> u32 {
        self.rounds.count()
    }

    /// Returns the number of tiles of the frame.
    pub fn tiles(&self) -> u32 {
        self.ended.len() as u32
    }

    /// The grid of the frame.
    pub fn grid(&self) -> &Grid {
        &self.grid
    }

    /// Whether a tile is in the newest round.
    pub fn goes_on(&self, tile: u32) -> bool {
        self.ended.get(tile as usize) == Some(&0)
    }

    /// Returns the number of tiles in the newest round.
    pub fn tiles_open(&self) -> u32 {
        self.ended.iter().filter(|end| **end == 0).count() as u32
    }

    /// Returns the samples per pixel of the newest round's tiles when it is complete.
    pub fn newest_samples(&self) -> u32 {
        self.rounds.samples(self.round)
    }

    /// Returns the number of passes of a tile in its rounds.
    pub fn passes(&self, tile: u32) -> u32 {
        self.rounds.passes_through(self.rounds_of(tile))
    }

    /// Returns the samples per pixel of a tile in its rounds.
    pub fn samples(&self, tile: u32) -> u32 {
        self.rounds.samples(self.rounds_of(tile))
    }

    /// Returns the first pass of a tile's last round; in the first round, its second pass.
    pub fn last_half(&self, tile: u32) -> u32 {
        match self.rounds_of(tile) {
            0 | 1 => 1,
            round => self.rounds.passes_through(round - 1),
        }
    }

    /// Returns the samples per pixel of the rounds so far, averaged over the frame.
    pub fn mean_samples(&self) -> f64 {
        let pixels: u64 =
            (0..self.tiles()).filter_map(|tile| self.grid.tile_rect(tile)).map(pixels_of).sum();
        self.camera_samples as f64 / pixels as f64
    }

    fn rounds_of(&self, tile: u32) -> u32 {
        match self.ended.get(tile as usize) {
            Some(0) | None => self.round,
            Some(end) => u32::from(*end),
        }
    }

    /// Returns the round that a unit belongs to.
    pub(crate) fn round_of(&self, unit: UnitIndex) -> u32 {
        self.rounds.round_of(self.grid.tile_and_pass(unit).1)
    }

    /// Whether the unit belongs to one of the rounds so far.
    pub fn has(&self, unit: UnitIndex) -> bool {
        let (tile, pass) = self.grid.tile_and_pass(unit);
        tile < self.tiles() && pass < self.passes(tile)
    }

    /// Returns the number of units of all rounds so far.
    pub fn units(&self) -> u32 {
        self.units
    }

    /// Returns the number of camera samples of all rounds so far.
    pub(crate) fn camera_samples(&self) -> u64 {
        self.camera_samples
    }

    /// Returns the first unit at or after `from` that belongs to a round so far.
    pub(crate) fn first_from(&self, from: u32) -> Option<u32> {
        let (tile, pass) = self.grid.tile_and_pass(UnitIndex(from));
        match () {
            () if tile >= self.tiles() => None,
            () if pass < self.passes(tile) => Some(from),
            () => self.grid.unit_of(tile + 1, 0).map(|unit| unit.0),
        }
    }

    /// Whether no further round follows.
    pub(crate) fn is_over(&self) -> bool {
        self.round >= self.rounds.count() || self.tiles_open() == 0
    }

    /// Ends the newest round, which is complete and measured. The next is for these of its tiles.
    pub fn end_round(&mut self, round: u32, going: &TileSet) -> Result<(), String> {
        if round != self.round || self.is_over() {
            return Err(format!(
                "round {round} is measured, and {} of {} is open",
                self.round,
                self.round_max()
            ));
        }
        let known = |tile: &u32| !going.contains(*tile) || self.goes_on(*tile);
        if going.len() > self.ended.len().div_ceil(8) || !(0..self.tiles()).all(|tile| known(&tile))
        {
            return Err(format!("tiles continue after round {round} that were not in it"));
        }
        for (tile, end) in (0..).zip(&mut self.ended) {
            if *end == 0 && !going.contains(tile) {
                *end = round as u8;
            }
        }
        if self.tiles_open() > 0 {
            self.round += 1;
            self.opened = self.opened.max(self.round);
        }
        *self = self.clone().counted();
        Ok(())
    }

    /// Voids what was measured after a round and later ones: the round is open again for its former
    /// tiles.
    pub(crate) fn rewind(&mut self, round: u32) {
        self.round = self.round.min(round);
        let void = |end: &&mut u8| u32::from(**end) >= round;
        self.ended.iter_mut().filter(void).for_each(|end| *end = 0);
        *self = self.clone().counted();
    }

    /// Checks that every committed unit belongs to a round so far.
    pub(crate) fn check(&self, committed: &Bitmap) -> Result<(), String> {
        let known = std::iter::successors(self.first_from(0), |unit| self.first_from(unit + 1));
        let there = known.filter(|unit| committed.get(*unit)).count();
        let sampled = committed.ones_below(self.grid.units());
        match there == sampled as usize && self.clone().counted() == *self {
            true => Ok(()),
            false => Err(format!("{sampled} units are committed, {there} of them wanted")),
        }
    }

    /// Converts the rounds to the form of a snapshot.
    pub(crate) fn written(&self) -> WrittenRounds {
        let Self { round, opened, spent_millis, .. } = *self;
        WrittenRounds { round, ended: self.ended.clone(), opened, spent_millis }
    }

    /// Share of the farm's time that was used until the last round ended, in milliseconds, if it is
    /// counted.
    pub(crate) fn spent_millis(&self) -> u64 {
        self.spent_millis
    }

    /// Notes the share of the farm's time that the frame has used, in milliseconds.
    pub(crate) fn note_spent(&mut self, millis: u64) {
        self.spent_millis = millis;
    }

    /// Returns the tiles of the newest round.
    pub(crate) fn open_tiles(&self) -> TileSet {
        (0..self.tiles()).filter(|tile| self.goes_on(*tile)).collect()
    }

    /// Whether another round for these tiles fits into a time limit, of which a part is spent. Its
    /// samples are expected to cost as much as earlier ones. A round that was opened before, and
    /// whose units were taken back since, always fits.
    pub(crate) fn fits_another(
        &self,
        going: &TileSet,
        spent_millis: u64,
        time_millis: u64,
    ) -> bool {
        if self.round < self.opened {
            return true;
        }
        let each = self.rounds.samples(self.round + 1) - self.rounds.samples(self.round);
        let tiles = (0..self.tiles()).filter(|tile| self.goes_on(*tile) && going.contains(*tile));
        let pixels: u64 = tiles.filter_map(|tile| self.grid.tile_rect(tile)).map(pixels_of).sum();
        let (before, after) = (self.camera_samples, self.camera_samples + pixels * u64::from(each));
        u128::from(spent_millis) * u128::from(after) <= u128::from(time_millis) * u128::from(before)
    }
}

fn pixels_of(rect: TileRect) -> u64 {
    u64::from(rect.width) * u64::from(rect.height)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tessera_protocol::job::{JobKind, RenderSpec};

    /// Three tiles of 32 px, of which the last is narrow, with at most 100 samples: passes of 16,
    /// 16, 32 and 36.
    fn rounds() -> FrameRounds {
        let mut render = RenderSpec::new("a.gltf", Vec::new());
        (render.width, render.height, render.tile) = (70, 20, 32);
        (render.spp, render.unit_samples, render.noise) = (100, 0, Some(0.1));
        FrameRounds::of(&Split::of(&JobKind::Render(render))).unwrap()
    }

    fn tiles(tiles: &[u32]) -> TileSet {
        tiles.iter().copied().collect()
    }

    fn units(rounds: &FrameRounds) -> Vec<u32> {
        std::iter::successors(rounds.first_from(0), |unit| rounds.first_from(unit + 1)).collect()
    }

    #[test]
    fn a_round_covers_the_tiles_that_continue() {
        let mut rounds = rounds();
        assert_eq!(
            (rounds.round(), rounds.round_max(), units(&rounds)),
            (1, 3, vec![0, 1, 4, 5, 8, 9])
        );
        rounds.end_round(1, &tiles(&[0, 2])).unwrap();
        assert_eq!(units(&rounds), [0, 1, 2, 4, 5, 8, 9, 10]);
        assert_eq!(
            (rounds.units(), rounds.camera_samples()),
            (8, 20 * (32 * 64 + 32 * 32 + 6 * 64))
        );
        assert_eq!([0, 1, 2].map(|tile| rounds.samples(tile)), [64, 32, 64]);
        assert_eq!([0, 1, 2].map(|tile| rounds.last_half(tile)), [2, 1, 2]);
        assert!(
            rounds.has(UnitIndex(10)) && !rounds.has(UnitIndex(6)) && !rounds.has(UnitIndex(12))
        );
        assert!(rounds.end_round(1, &tiles(&[0])).is_err(), "measured already");
        assert!(rounds.end_round(2, &tiles(&[1])).is_err(), "it had ended");
        assert!(rounds.end_round(2, &tiles(&[0, 30])).is_err(), "there is no such tile");
        rounds.end_round(2, &tiles(&[2])).unwrap();
        assert_eq!((rounds.is_over(), rounds.samples(2), rounds.tiles_open()), (true, 100, 1));
        assert!(rounds.end_round(3, &tiles(&[2])).is_err(), "there is no round after the last");
    }

    #[test]
    fn rounds_are_over_when_no_tile_continues() {
        let mut rounds = rounds();
        rounds.end_round(1, &tiles(&[])).unwrap();
        assert_eq!((rounds.is_over(), rounds.round(), rounds.units()), (true, 1, 6));
        rounds.rewind(1);
        assert_eq!(rounds, super::tests::rounds());
    }

    #[test]
    fn a_rewound_round_is_open_for_its_former_tiles() {
        let mut rounds = rounds();
        rounds.end_round(1, &tiles(&[0, 2])).unwrap();
        let second = rounds.clone();
        rounds.end_round(2, &tiles(&[2])).unwrap();
        rounds.rewind(2);
        assert_eq!(rounds, FrameRounds { opened: 3, ..second });
        rounds.end_round(2, &tiles(&[])).unwrap();
        rounds.rewind(1);
        assert_eq!(rounds, FrameRounds { opened: 3, ..super::tests::rounds() });
    }

    #[test]
    fn rounds_round_trip_and_invalid_ones_are_refused() {
        let mut rounds = rounds();
        rounds.end_round(1, &tiles(&[1])).unwrap();
        let split = Split::Tiles(rounds.grid);
        rounds.note_spent(1234);
        let written = rounds.written();
        let restored = |change: &dyn Fn(&mut WrittenRounds)| {
            let mut written = written.clone();
            change(&mut written);
            FrameRounds::restored(&split, written)
        };
        assert_eq!(restored(&|_| {}), Some(rounds));
        assert_eq!(restored(&|written| written.round = 4), None);
        assert_eq!(restored(&|written| written.round = 0), None);
        assert_eq!(restored(&|written| written.opened = 1), None);
        assert_eq!(restored(&|written| written.opened = 4), None);
        assert_eq!(restored(&|written| written.ended = vec![3, 0, 0]), None);
        assert_eq!(restored(&|written| written.ended = vec![0; 4]), None);
    }

    #[test]
    fn a_round_fits_if_its_samples_cost_as_much_as_before() {
        let mut rounds = rounds();
        let all = rounds.open_tiles();
        // The second round doubles what is there; of only the wide tiles it adds 32 samples for 64
        // of 70 pixels.
        assert!(
            rounds.fits_another(&all, 5000, 10_000) && !rounds.fits_another(&all, 5001, 10_000)
        );
        let wide = tiles(&[0, 1]);
        assert!(
            rounds.fits_another(&wide, 5223, 10_000) && !rounds.fits_another(&wide, 5225, 10_000)
        );
        assert!(rounds.fits_another(&tiles(&[]), 10_000, 10_000));
        rounds.end_round(1, &wide).unwrap();
        // The third has 36 samples, not 64.
        let next = (64 * 36) as f64 / (64 * 64 + 6 * 32) as f64;
        let most = (10_000.0 / (1.0 + next)) as u64;
        assert!(
            rounds.fits_another(&wide, most, 10_000)
                && !rounds.fits_another(&wide, most + 1, 10_000)
        );
        assert!(
            !rounds.fits_another(&all, most + 1, 10_000),
            "a tile that has ended costs nothing"
        );
        rounds.end_round(2, &wide).unwrap();
        rounds.rewind(1);
        assert!(rounds.fits_another(&all, u64::MAX, 1), "it was opened before");
        rounds.end_round(1, &all).unwrap();
        rounds.end_round(2, &all).unwrap();
    }
}
