//! Lights and the tables that choose among them.

use bytemuck::{Pod, Zeroable};

/// What a [`Light`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum LightKind {
    /// KHR_lights_punctual point: `emission` is radiant intensity (W/sr, from candela as the file
    /// gives them).
    Point = 0,
    /// KHR_lights_punctual spot: as point, with a cone.
    Spot = 1,
    /// KHR_lights_punctual directional: `emission` is irradiance on a facing surface.
    Directional = 2,
    /// An emissive triangle; `triangle` says which. Emission is looked up in its material.
    Triangle = 3,
    /// The environment; at most one, always the last light.
    Environment = 4,
}

/// One emitter: 80 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C, align(16))]
pub struct Light {
    /// World position (point, spot).
    pub position: [f32; 3],
    /// A [`LightKind`].
    pub kind: u32,
    /// Unit direction in which the light shines (spot, directional).
    pub direction: [f32; 3],
    /// Range in metres (point, spot), 0 for infinite; window as KHR_lights_punctual recommends.
    pub range: f32,
    /// Linear RGB, see [`LightKind`].
    pub emission: [f32; 3],
    /// Triangle id ([`LightKind::Triangle`]), else [`crate::NONE`].
    pub triangle: u32,
    /// Spot: `1 / max(0.001, cos(inner) - cos(outer))`.
    pub spot_scale: f32,
    /// Spot: `-cos(outer) * spot_scale`.
    pub spot_offset: f32,
    /// Probability that [`crate::FlatScene::light_alias`] picks this light, or the tree in which it
    /// is.
    pub pick_probability: f32,
    /// Area in m² ([`LightKind::Triangle`]), else 0.
    pub area: f32,
    /// Its way through [`crate::FlatScene::light_nodes`], if it has a place: bit k says which way
    /// at level k, 0 left and 1 right.
    pub trail: u32,
    /// Zero.
    pub reserved: [u32; 3],
}

/// One entry of an alias table (Walker 1974, Vose 1991): with `threshold` as a 32-bit fraction, a
/// draw `(i, r)` yields `i` if `r < threshold`, else `alias`. 16 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C, align(16))]
pub struct AliasEntry {
    /// Keep the index when the 32-bit draw is below this; `u32::MAX` keeps always.
    pub threshold: u32,
    /// The other index.
    pub alias: u32,
    /// Probability of this index under the table.
    pub probability: f32,
    /// Zero.
    pub reserved: u32,
}

/// Where what stands for a texel of the environment, or for a row of them, begins among numbers
/// below `u32::MAX`; it ends where the next one begins, and the last of a row, or of the rows, at
/// `u32::MAX`. 12 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct EnvironmentCell {
    /// The first number.
    pub first: u32,
    /// Probability of the texel, of all texels; of a row, of the row.
    pub probability: f32,
    /// Cell `i` of `n` stands for the numbers from `i / n` of all to `(i + 1) / n` of all as well:
    /// which of the `n` the first of those belongs to.
    pub start: u32,
}

/// The environment: 112 bytes. Equirectangular, +Y up, row i at (i + ½)/height, centre column
/// towards +Z, u growing to the right of somebody who looks out. `texels` are three f32 each in
/// [`crate::FlatScene::environment_texels`]; [`crate::FlatScene::environment_cells`] has one entry
/// per texel, in proportion to luminance × solid angle, and one per row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C, align(16))]
pub struct Environment {
    /// Texels across; 0 means a constant environment.
    pub width: u32,
    /// Texels down; 0 means a constant environment.
    pub height: u32,
    /// Index of the environment's light, or [`crate::NONE`] where it is black or absent.
    pub light: u32,
    /// 1: the environment exists; 0: black.
    pub present: u32,
    /// Constant radiance (used alone where `width` is 0), already multiplied by the intensity.
    pub constant: [f32; 3],
    /// Factor on texels.
    pub intensity: f32,
    /// Row-major rotation, map direction = `map_from_world` × world direction.
    pub map_from_world: [f32; 9],
    /// Radius in metres of a sphere about the scene that holds all of it.
    pub scene_radius: f32,
    /// Centre of that sphere.
    pub scene_center: [f32; 3],
    /// Zero.
    pub reserved: [u32; 7],
}

const _: () = assert!(size_of::<Light>() == 80);
const _: () = assert!(size_of::<AliasEntry>() == 16);
const _: () = assert!(size_of::<EnvironmentCell>() == 12);
const _: () = assert!(size_of::<Environment>() == 112);

/// Cells for the texels of a map, row by row, and behind them one for each row: numbers in
/// proportion to `weights` (finite, >= 0, one a texel), at least one for every texel that has any.
/// In f64 and in index order, so that every machine builds the same. Without any weight all are
/// alike.
pub fn build_environment_cells(weights: &[f64], width: u32) -> Vec<EnvironmentCell> {
    let rows = weights.chunks_exact((width as usize).max(1));
    let sums: Vec<f64> = rows.clone().map(|row| row.iter().sum()).collect();
    let of_rows = shares(&sums);
    let mut cells = Vec::with_capacity(weights.len() + sums.len());
    for (row, of_row) in rows.zip(&of_rows) {
        push_cells(&mut cells, &shares(row), f64::from(*of_row) / f64::from(u32::MAX));
    }
    push_cells(&mut cells, &of_rows, 1.0);
    cells
}

