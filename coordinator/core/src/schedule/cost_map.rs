//! What a sample costs in different places of a frame: skies are cheap, rooms are not. Found from
//! the device times of results of several devices at once. Pure; decides nothing.

use crate::schedule::cells::{Cell, Cells, Layout};

/// Bands of a frame by which the speeds of devices are told apart: equal ranges of its cells.
const BANDS: usize = 8;
/// Rounds of the fit by bands. It settles within a few where devices have seen much of a frame, and
/// the later the less they have in common.
const BAND_ROUNDS: usize = 24;
/// Rounds of the fit by cells, which begins with the speeds by bands. Devices that share no cell
/// keep these.
const CELL_ROUNDS: usize = 4;

/// Cost of a sample in each cell, as a multiple of the mean over a frame.
#[derive(Clone, Debug)]
pub(crate) struct CostMap(Vec<f64>);

impl CostMap {
    /// Finds costs `c` and speeds `v` so that `seconds = samples × c / v` holds over all devices
    /// and cells: alternately the speeds by the costs, and the costs by the speeds (a factorisation
    /// of rank one). Two devices may have no cell in common, so it begins with bands. A cell
    /// without results costs as much as the nearest ones that have some.
    pub(crate) fn of<'a>(layout: Layout, devices: impl Iterator<Item = &'a Cells>) -> Self {
        let devices: Vec<&Cells> = devices.collect();
        let count = layout.cells();
        let bands: Vec<Vec<Cell>> =
            devices.iter().map(|cells| cells.in_ranges(count, BANDS)).collect();
        let mut speeds = speeds_by_bands(&bands);
        let mut known = vec![None; count];
        for _ in 0..CELL_ROUNDS {
            let (mut samples, mut work) = (vec![0.0; count], vec![0.0; count]);
            for (cells, speed) in devices.iter().zip(&speeds) {
                for (at, cell) in cells.iter().filter(|(at, _)| *at < count) {
                    samples[at] += f64::from(cell.samples);
                    work[at] += f64::from(cell.secs) * speed.unwrap_or(0.0);
                }
            }
            let cost = |(work, samples): (&f64, &f64)| {
                (*samples > 0.0 && *work > 0.0).then(|| work / samples)
            };
            known = work.iter().zip(&samples).map(cost).collect();
            let cost_at = |at: usize| known.get(at).copied().flatten().unwrap_or(0.0);
            speeds = devices.iter().map(|cells| speed(cells.iter(), cost_at)).collect();
        }
        Self::around(layout, &known)
    }

    /// Fills the gaps, and makes the mean 1.
    fn around(layout: Layout, known: &[Option<f64>]) -> Self {
        let filled = |at: usize| known[at].or_else(|| near(layout, known, at)).unwrap_or(1.0);
        let costs: Vec<f64> = (0..known.len()).map(filled).collect();
        let mean = costs.iter().sum::<f64>() / costs.len().max(1) as f64;
        Self(costs.into_iter().map(|cost| cost / mean).collect())
    }

    /// Returns the cost of a sample in a cell.
    pub(crate) fn at(&self, cell: usize) -> f64 {
        self.0.get(cell).copied().unwrap_or(1.0)
    }

    /// Returns the speed of a device in samples of mean cost a second; None if it has done nothing.
    pub(crate) fn speed(&self, cells: &Cells) -> Option<f64> {
        speed(cells.iter(), |at| self.at(at))
    }
}

/// Returns the speed of a device by what samples cost where it was.
fn speed(cells: impl Iterator<Item = (usize, Cell)>, cost: impl Fn(usize) -> f64) -> Option<f64> {
    let (mut secs, mut work) = (0.0, 0.0);
    for (at, cell) in cells {
        secs += f64::from(cell.secs);
        work += f64::from(cell.samples) * cost(at);
    }
    let per_sec = work / secs;
    (per_sec > 0.0 && per_sec.is_finite()).then_some(per_sec)
}

/// Tells the speeds of devices from the costs of bands. To the results of each band comes one of
/// mean cost, so that a single one does not say too much.
fn speeds_by_bands(devices: &[Vec<Cell>]) -> Vec<Option<f64>> {
    let all = || devices.iter().flatten();
    let units: f64 = all().map(|cell| f64::from(cell.units)).sum();
    let unit = all().map(|cell| f64::from(cell.samples)).sum::<f64>() / units.max(1.0);
    let mut costs = [1.0; BANDS];
    let speed = |bands: &[Cell], costs: &[f64; BANDS]| {
        speed(bands.iter().copied().enumerate(), |band| costs[band])
    };
    for _ in 0..BAND_ROUNDS {
        let (mut samples, mut work) = ([0.0; BANDS], [0.0; BANDS]);
        for bands in devices {
            let Some(speed) = speed(bands, &costs) else { continue };
            for (band, cell) in bands.iter().enumerate() {
                samples[band] += f64::from(cell.samples);
                work[band] += f64::from(cell.secs) * speed;
            }
        }
        let mean = work.iter().sum::<f64>() / samples.iter().sum::<f64>();
        costs = std::array::from_fn(|band| {
            (work[band] + unit * mean) / (samples[band] + unit) / mean.max(f64::MIN_POSITIVE)
        });
    }
    devices.iter().map(|bands| speed(bands, &costs)).collect()
}

