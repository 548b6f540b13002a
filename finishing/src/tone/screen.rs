//! Tone maps as tables, for programs that show linear pixels themselves: a browser, a viewer. They
//! come from the same lattices as the farm's own files.

use super::lattice::Lattice;
use super::matrix::Matrix;

/// Steps of the curve.
const STEPS: usize = 4096;

/// How a colour gets from linear Rec. 709 to the screen: a matrix, a logarithm, a lattice and a
/// curve, in this order.
pub(super) struct ScreenMap {
    /// To the space of the lattice.
    space: Matrix,
    /// Stops from 1 at which the lattice begins and ends.
    log2: [f64; 2],
    lattice: &'static Lattice,
    /// From the lattice's values, in [0, 1], to values of an sRGB display.
    curve: fn(f64) -> f64,
}

impl ScreenMap {
    pub(super) fn new(
        (space, log2): (Matrix, [f64; 2]),
        lattice: &'static Lattice,
        curve: fn(f64) -> f64,
    ) -> Self {
        Self { space, log2, lattice, curve }
    }

    /// The map as `screen_map` describes it.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let head = [self.lattice.edge() as f64, STEPS as f64, self.log2[0], self.log2[1]];
        let curve = (0..=STEPS).map(|step| (self.curve)(step as f64 / STEPS as f64));
        let colors = self.lattice.values().iter().flatten().copied();
        let all = head.into_iter().chain(self.space.into_iter().flatten()).chain(curve);
        all.chain(colors).flat_map(|value| (value as f32).to_le_bytes()).collect()
    }
}
