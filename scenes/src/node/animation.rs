//! Animations: the clips that play, the pose of the nodes at a time, and the values of all else
//! that moves. Knows only the weights of meshes.

use crate::choice::Choice;
use crate::document::{Document, NO_NODE};
use crate::error::SceneError;
use crate::mesh::RestWeights;
use crate::node::curve::{Curve, EARLY_FRAMES, FrameTime, USUAL_RATES};
use crate::node::{Forest, Local};
use crate::pointer::{Place, Target};
use crate::report::warning::Warnings;
use gltf::json::accessor::{ComponentType, Type};
use gltf::json::animation::{Interpolation, Property};
use gltf::json::validation::Checked;
use std::collections::BTreeMap;

/// A property over time.
#[derive(Clone, Debug)]
pub(crate) struct Channel {
    pub(crate) target: Target,
    pub(crate) curve: Curve,
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

/// What the animations of a file are read from.
pub(crate) struct Sources<'a> {
    pub(crate) document: &'a Document,
    pub(crate) forest: &'a Forest,
    /// Morph weights of each mesh.
    pub(crate) weights: &'a [RestWeights],
    /// What channels of KHR_animation_pointer move.
    pub(crate) targets: &'a BTreeMap<(usize, usize), Target>,
}

/// Channels by what they move.
#[derive(Default)]
struct Taken(BTreeMap<Target, usize>);

impl Taken {
    /// Returns the number of an earlier channel that moves the same, or a part of it, or what it is
    /// a part of.
    fn clash(&self, target: &Target) -> Option<usize> {
        let parts = match *target {
            Target::Weights(node) => Target::Weight(node, 0)..=Target::Weight(node, usize::MAX),
            Target::MeshWeights(mesh) => {
                Target::MeshWeight(mesh, 0)..=Target::MeshWeight(mesh, usize::MAX)
            }
            _ => target.clone()..=target.clone(),
        };
        let whole = target.whole().and_then(|whole| self.0.get(&whole));
        let same = self.0.get(target).or(whole);
        same.or_else(|| self.0.range(parts).next().map(|(_, channel)| channel)).copied()
    }

    fn add(&mut self, target: &Target, channel: usize) {
        self.0.insert(target.clone(), channel);
    }
}

