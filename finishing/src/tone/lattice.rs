//! A function of three values in [0, 1], known at the points of a regular lattice. Between them it
//! is interpolated in tetrahedra, as colour management does with tables of three dimensions.

use super::matrix::Rgb;
use rayon::prelude::*;

/// Values at the points of a lattice; the first coordinate runs fastest.
#[derive(Debug)]
pub(super) struct Lattice {
    edge: usize,
    values: Vec<Rgb>,
}

impl Lattice {
    /// Evaluates a function at `edge` points along each axis. `edge` is at least 2.
    pub(super) fn new(edge: usize, value: impl Fn(Rgb) -> Rgb + Sync) -> Self {
        let last = (edge - 1) as f64;
        let place = |index: usize| {
            let steps = [index % edge, index / edge % edge, index / edge / edge];
            value(steps.map(|step| step as f64 / last))
        };
        Self { edge, values: (0..edge * edge * edge).into_par_iter().map(place).collect() }
    }

    /// Points along an axis.
    pub(super) fn edge(&self) -> usize {
        self.edge
    }

    /// The value of each point.
    pub(super) fn values(&self) -> &[Rgb] {
        &self.values
    }

    /// Returns the value at a point, which is moved into [0, 1]. The point's tetrahedron has the
    /// corners of its cell that one passes when the coordinates rise to their ends one after the
    /// other, the one with the largest rest first.
    pub(super) fn at(&self, point: Rgb) -> Rgb {
        let place = point.map(|v| v.clamp(0.0, 1.0) * (self.edge - 1) as f64);
        let cell = place.map(|v| (v as usize).min(self.edge - 2));
        let rest = [0, 1, 2].map(|axis| place[axis] - cell[axis] as f64);
        let mut axes = [0, 1, 2];
        axes.sort_by(|a, b| rest[*b].total_cmp(&rest[*a]));
        let strides = [1, self.edge, self.edge * self.edge];
        let mut corner = cell[0] + (cell[1] + cell[2] * self.edge) * self.edge;
        let mut sum = self.values[corner].map(|v| v * (1.0 - rest[axes[0]]));
        for (step, axis) in axes.into_iter().enumerate() {
            corner += strides[axis];
            let next = axes.get(step + 1).map_or(0.0, |next| rest[*next]);
            let weight = rest[axis] - next;
            let value = self.values[corner];
            sum = [0, 1, 2].map(|channel| sum[channel] + value[channel] * weight);
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_linear_function_is_met_everywhere() {
        let linear = |[r, g, b]: Rgb| [r + 2.0 * g - b, 0.5 - g, b];
        let lattice = Lattice::new(5, linear);
        for point in [[0.0; 3], [1.0; 3], [0.3, 0.9, 0.1], [0.62, 0.17, 0.99], [0.25, 0.5, 0.75]] {
            let (found, expected) = (lattice.at(point), linear(point));
            for (a, b) in found.into_iter().zip(expected) {
                assert!((a - b).abs() < 1e-14, "{point:?}: {found:?} is not {expected:?}");
            }
        }
        assert_eq!(lattice.at([-3.0, 7.0, 1.0]), linear([0.0, 1.0, 1.0]));
    }

    #[test]
    fn between_points_the_three_largest_corners_decide() {
        // The product is 1 at one corner only. In its tetrahedra the smallest coordinate is its
        // weight; a trilinear mean would be 0.9 * 0.5 * 0.2.
        let product = Lattice::new(2, |[r, g, b]| [r * g * b; 3]);
        assert!((product.at([0.9, 0.5, 0.2])[0] - 0.2).abs() < 1e-15);
    }
}
