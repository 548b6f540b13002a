//! The tree by which kernels choose one of many lights, and how it is built (Conty Estevez and Kulla 2018, "Importance Sampling of Many
//! Lights with Adaptive Tree Splitting", section 4). How it is walked stands in `kernels/source/light_tree.h`.

use crate::{AliasEntry, Light, build_alias_table};
use std::f64::consts::PI;

/// Flags of a [`LightNode`].
pub mod light_node_flags {
    /// It is one light.
    pub const LEAF: u32 = 1;
    /// Some light of it shines along its axis and against it.
    pub const BOTH_SIDES: u32 = 2;
}

/// Levels of a tree at most: a light's trail has as many bits.
pub const LIGHT_TREE_DEPTH_MAX: u32 = 32;

/// Some lights that have a place: 64 bytes. A left child stands right after its parent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C, align(16))]
pub struct LightNode {
    /// Corner of the box about them, metres.
    pub lower: [f32; 3],
    /// Their share of the power of all lights that have a place.
    pub power: f32,
    /// The other corner.
    pub upper: [f32; 3],
    /// Cosine of the angle about its own axis beyond which no light shines.
    pub emission_cosine: f32,
    /// Unit axis of the cone of the lights' own axes.
    pub axis: [f32; 3],
    /// Cosine of that cone's half angle; -1 where it is all directions.
    pub spread_cosine: f32,
    /// Its sine.
    pub spread_sine: f32,
    /// The right child; of a leaf, the light.
    pub child: u32,
    /// [`light_node_flags`].
    pub flags: u32,
    /// Zero.
    pub reserved: u32,
}

const _: () = assert!(size_of::<LightNode>() == 64);

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
    /// One entry for all lights that have a place, if there are any, and one for each of the others.
    pub alias: Vec<AliasEntry>,
    /// The tree over those that have a place, the root first.
    pub nodes: Vec<LightNode>,
}

