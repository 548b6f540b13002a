//! A picture scaled down: each pixel is the mean of those that it stands for, in linear light.

use crate::srgb::srgb_from_linear;

/// R, G and B.
const COLORS: usize = 3;

/// Pixels of a whole picture that are known.
pub(crate) struct Area<'a> {
    /// Place in the picture, from its left and upper edge.
    pub(crate) left: u32,
    pub(crate) top: u32,
    pub(crate) width: u32,
    pub(crate) height: u32,
    /// Linear colour of a pixel of the area, row by row.
    pub(crate) color: &'a dyn Fn(usize) -> [f32; COLORS],
}

/// A picture as it is shown. Black where nothing is known.
#[derive(Clone, Debug)]
pub(crate) struct Small {
    /// Width and height of the whole picture, pixels; at least 1.
    whole: (u32, u32),
    /// Width and height as it is shown; at least 1, at most as large as the whole picture.
    size: (u32, u32),
    /// Linear colours, row by row.
    colors: Vec<[f32; COLORS]>,
}

impl Small {
    /// A black picture. A larger size than the whole picture's is the whole picture's.
    pub(crate) fn new(whole: (u32, u32), size: (u32, u32)) -> Self {
        let whole = (whole.0.max(1), whole.1.max(1));
        let size = (size.0.clamp(1, whole.0), size.1.clamp(1, whole.1));
        Self { whole, size, colors: vec![[0.0; COLORS]; size.0 as usize * size.1 as usize] }
    }

    /// Width and height, pixels.
    pub(crate) fn size(&self) -> (u32, u32) {
        self.size
    }

    /// Replaces every pixel of which the area has a part by the mean of that part, except those
    /// whose middle is beside it.
    pub(crate) fn put(&mut self, area: &Area<'_>) {
        let rows = self.of(area.top, area.height, self.size.1, self.whole.1);
        let columns = self.of(area.left, area.width, self.size.0, self.whole.0);
        for (y, (top, bottom)) in &rows {
            for (x, (left, right)) in &columns {
                let at = (y * self.size.0 + x) as usize;
                self.colors[at] = mean(area, (*left, *right), (*top, *bottom));
            }
        }
    }

    /// The places along one edge whose middle is in a span, each with the part of the span that it
    /// stands for.
    fn of(&self, first: u32, count: u32, size: u32, whole: u32) -> Vec<(u32, (u32, u32))> {
        let end = first.saturating_add(count).min(whole);
        let edge = |place: u32| (u64::from(place) * u64::from(whole) / u64::from(size)) as u32;
        let part = |place: u32| {
            let (from, to) = (edge(place), edge(place + 1).max(edge(place) + 1));
            let middle = from.midpoint(to - 1);
            (first..end).contains(&middle).then(|| (place, (from.max(first), to.min(end))))
        };
        // Only these can be: a place stands for whole / size pixels.
        let near = |pixel: u32| (u64::from(pixel) * u64::from(size) / u64::from(whole)) as u32;
        let range = near(first).saturating_sub(1)..=near(end).saturating_add(1).min(size - 1);
        range.filter_map(part).collect()
    }

    /// Multiplies all colours.
    pub(crate) fn scale(&mut self, factor: f64) {
        for color in &mut self.colors {
            *color = color.map(|value| (f64::from(value) * factor) as f32);
        }
    }

    /// Encoded as sRGB with 8 bits: R, G and B of each pixel, row by row. What is no number is
    /// black.
    pub(crate) fn rgb8(&self) -> Vec<u8> {
        self.colors.iter().flatten().map(|value| encoded(*value)).collect()
    }
}

fn encoded(linear: f32) -> u8 {
    let linear = if linear.is_nan() { 0.0 } else { f64::from(linear).clamp(0.0, 1.0) };
    // Within 0 and 255.5.
    (srgb_from_linear(linear) * 255.0 + 0.5) as u8
}

