//! The tree by which kernels choose one of many lights, and how it is built (Conty Estevez and
//! Kulla 2018, "Importance Sampling of Many Lights with Adaptive Tree Splitting", section 4). How
//! it is walked stands in `kernels/source/light/light_tree.h`.

use crate::{AliasEntry, Light, NONE, build_alias_table};
use bytemuck::{Pod, Zeroable};
use std::f64::consts::PI;

/// What a word of [`LightNode::child`] holds beside an index.
pub mod light_child_bits {
    /// The part is one light, and the index its own.
    pub const LEAF: u32 = 1 << 31;
    /// Some light of the part shines along its axis and against it.
    pub const BOTH_SIDES: u32 = 1 << 30;
    /// The index of a light or a node.
    pub const INDEX: u32 = BOTH_SIDES - 1;
}

/// Parts of a node at most.
const WIDTH: usize = 8;
/// Bits of a light's trail per level.
pub const LIGHT_TRAIL_BITS: u32 = 3;
/// Levels of a tree at most: a light's trail has [`LIGHT_TRAIL_BITS`] for each.
pub const LIGHT_TREE_DEPTH_MAX: u32 = 32 / LIGHT_TRAIL_BITS;

/// Some lights that have a place, in two to eight parts: bounds of the lights of each, in lanes.
/// 384 bytes. Lanes that are not needed have no power, and no child.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C, align(32))]
pub struct LightNode {
    /// Center of a sphere about them, metres.
    pub center: [[f32; WIDTH]; 3],
    /// Its radius.
    pub radius: [f32; WIDTH],
    /// Unit axis of the cone of the lights' own axes.
    pub axis: [[f32; WIDTH]; 3],
    /// Their share of the power of all lights that have a place.
    pub power: [f32; WIDTH],
    /// Cosine of the angle about its own axis beyond which no light shines.
    pub emission_cosine: [f32; WIDTH],
    /// Cosine of the cone's half angle; -1 where it is all directions.
    pub spread_cosine: [f32; WIDTH],
    /// Its sine.
    pub spread_sine: [f32; WIDTH],
    /// A node or a light with [`light_child_bits`]; [`NONE`] where there is no part. Nodes come
    /// after those that they are part of.
    pub child: [u32; WIDTH],
}

const _: () = assert!(size_of::<LightNode>() == 384);

impl Default for LightNode {
    fn default() -> Self {
        let zero = [0.0; WIDTH];
        Self {
            center: [zero; 3],
            radius: zero,
            axis: [zero; 3],
            power: zero,
            emission_cosine: zero,
            spread_cosine: zero,
            spread_sine: zero,
            child: [NONE; WIDTH],
        }
    }
}

/// Where a light, or several, may shine from and to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LightBounds {
    /// Corner of a box about it, metres.
    pub lower: [f64; 3],
    /// The other corner.
    pub upper: [f64; 3],
    /// Unit direction in which it shines most.
    pub axis: [f64; 3],
    /// Half angle in radians of the cone of such directions.
    pub spread: f64,
    /// How far from one of them it shines, in radians.
    pub emission: f64,
    /// It shines against its axis as well.
    pub both_sides: bool,
}

/// A light to choose: how strong it is, in any unit, and its bounds, if it has a place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LightChoice {
    /// Estimated, finite, >= 0.
    pub power: f64,
    /// None for light from infinitely far away.
    pub bounds: Option<LightBounds>,
}

/// What kernels choose lights by.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LightChoices {
    /// One entry for all lights that have a place, if there are any, and one for each of the
    /// others.
    pub alias: Vec<AliasEntry>,
    /// The tree over those that have a place, the root first; empty where they are fewer than two.
    pub nodes: Vec<LightNode>,
}