/// Returns what a sample costs in the cells nearest to one: their mean, by the inverse square of
/// their distance. None where nothing is known.
fn near(layout: Layout, known: &[Option<f64>], at: usize) -> Option<f64> {
    let costs = || known.iter().enumerate().filter_map(|(other, cost)| Some((other, (*cost)?)));
    let distance = |other: usize| layout.distance(at, other);
    let nearest = costs().map(|(other, _)| distance(other)).min_by(f64::total_cmp)?;
    let (mut sum, mut weights) = (0.0, 0.0);
    for (other, cost) in costs().filter(|(other, _)| distance(*other) <= nearest + 1.0) {
        let weight = distance(other).powi(-2);
        (sum, weights) = (sum + weight * cost, weights + weight);
    }
    Some(sum / weights)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::splitter::Split;
    use tessera_protocol::compute::{ComputeSpec, Domain, Program};
    use tessera_protocol::job::JobKind;

    /// Frames of so many cells in a row.
    fn row(cells: u32) -> Layout {
        let domain = Domain { width: cells, height: 1, depth: 1 };
        let mut spec = ComputeSpec::new(Program::Builtin("merge".into()), domain);
        spec.chunk = 1;
        Layout::of(&Split::of(&JobKind::Compute(spec)))
    }

    /// What a device of this speed took for units of a thousand samples in each of these cells.
    fn device(speed: f64, costs: &[f64], (units, cells): (u32, &[usize])) -> Cells {
        let mut done = Cells::default();
        for cell in cells {
            (0..units).for_each(|_| done.add(*cell, 1000, 1000.0 * costs[*cell] / speed));
        }
        done
    }

    #[test]
    fn costs_are_told_from_speeds() {
        // The fast device has seen the expensive end alone, the slow one the cheap end.
        let costs = [0.2, 0.2, 0.4, 0.8, 1.2, 1.6, 1.8, 1.8];
        let devices =
            [device(1e6, &costs, (20, &[3, 4, 5, 6, 7])), device(1e5, &costs, (20, &[0, 1, 2, 3]))];
        let map = CostMap::of(row(8), devices.iter());
        for (cell, cost) in costs.iter().enumerate() {
            assert!((map.at(cell) / cost - 1.0).abs() < 0.15, "{cell}: {map:?}");
        }
        let ratio = map.speed(&devices[0]).unwrap() / map.speed(&devices[1]).unwrap();
        assert!((ratio - 10.0).abs() < 2.0, "{ratio}");
    }

    #[test]
    fn devices_without_a_cell_in_common_are_told_by_bands() {
        // Every second cell each; costs rise slowly.
        let costs: Vec<f64> = (0..64).map(|cell| 1.0 + f64::from(cell) / 64.0).collect();
        let cells = |odd: usize| (0..32).map(|cell| 2 * cell + odd).collect::<Vec<_>>();
        let devices = [device(1e6, &costs, (1, &cells(0))), device(1e5, &costs, (1, &cells(1)))];
        let map = CostMap::of(row(64), devices.iter());
        let ratio = map.speed(&devices[0]).unwrap() / map.speed(&devices[1]).unwrap();
        assert!((ratio - 10.0).abs() < 0.5, "{ratio}");
        for at in [0, 1, 30, 63] {
            assert!((map.at(at) * 1.492 / costs[at] - 1.0).abs() < 0.05, "{at}: {map:?}");
        }
    }

    #[test]
    fn unknown_cells_cost_as_their_neighbours() {
        let costs = [1.0, 0.0, 0.0, 3.0, 0.0, 0.0, 0.0, 0.0];
        let map = CostMap::of(row(8), [device(1e3, &costs, (1, &[0, 3]))].iter());
        // 1, 1.4, 2.6, 3, 3, 3, 3, 3: by the inverse squares of 1 and 2.
        assert!((map.at(1) / map.at(0) - 1.4).abs() < 1e-3, "{map:?}");
        assert!((map.at(2) / map.at(0) - 2.6).abs() < 1e-3, "{map:?}");
        assert!((map.at(7) / map.at(0) - 3.0).abs() < 1e-3, "{map:?}");
        let mean = (0..8).map(|cell| map.at(cell)).sum::<f64>() / 8.0;
        assert!((mean - 1.0).abs() < 1e-9, "{map:?}");
        let nothing = CostMap::of(row(8), [Cells::default()].iter());
        assert_eq!((nothing.at(0), nothing.speed(&Cells::default())), (1.0, None));
        assert_eq!(CostMap::of(row(8), std::iter::empty()).at(9), 1.0);
    }
}
