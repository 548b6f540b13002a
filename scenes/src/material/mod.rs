//! Materials: glTF's metallic-roughness model and the supported extensions. Does not decode
//! textures.

pub(crate) mod layers;
pub(crate) mod medium;
mod slot;
pub(crate) mod uv_sets;
pub(crate) mod variant;

use crate::document::Document;
use crate::error::SceneError;
use crate::material::medium::{Added, Layered};
use crate::material::slot::{Slot, base_color_use, texture_ref};
use crate::mesh::geometry::UvSets;
use crate::report::warning::Warnings;
use crate::texture::{TextureTable, TextureUse};
use gltf::json::material::AlphaMode as JsonAlphaMode;
use gltf::json::validation::Checked;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use tessera_layout::{AlphaMode, LAYERS_MAX, Material, TextureRef, material_flags};

/// glTF's default cutoff of alpha mode MASK (§3.9.4).
const ALPHA_CUTOFF_DEFAULT: f32 = 0.5;
/// Default of KHR_materials_ior, which is that of glass.
const IOR_DEFAULT: f32 = 1.5;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EmissiveStrength {
    emissive_strength: Option<f32>,
}

#[derive(Deserialize)]
struct Ior {
    ior: Option<f32>,
}

/// Reads every material, requests its textures from `textures`, and adds glTF's default material at
/// the end. Also returns the layers that extensions add, which are empty if no material has a
/// visible one. Materials in `fixed` have these UV sets.
pub(crate) fn read_all(
    document: &Document,
    fixed: &BTreeMap<usize, UvSets>,
    textures: &mut TextureTable,
    warnings: &mut Warnings,
) -> Result<(Vec<Material>, Layered), SceneError> {
    let mut layered = Layered::default();
    let mut materials = Vec::with_capacity(document.root.materials.len() + 1);
    for index in 0..document.root.materials.len() {
        let fixed = fixed.get(&index).copied();
        let (mut material, found, uv_sets) =
            read_one(document, (index, fixed), textures, warnings)?;
        layered.uv_sets.push(uv_sets);
        if !matches!(found, Some((_, Some(_)))) {
            medium::warn_of_priority(document, index, warnings);
        }
        if let Some(found) = found {
            if layered.layers.len() == LAYERS_MAX {
                let problem =
                    format!("is one of more than {} materials with extensions", LAYERS_MAX - 1);
                return Err(document.invalid(format!("materials[{index}]"), problem));
            }
            material.layers = layered.add(document, index, found)?;
        }
        materials.push(material);
    }
    materials.push(default_material());
    layered.uv_sets.push(uv_sets::PLAIN);
    Ok((materials, layered))
}

/// Reads a material, what its extensions add, and its UV sets, which are `fixed` ones or those of
/// its textures. None if the extensions add nothing visible.
pub(crate) fn read_one(
    document: &Document,
    (index, fixed): (usize, Option<UvSets>),
    textures: &mut TextureTable,
    warnings: &mut Warnings,
) -> Result<(Material, Option<Added>, UvSets), SceneError> {
    let mut material = read(document, index, textures, warnings)?;
    let is_lit = material.flags & material_flags::UNLIT == 0;
    let mut found = match is_lit {
        true => layers::read(document, index, &mut material, textures, warnings)?,
        false => None,
    };
    let mut layers = found.as_mut().map(|(layers, _)| layers);
    let uv_sets = match fixed {
        Some(fixed) => fixed,
        None => uv_sets::of(index, &mut material, layers.as_deref_mut(), warnings),
    };
    uv_sets::assign(uv_sets, &mut material, layers);
    if let Some((layers, None)) = &found
        && layers.may_be_pane(&material)
    {
        material.flags |= material_flags::PANE;
    }
    Ok((material, found, uv_sets))
}

/// Returns the material of primitives that name none (glTF 2.0, §3.9.2).
fn default_material() -> Material {
    Material {
        base_color: [1.0; 4],
        emission: [0.0; 3],
        metallic: 1.0,
        roughness: 1.0,
        normal_scale: 1.0,
        alpha_cutoff: ALPHA_CUTOFF_DEFAULT,
        ior: IOR_DEFAULT,
        alpha_mode: AlphaMode::Opaque as u32,
        flags: 0,
        layers: 0,
        reserved: 0,
        base_color_texture: TextureRef::ABSENT,
        metallic_roughness_texture: TextureRef::ABSENT,
        normal_texture: TextureRef::ABSENT,
        emission_texture: TextureRef::ABSENT,
    }
}

fn read(
    document: &Document,
    index: usize,
    textures: &mut TextureTable,
    warnings: &mut Warnings,
) -> Result<Material, SceneError> {
    let json = &document.root.materials[index];
    let path = format!("materials[{index}]");
    let pbr = &json.pbr_metallic_roughness;
    let Checked::Valid(alpha_mode) = json.alpha_mode else {
        return Err(document.invalid(format!("{path}.alphaMode"), "is not OPAQUE, MASK or BLEND"));
    };
    let mut material = default_material();
    material.base_color =
        unit(document, pbr.base_color_factor.0, &format!("{path}.baseColorFactor"))?;
    [material.metallic, material.roughness] = unit(
        document,
        [pbr.metallic_factor.0, pbr.roughness_factor.0],
        &format!("{path}.metallicRoughness"),
    )?;
    material.alpha_mode = match alpha_mode {
        JsonAlphaMode::Opaque => AlphaMode::Opaque,
        JsonAlphaMode::Mask => AlphaMode::Mask,
        JsonAlphaMode::Blend => AlphaMode::Blend,
    } as u32;
    material.alpha_cutoff = json.alpha_cutoff.map_or(ALPHA_CUTOFF_DEFAULT, |cutoff| cutoff.0);
    let extensions = json.extensions.as_ref().map(|extensions| &extensions.others);
    if json.double_sided {
        material.flags |= material_flags::DOUBLE_SIDED;
    }
    let is_unlit = document.extension::<Value>(extensions, "KHR_materials_unlit", &path)?.is_some();
    if is_unlit {
        material.flags |= material_flags::UNLIT;
    } else {
        read_emission(document, index, &mut material)?;
    }
    let ior: Option<Ior> = document.extension(extensions, "KHR_materials_ior", &path)?;
    material.ior = read_ior(document, ior, &path)?;
    read_textures(document, index, &mut material, textures, warnings)?;
    Ok(material)
}

