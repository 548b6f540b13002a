//! Keys of a property over time, the value between them, and the times of frames. Knows no
//! property.

use crate::math::{normalize_quat, slerp};
use gltf::json::animation::Interpolation;

/// Keys of one property.
#[derive(Clone, Debug)]
pub(crate) struct Curve {
    pub(crate) interpolation: Interpolation,
    /// Times of the keys in seconds, ascending, at least one.
    pub(crate) times: Vec<f64>,
    /// `width` numbers for each key; three times as many for cubic splines (in-tangent, value,
    /// out-tangent).
    pub(crate) values: Vec<f64>,
    pub(crate) width: usize,
    pub(crate) is_rotation: bool,
}

/// Time of a frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameTime {
    pub(crate) secs: f64,
    /// Length of a frame in seconds, >= 0.
    pub(crate) frame_secs: f64,
}

/// Part of a frame by which a key may lie later than the frame and still be reached. Exporters
/// write keys in f32, and some of them with a rounded rate, such as 23.976.
pub(crate) const EARLY_FRAMES: f64 = 1.0 / 50.0;

impl FrameTime {
    /// The file's own start, which is no frame of a job.
    pub(crate) const START: Self = Self { secs: 0.0, frame_secs: 0.0 };

    /// Returns the latest time in seconds at which a key is reached: by the larger of one f32 ulp
    /// and [`EARLY_FRAMES`] later than the frame.
    fn reach(self) -> f64 {
        let time = self.secs.abs() as f32;
        let ulp = f64::from(time.next_up()) - f64::from(time);
        self.secs + ulp.max(self.frame_secs * EARLY_FRAMES)
    }
}

/// Frame rates that are usual, each as frames and the seconds that they take.
pub(crate) const USUAL_RATES: [(f64, f64); 10] = [
    (24.0, 1.0),
    (25.0, 1.0),
    (30.0, 1.0),
    (24_000.0, 1001.0),
    (30_000.0, 1001.0),
    (48.0, 1.0),
    (50.0, 1.0),
    (60.0, 1.0),
    (60_000.0, 1001.0),
    (120.0, 1.0),
];

impl Curve {
    /// Returns the value at a time (glTF 2.0, appendix C). A key that the frame reaches is shown as
    /// it is, also where it lies a little later.
    pub(crate) fn at(&self, time: FrameTime) -> Vec<f64> {
        let last = self.times.len() - 1;
        let reach = time.reach();
        let after = self.times.partition_point(|key| *key <= reach);
        if after == 0 || after > last {
            return self.finish(self.key(after.min(last)).to_vec());
        }
        let before = after - 1;
        let span = self.times[after] - self.times[before];
        let t = (time.secs.max(self.times[before]) - self.times[before]) / span;
        let (from, to) = (self.key(before), self.key(after));
        match self.interpolation {
            Interpolation::Step => self.finish(from.to_vec()),
            Interpolation::Linear => match (self.is_rotation, from, to) {
                (true, &[a, b, c, d], &[e, f, g, h]) => {
                    slerp(normalize_quat([a, b, c, d]), normalize_quat([e, f, g, h]), t).to_vec()
                }
                _ => from.iter().zip(to).map(|(a, b)| a + (b - a) * t).collect(),
            },
            Interpolation::CubicSpline => {
                let (out, into) = (self.part(before, 2), self.part(after, 0));
                let (t2, t3) = (t * t, t * t * t);
                let weights = [
                    2.0 * t3 - 3.0 * t2 + 1.0,
                    span * (t3 - 2.0 * t2 + t),
                    3.0 * t2 - 2.0 * t3,
                    span * (t3 - t2),
                ];
                let value = (0..self.width).map(|i| {
                    from[i] * weights[0]
                        + out[i] * weights[1]
                        + to[i] * weights[2]
                        + into[i] * weights[3]
                });
                self.finish(value.collect())
            }
        }
    }

    fn finish(&self, value: Vec<f64>) -> Vec<f64> {
        match (self.is_rotation, value.as_slice()) {
            (true, &[x, y, z, w]) => normalize_quat([x, y, z, w]).to_vec(),
            _ => value,
        }
    }

    /// Returns the value of a key.
    pub(crate) fn key(&self, key: usize) -> &[f64] {
        let is_cubic = self.interpolation == Interpolation::CubicSpline;
        self.part(key, usize::from(is_cubic))
    }

