//! Axis-aligned boxes, and references to triangles with their boxes. They have four lanes, of which
//! three count, so that the compiler uses one vector operation for each.

/// A box; empty where lower is above upper.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(16))]
pub(super) struct Bounds {
    pub(super) lower: [f32; 4],
    pub(super) upper: [f32; 4],
}

impl Bounds {
    pub(super) const EMPTY: Bounds =
        Bounds { lower: [f32::INFINITY; 4], upper: [f32::NEG_INFINITY; 4] };

    pub(super) fn add(&mut self, other: &Bounds) {
        for axis in 0..4 {
            self.lower[axis] = lesser(self.lower[axis], other.lower[axis]);
            self.upper[axis] = greater(self.upper[axis], other.upper[axis]);
        }
    }

    pub(super) fn add_point(&mut self, point: [f32; 3]) {
        let [x, y, z] = point;
        self.add(&Bounds { lower: [x, y, z, 0.0], upper: [x, y, z, 0.0] });
    }

    /// Moves every side outwards by `padding`.
    pub(super) fn pad(&mut self, padding: f32) {
        for axis in 0..3 {
            self.lower[axis] -= padding;
            self.upper[axis] += padding;
        }
    }

    /// Returns half the surface area in square metres; infinite if it overflows, and 0 for an empty
    /// box.
    pub(super) fn half_area(&self) -> f32 {
        let extent = |axis: usize| self.upper[axis] - self.lower[axis];
        let (x, y, z) = (extent(0), extent(1), extent(2));
        if x < 0.0 { 0.0 } else { x * y + y * z + z * x }
    }

    pub(super) fn longest_axis(&self) -> usize {
        let extent = |axis: usize| self.upper[axis] - self.lower[axis];
        (0..3).fold(0, |longest, axis| if extent(axis) > extent(longest) { axis } else { longest })
    }
}

/// The padded box of a triangle and its id. The bits of the id are in the unused lane of the lower
/// bound.
#[derive(Clone, Copy, Debug)]
pub(super) struct PrimitiveRef(pub(super) Bounds);

impl PrimitiveRef {
    pub(super) fn new(mut bounds: Bounds, id: u32) -> PrimitiveRef {
        bounds.lower[3] = f32::from_bits(id);
        PrimitiveRef(bounds)
    }

    pub(super) fn id(&self) -> u32 {
        self.0.lower[3].to_bits()
    }

    /// Returns twice the centre of the box along one axis.
    pub(super) fn center_along(&self, axis: usize) -> f32 {
        self.0.lower[axis] + self.0.upper[axis]
    }

    /// Returns twice the centre of the box.
    pub(super) fn center(&self) -> [f32; 4] {
        let mut center = [0.0; 4];
        for (axis, value) in center.iter_mut().enumerate() {
            *value = self.0.lower[axis] + self.0.upper[axis];
        }
        center
    }
}

/// Does what one `minps` does. `f32::min` needs several instructions because of NaN.
fn lesser(a: f32, b: f32) -> f32 {
    if a < b { a } else { b }
}

fn greater(a: f32, b: f32) -> f32 {
    if a > b { a } else { b }
}