fn read_emission(
    document: &Document,
    index: usize,
    material: &mut Material,
) -> Result<(), SceneError> {
    let json = &document.root.materials[index];
    let path = format!("materials[{index}]");
    let extensions = json.extensions.as_ref().map(|extensions| &extensions.others);
    let strength: Option<EmissiveStrength> =
        document.extension(extensions, "KHR_materials_emissive_strength", &path)?;
    let strength = strength.and_then(|strength| strength.emissive_strength).unwrap_or(1.0);
    if !(strength.is_finite() && strength >= 0.0) {
        let place = format!("{path}.extensions.KHR_materials_emissive_strength.emissiveStrength");
        return Err(document.invalid(place, format!("{strength} is not a finite number >= 0")));
    }
    let factor = json.emissive_factor.0;
    if !factor.iter().all(|value| value.is_finite() && *value >= 0.0) {
        return Err(
            document.invalid(format!("{path}.emissiveFactor"), format!("{factor:?} must be >= 0"))
        );
    }
    material.emission = factor.map(|value| value * strength);
    if !material.emission.iter().all(|value| value.is_finite()) {
        return Err(
            document.invalid(format!("{path}.emissiveFactor"), "overflows; lower the strength")
        );
    }
    Ok(())
}

/// Reads the index of refraction. The extension's 0 means an infinite index, which no float can
/// hold; F0 is then nearly 1.
fn read_ior(document: &Document, ior: Option<Ior>, path: &str) -> Result<f32, SceneError> {
    const IOR_STAND_IN_FOR_INFINITE: f32 = 1.0e6;
    match ior.and_then(|ior| ior.ior) {
        None => Ok(IOR_DEFAULT),
        Some(0.0) => Ok(IOR_STAND_IN_FOR_INFINITE),
        Some(value) if value >= 1.0 && value.is_finite() => Ok(value),
        Some(value) => Err(document.invalid(
            format!("{path}.extensions.KHR_materials_ior.ior"),
            format!("{value} is neither 0 nor a finite number >= 1"),
        )),
    }
}

fn read_textures(
    document: &Document,
    index: usize,
    material: &mut Material,
    textures: &mut TextureTable,
    warnings: &mut Warnings,
) -> Result<(), SceneError> {
    let json = &document.root.materials[index];
    let path = format!("materials[{index}]");
    let info = |info: &'_ gltf::json::texture::Info, usage, name: &str| Slot {
        texture: info.index.value(),
        uv_set: info.tex_coord,
        extensions: None,
        usage,
        path: format!("{path}.{name}"),
    };
    let pbr = &json.pbr_metallic_roughness;
    let mut resolve = |slot: Slot| texture_ref(document, slot, textures, warnings);
    if let Some(base) = &pbr.base_color_texture {
        let extensions = base.extensions.as_ref().map(|e| &e.others);
        let slot = info(base, base_color_use(material), "pbrMetallicRoughness.baseColorTexture");
        material.base_color_texture = resolve(Slot { extensions, ..slot })?;
    }
    if material.flags & material_flags::UNLIT != 0 {
        return Ok(());
    }
    if let Some(rough) = &pbr.metallic_roughness_texture {
        let extensions = rough.extensions.as_ref().map(|e| &e.others);
        let slot = info(rough, TextureUse::Data, "pbrMetallicRoughness.metallicRoughnessTexture");
        material.metallic_roughness_texture = resolve(Slot { extensions, ..slot })?;
    }
    if let Some(emission) = &json.emissive_texture {
        let extensions = emission.extensions.as_ref().map(|e| &e.others);
        let slot = info(emission, TextureUse::Color, "emissiveTexture");
        if material.emission != [0.0; 3] {
            material.emission_texture = resolve(Slot { extensions, ..slot })?;
        }
    }
    if let Some(normal) = &json.normal_texture {
        if !normal.scale.is_finite() {
            return Err(document.invalid(format!("{path}.normalTexture.scale"), "is not finite"));
        }
        material.normal_scale = normal.scale;
        material.normal_texture = resolve(Slot {
            texture: normal.index.value(),
            uv_set: normal.tex_coord,
            extensions: normal.extensions.as_ref().map(|e| &e.others),
            usage: TextureUse::Data,
            path: format!("{path}.normalTexture"),
        })?;
    }
    Ok(())
}

/// Clamps factors to [0, 1]. Fails if one is not a number.
fn unit<const N: usize>(
    document: &Document,
    values: [f32; N],
    path: &str,
) -> Result<[f32; N], SceneError> {
    if values.iter().all(|value| value.is_finite()) {
        Ok(values.map(|value| value.clamp(0.0, 1.0)))
    } else {
        Err(document.invalid(path, format!("{values:?} must be finite and in 0 to 1")))
    }
}