/// The mean of pixels in columns and rows of the whole picture; what is no number counts as black.
fn mean(area: &Area<'_>, (left, right): (u32, u32), (top, bottom): (u32, u32)) -> [f32; COLORS] {
    let mut sum = [0.0f64; COLORS];
    for y in top..bottom {
        let row = (y - area.top) as usize * area.width as usize;
        for x in left..right {
            let color = (area.color)(row + (x - area.left) as usize);
            for (sum, value) in sum.iter_mut().zip(color) {
                *sum += if value.is_finite() { f64::from(value) } else { 0.0 };
            }
        }
    }
    let count = f64::from((right - left).max(1)) * f64::from((bottom - top).max(1));
    sum.map(|sum| (sum / count) as f32)
}

/// The largest size with a picture's shape within a box; at least 1 × 1, and not larger than the
/// picture.
pub(crate) fn fitting(whole: (u32, u32), room: (u32, u32)) -> (u32, u32) {
    let (width, height) = (f64::from(whole.0.max(1)), f64::from(whole.1.max(1)));
    let most = |room: u32, whole: u32| f64::from(room.min(whole).max(1));
    let (wide, high) = (most(room.0, whole.0), most(room.1, whole.1));
    let scale = (wide / width).min(high / height);
    let within = |edge: f64, most: f64| (edge * scale).round().clamp(1.0, most) as u32;
    (within(width, wide), within(height, high))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(small: &mut Small, (left, top): (u32, u32), (width, height): (u32, u32), value: f32) {
        let color = |_: usize| [value, value, value];
        small.put(&Area { left, top, width, height, color: &color });
    }

    #[test]
    fn a_pixel_is_the_mean_of_those_it_stands_for() {
        let mut small = Small::new((4, 2), (2, 1));
        let values = [1.0, 0.0, f32::NAN, 0.5, 0.0, 0.0, 0.5, 0.0];
        let color = |at: usize| [values[at], 0.0, f32::INFINITY];
        small.put(&Area { left: 0, top: 0, width: 4, height: 2, color: &color });
        assert_eq!(small.colors, [[0.25, 0.0, 0.0], [0.25, 0.0, 0.0]]);
        // sRGB of 0.25 is 0.5371.
        assert_eq!(small.rgb8(), [137, 0, 0, 137, 0, 0]);
        small.scale(2.0);
        assert_eq!(small.colors[0], [0.5, 0.0, 0.0]);
    }

    #[test]
    fn tiles_cover_a_picture_together_whatever_its_size() {
        for (whole, size) in [((100, 60), (33, 17)), ((7, 5), (7, 5)), ((5, 3), (80, 80))] {
            let mut small = Small::new(whole, size);
            let tile = 8;
            for top in (0..whole.1).step_by(tile) {
                for left in (0..whole.0).step_by(tile) {
                    put(&mut small, (left, top), (tile as u32, tile as u32), 0.5);
                }
            }
            assert!(small.colors.iter().flatten().all(|value| *value == 0.5), "{whole:?} {size:?}");
            assert!(small.size().0 <= whole.0 && small.size().1 <= whole.1);
        }
    }

    #[test]
    fn what_is_beside_an_area_stays() {
        let mut small = Small::new((8, 8), (4, 4));
        put(&mut small, (4, 0), (4, 8), 1.0);
        let row: Vec<f32> = small.colors[..4].iter().map(|color| color[0]).collect();
        assert_eq!(row, [0.0, 0.0, 1.0, 1.0]);
        put(&mut small, (100, 100), (4, 4), 1.0);
        put(&mut small, (0, 0), (0, 0), 1.0);
        assert_eq!(small.colors[0], [0.0; 3]);
    }

    #[test]
    fn a_picture_keeps_its_shape_in_a_box() {
        assert_eq!(fitting((1920, 1080), (80, 200)), (80, 45));
        assert_eq!(fitting((1920, 1080), (800, 45)), (80, 45));
        assert_eq!(fitting((16, 16), (80, 80)), (16, 16));
        assert_eq!(fitting((10_000, 1), (80, 24)), (80, 1));
        assert_eq!(fitting((0, 0), (0, 0)), (1, 1));
    }
}
