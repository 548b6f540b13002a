//! 3 x 3 matrices of colours in f64.

pub(super) type Rgb = [f64; 3];
pub(super) type Matrix = [[f64; 3]; 3];

/// Returns the matrix times a column.
pub(super) fn multiply(matrix: &Matrix, v: Rgb) -> Rgb {
    matrix.map(|row| dot(row, v))
}

pub(super) fn dot(a: Rgb, b: Rgb) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

/// Returns the matrix that applies `second` to the result of `first`.
pub(super) fn then(first: &Matrix, second: &Matrix) -> Matrix {
    let columns = transpose(first).map(|column| multiply(second, column));
    transpose(&columns)
}

pub(super) fn transpose(m: &Matrix) -> Matrix {
    [0, 1, 2].map(|row| [0, 1, 2].map(|column| m[column][row]))
}

/// Returns the inverse of a matrix that has one.
pub(super) fn inverse(m: &Matrix) -> Matrix {
    let minor = |row: usize, column: usize| {
        let [r, s] = [(row + 1) % 3, (row + 2) % 3];
        let [c, d] = [(column + 1) % 3, (column + 2) % 3];
        m[r][c] * m[s][d] - m[r][d] * m[s][c]
    };
    let determinant = dot(m[0], [minor(0, 0), minor(0, 1), minor(0, 2)]);
    [0, 1, 2].map(|row| [0, 1, 2].map(|column| minor(column, row) / determinant))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_and_its_inverse_cancel() {
        let m = [[2.0, 1.0, 0.5], [-1.0, 3.0, 0.25], [0.0, 0.5, 1.5]];
        let both = then(&m, &inverse(&m));
        for (row, values) in both.iter().enumerate() {
            for (column, value) in values.iter().enumerate() {
                let expected = if row == column { 1.0 } else { 0.0 };
                assert!((value - expected).abs() < 1e-15, "{both:?}");
            }
        }
        assert_eq!(multiply(&m, [1.0, 2.0, 4.0]), [6.0, 6.0, 7.0]);
    }
}
