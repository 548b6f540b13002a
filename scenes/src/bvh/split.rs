//! Rules that divide a range of triangles in two. Every rule reorders the range and returns how
//! many of its triangles go left: at least one, and not all.

use super::bounds::{Bounds, PrimitiveRef};
use rayon::prelude::*;
use tessera_layout::LEAF_TRIANGLES_MAX;

/// Most bins per axis, for a large range. More bins have no measurable effect on rays.
const BINS_MAX: usize = 16;

/// Size of a range from which all threads measure and bin it, one chunk each. A box of boxes is the
/// same in any order.
pub(super) const CHUNKED_MIN: usize = 1 << 16;
pub(super) const CHUNK: usize = 1 << 14;

/// Triangles with their centre in one or several bins.
#[derive(Clone, Copy)]
struct Bin {
    bounds: Bounds,
    count: u32,
}

impl Bin {
    fn add(&mut self, bounds: &Bounds, count: u32) {
        self.bounds.add(bounds);
        self.count += count;
    }

    /// Returns a value proportional to the cost of tracing these triangles. Leaves are tested as a
    /// whole, so a part of one counts as one.
    fn cost(&self) -> f32 {
        self.bounds.half_area() * self.count.div_ceil(LEAF_TRIANGLES_MAX) as f32
    }
}

const EMPTY_BIN: Bin = Bin { bounds: Bounds::EMPTY, count: 0 };

/// The bins of one axis.
#[derive(Clone, Copy)]
struct Bins {
    bounds: [Bounds; BINS_MAX],
    counts: [u32; BINS_MAX],
}

impl Bins {
    fn add(&mut self, other: &Bins) {
        for bin in 0..BINS_MAX {
            self.bounds[bin].add(&other.bounds[bin]);
            self.counts[bin] += other.counts[bin];
        }
    }
}

const EMPTY_BINS: Bins = Bins { bounds: [Bounds::EMPTY; BINS_MAX], counts: [0; BINS_MAX] };

/// Maps centres to bins, in the same way for all axes.
struct Binning {
    origin: [f32; 4],
    scale: [f32; 4],
    bins: usize,
}

impl Binning {
    fn new(centers: &Bounds, count: usize) -> Binning {
        let bins = (4 + count / 4).min(BINS_MAX);
        let mut scale = [0.0; 4];
        for (axis, scale) in scale.iter_mut().enumerate().take(3) {
            // The factor is a little less than the number of bins, so that the last centre falls
            // into the last bin.
            let factor = bins as f32 * 0.999_99 / (centers.upper[axis] - centers.lower[axis]);
            *scale = if factor.is_finite() { factor } else { 0.0 };
        }
        Binning { origin: centers.lower, scale, bins }
    }

    /// Returns the bin along an axis. The sum of a float below 2^22 and 1.5 x 2^23 has the rounded
    /// value of the first in its lowest bits. This takes one addition, while a cast handles cases
    /// that cannot occur here.
    fn bin_of(&self, primitive: &PrimitiveRef, axis: usize) -> usize {
        const ROUNDING: f32 = 12_582_912.0;
        let at = (primitive.center_along(axis) - self.origin[axis]) * self.scale[axis] - 0.5;
        (at + ROUNDING).to_bits() as usize % BINS_MAX
    }
}

/// The best division between two bins.
struct Cut {
    axis: usize,
    /// First bin of the right side.
    bin: usize,
}

/// Divides by the surface area heuristic over binned centres. It divides by count if all centres
/// coincide or no division has a finite cost.
pub(super) fn surface_area(primitives: &mut [PrimitiveRef], centers: &Bounds) -> usize {
    let binning = Binning::new(centers, primitives.len());
    let Some(cut) = best_cut(primitives, &binning) else {
        return primitives.len() / 2;
    };
    let left = partition(primitives, |primitive| binning.bin_of(primitive, cut.axis) < cut.bin);
    if left == 0 || left == primitives.len() { primitives.len() / 2 } else { left }
}

/// Does the same as `binned` with all threads.
fn binned_by_all(primitives: &[PrimitiveRef], binning: &Binning) -> [Bins; 3] {
    let chunks = primitives.par_chunks(CHUNK).map(|chunk| binned(chunk, binning));
    chunks.reduce(
        || [EMPTY_BINS; 3],
        |mut all, more| {
            all.iter_mut().zip(&more).for_each(|(all, more)| all.add(more));
            all
        },
    )
}

