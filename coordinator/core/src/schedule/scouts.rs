//! Scouts: a few units spread over a job's first frame that are leased before the others, so that
//! what the whole picture costs is known early. They are units like all others, only sooner. Those
//! that any node has, and those that are done at any time, are spread as well: a picture is not
//! judged by its sky. Pure.

/// Units of a frame from which on some go ahead.
const UNITS_LEAST: u32 = 32;
/// One of so many units is a scout.
const SHARE: u32 = 6;
/// Most scouts of a job.
const MOST: u32 = 256;
/// The golden ratio's fraction times 2^16. Its multiples are spread evenly in any number, so that
/// scouts do not all fall into one column of tiles.
const GOLDEN: u64 = 40_503;

/// Scouts that were not leased yet, the next one at the end.
#[derive(Debug, Default)]
pub(crate) struct Scouts(Vec<u32>);

/// Returns the fraction of so many golden ratios, times 2^16.
fn fraction(number: u32) -> u64 {
    u64::from(number) * GOLDEN % (1 << 16)
}

impl Scouts {
    /// Chooses the scouts of a frame of so many units in so many tiles: one in each of equal parts,
    /// and at most one a tile. None in a frame of few units.
    ///
    /// Any few that follow each other are spread over the frame: the fractions of multiples of the
    /// golden ratio divide a range evenly after any number (Knuth, The Art of Computer Programming
    /// 3, section 6.4, theorem S).
    pub(crate) fn of(units: u32, tiles: u32) -> Self {
        let count = if units < UNITS_LEAST { 0 } else { (units / SHARE).min(MOST).min(tiles) };
        let place = |part: u32| {
            let units = u64::from(units);
            (((u64::from(part) << 16) + fraction(part)) * units / (u64::from(count) << 16)) as u32
        };
        // The parts from the top have their turns in the order of these fractions.
        let mut turns: Vec<u32> = (0..count).collect();
        turns.sort_by_key(|turn| fraction(*turn));
        let mut scouts = vec![0; count as usize];
        for (part, turn) in (0..count).zip(turns) {
            scouts[(count - 1 - turn) as usize] = place(part);
        }
        Self(scouts)
    }

    /// Returns the next scout that is free. Forgets those before it for good: what becomes free
    /// again later is found like any other unit.
    pub(crate) fn next(&mut self, is_free: impl Fn(u32) -> bool) -> Option<u32> {
        while let Some(unit) = self.0.last().copied() {
            if is_free(unit) {
                return Some(unit);
            }
            self.0.pop();
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn scouts_are_spread_over_the_frame() {
        for units in [32, 60, 240, 510, 2040, 100_000] {
            let all = Scouts::of(units, units).0;
            assert_eq!(all.len() as u32, (units / 6).min(256), "{units}");
            // One in each part.
            let part = f64::from(units) / all.len() as f64;
            let in_order: BTreeSet<u32> = all.iter().copied().collect();
            for (index, unit) in in_order.iter().enumerate() {
                let (begin, end) = (part * index as f64, part * (index + 1) as f64);
                let unit = f64::from(*unit);
                assert!(begin < unit + 1.0 && unit < end, "{unit} of {units}: {begin} to {end}");
            }
            // Of any eight that follow each other, some lie in each quarter.
            for few in all.windows(8) {
                let quarters: BTreeSet<u32> = few.iter().map(|unit| unit * 4 / units).collect();
                assert_eq!(quarters.len(), 4, "{units}: {few:?}");
            }
            // In rows of 15 tiles: not in few columns.
            let columns: BTreeSet<u32> = all.iter().map(|unit| unit % 15).collect();
            assert!(columns.len() >= all.len().min(10) * 2 / 3, "{units}: {columns:?}");
        }
        assert!(Scouts::of(31, 31).0.is_empty() && Scouts::of(0, 0).0.is_empty());
        // Nine tiles of 28 passes: one of each.
        let tiles: BTreeSet<u32> = Scouts::of(252, 9).0.iter().map(|unit| unit / 28).collect();
        assert_eq!(tiles.len(), 9);
    }

    #[test]
    fn taken_scouts_are_passed_over() {
        let mut scouts = Scouts::of(32, 32);
        let first = scouts.next(|_| true).expect("a scout");
        assert_eq!(scouts.next(|_| true), Some(first), "it was not leased");
        let second = scouts.next(|unit| unit != first).expect("a second");
        assert_ne!(second, first);
        assert_eq!(scouts.next(|_| false), None);
        assert_eq!(scouts.next(|_| true), None, "they are not looked at again");
    }
}
