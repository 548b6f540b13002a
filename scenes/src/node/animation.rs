//! Animations: the clips that play, and the pose of the nodes at a time. Knows only the number of
//! weights of meshes.

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

/// Pose of the nodes at one moment.
pub(crate) struct Pose {
    /// Transform of each node.
    pub(crate) locals: Vec<Local>,
    /// Animated morph weights of each node; None if the file's own weights apply.
    pub(crate) weights: Vec<Option<Vec<f64>>>,
}

/// Reads every animation. All clips play at once, except a clip that moves a property which an
/// earlier clip already moves. Such clips are alternatives (walk, run), and the first one wins.
pub(crate) fn read(
    document: &Document,
    weight_counts: &[usize],
    warnings: &mut Warnings,
) -> Result<Vec<Clip>, SceneError> {
    let mut clips = Vec::with_capacity(document.root.animations.len());
    let mut taken: BTreeSet<(usize, Target)> = BTreeSet::new();
    for (index, json) in document.root.animations.iter().enumerate() {
        let mut channels = Vec::with_capacity(json.channels.len());
        for number in 0..json.channels.len() {
            channels.extend(read_channel(document, index, number, weight_counts, warnings)?);
        }
        let keys: BTreeSet<(usize, Target)> = channels.iter().map(|c| (c.node, c.target)).collect();
        let played = keys.is_disjoint(&taken);
        let name = json.name.clone().unwrap_or_default();
        if played {
            taken.extend(keys);
        } else {
            let what = "moves what an earlier animation moves; only the earlier one is shown";
            warnings.add(format!("animations[{index}] {name:?} {what}"));
        }
        let length =
            channels.iter().filter_map(|c| c.curve.times.last()).fold(0.0f64, |m, t| m.max(*t));
        clips.push(Clip { name, channels, length, played });
    }
    Ok(clips)
}

/// Returns the channels that frames show.
pub(crate) fn played(clips: &[Clip]) -> impl Iterator<Item = &Channel> {
    clips.iter().filter(|clip| clip.played).flat_map(|clip| &clip.channels)
}

/// Returns the pose at a time in seconds. Before its first key and after its last key, a channel
/// keeps the value of that key.
pub(crate) fn pose(forest: &Forest, clips: &[Clip], time_secs: f64) -> Pose {
    let mut locals: Vec<Local> = forest.nodes.iter().map(|node| node.local).collect();
    let mut weights = vec![None; locals.len()];
    for channel in played(clips) {
        let value = channel.curve.at(time_secs);
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
        warnings
            .add(format!("{path} moves morph weights of nodes[{node}], whose mesh has no targets"));
        return Ok(None);
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
    /// Returns the value at a time (glTF 2.0, appendix C).
    pub(crate) fn at(&self, time: f64) -> Vec<f64> {
        let last = self.times.len() - 1;
        let after = self.times.partition_point(|key| *key <= time);
        if after == 0 || after > last {
            return self.finish(self.key(after.min(last)).to_vec());
        }
        let before = after - 1;
        let span = self.times[after] - self.times[before];
        let t = (time - self.times[before]) / span;
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

    #[test]
    fn clips_hold_their_ends() {
        let line = curve(Interpolation::Linear, &[1.0, 3.0], &[10.0, 20.0], 1);
        assert_eq!(line.at(-5.0), [10.0]);
        assert_eq!(line.at(1.0), [10.0]);
        assert_eq!(line.at(1.5), [12.5]);
        assert_eq!(line.at(3.0), [20.0]);
        assert_eq!(line.at(99.0), [20.0]);
    }

    #[test]
    fn steps_change_at_their_key() {
        let steps = curve(Interpolation::Step, &[0.0, 1.0, 2.0], &[1.0, 2.0, 3.0], 1);
        assert_eq!(steps.at(0.999), [1.0]);
        assert_eq!(steps.at(1.0), [2.0]);
        assert_eq!(steps.at(2.5), [3.0]);
    }

    #[test]
    fn a_cubic_spline_follows_its_tangents() {
        // Hermite with slopes 1 and -1 over two seconds: p(1/2) = 0 + 2*1/8 + 0 - 2*(-1/8) = 1/2.
        let values = [0.0, 0.0, 1.0, -1.0, 0.0, 0.0];
        let spline = curve(Interpolation::CubicSpline, &[0.0, 2.0], &values, 1);
        assert_eq!(spline.at(1.0), [0.5]);
        assert_eq!(spline.at(0.0), [0.0]);
        assert_eq!(spline.at(2.0), [0.0]);
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
        let third = turn.at(1.0 / 3.0);
        let angle = 2.0 * libm::asin(third[1]);
        assert!((angle - std::f64::consts::FRAC_PI_6).abs() < 1e-12, "{third:?}");
    }
}
