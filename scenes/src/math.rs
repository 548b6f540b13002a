//! Vectors, quaternions and affine matrices in f64, and luminance. Plain arithmetic, exact square
//! roots and `libm`, so that every machine gets the same bits.

/// A vector.
pub(crate) type Vec3 = [f64; 3];
/// A quaternion: x, y, z, w.
pub(crate) type Quat = [f64; 4];

pub(crate) fn widen(v: [f32; 3]) -> Vec3 {
    v.map(f64::from)
}

pub(crate) fn narrow(v: Vec3) -> [f32; 3] {
    v.map(|c| c as f32)
}

pub(crate) fn add(a: Vec3, b: Vec3) -> Vec3 {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
}

pub(crate) fn sub(a: Vec3, b: Vec3) -> Vec3 {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

pub(crate) fn scale(a: Vec3, factor: f64) -> Vec3 {
    a.map(|c| c * factor)
}

pub(crate) fn dot(a: Vec3, b: Vec3) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

pub(crate) fn cross(a: Vec3, b: Vec3) -> Vec3 {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

pub(crate) fn length(a: Vec3) -> f64 {
    dot(a, a).sqrt()
}

/// Returns the unit vector along `a`; None if it has no direction.
pub(crate) fn normalize(a: Vec3) -> Option<Vec3> {
    // Scale first, so that the squares of tiny or huge vectors do not underflow or overflow.
    let largest = a.iter().fold(0.0f64, |m, c| m.max(c.abs()));
    if !(largest > 0.0 && largest.is_finite()) {
        return None;
    }
    let a = a.map(|c| c / largest);
    Some(scale(a, 1.0 / length(a)))
}

/// Returns a unit vector perpendicular to the unit vector `n`.
pub(crate) fn any_perpendicular(n: Vec3) -> Vec3 {
    let axis = if n[0].abs() < 0.6 { [1.0, 0.0, 0.0] } else { [0.0, 1.0, 0.0] };
    normalize(cross(n, axis)).unwrap_or([0.0, 0.0, 1.0])
}

/// Returns the Rec. 709 luminance.
pub(crate) fn luminance(rgb: [f64; 3]) -> f64 {
    0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2]
}

/// An affine map: `linear` by rows, then `offset`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Affine {
    pub(crate) linear: [Vec3; 3],
    pub(crate) offset: Vec3,
}

impl Affine {
    pub(crate) const IDENTITY: Self =
        Self { linear: [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], offset: [0.0; 3] };

    /// Makes a map from glTF's sixteen numbers, by columns. The last row is assumed to be 0, 0, 0,
    /// 1.
    pub(crate) fn from_columns(m: [f32; 16]) -> Self {
        let at = |row: usize, column: usize| f64::from(m[column * 4 + row]);
        let row = |r: usize| [at(r, 0), at(r, 1), at(r, 2)];
        Self { linear: [row(0), row(1), row(2)], offset: [at(0, 3), at(1, 3), at(2, 3)] }
    }

    /// Makes a map from scaling, then rotation by a quaternion (normalised here), then translation.
    pub(crate) fn from_trs(translation: Vec3, rotation: Quat, scaling: Vec3) -> Self {
        let [x, y, z, w] = normalize_quat(rotation);
        let turn = [
            [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - z * w), 2.0 * (x * z + y * w)],
            [2.0 * (x * y + z * w), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - x * w)],
            [2.0 * (x * z - y * w), 2.0 * (y * z + x * w), 1.0 - 2.0 * (x * x + y * y)],
        ];
        let linear =
            turn.map(|row| [row[0] * scaling[0], row[1] * scaling[1], row[2] * scaling[2]]);
        Self { linear, offset: translation }
    }

    /// Returns the map that applies `inner` and then `self`.
    pub(crate) fn after(&self, inner: &Self) -> Self {
        let linear = self.linear.map(|row| std::array::from_fn(|c| dot(row, inner.column(c))));
        Self { linear, offset: self.point(inner.offset) }
    }

    pub(crate) fn column(&self, c: usize) -> Vec3 {
        [self.linear[0][c], self.linear[1][c], self.linear[2][c]]
    }

    pub(crate) fn point(&self, p: Vec3) -> Vec3 {
        add(self.vector(p), self.offset)
    }

    pub(crate) fn vector(&self, v: Vec3) -> Vec3 {
        [dot(self.linear[0], v), dot(self.linear[1], v), dot(self.linear[2], v)]
    }

    pub(crate) fn determinant(&self) -> f64 {
        dot(self.linear[0], cross(self.linear[1], self.linear[2]))
    }

    /// Returns the map of normals, up to a positive factor: the cofactors, with the sign of the
    /// inverse transpose.
    pub(crate) fn normal_map(&self) -> [Vec3; 3] {
        let [a, b, c] = self.linear;
        let sign = if self.determinant() < 0.0 { -1.0 } else { 1.0 };
        [scale(cross(b, c), sign), scale(cross(c, a), sign), scale(cross(a, b), sign)]
    }

    /// Adds a map with a weight (linear blend skinning).
    pub(crate) fn accumulate(&mut self, other: &Self, weight: f64) {
        for row in 0..3 {
            for column in 0..3 {
                self.linear[row][column] += other.linear[row][column] * weight;
            }
            self.offset[row] += other.offset[row] * weight;
        }
    }

    pub(crate) const ZERO: Self = Self { linear: [[0.0; 3]; 3], offset: [0.0; 3] };

    pub(crate) fn is_finite(&self) -> bool {
        self.linear.iter().flatten().chain(&self.offset).all(|c| c.is_finite())
    }
}