/// Reads every animation. The chosen clips play at once, all of them where none is chosen, except a
/// clip that moves a property which an earlier one already moves. Such clips are alternatives
/// (walk, run), and the first one wins.
pub(crate) fn read(
    sources: &Sources,
    chosen: &[Choice],
    warnings: &mut Warnings,
) -> Result<Vec<Clip>, SceneError> {
    let animations = &sources.document.root.animations;
    let mut clips = Vec::with_capacity(animations.len());
    for (index, json) in animations.iter().enumerate() {
        let mut channels = Vec::with_capacity(json.channels.len());
        let mut taken = Taken::default();
        for number in 0..json.channels.len() {
            let Some(channel) = read_channel(sources, (index, number), warnings)? else { continue };
            if let Some(earlier) = taken.clash(&channel.target) {
                let problem = format!(
                    "moves what channels[{earlier}] moves; a property has one channel in an \
                     animation"
                );
                let path = format!("animations[{index}].channels[{number}]");
                let is_pointer = |number| sources.targets.contains_key(&(index, number));
                if is_pointer(number) || is_pointer(earlier) {
                    return Err(sources.document.invalid(path, problem));
                }
                warnings.add(format!("{path} {problem}; the last one is shown"));
            }
            taken.add(&channel.target, number);
            channels.push(channel);
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
    let mut taken = Taken::default();
    for index in order.map_err(|problem| SceneError::Option { problem })? {
        let clip = &mut clips[index];
        if clip.played {
            continue;
        }
        clip.played = clip.channels.iter().all(|channel| taken.clash(&channel.target).is_none());
        if clip.played {
            clip.channels.iter().for_each(|channel| taken.add(&channel.target, index));
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
pub(crate) fn pose(forest: &Forest, rest: &[RestWeights], clips: &[Clip], time: FrameTime) -> Pose {
    let mut locals: Vec<Local> = forest.nodes.iter().map(|node| node.local).collect();
    for channel in played(clips) {
        let value = || channel.curve.at(time);
        let (&Target::Translation(node) | &Target::Rotation(node) | &Target::Scale(node)) =
            &channel.target
        else {
            continue;
        };
        // A matrix cannot be animated (glTF 2.0, §3.5.3), so such a channel was refused before.
        let Local::Trs(trs) = &mut locals[node] else { continue };
        match (&channel.target, value().as_slice()) {
            (Target::Translation(_), &[x, y, z]) => trs.translation = [x, y, z],
            (Target::Scale(_), &[x, y, z]) => trs.scale = [x, y, z],
            (Target::Rotation(_), &[x, y, z, w]) => trs.rotation = [x, y, z, w],
            _ => {}
        }
    }
    Pose { locals, weights: weights_at(forest, rest, clips, time) }
}

/// Returns the animated morph weights of each node. Those of a mesh are for nodes without any.
fn weights_at(
    forest: &Forest,
    rest: &[RestWeights],
    clips: &[Clip],
    time: FrameTime,
) -> Vec<Option<Vec<f64>>> {
    let mut of_meshes: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    let mut weights = vec![None; forest.nodes.len()];
    for channel in played(clips) {
        match channel.target {
            Target::MeshWeights(mesh) => {
                of_meshes.insert(mesh, channel.curve.at(time));
            }
            Target::MeshWeight(mesh, number) => {
                let all = of_meshes.entry(mesh).or_insert_with(|| rest[mesh].padded());
                put(all, number, &channel.curve.at(time));
            }
            _ => {}
        }
    }
    if !of_meshes.is_empty() {
        for (weights, node) in weights.iter_mut().zip(&forest.nodes) {
            let mesh = node.mesh.filter(|_| node.weights.is_none());
            *weights = mesh.and_then(|mesh| of_meshes.get(&mesh)).cloned();
        }
    }
    for channel in played(clips) {
        match channel.target {
            Target::Weights(node) => weights[node] = Some(channel.curve.at(time)),
            Target::Weight(node, number) => {
                let own = &forest.nodes[node];
                let still = || match (&own.weights, own.mesh) {
                    (Some(own), _) => own.clone(),
                    (None, Some(mesh)) => rest[mesh].padded(),
                    (None, None) => Vec::new(),
                };
                put(weights[node].get_or_insert_with(still), number, &channel.curve.at(time));
            }
            _ => {}
        }
    }
    weights
}

/// Sets one weight; those before it that are missing are 0.
fn put(weights: &mut Vec<f64>, number: usize, value: &[f64]) {
    if weights.len() <= number {
        weights.resize(number + 1, 0.0);
    }
    weights[number] = value.first().copied().unwrap_or(0.0);
}

/// Returns which nodes an animation shows and hides at a time.
pub(crate) fn visible(clips: &[Clip], time: FrameTime) -> BTreeMap<usize, bool> {
    let visible = played(clips).filter_map(|channel| match channel.target {
        Target::Visible(node) => Some((node, channel.curve.at(time).iter().any(|v| *v != 0.0))),
        _ => None,
    });
    visible.collect()
}

/// Returns the values of materials, lights and cameras at a time.
pub(crate) fn values(clips: &[Clip], time: FrameTime) -> Vec<(&Place, Vec<f64>)> {
    let values = played(clips).filter_map(|channel| match &channel.target {
        Target::Value(place) => Some((place, place.clamp(&channel.curve.at(time)))),
        _ => None,
    });
    values.collect()
}

/// Returns what a channel of core glTF moves; None if that is unknown, or no node is named.
fn core_target(
    document: &Document,
    (index, number): (usize, usize),
    warnings: &mut Warnings,
) -> Result<Option<Target>, SceneError> {
    let target = &document.root.animations[index].channels[number].target;
    let path = format!("animations[{index}].channels[{number}]");
    let node = target.node.value();
    if node == NO_NODE as usize {
        return Ok(None);
    }
    document.at(&document.root.nodes, node, &format!("{path}.target.node"), "nodes")?;
    let Checked::Valid(property) = target.path else {
        warnings.add(format!("{path}.target.path is unknown; what it moves stands still"));
        return Ok(None);
    };
    Ok(Some(match property {
        Property::Translation => Target::Translation(node),
        Property::Rotation => Target::Rotation(node),
        Property::Scale => Target::Scale(node),
        Property::MorphTargetWeights => Target::Weights(node),
    }))
}

fn read_channel(
    sources: &Sources,
    (index, number): (usize, usize),
    warnings: &mut Warnings,
) -> Result<Option<Channel>, SceneError> {
    let document = sources.document;
    let animation = &document.root.animations[index];
    let path = format!("animations[{index}].channels[{number}]");
    let target = match sources.targets.get(&(index, number)) {
        Some(target) => target.clone(),
        None => match core_target(document, (index, number), warnings)? {
            Some(target) => target,
            None => return Ok(None),
        },
    };
    if let Target::Translation(node) | Target::Rotation(node) | Target::Scale(node) = target
        && document.root.nodes[node].matrix.is_some()
    {
        let problem = format!(
            "moves nodes[{node}], which has a matrix; give it translation, rotation and scale"
        );
        return Err(document.invalid(path, problem));
    }
    let width = width(sources, &target, &path)?;
    let sampler = animation.channels[number].sampler.value();
    document.at(&animation.samplers, sampler, &format!("{path}.sampler"), "samplers")?;
    let curve = read_curve(document, (index, sampler), &target, width)?;
    if let Target::Value(place) = &target {
        let wrong = |(key, (number, range)): (usize, (f64, crate::pointer::property::Range))| {
            let output = format!("animations[{index}].samplers[{sampler}].output");
            let problem = format!("key {key} gives {} the value {number}", place.path);
            document.invalid(output, format!("{problem}, which must be {}", range.words()))
        };
        let mut keys = (0..curve.times.len()).map(|key| (key, place.refused(curve.key(key))));
        if let Some(found) = keys.find_map(|(key, found)| found.map(|found| (key, found))) {
            return Err(wrong(found));
        }
    }
    let is_seen = !matches!(target, Target::Unseen(..));
    Ok(is_seen.then_some(Channel { target, curve }))
}

/// Returns the count of numbers that a target takes at each key.
fn width(sources: &Sources, target: &Target, path: &str) -> Result<usize, SceneError> {
    let of_mesh = |mesh: usize| sources.weights[mesh].target_count;
    let of_node = |node: usize| sources.forest.nodes[node].mesh.map_or(0, of_mesh);
    let (count, of) = match *target {
        Target::Translation(_) | Target::Scale(_) => return Ok(3),
        Target::Rotation(_) => return Ok(4),
        Target::Visible(_) | Target::Unseen(..) => return Ok(1),
        Target::Value(ref place) => return Ok(place.property.width),
        Target::Weights(node) => (of_node(node), format!("nodes[{node}]")),
        Target::MeshWeights(mesh) => (of_mesh(mesh), format!("meshes[{mesh}]")),
        Target::Weight(node, number) | Target::MeshWeight(node, number) => {
            let is_node = matches!(target, Target::Weight(..));
            let count = if is_node { of_node(node) } else { of_mesh(node) };
            if number < count {
                return Ok(1);
            }
            let problem = format!("moves weight {number}, but there are {count} morph targets");
            return Err(sources.document.invalid(path, problem));
        }
    };
    if count == 0 {
        let problem =
            format!("moves morph weights of {of}, which has no morph targets; export it again");
        return Err(sources.document.invalid(path, problem));
    }
    Ok(count)
}

fn read_curve(
    document: &Document,
    (index, sampler): (usize, usize),
    target: &Target,
    width: usize,
) -> Result<Curve, SceneError> {
    let json = &document.root.animations[index].samplers[sampler];
    let path = format!("animations[{index}].samplers[{sampler}]");
    let Checked::Valid(interpolation) = json.interpolation else {
        return Err(
            document.invalid(format!("{path}.interpolation"), "is not STEP, LINEAR or CUBICSPLINE")
        );
    };
    let is_flag = matches!(target, Target::Visible(_) | Target::Unseen(..));
    if is_flag && interpolation != Interpolation::Step {
        let problem = "must be STEP for what is true or false";
        return Err(document.invalid(format!("{path}.interpolation"), problem));
    }
    let (input, output) = (format!("{path}.input"), format!("{path}.output"));
    let times = document.floats::<1>(json.input.value(), &input)?;
    let times: Vec<f64> = times.into_iter().map(|[time]| f64::from(time)).collect();
    if times.is_empty() || times.windows(2).any(|pair| pair[0] > pair[1]) {
        return Err(document.invalid(input, "must hold at least one time, in ascending order"));
    }
    let is_weights = matches!(target, Target::Weights(_) | Target::MeshWeights(_));
    let components = if is_weights { 1 } else { width };
    let values = match is_flag {
        true => read_flags(document, json.output.value(), &output)?,
        false => read_outputs(document, json.output.value(), components, &output)?,
    };
    let parts = if interpolation == Interpolation::CubicSpline { 3 } else { 1 };
    let wanted = times.len() * width * parts;
    if values.len() != wanted {
        let problem =
            format!("holds {} numbers, but {} keys need {wanted}", values.len(), times.len());
        return Err(document.invalid(output, problem));
    }
    let is_rotation = matches!(target, Target::Rotation(_));
    Ok(Curve { interpolation, times, values, width, is_rotation })
}

/// Reads outputs of so many components: a scalar or a vector, and no matrix.
fn read_outputs(
    document: &Document,
    accessor: usize,
    components: usize,
    path: &str,
) -> Result<Vec<f64>, SceneError> {
    let json = document.at(&document.root.accessors, accessor, path, "accessors")?;
    if matches!(json.type_, Checked::Valid(Type::Mat2 | Type::Mat3 | Type::Mat4)) {
        let problem = format!("is a matrix, but {path} needs numbers or vectors");
        return Err(document.invalid(format!("accessors[{accessor}].type"), problem));
    }
    Ok(match components {
        1 => flat(document.floats::<1>(accessor, path)?),
        2 => flat(document.floats::<2>(accessor, path)?),
        3 => flat(document.floats::<3>(accessor, path)?),
        _ => flat(document.floats::<4>(accessor, path)?),
    })
}

/// Reads what is true or false: unsigned bytes.
fn read_flags(document: &Document, accessor: usize, path: &str) -> Result<Vec<f64>, SceneError> {
    let json = document.at(&document.root.accessors, accessor, path, "accessors")?;
    let is_byte = |component: &Checked<gltf::json::accessor::GenericComponentType>| match component
    {
        Checked::Valid(component) => component.0 == ComponentType::U8,
        Checked::Invalid => false,
    };
    if !is_byte(&json.component_type) {
        let problem = format!("must be unsigned bytes (5121) for {path}, which is true or false");
        return Err(document.invalid(format!("accessors[{accessor}].componentType"), problem));
    }
    let flags = document.integers::<1>(accessor, path)?;
    Ok(flags.into_iter().map(|[flag]| f64::from(u8::from(flag != 0))).collect())
}

fn flat<const N: usize>(values: Vec<[f32; N]>) -> Vec<f64> {
    values.into_iter().flatten().map(f64::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn likely_rates_have_a_frame_for_every_key() {
        let clip = |times: &[f64]| {
            let values = vec![0.0; times.len()];
            let (interpolation, times) = (Interpolation::Step, times.to_vec());
            let curve = Curve { interpolation, times, values, width: 1, is_rotation: false };
            let length = curve.times.last().copied().unwrap_or(0.0);
            let channel = Channel { target: Target::Scale(0), curve };
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
    fn a_whole_and_its_parts_are_one_property() {
        let mut taken = Taken::default();
        taken.add(&Target::Weight(3, 7), 0);
        taken.add(&Target::MeshWeights(3), 1);
        taken.add(&Target::Scale(0), 2);
        for (target, clash) in [
            (Target::Weight(3, 7), Some(0)),
            (Target::Weight(3, 6), None),
            (Target::Weights(3), Some(0)),
            (Target::Weights(4), None),
            (Target::MeshWeight(3, 9), Some(1)),
            (Target::MeshWeight(2, 9), None),
            (Target::Scale(0), Some(2)),
            (Target::Rotation(0), None),
        ] {
            assert_eq!(taken.clash(&target), clash, "{target:?}");
        }
    }
}