/// Builds the choice among `lights`, of which those with a place come first, and writes each light's part of it: its probability and
/// its way through the tree. In f64 and in an order that depends on nothing else, so that every machine builds the same.
///
/// # Panics
/// With another number of `choices` than of lights, or with a place after none.
pub fn build_light_choices(lights: &mut [Light], choices: &[LightChoice]) -> LightChoices {
    assert_eq!(lights.len(), choices.len());
    let placed = choices.iter().take_while(|choice| choice.bounds.is_some()).count();
    assert!(choices[placed..].iter().all(|choice| choice.bounds.is_none()), "lights with a place come first");
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
    let mut building = Building { nodes: Vec::with_capacity((2 * placed).saturating_sub(1)), lights };
    if !leaves.is_empty() {
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
    /// Adds a subtree over some lights, to which `trail` leads over `depth` levels; returns its bounds and power.
    fn add(&mut self, leaves: &mut [Leaf], depth: u32, trail: u32) -> (LightBounds, f64) {
        let index = self.nodes.len();
        self.nodes.push(LightNode::default());
        if let [leaf] = leaves {
            self.lights[leaf.light as usize].trail = trail;
            self.nodes[index] = node_of(&leaf.bounds, leaf.power, leaf.light, light_node_flags::LEAF);
            return (leaf.bounds, leaf.power);
        }
        let left_count = split(leaves, depth);
        let (left, right) = leaves.split_at_mut(left_count);
        let (left_bounds, left_power) = self.add(left, depth + 1, trail);
        let child = self.nodes.len() as u32;
        let (right_bounds, right_power) = self.add(right, depth + 1, trail | 1 << depth);
        let (bounds, power) = (left_bounds.and(&right_bounds), left_power + right_power);
        self.nodes[index] = node_of(&bounds, power, child, 0);
        (bounds, power)
    }
}

fn node_of(bounds: &LightBounds, power: f64, child: u32, flags: u32) -> LightNode {
    let both_sides = if bounds.both_sides { light_node_flags::BOTH_SIDES } else { 0 };
    LightNode {
        // Rounded outwards, so that the box still holds them.
        lower: bounds.lower.map(|value| (value as f32).next_down()),
        power: power as f32,
        upper: bounds.upper.map(|value| (value as f32).next_up()),
        emission_cosine: libm::cos(bounds.emission.min(PI)) as f32,
        axis: bounds.axis.map(|value| value as f32),
        spread_cosine: libm::cos(bounds.spread) as f32,
        spread_sine: libm::sin(bounds.spread) as f32,
        child,
        flags: flags | both_sides,
        reserved: 0,
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

    /// What directions cost: the solid angle into which it may shine, weighted by the cosine beyond the cone (section 4.4.1).
    fn orientation_cost(&self) -> f64 {
        let spread = self.spread;
        let widest = (spread + self.emission).min(PI);
        let (sine, cosine) = (libm::sin(spread), libm::cos(spread));
        let beyond = 2.0 * widest * sine - libm::cos(spread - 2.0 * widest) - 2.0 * spread * sine + cosine;
        2.0 * PI * (1.0 - cosine) + 0.5 * PI * beyond
    }

    /// What extent costs: the squared diagonal, which unlike the area is not zero for lights in a row.
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

/// Cuts lights in two by place: at the cheapest of some cuts along each axis (section 4.4), or by count where the tree could otherwise
/// become too deep, or all lights are in one place. Reorders them and returns how many go left.
fn split(leaves: &mut [Leaf], depth: u32) -> usize {
    let levels_of_halving = usize::BITS - (leaves.len() - 1).leading_zeros();
    let centers = leaves.iter().map(|leaf| leaf.bounds.center());
    let mut range = [[f64::INFINITY; 3], [f64::NEG_INFINITY; 3]];
    for center in centers {
        range[0] = std::array::from_fn(|k| range[0][k].min(center[k]));
        range[1] = std::array::from_fn(|k| range[1][k].max(center[k]));
    }
    let cut =
        if depth + levels_of_halving + 1 >= LIGHT_TREE_DEPTH_MAX { None } else { best_cut(leaves, range) };
    let Some((axis, bin)) = cut else {
        let extent = |k: usize| range[1][k] - range[0][k];
        let axis = (0..3).fold(0, |longest, k| if extent(k) > extent(longest) { k } else { longest });
        let order = |a: &Leaf, b: &Leaf| {
            a.bounds.center()[axis].total_cmp(&b.bounds.center()[axis]).then(a.light.cmp(&b.light))
        };
        leaves.sort_by(order);
        return leaves.len() / 2;
    };
    // Stable, so that the order depends on nothing but places.
    leaves.sort_by_key(|leaf| bin_of(leaf, axis, range) >= bin);
    leaves.iter().take_while(|leaf| bin_of(leaf, axis, range) < bin).count()
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
        let cost = |side: Option<(LightBounds, f64)>| {
            side.map(|(bounds, power)| power * bounds.orientation_cost() * bounds.extent_cost())
        };
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

fn both(a: Option<(LightBounds, f64)>, b: Option<(LightBounds, f64)>) -> Option<(LightBounds, f64)> {
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

    /// The light at the end of a trail.
    fn follow(nodes: &[LightNode], mut trail: u32) -> (u32, u32) {
        let (mut at, mut depth) = (0, 0);
        while nodes[at].flags & light_node_flags::LEAF == 0 {
            at = if trail & 1 == 0 { at + 1 } else { nodes[at].child as usize };
            trail >>= 1;
            depth += 1;
        }
        (nodes[at].child, depth)
    }

    #[test]
    fn every_light_is_at_the_end_of_its_trail_and_inside_of_every_node_on_it() {
        for count in [1usize, 2, 3, 17, 1000] {
            let place = |k: usize| [(k * 7 % 31) as f64, (k * 13 % 17) as f64, (k / 500) as f64];
            let choices: Vec<LightChoice> = (0..count).map(|k| point(place(k), 1.0 + k as f64)).collect();
            let mut lights = vec![light(); count];
            let made = build_light_choices(&mut lights, &choices);
            assert_eq!(made.nodes.len(), 2 * count - 1);
            assert_eq!(made.alias.len(), 1);
            for (k, light) in lights.iter().enumerate() {
                assert_eq!(follow(&made.nodes, light.trail).0 as usize, k);
                let inside = |node: &LightNode| {
                    (0..3).all(|axis| {
                        f64::from(node.lower[axis]) <= place(k)[axis]
                            && place(k)[axis] <= f64::from(node.upper[axis])
                    })
                };
                assert!(inside(&made.nodes[0]), "{k}");
            }
            let total: f32 =
                made.nodes.iter().filter(|node| node.flags & 1 != 0).map(|node| node.power).sum();
            assert!((total - 1.0).abs() < 1e-4 && (made.nodes[0].power - 1.0).abs() < 1e-4, "{total}");
        }
    }

    #[test]
    fn lights_in_one_place_and_lights_whose_places_grow_make_no_deep_tree() {
        let same: Vec<LightChoice> = (0..5000).map(|_| point([1.0; 3], 1.0)).collect();
        let grow: Vec<LightChoice> = (0..500).map(|k| point([2f64.powi(k), 0.0, 0.0], 1.0)).collect();
        for choices in [same, grow] {
            let mut lights = vec![light(); choices.len()];
            let made = build_light_choices(&mut lights, &choices);
            let deepest = lights.iter().map(|light| follow(&made.nodes, light.trail).1).max();
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
        assert_eq!((made.alias.len(), made.nodes.len()), (2, 3));
        assert_eq!(lights.iter().map(|light| light.pick_probability).collect::<Vec<_>>(), [0.25, 0.25, 0.75]);
        assert!(build_light_choices(&mut [], &[]).nodes.is_empty());
    }
}