/// `u32::MAX` numbers shared out by weight.
fn shares(weights: &[f64]) -> Vec<u32> {
    let total: f64 = weights.iter().sum();
    let weight_of =
        |weight: f64| if total > 0.0 { weight / total } else { 1.0 / weights.len() as f64 };
    let some = weights.iter().filter(|weight| **weight > 0.0 || total <= 0.0).count();
    let scale = f64::from(u32::MAX) - some as f64;
    let share = |weight: &f64| match *weight > 0.0 || total <= 0.0 {
        true => 1 + (weight_of(*weight) * scale) as u32,
        false => 0,
    };
    let mut shares: Vec<u32> = weights.iter().map(share).collect();
    // What rounding left over, or took too much.
    let given: i64 = shares.iter().map(|share| i64::from(*share)).sum();
    if let Some(most) = shares.iter_mut().max() {
        *most = (i64::from(*most) + i64::from(u32::MAX) - given) as u32;
    }
    shares
}

fn push_cells(cells: &mut Vec<EnvironmentCell>, shares: &[u32], of_all: f64) {
    let begin = cells.len();
    let mut first = 0u32;
    for share in shares {
        let probability = (f64::from(*share) / f64::from(u32::MAX) * of_all) as f32;
        cells.push(EnvironmentCell { first, probability, start: 0 });
        first = first.saturating_add(*share);
    }
    let cells = &mut cells[begin..];
    let mut index = 0;
    for place in 0..cells.len() {
        let number = ((place as u64) << 32).div_ceil(cells.len() as u64);
        while cells.get(index + 1).is_some_and(|next| u64::from(next.first) <= number) {
            index += 1;
        }
        cells[place].start = index as u32;
    }
}

/// Builds an alias table over `weights` (finite, >= 0) in O(n) with Vose's method, in f64 and in
/// index order, so that every machine builds the same one. All weights zero gives the uniform
/// table; an empty slice gives an empty table.
pub fn build_alias_table(weights: &[f64]) -> Vec<AliasEntry> {
    let count = weights.len();
    let total: f64 = weights.iter().sum();
    let scaled: Vec<f64> = if total > 0.0 {
        weights.iter().map(|w| w / total * count as f64).collect()
    } else {
        vec![1.0; count]
    };
    let mut table: Vec<AliasEntry> = (0..count)
        .map(|index| AliasEntry {
            threshold: u32::MAX,
            alias: index as u32,
            probability: (scaled[index] / count as f64) as f32,
            reserved: 0,
        })
        .collect();
    let mut rest = scaled.clone();
    let (mut small, mut large): (Vec<usize>, Vec<usize>) = (0..count).partition(|&i| rest[i] < 1.0);
    while let (Some(&less), Some(&more)) = (small.last(), large.last()) {
        small.pop();
        table[less].threshold = (rest[less] * 4_294_967_296.0) as u32;
        table[less].alias = more as u32;
        rest[more] -= 1.0 - rest[less];
        if rest[more] < 1.0 {
            large.pop();
            small.push(more);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alias_table_gives_each_index_its_share() {
        let weights = [0.0, 1.0, 3.0, 0.5, 3.5];
        let table = build_alias_table(&weights);
        let mut share = [0.0f64; 5];
        for (index, entry) in table.iter().enumerate() {
            let keep = if entry.alias == index as u32 {
                1.0
            } else {
                f64::from(entry.threshold) / 4_294_967_296.0
            };
            share[index] += keep / 5.0;
            share[entry.alias as usize] += (1.0 - keep) / 5.0;
        }
        for (got, want) in share.iter().zip(weights) {
            assert!((got - want / 8.0).abs() < 1e-8, "{share:?}");
        }
    }

    #[test]
    fn every_texel_with_light_has_numbers_in_proportion() {
        let weights = [0.0, 1.0, 3.0, 0.0, 1e-30, 0.0, 0.5, 3.5, 0.0];
        let cells = build_environment_cells(&weights, 3);
        assert_eq!(cells.len(), 12);
        let rows = &cells[9..];
        for (texel, weight) in weights.iter().enumerate() {
            let (cell, last) = (cells[texel], texel % 3 == 2);
            let end = if last { u32::MAX } else { cells[texel + 1].first };
            assert_eq!(end > cell.first, *weight > 0.0, "texel {texel} of {cells:?}");
            let row_end = rows.get(texel / 3 + 1).map_or(u32::MAX, |row| row.first);
            let row = f64::from(row_end - rows[texel / 3].first) / f64::from(u32::MAX);
            let share = f64::from(end - cell.first) / f64::from(u32::MAX) * row;
            assert!((share - weight / 8.0).abs() < 1e-8, "texel {texel}");
            assert!((f64::from(cell.probability) - share).abs() < 1e-7, "texel {texel}");
        }
        assert_eq!((rows[0].first, cells[0].first), (0, 0));
        assert!(
            build_environment_cells(&[0.0; 4], 2)[..4].iter().all(|cell| cell.probability == 0.25)
        );
        assert!(build_environment_cells(&[], 0).is_empty());
    }

    #[test]
    fn the_guide_of_cells_misses_no_cell() {
        let weights: Vec<f64> =
            (0..400u32).map(|i| f64::from(i.wrapping_mul(0x9e37_79b9) >> 28).powi(4)).collect();
        let cells = build_environment_cells(&weights, 100);
        for (row, count) in [(&cells[..100], 100u64), (&cells[300..400], 100), (&cells[400..], 4)] {
            for number in (0..u32::MAX - 1).step_by(65_521) {
                let place = ((u64::from(number) * count) >> 32) as usize;
                let cell = row.partition_point(|cell| cell.first <= number) - 1;
                let last = row.get(place + 1).map_or(row.len() - 1, |next| next.start as usize);
                assert!((row[place].start as usize..=last).contains(&cell), "{number} of {row:?}");
            }
        }
    }

    #[test]
    fn no_weight_at_all_is_uniform() {
        assert!(build_alias_table(&[0.0; 4]).iter().all(|e| e.probability == 0.25));
        assert!(build_alias_table(&[]).is_empty());
    }
}