/// Builds the choice among `lights`, of which those with a place come first, and writes each
/// light's part of it: its probability and its way through the tree. In f64 and in an order that
/// depends on nothing else, so that every machine builds the same.
///
/// # Panics
/// With another number of `choices` than of lights, or with a place after none.
pub fn build_light_choices(lights: &mut [Light], choices: &[LightChoice]) -> LightChoices {
    assert_eq!(lights.len(), choices.len());
    let placed = choices.iter().take_while(|choice| choice.bounds.is_some()).count();
    assert!(
        choices[placed..].iter().all(|choice| choice.bounds.is_none()),
        "lights with a place come first"
    );
    let total: f64 = choices[..placed].iter().map(|choice| choice.power).sum();
    let far = choices[placed..].iter().map(|choice| choice.power);
    let weights: Vec<f64> = (placed > 0).then_some(total).into_iter().chain(far).collect();
    let alias = build_alias_table(&weights);
    for (index, light) in lights.iter_mut().enumerate() {
        let group = if index < placed { 0 } else { index - placed + usize::from(placed > 0) };
        (light.pick_probability, light.trail) = (alias[group].probability, 0);
    }
    let share = |power: f64| if total > 0.0 { power / total } else { 1.0 / placed as f64 };
    let mut leaves: Vec<Leaf> = (0u32..)
        .zip(choices)
        .filter_map(|(light, choice)| {
            Some(Leaf { light, power: share(choice.power), bounds: choice.bounds? })
        })
        .collect();
    let mut building = Building { nodes: Vec::new(), lights };
    if leaves.len() > 1 {
        building.add(&mut leaves, 0, 0);
    }
    LightChoices { alias, nodes: building.nodes }
}

/// One light on its way into the tree.
#[derive(Clone, Copy)]
struct Leaf {
    light: u32,
    power: f64,
    bounds: LightBounds,
}

struct Building<'a> {
    nodes: Vec<LightNode>,
    lights: &'a mut [Light],
}

impl Building<'_> {
    /// Adds a node over two or more lights, to which `trail` leads over `level` levels, and all
    /// below it; returns its index.
    fn add(&mut self, leaves: &mut [Leaf], level: u32, trail: u32) -> u32 {
        let index = self.nodes.len();
        self.nodes.push(LightNode::default());
        for (lane, part) in parts(leaves, level).into_iter().enumerate() {
            let trail = trail | (lane as u32) << (level * LIGHT_TRAIL_BITS);
            let (bounds, power) = whole(part);
            let child = match part {
                [leaf] => {
                    self.lights[leaf.light as usize].trail = trail;
                    leaf.light | light_child_bits::LEAF
                }
                _ => self.add(part, level + 1, trail),
            };
            self.nodes[index].set(lane, &bounds, power, child);
        }
        index as u32
    }
}

/// Bounds and power of some lights.
fn whole(leaves: &[Leaf]) -> (LightBounds, f64) {
    let bounds = leaves.iter().map(|leaf| leaf.bounds).reduce(|a, b| a.and(&b));
    (bounds.expect("no part is empty"), leaves.iter().map(|leaf| leaf.power).sum())
}

/// Cuts two or more lights into up to eight parts: again and again the one whose cut is worth most,
/// or where the tree could otherwise become too deep, the largest, by count. What fits into a node
/// of its own stays whole, so that nodes are well filled.
fn parts(leaves: &mut [Leaf], level: u32) -> Vec<&mut [Leaf]> {
    let is_deep = level + levels_of(leaves.len()) + 1 >= LIGHT_TREE_DEPTH_MAX;
    let by_count: (Worth, Cut) = (|leaves| leaves.len() as f64, cut_by_count);
    let by_cost: (Worth, Cut) = (cost_of, cut_by_cost);
    let (worth, cut) = if is_deep { by_count } else { by_cost };
    let whole_at = if leaves.len() <= WIDTH { 1 } else { WIDTH };
    let mut parts = vec![(worth(leaves), leaves)];
    while parts.len() < WIDTH {
        let open = (0..parts.len()).filter(|at| parts[*at].1.len() > whole_at);
        let Some(best) = open.reduce(|a, b| if parts[b].0 > parts[a].0 { b } else { a }) else {
            break;
        };
        let (_, part) = parts.remove(best);
        let count = cut(part);
        let (left, right) = part.split_at_mut(count);
        parts.insert(best, (worth(right), right));
        parts.insert(best, (worth(left), left));
    }
    parts.into_iter().map(|(_, part)| part).collect()
}

/// What it is worth to cut a part.
type Worth = fn(&[Leaf]) -> f64;
/// Cuts a part of two lights or more: reorders it, and returns how many come first.
type Cut = fn(&mut [Leaf]) -> usize;

/// Levels that so many lights need.
fn levels_of(lights: usize) -> u32 {
    (usize::BITS - (lights - 1).leading_zeros()).div_ceil(LIGHT_TRAIL_BITS)
}