/// Returns the unit quaternion; the identity if there is no direction.
pub(crate) fn normalize_quat(q: Quat) -> Quat {
    let squared: f64 = q.iter().map(|c| c * c).sum();
    if squared > 0.0 && squared.is_finite() {
        let length = squared.sqrt();
        q.map(|c| c / length)
    } else {
        [0.0, 0.0, 0.0, 1.0]
    }
}

/// Interpolates spherically between unit quaternions, the short way round (glTF 2.0, appendix C.4).
pub(crate) fn slerp(a: Quat, b: Quat, t: f64) -> Quat {
    let mut cosine: f64 = a.iter().zip(b).map(|(x, y)| x * y).sum();
    let sign = if cosine < 0.0 { -1.0 } else { 1.0 };
    cosine *= sign;
    // They are so close together that the sine would lose its digits. The chord is as good as the
    // arc.
    let (from, to) = if cosine > 0.999_999 {
        (1.0 - t, t)
    } else {
        let angle = libm::acos(cosine.min(1.0));
        let sine = libm::sin(angle);
        (libm::sin(angle * (1.0 - t)) / sine, libm::sin(angle * t) / sine)
    };
    normalize_quat(std::array::from_fn(|i| a[i] * from + b[i] * (to * sign)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_turn_about_y_takes_z_to_x() {
        let half = libm::sqrt(0.5);
        let turn = Affine::from_trs([1.0, 2.0, 3.0], [0.0, half, 0.0, half], [1.0, 1.0, 2.0]);
        let p = turn.point([0.0, 0.0, 1.0]);
        for (got, wanted) in p.iter().zip([3.0, 2.0, 3.0]) {
            assert!((got - wanted).abs() < 1e-12, "{p:?}");
        }
    }

    #[test]
    fn slerp_goes_the_short_way_at_even_speed() {
        let half = libm::sqrt(0.5);
        let from = [0.0, 0.0, 0.0, 1.0];
        let to = [0.0, -half, 0.0, -half];
        let third = slerp(from, to, 1.0 / 3.0);
        let angle = 2.0 * libm::acos(third[3].abs());
        assert!((angle - std::f64::consts::FRAC_PI_6).abs() < 1e-12, "{angle}");
    }

    #[test]
    fn the_normal_map_is_the_inverse_transpose_even_when_mirrored() {
        let map = Affine {
            linear: [[-2.0, 0.5, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 1.0]],
            offset: [0.0; 3],
        };
        let rows = map.normal_map();
        let (tangent, normal) = ([1.0, 2.0, -1.0], [2.0, -1.0, 0.0]);
        let mapped = [dot(rows[0], normal), dot(rows[1], normal), dot(rows[2], normal)];
        assert!(
            dot(tangent, normal).abs() < 1e-12 && dot(map.vector(tangent), mapped).abs() < 1e-9
        );
        // It must be on the side of the surface to which the mapped normal points.
        assert!(dot(mapped, map.vector(normal)) > 0.0);
    }
}
