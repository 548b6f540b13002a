//! From blocks of 8 x 8 values to quantized coefficients of their cosines.

use super::tables::ZIGZAG;

/// Edge of a block.
pub(super) const EDGE: usize = 8;
const VALUES: usize = EDGE * EDGE;
/// Largest coefficient that baseline files can hold.
const COEFFICIENT_MAX: f64 = 1023.0;

/// Steps of the coefficients of luma or of chroma.
pub(super) struct Quantizer {
    /// In rows, from the lowest frequency on.
    steps: [u8; VALUES],
    /// `basis[u][x]`: the cosine of frequency u at x, times its norm.
    basis: [[f64; EDGE]; EDGE],
}

impl Quantizer {
    /// Scales the steps of quality 50 as the Independent JPEG Group does.
    pub(super) fn new(base: &[u8; VALUES], quality: u8) -> Self {
        let quality = u32::from(quality.clamp(1, 100));
        let scale = if quality < 50 { 5000 / quality } else { 200 - 2 * quality };
        let step = |base: &u8| ((u32::from(*base) * scale + 50) / 100).clamp(1, 255) as u8;
        let mut steps = [0; VALUES];
        steps.iter_mut().zip(base).for_each(|(to, base)| *to = step(base));
        let mut basis = [[0.0; EDGE]; EDGE];
        for (u, row) in basis.iter_mut().enumerate() {
            let norm = if u == 0 { libm::sqrt(0.125) } else { 0.5 };
            for (x, value) in row.iter_mut().enumerate() {
                let angle = (2 * x + 1) as f64 * u as f64 * std::f64::consts::PI / 16.0;
                *value = norm * libm::cos(angle);
            }
        }
        Self { steps, basis }
    }

    /// Returns the steps in the order of files.
    pub(super) fn in_zigzag(&self) -> [u8; VALUES] {
        ZIGZAG.map(|place| self.steps[usize::from(place)])
    }

    /// Returns the coefficients of a block in the order of files.
    pub(super) fn coefficients(&self, value: impl Fn(usize, usize) -> f64) -> [i32; VALUES] {
        let mut rows = [[0.0; EDGE]; EDGE];
        for (y, row) in rows.iter_mut().enumerate() {
            let values: [f64; EDGE] = std::array::from_fn(|x| value(x, y));
            for (u, sum) in row.iter_mut().enumerate() {
                *sum = self.basis[u].iter().zip(values).map(|(basis, v)| basis * v).sum();
            }
        }
        ZIGZAG.map(|place| {
            let (v, u) = (usize::from(place) / EDGE, usize::from(place) % EDGE);
            let sum: f64 = self.basis[v].iter().zip(&rows).map(|(basis, row)| basis * row[u]).sum();
            let step = f64::from(self.steps[usize::from(place)]);
            (sum / step).round().clamp(-COEFFICIENT_MAX, COEFFICIENT_MAX) as i32
        })
    }
}