/// What it costs to have some lights in one part.
fn cost_of(leaves: &[Leaf]) -> f64 {
    let (bounds, power) = whole(leaves);
    bounds.cost(power)
}

impl LightNode {
    fn set(&mut self, lane: usize, bounds: &LightBounds, power: f64, child: u32) {
        let center = bounds.center().map(|value| value as f32);
        let farthest = |k: usize| {
            let center = f64::from(center[k]);
            (bounds.upper[k] - center).max(center - bounds.lower[k])
        };
        let squared: f64 = (0..3).map(|k| farthest(k) * farthest(k)).sum();
        for (to, value) in self.center.iter_mut().zip(center) {
            to[lane] = value;
        }
        for (to, value) in self.axis.iter_mut().zip(bounds.axis) {
            to[lane] = value as f32;
        }
        // Rounded outwards, so that the sphere still holds them.
        self.radius[lane] = if squared > 0.0 { (squared.sqrt() as f32).next_up() } else { 0.0 };
        self.power[lane] = power as f32;
        self.emission_cosine[lane] = libm::cos(bounds.emission.min(PI)) as f32;
        self.spread_cosine[lane] = libm::cos(bounds.spread) as f32;
        self.spread_sine[lane] = libm::sin(bounds.spread) as f32;
        self.child[lane] = child | if bounds.both_sides { light_child_bits::BOTH_SIDES } else { 0 };
    }
}

impl LightBounds {
    /// Bounds of both.
    fn and(&self, other: &Self) -> Self {
        let (axis, spread) = cone_of_both((self.axis, self.spread), (other.axis, other.spread));
        Self {
            lower: std::array::from_fn(|k| self.lower[k].min(other.lower[k])),
            upper: std::array::from_fn(|k| self.upper[k].max(other.upper[k])),
            axis,
            spread,
            emission: self.emission.max(other.emission),
            both_sides: self.both_sides || other.both_sides,
        }
    }

    fn center(&self) -> [f64; 3] {
        std::array::from_fn(|k| 0.5 * (self.lower[k] + self.upper[k]))
    }

    /// What directions cost: the solid angle into which it may shine, weighted by the cosine beyond
    /// the cone (section 4.4.1).
    fn orientation_cost(&self) -> f64 {
        let spread = self.spread;
        let widest = (spread + self.emission).min(PI);
        let (sine, cosine) = (libm::sin(spread), libm::cos(spread));
        let beyond =
            2.0 * widest * sine - libm::cos(spread - 2.0 * widest) - 2.0 * spread * sine + cosine;
        2.0 * PI * (1.0 - cosine) + 0.5 * PI * beyond
    }

    /// What it costs to have lights of such bounds and power in one part: nothing where all are in
    /// one place and direction.
    fn cost(&self, power: f64) -> f64 {
        power * self.orientation_cost() * self.extent_cost()
    }

    /// What extent costs: the squared diagonal, which unlike the area is not zero for lights in a
    /// row.
    fn extent_cost(&self) -> f64 {
        (0..3).map(|k| (self.upper[k] - self.lower[k]) * (self.upper[k] - self.lower[k])).sum()
    }
}

