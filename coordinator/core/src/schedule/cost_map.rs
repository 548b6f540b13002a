//! What a sample costs in different parts of a frame: skies are cheap, rooms are not. Found from
//! the device times of results of several devices at once. Pure; decides nothing.

/// Parts of a frame, equal ranges of its units: bands of tiles from the top.
pub(crate) const PARTS: usize = 8;
/// Rounds of the fit. It settles within a few where devices have seen much of a frame, and the
/// later the less they have in common.
const ROUNDS: usize = 24;

/// Returns the part of a frame of `units` units in which a unit is.
pub(crate) fn part_of(unit: u32, units: u32) -> usize {
    let part = u64::from(unit) * PARTS as u64 / u64::from(units.max(1));
    (part as usize).min(PARTS - 1)
}

/// Units that a device has done in a part, with their samples and seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cell {
    pub(crate) units: f32,
    pub(crate) samples: f32,
    pub(crate) secs: f32,
}

/// What one device has done in each part.
pub(crate) type Cells = [Cell; PARTS];

/// Cost of a sample in each part, as a multiple of the mean over a frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CostMap([f64; PARTS]);

impl CostMap {
    /// Finds costs `c` and speeds `v` so that `seconds = samples × c / v` holds over all devices
    /// and parts: alternately the speeds by the costs, and the costs by the speeds (a factorisation
    /// of rank one). To the results of each part comes one of mean cost, so that a single one does
    /// not say too much. A part without results costs as much as the nearest ones that have some.
    pub(crate) fn of<'a>(devices: impl Iterator<Item = &'a Cells> + Clone) -> Self {
        let mut costs = Self([1.0; PARTS]);
        let all = || devices.clone().flatten();
        let units: f64 = all().map(|cell| f64::from(cell.units)).sum();
        let unit = all().map(|cell| f64::from(cell.samples)).sum::<f64>() / units.max(1.0);
        for _ in 0..ROUNDS {
            let (mut samples, mut work) = ([0.0; PARTS], [0.0; PARTS]);
            for cells in devices.clone() {
                let Some(speed) = costs.speed(cells) else { continue };
                for (part, cell) in cells.iter().enumerate() {
                    samples[part] += f64::from(cell.samples);
                    work[part] += f64::from(cell.secs) * speed;
                }
            }
            let mean = work.iter().sum::<f64>() / samples.iter().sum::<f64>();
            let known = std::array::from_fn(|part| {
                (samples[part] > 0.0 && work[part] > 0.0)
                    .then(|| (work[part] + unit * mean) / (samples[part] + unit))
            });
            costs = Self::around(&known);
        }
        costs
    }

    /// Fills the gaps, and makes the mean 1.
    fn around(known: &[Option<f64>; PARTS]) -> Self {
        let below = |part: usize| known[..=part].iter().rev().flatten().next().copied();
        let above = |part: usize| known[part..].iter().flatten().next().copied();
        let costs: [f64; PARTS] = std::array::from_fn(|part| match (below(part), above(part)) {
            (Some(one), Some(other)) => (one + other) / 2.0,
            (one, other) => one.or(other).unwrap_or(1.0),
        });
        let mean = costs.iter().sum::<f64>() / PARTS as f64;
        Self(costs.map(|cost| cost / mean))
    }

    /// Returns the cost of a sample in a part.
    pub(crate) fn at(&self, part: usize) -> f64 {
        self.0.get(part).copied().unwrap_or(1.0)
    }

    /// Returns the speed of a device in samples of mean cost a second; None if it has done nothing.
    pub(crate) fn speed(&self, cells: &Cells) -> Option<f64> {
        let secs: f64 = cells.iter().map(|cell| f64::from(cell.secs)).sum();
        let work = cells.iter().zip(&self.0).map(|(cell, cost)| f64::from(cell.samples) * cost);
        let per_sec = work.sum::<f64>() / secs;
        (per_sec > 0.0 && per_sec.is_finite()).then_some(per_sec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_equal_ranges_of_units() {
        let parts: Vec<usize> = [0, 9, 10, 79, 80, 1000].map(|unit| part_of(unit, 80)).into();
        assert_eq!(parts, [0, 0, 1, 7, 7, 7]);
        assert_eq!((part_of(0, 0), part_of(2, 3)), (0, 5));
    }

    /// What a device of this speed took for a thousand samples in each of these parts.
    fn device(speed: f64, costs: &[f64; PARTS], parts: &[usize]) -> Cells {
        let mut cells = Cells::default();
        for part in parts {
            let secs = (1000.0 * costs[*part] / speed) as f32;
            cells[*part] = Cell { units: 100.0, samples: 1000.0, secs };
        }
        cells
    }

    #[test]
    fn costs_are_told_from_speeds() {
        // The fast device has seen the expensive end alone, the slow one the cheap end.
        let costs = [0.2, 0.2, 0.4, 0.8, 1.2, 1.6, 1.8, 1.8];
        let devices = [device(1e6, &costs, &[3, 4, 5, 6, 7]), device(1e5, &costs, &[0, 1, 2, 3])];
        let map = CostMap::of(devices.iter());
        for (part, cost) in costs.iter().enumerate() {
            assert!((map.at(part) / cost - 1.0).abs() < 0.2, "{part}: {map:?}");
        }
        let ratio = map.speed(&devices[0]).unwrap() / map.speed(&devices[1]).unwrap();
        assert!((ratio - 10.0).abs() < 2.0, "{ratio}");
    }

    #[test]
    fn unknown_parts_cost_as_their_neighbours() {
        let costs = [1.0, 0.0, 0.0, 3.0, 0.0, 0.0, 0.0, 0.0];
        let map = CostMap::of([device(1e3, &costs, &[0, 3])].iter());
        // Nearly 1, 2, 2, 3, 3, 3, 3, 3 over their mean of 2.5.
        assert!((map.at(1) / map.at(0) - 2.0).abs() < 0.02, "{map:?}");
        assert!((map.at(7) - 1.2).abs() < 0.02, "{map:?}");
        let mut once = device(1e3, &costs, &[0, 3]);
        (once[0].units, once[3].units) = (1.0, 1.0);
        let map = CostMap::of([once].iter());
        assert!((map.at(3) / map.at(0) - 5.0 / 3.0).abs() < 1e-3, "one unit each: {map:?}");
        let nothing = CostMap::of([Cells::default()].iter());
        assert_eq!((nothing.at(0), nothing.speed(&Cells::default())), (1.0, None));
        assert_eq!(CostMap::of(std::iter::empty::<&Cells>()).at(9), 1.0);
    }
}
