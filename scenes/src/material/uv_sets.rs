//! UV sets of a material: which set of the file is in which slot of a vertex. Vertices have two
//! slots. Reads no UVs.

use crate::mesh::geometry::{UV_SLOTS, UvSets};
use crate::report::warning::Warnings;
use tessera_layout::{Layers, LayersTexture, Material, NONE, TextureRef};

/// Sets of a material that needs no others: each set in the slot of its number.
pub(crate) const PLAIN: UvSets = [0, 1];

/// Returns the UV sets of the file that a material's vertices need, each in its slot. There is a
/// warning about those beyond two.
pub(crate) fn of(
    index: usize,
    material: &mut Material,
    layers: Option<&mut Layers>,
    warnings: &mut Warnings,
) -> UvSets {
    let mut used: Vec<u32> = Vec::new();
    let grain = layers.as_deref().is_some_and(|layers| runs_along_first_set(material, layers));
    let sets = textures(material, layers)
        .filter(|texture| texture.texture != NONE)
        .map(|texture| texture.uv_set);
    for set in sets.chain(grain.then_some(0)) {
        if !used.contains(&set) {
            used.push(set);
        }
    }
    if let Some(left_out) = used.get(UV_SLOTS..).filter(|left_out| !left_out.is_empty()) {
        let name = |set: &u32| format!("TEXCOORD_{set}");
        let left_out = left_out.iter().map(name).collect::<Vec<_>>().join(", ");
        warnings.add(format!(
            "materials[{index}] uses more than {UV_SLOTS} UV sets; its textures on {left_out} are \
                left out"
        ));
        used.truncate(UV_SLOTS);
    }
    slots(&used)
}

/// Changes a material's textures from UV sets of the file to slots of a vertex, which has these
/// sets. Textures on others are left out.
pub(crate) fn assign(sets: UvSets, material: &mut Material, layers: Option<&mut Layers>) {
    for texture in textures(material, layers).filter(|texture| texture.texture != NONE) {
        match sets.iter().position(|set| *set == texture.uv_set) {
            Some(slot) => texture.uv_set = slot as u32,
            None => *texture = TextureRef::ABSENT,
        }
    }
}

/// Returns the set in each slot. Sets 0 and 1 keep their own slots.
fn slots(used: &[u32]) -> UvSets {
    let mut sets = PLAIN;
    let mut free: Vec<usize> = (0..UV_SLOTS).filter(|slot| !used.contains(&PLAIN[*slot])).collect();
    free.reverse();
    for set in used.iter().filter(|set| !PLAIN.contains(set)) {
        if let Some(slot) = free.pop() {
            sets[slot] = *set;
        }
    }
    sets
}

/// Returns whether the material's grain runs along TEXCOORD_0, because no texture says otherwise.
fn runs_along_first_set(material: &Material, layers: &Layers) -> bool {
    let maps = [LayersTexture::ClearcoatNormal, LayersTexture::Anisotropy];
    layers.anisotropy > 0.0
        && material.normal_texture.texture == NONE
        && maps.iter().all(|map| layers.textures[*map as usize].texture == NONE)
}

/// Every texture of a material; what a viewer sees first comes first.
fn textures<'a>(
    material: &'a mut Material,
    layers: Option<&'a mut Layers>,
) -> impl Iterator<Item = &'a mut TextureRef> {
    let own = [
        &mut material.base_color_texture,
        &mut material.normal_texture,
        &mut material.metallic_roughness_texture,
        &mut material.emission_texture,
    ];
    own.into_iter().chain(layers.into_iter().flat_map(|layers| layers.textures.iter_mut()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_two_sets_keep_their_slots() {
        for (used, sets) in [
            (&[][..], [0, 1]),
            (&[1], [0, 1]),
            (&[1, 0], [0, 1]),
            (&[2], [2, 1]),
            (&[0, 2], [0, 2]),
            (&[7, 1], [7, 1]),
            (&[5, 3], [5, 3]),
        ] {
            assert_eq!(slots(used), sets, "{used:?}");
        }
    }
}
