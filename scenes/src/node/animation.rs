//! Animations: the clips that play, and the pose of the nodes at a time. Knows only the number of
//! weights of meshes.

use crate::choice::Choice;
use crate::document::Document;
use crate::error::SceneError;
use crate::math::{normalize_quat, slerp};
use crate::node::{Forest, Local};
use crate::report::warning::Warnings;
use gltf::json::animation::{Interpolation, Property};
use gltf::json::validation::Checked;
use std::collections::BTreeSet;

/// Property that a channel moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Target {
    Translation,
    Rotation,
    Scale,
    Weights,
}

/// A property of one node over time.
#[derive(Clone, Debug)]
pub(crate) struct Channel {
    pub(crate) node: usize,
    pub(crate) target: Target,
    pub(crate) curve: Curve,
}

/// Keys of one property.
#[derive(Clone, Debug)]
pub(crate) struct Curve {
    interpolation: Interpolation,
    /// Times of the keys in seconds, ascending, at least one.
    times: Vec<f64>,
    /// `width` numbers for each key; three times as many for cubic splines (in-tangent, value,
    /// out-tangent).
    values: Vec<f64>,
    width: usize,
    is_rotation: bool,
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
const EARLY_FRAMES: f64 = 1.0 / 50.0;

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
const USUAL_RATES: [(f64, f64); 10] = [
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

/// An animation of the file.
#[derive(Clone, Debug)]
pub(crate) struct Clip {
    pub(crate) name: String,
    pub(crate) channels: Vec<Channel>,
    /// Time of the last key in seconds.
    pub(crate) length: f64,
    /// Whether frames show it.
    pub(crate) played: bool,
}

impl Clip {
    /// Returns the usual rates in frames per second at which every key lies on a frame, the likely
    /// ones first, without multiples of one that is there.
    pub(crate) fn likely_rates(&self) -> Vec<f64> {
        let keys = || self.channels.iter().flat_map(|channel| &channel.curve.times);
        let fits = |rate: f64| {
            keys().all(|key| {
                let frame = key * rate;
                (frame - frame.round()).abs() <= EARLY_FRAMES
            })
        };
        let mut rates: Vec<f64> = Vec::new();
        for rate in USUAL_RATES.map(|(count, secs)| count / secs) {
            let is_multiple = rates.iter().any(|known| (rate / known).fract() == 0.0);
            if self.length > 0.0 && !is_multiple && fits(rate) {
                rates.push(rate);
            }
        }
        rates
    }
}

/// Pose of the nodes at one moment.
pub(crate) struct Pose {
    /// Transform of each node.
    pub(crate) locals: Vec<Local>,
    /// Animated morph weights of each node; None if the file's own weights apply.
    pub(crate) weights: Vec<Option<Vec<f64>>>,
}

/// Reads every animation. The chosen clips play at once, all of them where none is chosen, except a
/// clip that moves a property which an earlier one already moves. Such clips are alternatives
/// (walk, run), and the first one wins.
pub(crate) fn read(
    document: &Document,
    weight_counts: &[usize],
    chosen: &[Choice],
    warnings: &mut Warnings,
) -> Result<Vec<Clip>, SceneError> {
    let mut clips = Vec::with_capacity(document.root.animations.len());
    for (index, json) in document.root.animations.iter().enumerate() {
        let mut channels = Vec::with_capacity(json.channels.len());
        for number in 0..json.channels.len() {
            channels.extend(read_channel(document, index, number, weight_counts, warnings)?);
        }
        let name = json.name.clone().unwrap_or_default();
        let length =
            channels.iter().filter_map(|c| c.curve.times.last()).fold(0.0f64, |m, t| m.max(*t));
        clips.push(Clip { name, channels, length, played: false });
    }
    play(&mut clips, chosen, warnings)?;
    Ok(clips)
}

/// Marks the clips that frames show.
fn play(clips: &mut [Clip], chosen: &[Choice], warnings: &mut Warnings) -> Result<(), SceneError> {
    let names: Vec<&str> = clips.iter().map(|clip| clip.name.as_str()).collect();
    let find = |choice: &Choice| choice.find("animation", &names);
    let order: Result<Vec<usize>, String> = match chosen.is_empty() {
        true => Ok((0..clips.len()).collect()),
        false => chosen.iter().map(find).collect(),
    };
    let mut taken: BTreeSet<(usize, Target)> = BTreeSet::new();
    for index in order.map_err(|problem| SceneError::Option { problem })? {
        let clip = &mut clips[index];
        if clip.played {
            continue;
        }
        let keys: BTreeSet<_> = clip.channels.iter().map(|c| (c.node, c.target)).collect();
        clip.played = keys.is_disjoint(&taken);
        if clip.played {
            taken.extend(keys);
        } else {
            let what = "moves what an earlier animation moves; only the earlier one is shown (see \
                --animation)";
            warnings.add(format!("animations[{index}] {:?} {what}", clip.name));
        }
    }
    Ok(())
}

/// Returns the channels that frames show.
pub(crate) fn played(clips: &[Clip]) -> impl Iterator<Item = &Channel> {
    clips.iter().filter(|clip| clip.played).flat_map(|clip| &clip.channels)
}

/// Returns the pose at a time. Before its first key and after its last key, a channel keeps the
/// value of that key.
pub(crate) fn pose(forest: &Forest, clips: &[Clip], time: FrameTime) -> Pose {
    let mut locals: Vec<Local> = forest.nodes.iter().map(|node| node.local).collect();
    let mut weights = vec![None; locals.len()];
    for channel in played(clips) {
        let value = channel.curve.at(time);
        if channel.target == Target::Weights {
            weights[channel.node] = Some(value);
            continue;
        }
        // A matrix cannot be animated (glTF 2.0, §3.5.3), so such a channel was refused before.
        let Local::Trs(trs) = &mut locals[channel.node] else { continue };
        match (channel.target, value.as_slice()) {
            (Target::Translation, &[x, y, z]) => trs.translation = [x, y, z],
            (Target::Scale, &[x, y, z]) => trs.scale = [x, y, z],
            (Target::Rotation, &[x, y, z, w]) => trs.rotation = [x, y, z, w],
            _ => {}
        }
    }
    Pose { locals, weights }
}

fn read_channel(
    document: &Document,
    index: usize,
    number: usize,
    weight_counts: &[usize],
    warnings: &mut Warnings,
) -> Result<Option<Channel>, SceneError> {
    let animation = &document.root.animations[index];
    let channel = &animation.channels[number];
    let path = format!("animations[{index}].channels[{number}]");
    let node = channel.target.node.value();
    let node_json =
        document.at(&document.root.nodes, node, &format!("{path}.target.node"), "nodes")?;
    let Checked::Valid(property) = channel.target.path else {
        warnings.add(format!("{path}.target.path is unknown; what it moves stands still"));
        return Ok(None);
    };
    let (target, width) = match property {
        Property::Translation => (Target::Translation, 3),
        Property::Rotation => (Target::Rotation, 4),
        Property::Scale => (Target::Scale, 3),
        Property::MorphTargetWeights => (Target::Weights, weight_counts[node]),
    };
    if target != Target::Weights && node_json.matrix.is_some() {
        let problem = format!(
            "moves nodes[{node}], which has a matrix; give it translation, rotation and scale"
        );
        return Err(document.invalid(path, problem));
    }
    if width == 0 {
        let problem = format!(
            "moves morph weights of nodes[{node}], which has no morph targets; export it again"
        );
        return Err(document.invalid(path, problem));
    }
    let sampler = channel.sampler.value();
    document.at(&animation.samplers, sampler, &format!("{path}.sampler"), "samplers")?;
    let curve = read_curve(document, index, sampler, target, width)?;
    Ok(Some(Channel { node, target, curve }))
}

fn read_curve(
    document: &Document,
    index: usize,
    sampler: usize,
    target: Target,
    width: usize,
) -> Result<Curve, SceneError> {
    let json = &document.root.animations[index].samplers[sampler];
    let path = format!("animations[{index}].samplers[{sampler}]");
    let Checked::Valid(interpolation) = json.interpolation else {
        return Err(
            document.invalid(format!("{path}.interpolation"), "is not STEP, LINEAR or CUBICSPLINE")
        );
    };
    let (input, output) = (format!("{path}.input"), format!("{path}.output"));
    let times = document.floats::<1>(json.input.value(), &input)?;
    let times: Vec<f64> = times.into_iter().map(|[time]| f64::from(time)).collect();
    if times.is_empty() || times.windows(2).any(|pair| pair[0] > pair[1]) {
        return Err(document.invalid(input, "must hold at least one time, in ascending order"));
    }
    let values: Vec<f64> = match target {
        Target::Weights => flat(document.floats::<1>(json.output.value(), &output)?),
        Target::Rotation => flat(document.floats::<4>(json.output.value(), &output)?),
        Target::Translation | Target::Scale => {
            flat(document.floats::<3>(json.output.value(), &output)?)
        }
    };
    let parts = if interpolation == Interpolation::CubicSpline { 3 } else { 1 };
    let wanted = times.len() * width * parts;
    if values.len() != wanted {
        let problem =
            format!("holds {} numbers, but {} keys need {wanted}", values.len(), times.len());
        return Err(document.invalid(output, problem));
    }
    Ok(Curve { interpolation, times, values, width, is_rotation: target == Target::Rotation })
}

fn flat<const N: usize>(values: Vec<[f32; N]>) -> Vec<f64> {
    values.into_iter().flatten().map(f64::from).collect()
}

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

    fn key(&self, key: usize) -> &[f64] {
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
    fn likely_rates_have_a_frame_for_every_key() {
        let clip = |times: &[f64]| {
            let values = vec![0.0; times.len()];
            let curve = curve(Interpolation::Step, times, &values, 1);
            let channel = Channel { node: 0, target: Target::Scale, curve };
            let length = times.last().copied().unwrap_or(0.0);
            Clip { name: String::new(), channels: vec![channel], length, played: true }
        };
        assert_eq!(clip(&[0.0, 0.04, 1.16]).likely_rates(), [25.0]);
        assert_eq!(clip(&[0.0, 1.0]).likely_rates(), [24.0, 25.0, 30.0]);
        assert_eq!(clip(&[0.0, 1.001]).likely_rates(), [24_000.0 / 1001.0, 30_000.0 / 1001.0]);
        assert_eq!(clip(&[0.0, 1.0 / 120.0]).likely_rates(), [120.0]);
        assert_eq!(clip(&[0.0, 0.7123]).likely_rates(), [0.0; 0]);
        assert_eq!(clip(&[0.0]).likely_rates(), [0.0; 0], "nothing moves");
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