    /// Returns part of a key. For a cubic key, 0 is the in-tangent, 1 the value, and 2 the
    /// out-tangent. For another key, 0 is the value.
    fn part(&self, key: usize, part: usize) -> &[f64] {
        let parts = if self.interpolation == Interpolation::CubicSpline { 3 } else { 1 };
        let start = (key * parts + part) * self.width;
        &self.values[start..start + self.width]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(interpolation: Interpolation, times: &[f64], values: &[f64], width: usize) -> Curve {
        let (times, values) = (times.to_vec(), values.to_vec());
        Curve { interpolation, times, values, width, is_rotation: width == 4 }
    }

    fn still(secs: f64) -> FrameTime {
        FrameTime { secs, frame_secs: 0.0 }
    }

    #[test]
    fn a_frame_shows_its_own_key_at_every_usual_rate() {
        const FRAMES: usize = 10_000;
        let values: Vec<f64> = (0..=FRAMES).map(|frame| frame as f64).collect();
        let tangents = |value: &f64| [0.0, *value, 0.0];
        let cubic: Vec<f64> = values.iter().flat_map(tangents).collect();
        for (count, secs) in USUAL_RATES {
            let rate = count / secs;
            // As exporters write them: from the rate, and from its rounded name.
            for written in [rate, (rate * 1000.0).round() / 1000.0] {
                let key = |frame: usize| f64::from((frame as f64 / written) as f32);
                let times: Vec<f64> = (0..=FRAMES).map(key).collect();
                for (interpolation, values) in [
                    (Interpolation::Step, &values),
                    (Interpolation::Linear, &values),
                    (Interpolation::CubicSpline, &cubic),
                ] {
                    let curve = curve(interpolation, &times, values, 1);
                    let is_wrong = |frame: &usize| {
                        let (secs, frame_secs) = (*frame as f64 / rate, 1.0 / rate);
                        let shown = curve.at(FrameTime { secs, frame_secs })[0];
                        (shown - *frame as f64).abs() > 0.02
                            || (interpolation == Interpolation::Step && shown != *frame as f64)
                    };
                    let wrong = (0..FRAMES).filter(is_wrong).count();
                    assert_eq!(wrong, 0, "{rate} fps, written as {written}, {interpolation:?}");
                }
            }
        }
    }

    #[test]
    fn a_key_is_reached_by_a_fiftieth_of_a_frame_and_not_more() {
        let steps = curve(Interpolation::Step, &[0.0, 1.0], &[1.0, 2.0], 1);
        let at = |secs| steps.at(FrameTime { secs, frame_secs: 0.1 })[0];
        assert_eq!((at(0.9979), at(0.9981)), (1.0, 2.0));
        assert_eq!(steps.at(still(0.9981)), [1.0]);
        assert_eq!(steps.at(still(1.0 - 1e-8)), [2.0], "by one ulp of f32");
    }

    #[test]
    fn clips_hold_their_ends() {
        let line = curve(Interpolation::Linear, &[1.0, 3.0], &[10.0, 20.0], 1);
        assert_eq!(line.at(still(-5.0)), [10.0]);
        assert_eq!(line.at(still(1.0)), [10.0]);
        assert_eq!(line.at(still(1.5)), [12.5]);
        assert_eq!(line.at(still(3.0)), [20.0]);
        assert_eq!(line.at(still(99.0)), [20.0]);
    }

    #[test]
    fn steps_change_at_their_key() {
        let steps = curve(Interpolation::Step, &[0.0, 1.0, 2.0], &[1.0, 2.0, 3.0], 1);
        assert_eq!(steps.at(still(0.999)), [1.0]);
        assert_eq!(steps.at(still(1.0)), [2.0]);
        assert_eq!(steps.at(still(2.5)), [3.0]);
    }

    #[test]
    fn a_cubic_spline_follows_its_tangents() {
        // Hermite with slopes 1 and -1 over two seconds: p(1/2) = 0 + 2*1/8 + 0 - 2*(-1/8) = 1/2.
        let values = [0.0, 0.0, 1.0, -1.0, 0.0, 0.0];
        let spline = curve(Interpolation::CubicSpline, &[0.0, 2.0], &values, 1);
        assert_eq!(spline.at(still(1.0)), [0.5]);
        assert_eq!(spline.at(still(0.0)), [0.0]);
        assert_eq!(spline.at(still(2.0)), [0.0]);
    }

    #[test]
    fn rotations_turn_evenly() {
        let half = 0.5f64.sqrt();
        let turn = curve(
            Interpolation::Linear,
            &[0.0, 1.0],
            &[0.0, 0.0, 0.0, 1.0, 0.0, half, 0.0, half],
            4,
        );
        let third = turn.at(still(1.0 / 3.0));
        let angle = 2.0 * libm::asin(third[1]);
        assert!((angle - std::f64::consts::FRAC_PI_6).abs() < 1e-12, "{third:?}");
    }
}
