//! Alpha: what surfaces cover of a pixel. Colours are premultiplied by it until a format wants them
//! straight.

use crate::band::Band;

/// Where a picture's alpha is, and how its colours are kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Alpha {
    /// Channel of the band.
    pub(crate) channel: usize,
    /// Whether colours are premultiplied by it.
    pub(crate) is_premultiplied: bool,
}

/// Bounds alpha to [0, 1]: what panes cover is estimated, and may lie a little beyond. A denoised
/// picture keeps no light where nothing is covered, since its neighbours' light is not there.
pub(crate) fn settle(band: &mut Band, channel: usize, is_denoised: bool) {
    for y in 0..band.height {
        let line = band.part_of_line(channel, y, 0, band.width);
        line.iter_mut().for_each(|alpha| *alpha = alpha.clamp(0.0, 1.0));
        if !is_denoised {
            continue;
        }
        let empty: Vec<usize> = (0..line.len()).filter(|x| line[*x] == 0.0).collect();
        for color in 0..3 {
            let line = band.part_of_line(color, y, 0, band.width);
            empty.iter().for_each(|x| line[*x] = 0.0);
        }
    }
}

/// Returns a premultiplied colour without its alpha, which is in [0, 1]; black where it is 0.
pub(crate) fn straight(color: [f32; 3], alpha: f32) -> [f32; 3] {
    if alpha > 0.0 { color.map(|value| value / alpha) } else { [0.0; 3] }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn band(values: &[f32]) -> Band {
        Band { width: 2, height: 1, values: values.to_vec() }
    }

    #[test]
    fn a_denoised_picture_keeps_no_light_where_nothing_is() {
        let mut seen = band(&[0.5, 0.25, 0.5, 0.25, 0.5, 0.25, -0.01, 1.02]);
        settle(&mut seen, 3, true);
        assert_eq!(seen.values, [0.0, 0.25, 0.0, 0.25, 0.0, 0.25, 0.0, 1.0]);
        let mut seen = band(&[0.5, 0.25, 0.5, 0.25, 0.5, 0.25, 0.0, 0.5]);
        settle(&mut seen, 3, false);
        assert_eq!(seen.values[0], 0.5);
    }

    #[test]
    fn a_straight_colour_is_that_of_what_covers() {
        assert_eq!(straight([0.2, 0.1, 0.0], 0.5), [0.4, 0.2, 0.0]);
        assert_eq!(straight([0.2, 0.1, 0.0], 0.0), [0.0; 3]);
    }
}