/// The least cone of directions about two of them, each an axis and a half angle.
fn cone_of_both(a: ([f64; 3], f64), b: ([f64; 3], f64)) -> ([f64; 3], f64) {
    let (a, b) = if a.1 >= b.1 { (a, b) } else { (b, a) };
    let cosine = dot(a.0, b.0).clamp(-1.0, 1.0);
    let between = libm::acos(cosine);
    if (between + b.1).min(PI) <= a.1 {
        return a;
    }
    let spread = 0.5 * (a.1 + between + b.1);
    let turn = spread - a.1;
    // The part of b's axis that is across a's.
    let across: [f64; 3] = std::array::from_fn(|k| b.0[k] - cosine * a.0[k]);
    let length = dot(across, across).sqrt();
    if spread >= PI || length < 1e-9 {
        return (a.0, PI);
    }
    let (sine, cosine) = (libm::sin(turn), libm::cos(turn));
    let axis: [f64; 3] = std::array::from_fn(|k| cosine * a.0[k] + sine * across[k] / length);
    let length = dot(axis, axis).sqrt();
    (axis.map(|value| value / length), spread)
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

/// Places per axis at which a cut is tried.
const BINS: usize = 12;

/// Cuts lights in two by place: at the cheapest of some cuts along each axis (section 4.4), or by
/// count where all are in one place.
fn cut_by_cost(leaves: &mut [Leaf]) -> usize {
    let range = range_of(leaves);
    let Some((axis, bin)) = best_cut(leaves, range) else { return cut_by_count(leaves) };
    // Stable, so that the order depends on nothing but places.
    leaves.sort_by_key(|leaf| bin_of(leaf, axis, range) >= bin);
    leaves.iter().take_while(|leaf| bin_of(leaf, axis, range) < bin).count()
}

/// Cuts lights in two halves along the axis on which they extend most.
fn cut_by_count(leaves: &mut [Leaf]) -> usize {
    let range = range_of(leaves);
    let extent = |k: usize| range[1][k] - range[0][k];
    let axis = (0..3).fold(0, |longest, k| if extent(k) > extent(longest) { k } else { longest });
    let order = |a: &Leaf, b: &Leaf| {
        a.bounds.center()[axis].total_cmp(&b.bounds.center()[axis]).then(a.light.cmp(&b.light))
    };
    leaves.sort_by(order);
    leaves.len() / 2
}

/// Corners of the box about the places of some lights.
fn range_of(leaves: &[Leaf]) -> [[f64; 3]; 2] {
    let mut range = [[f64::INFINITY; 3], [f64::NEG_INFINITY; 3]];
    for center in leaves.iter().map(|leaf| leaf.bounds.center()) {
        range[0] = std::array::from_fn(|k| range[0][k].min(center[k]));
        range[1] = std::array::from_fn(|k| range[1][k].max(center[k]));
    }
    range
}

fn bin_of(leaf: &Leaf, axis: usize, range: [[f64; 3]; 2]) -> usize {
    let place = (leaf.bounds.center()[axis] - range[0][axis]) / (range[1][axis] - range[0][axis]);
    ((place * BINS as f64) as usize).min(BINS - 1)
}

/// The axis and the first bin of the right side of the cheapest cut; None where there is none.
fn best_cut(leaves: &[Leaf], range: [[f64; 3]; 2]) -> Option<(usize, usize)> {
    let extent = |k: usize| range[1][k] - range[0][k];
    let longest = (0..3).map(extent).fold(0.0, f64::max);
    let mut best = (f64::INFINITY, None);
    for axis in (0..3).filter(|axis| extent(*axis) > 0.0) {
        let mut bins: [Option<(LightBounds, f64)>; BINS] = [None; BINS];
        for leaf in leaves {
            let bin = &mut bins[bin_of(leaf, axis, range)];
            *bin = both(*bin, Some((leaf.bounds, leaf.power)));
        }
        let cost =
            |side: Option<(LightBounds, f64)>| side.map(|(bounds, power)| bounds.cost(power));
        for bin in 1..BINS {
            let left = bins[..bin].iter().copied().fold(None, both);
            let right = bins[bin..].iter().copied().fold(None, both);
            let (Some(left), Some(right)) = (cost(left), cost(right)) else { continue };
            // Thin slices are not wanted.
            let total = (left + right) * longest / extent(axis);
            if total < best.0 {
                best = (total, Some((axis, bin)));
            }
        }
    }
    best.1
}

fn both(
    a: Option<(LightBounds, f64)>,
    b: Option<(LightBounds, f64)>,
) -> Option<(LightBounds, f64)> {
    match (a, b) {
        (Some(a), Some(b)) => Some((a.0.and(&b.0), a.1 + b.1)),
        (one, None) | (None, one) => one,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(place: [f64; 3], power: f64) -> LightChoice {
        let bounds = LightBounds {
            lower: place,
            upper: place,
            axis: [0.0, 1.0, 0.0],
            spread: PI,
            emission: 0.5 * PI,
            both_sides: false,
        };
        LightChoice { power, bounds: Some(bounds) }
    }

    fn light() -> Light {
        Light {
            position: [0.0; 3],
            kind: 0,
            direction: [0.0; 3],
            range: 0.0,
            emission: [1.0; 3],
            triangle: crate::NONE,
            spot_scale: 0.0,
            spot_offset: 0.0,
            pick_probability: 0.0,
            area: 0.0,
            trail: 0,
            reserved: [0; 3],
        }
    }

    /// The light at the end of a trail, the nodes and lanes on the way, and how many they are.
    fn follow(nodes: &[LightNode], trail: u32) -> (u32, Vec<(usize, usize)>) {
        let (mut at, mut way) = (0, Vec::new());
        loop {
            let lane = (trail >> (LIGHT_TRAIL_BITS * way.len() as u32) & 7) as usize;
            way.push((at, lane));
            let child = nodes[at].child[lane];
            if child & light_child_bits::LEAF != 0 {
                return (child & light_child_bits::INDEX, way);
            }
            at = (child & light_child_bits::INDEX) as usize;
        }
    }

    #[test]
    fn every_light_ends_its_trail_inside_all_nodes_on_it() {
        for count in [2usize, 3, 8, 9, 17, 1000] {
            let place = |k: usize| [(k * 7 % 31) as f64, (k * 13 % 17) as f64, (k / 500) as f64];
            let choices: Vec<LightChoice> =
                (0..count).map(|k| point(place(k), 1.0 + k as f64)).collect();
            let mut lights = vec![light(); count];
            let made = build_light_choices(&mut lights, &choices);
            assert!(made.nodes.len() <= 1 + count / 3, "{} nodes over {count}", made.nodes.len());
            assert_eq!(made.alias.len(), 1);
            for (k, light) in lights.iter().enumerate() {
                let (found, way) = follow(&made.nodes, light.trail);
                assert_eq!(found as usize, k);
                for (node, lane) in way {
                    let node = &made.nodes[node];
                    let apart: f64 = (0..3)
                        .map(|axis| (place(k)[axis] - f64::from(node.center[axis][lane])).powi(2))
                        .sum();
                    assert!(apart.sqrt() <= f64::from(node.radius[lane]), "{k}");
                }
            }
            let total: f32 = made.nodes[0].power.iter().sum();
            assert!((total - 1.0).abs() < 1e-4, "{total}");
        }
        let mut lights = vec![light()];
        assert!(build_light_choices(&mut lights, &[point([0.0; 3], 1.0)]).nodes.is_empty());
    }

    #[test]
    fn coincident_and_spreading_lights_make_no_deep_tree() {
        let same: Vec<LightChoice> = (0..5000).map(|_| point([1.0; 3], 1.0)).collect();
        let grow: Vec<LightChoice> =
            (0..500).map(|k| point([2f64.powi(k), 0.0, 0.0], 1.0)).collect();
        let fade: Vec<LightChoice> =
            (0..500).map(|k| point([f64::from(k), 0.0, 0.0], 0.5f64.powi(k))).collect();
        for choices in [same, grow, fade] {
            let mut lights = vec![light(); choices.len()];
            let made = build_light_choices(&mut lights, &choices);
            let deepest =
                lights.iter().map(|light| follow(&made.nodes, light.trail).1.len() as u32).max();
            assert!(deepest <= Some(LIGHT_TREE_DEPTH_MAX), "{deepest:?}");
        }
    }

    #[test]
    fn a_cone_of_two_holds_both() {
        let directions = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.6, 0.0, 0.8]];
        for a in directions {
            for b in directions {
                for spreads in [(0.0, 0.0), (0.3, 0.1), (0.1, 1.5), (3.0, 0.2)] {
                    let (axis, spread) = cone_of_both((a, spreads.0), (b, spreads.1));
                    for (other, of) in [(a, spreads.0), (b, spreads.1)] {
                        let angle = libm::acos(dot(axis, other).clamp(-1.0, 1.0));
                        assert!((angle + of).min(PI) <= spread + 1e-7, "{a:?} {b:?} {spreads:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn far_lights_are_chosen_beside_the_tree_by_their_power() {
        let far = LightChoice { power: 3.0, bounds: None };
        let choices = [point([0.0; 3], 0.5), point([1.0; 3], 0.5), far];
        let mut lights = vec![light(); 3];
        let made = build_light_choices(&mut lights, &choices);
        assert_eq!((made.alias.len(), made.nodes.len()), (2, 1));
        assert_eq!(
            lights.iter().map(|light| light.pick_probability).collect::<Vec<_>>(),
            [0.25, 0.25, 0.75]
        );
        assert!(build_light_choices(&mut [], &[]).nodes.is_empty());
    }
}