/// Returns the bins of each axis.
#[inline]
fn binned(primitives: &[PrimitiveRef], binning: &Binning) -> [Bins; 3] {
    let mut bins = [EMPTY_BINS; 3];
    for primitive in primitives {
        for (axis, bins) in bins.iter_mut().enumerate() {
            let at = binning.bin_of(primitive, axis);
            bins.bounds[at].add(&primitive.0);
            bins.counts[at] += 1;
        }
    }
    bins
}

fn best_cut(primitives: &[PrimitiveRef], binning: &Binning) -> Option<Cut> {
    let bins = if primitives.len() >= CHUNKED_MIN {
        binned_by_all(primitives, binning)
    } else {
        binned(primitives, binning)
    };
    let mut best = None;
    let mut best_cost = f32::INFINITY;
    for (axis, bins) in bins.iter().enumerate() {
        if binning.scale[axis] == 0.0 {
            continue;
        }
        let right_cost = costs_from_the_right(bins, binning.bins);
        let mut left = EMPTY_BIN;
        for (bin, right_cost) in right_cost.iter().enumerate().take(binning.bins).skip(1) {
            left.add(&bins.bounds[bin - 1], bins.counts[bin - 1]);
            let cost = left.cost() + right_cost;
            if cost < best_cost && left.count > 0 && left.count < primitives.len() as u32 {
                best_cost = cost;
                best = Some(Cut { axis, bin });
            }
        }
    }
    best
}

/// Returns for each of the first bins the area times the count of it and everything after it.
fn costs_from_the_right(bins: &Bins, count: usize) -> [f32; BINS_MAX] {
    let mut costs = [0.0; BINS_MAX];
    let mut right = EMPTY_BIN;
    for bin in (0..count).rev() {
        right.add(&bins.bounds[bin], bins.counts[bin]);
        costs[bin] = right.cost();
    }
    costs
}

/// Moves the triangles for which `goes_left` is true to the front, and returns their number.
fn partition(primitives: &mut [PrimitiveRef], goes_left: impl Fn(&PrimitiveRef) -> bool) -> usize {
    let (mut front, mut back) = (0, primitives.len());
    loop {
        while front < back && goes_left(&primitives[front]) {
            front += 1;
        }
        while front < back && !goes_left(&primitives[back - 1]) {
            back -= 1;
        }
        if front >= back {
            return front;
        }
        primitives.swap(front, back - 1);
        front += 1;
        back -= 1;
    }
}

/// Halves the range by count along the longest axis of its centres.
pub(super) fn median(primitives: &mut [PrimitiveRef], centers: &Bounds) -> usize {
    let axis = centers.longest_axis();
    let middle = primitives.len() / 2;
    primitives.select_nth_unstable_by(middle, |a, b| {
        a.center()[axis].total_cmp(&b.center()[axis]).then(a.id().cmp(&b.id()))
    });
    middle
}

/// Divides anywhere, after a random reordering.
pub(super) fn random(primitives: &mut [PrimitiveRef], seed: u64) -> usize {
    let mut state = seed ^ (primitives.len() as u64) << 32 ^ u64::from(primitives[0].id());
    let mut draw = |below: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for last in (1..primitives.len()).rev() {
        let other = draw(last + 1);
        primitives.swap(last, other);
    }
    1 + draw(primitives.len() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This includes ranges with fewer than the most bins. A side that lacks some gives a slow
    /// tree, but not a wrong one.
    #[test]
    fn costs_from_the_right_match_a_full_count() {
        for count in 1..=BINS_MAX {
            let mut bins = EMPTY_BINS;
            for bin in 0..count {
                let at = bin as f32;
                bins.bounds[bin] =
                    Bounds { lower: [at, -at, 0.0, 0.0], upper: [at + 0.5, 1.0, 1.0 + at, 0.0] };
                bins.counts[bin] = 1 + 3 * bin as u32;
            }
            let costs = costs_from_the_right(&bins, count);
            for (bin, cost) in costs.iter().enumerate().take(count) {
                let mut side = EMPTY_BIN;
                (bin..count).for_each(|bin| side.add(&bins.bounds[bin], bins.counts[bin]));
                assert_eq!(*cost, side.cost(), "bin {bin} of {count}");
            }
        }
    }
}
