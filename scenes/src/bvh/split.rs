//! Split rules: where a range of triangles is cut in two. Every rule reorders the range and returns how many of its
//! triangles go left: at least one, and not all.

use super::bounds::{Bounds, PrimitiveRef};
use tessera_layout::LEAF_TRIANGLES_MAX;

/// Bins per axis of a large range. More gain nothing that a ray would notice.
const BINS_MAX: usize = 16;

/// One bin: what has its centre there.
#[derive(Clone, Copy)]
struct Bin {
    bounds: Bounds,
    count: u32,
}

impl Bin {
    /// What tracing these triangles costs, in proportion: leaves are tested whole, so that a part of one counts as one.
    fn cost(&self) -> f32 {
        self.bounds.half_area() * self.count.div_ceil(LEAF_TRIANGLES_MAX) as f32
    }
}

const EMPTY_BIN: Bin = Bin { bounds: Bounds::EMPTY, count: 0 };

/// Maps centres to bins, all axes alike.
struct Binning {
    origin: [f32; 4],
    scale: [f32; 4],
    bins: usize,
}

impl Binning {
    fn new(centers: &Bounds, count: usize) -> Binning {
        let bins = (8 + count / 8).min(BINS_MAX);
        let mut scale = [0.0; 4];
        for (axis, scale) in scale.iter_mut().enumerate().take(3) {
            // A little less than the number of bins, so that the last centre falls into the last bin.
            let factor = bins as f32 * 0.999_99 / (centers.upper[axis] - centers.lower[axis]);
            *scale = if factor.is_finite() { factor } else { 0.0 };
        }
        Binning { origin: centers.lower, scale, bins }
    }

    fn bins_of(&self, primitive: &PrimitiveRef) -> [usize; 4] {
        let center = primitive.center();
        let mut bin = [0; 4];
        for axis in 0..3 {
            let at = ((center[axis] - self.origin[axis]) * self.scale[axis]) as i32;
            bin[axis] = (at as usize).min(self.bins - 1);
        }
        bin
    }
}

/// The best cut between two bins.
struct Cut {
    axis: usize,
    /// First bin of the right side.
    bin: usize,
}

/// Cuts by the surface area heuristic over binned centres; by count where all centres fall together or no cut has a
/// finite cost.
pub(super) fn surface_area(primitives: &mut [PrimitiveRef], centers: &Bounds) -> usize {
    let binning = Binning::new(centers, primitives.len());
    let Some(cut) = best_cut(primitives, &binning) else {
        return primitives.len() / 2;
    };
    let left = partition(primitives, |primitive| binning.bins_of(primitive)[cut.axis] < cut.bin);
    if left == 0 || left == primitives.len() { primitives.len() / 2 } else { left }
}

fn best_cut(primitives: &[PrimitiveRef], binning: &Binning) -> Option<Cut> {
    let mut bins = [[EMPTY_BIN; BINS_MAX]; 3];
    for primitive in primitives {
        let at = binning.bins_of(primitive);
        for axis in 0..3 {
            let bin = &mut bins[axis][at[axis]];
            bin.bounds.add(&primitive.0);
            bin.count += 1;
        }
    }
    let mut best = None;
    let mut best_cost = f32::INFINITY;
    for (axis, bins) in bins.iter().enumerate() {
        if binning.scale[axis] == 0.0 {
            continue;
        }
        let right_cost = costs_from_the_right(&bins[..binning.bins]);
        let mut left = EMPTY_BIN;
        for bin in 1..binning.bins {
            left.bounds.add(&bins[bin - 1].bounds);
            left.count += bins[bin - 1].count;
            let cost = left.cost() + right_cost[bin];
            if cost < best_cost && left.count > 0 && left.count < primitives.len() as u32 {
                best_cost = cost;
                best = Some(Cut { axis, bin });
            }
        }
    }
    best
}

/// For each bin, area times count of it and everything after it.
fn costs_from_the_right(bins: &[Bin]) -> [f32; BINS_MAX] {
    let mut costs = [0.0; BINS_MAX];
    let mut right = EMPTY_BIN;
    for (cost, bin) in costs.iter_mut().zip(bins).rev().skip(BINS_MAX - bins.len()) {
        right.bounds.add(&bin.bounds);
        right.count += bin.count;
        *cost = right.cost();
    }
    costs
}

/// Moves what `goes_left` to the front and returns how many those are.
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

/// Cuts anywhere, after putting triangles anywhere.
pub(super) fn random(primitives: &mut [PrimitiveRef], seed: u64) -> usize {
    let mut state = seed ^ (primitives.len() as u64) << 32 ^ u64::from(primitives[0].id());
    let mut draw = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for last in (1..primitives.len()).rev() {
        let other = draw(last + 1);
        primitives.swap(last, other);
    }
    1 + draw(primitives.len() - 1)
}
