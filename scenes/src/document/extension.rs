//! Extensions that are applied, and the differences in the picture if one is not. Does not
//! implement them.

use crate::document::Document;
use crate::error::SceneError;
use crate::report::ExtensionReport;
use std::collections::BTreeSet;

/// Extensions that are applied, or that do not affect a picture.
const APPLIED: &[&str] = &[
    "EXT_mesh_gpu_instancing",
    "EXT_mesh_manifold",
    "EXT_meshopt_compression",
    "EXT_texture_webp",
    "KHR_animation_pointer",
    "KHR_draco_mesh_compression",
    "KHR_lights_punctual",
    "KHR_materials_anisotropy",
    "KHR_materials_clearcoat",
    "KHR_materials_diffuse_transmission",
    "KHR_materials_dispersion",
    "KHR_materials_emissive_strength",
    "KHR_materials_ior",
    "KHR_materials_iridescence",
    "KHR_materials_pbrSpecularGlossiness",
    "KHR_materials_sheen",
    "KHR_materials_specular",
    "KHR_materials_transmission",
    "KHR_materials_unlit",
    "KHR_materials_variants",
    "KHR_materials_volume",
    "KHR_mesh_quantization",
    "KHR_meshopt_compression",
    "KHR_node_hoverability",
    "KHR_node_selectability",
    "KHR_node_visibility",
    "KHR_texture_basisu",
    "KHR_texture_transform",
    "KHR_xmp",
    "KHR_xmp_json_ld",
];

/// Known extensions that are not applied, and what will look different without each.
const IGNORED: &[(&str, &str)] = &[
    ("EXT_lights_ies", "lights shine evenly instead of by their IES profile"),
    ("EXT_lights_image_based", "the scene's own image-based light is absent; give one with --env"),
    ("EXT_texture_avif", "textures use their fallback image, or are white where they have none"),
    ("KHR_gaussian_splatting", "splats are left out, as points are"),
    ("KHR_interactivity", "its behaviours do not run; the scene is shown as it is stored"),
    ("KHR_materials_volume_scatter", "media absorb light and do not scatter it"),
    ("MSFT_lod", "the finest level of detail is always shown"),
    ("MSFT_texture_dds", "textures use their fallback image, or are white where they have none"),
];

/// Advice if one is required.
const REMEDIES: &[(&str, &str)] =
    &[("EXT_texture_avif", REMEDY_TEXTURES), ("MSFT_texture_dds", REMEDY_TEXTURES)];
const REMEDY_TEXTURES: &str = "convert the textures to PNG, JPEG or WebP";
const REMEDY_OTHERWISE: &str =
    "export the scene without these extensions, or list them as optional";

/// Returns the treatment of each extension of the file. A required one that is not applied is an
/// error that names it.
pub(crate) fn check(document: &Document) -> Result<Vec<ExtensionReport>, SceneError> {
    let root = &document.root;
    let missing: Vec<String> =
        root.extensions_required.iter().filter(|name| !is_applied(name)).cloned().collect();
    if !missing.is_empty() {
        let hint = hint_for(&missing);
        return Err(SceneError::Extension { file: document.file.clone(), names: missing, hint });
    }
    let required: BTreeSet<&String> = root.extensions_required.iter().collect();
    let names: BTreeSet<&String> =
        root.extensions_used.iter().chain(&root.extensions_required).collect();
    Ok(names
        .into_iter()
        .map(|name| ExtensionReport {
            name: name.clone(),
            required: required.contains(name),
            applied: is_applied(name),
            effect: if is_applied(name) { String::new() } else { effect_of(name).into() },
        })
        .collect())
}

/// Returns a warning for each extension that is not applied.
pub(crate) fn warnings(extensions: &[ExtensionReport]) -> impl Iterator<Item = String> {
    let ignored = extensions.iter().filter(|extension| !extension.applied);
    ignored.map(|extension| format!("{} is ignored: {}", extension.name, extension.effect))
}

pub(crate) fn is_applied(name: &str) -> bool {
    APPLIED.contains(&name)
}

fn effect_of(name: &str) -> &'static str {
    let known = IGNORED.iter().find(|(known, _)| *known == name);
    known.map_or("it is unknown to Tessera, and has no effect", |(_, effect)| effect)
}

/// Returns advice about extensions that are required and not applied, one sentence for each kind of
/// them.
fn hint_for(missing: &[String]) -> String {
    let mut hints: Vec<&str> = Vec::new();
    for name in missing {
        let known = REMEDIES.iter().find(|(known, _)| known == name);
        let hint = known.map_or(REMEDY_OTHERWISE, |(_, remedy)| remedy);
        if !hints.contains(&hint) {
            hints.push(hint);
        }
    }
    hints.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint(names: &[&str]) -> String {
        hint_for(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn textures_have_their_remedy() {
        assert!(hint(&["EXT_texture_avif"]).contains("PNG, JPEG or WebP"));
        assert!(hint(&["ACME_teapot"]).contains("export the scene without"));
        assert!(REMEDIES.iter().all(|(name, _)| IGNORED.iter().any(|(known, _)| known == name)));
    }

    #[test]
    fn every_extension_is_in_docs_gltf() {
        let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/gltf.md");
        let page = std::fs::read_to_string(page).unwrap();
        let known = APPLIED.iter().chain(IGNORED.iter().map(|(name, _)| name));
        let absent: Vec<_> = known.filter(|name| !page.contains(**name)).collect();
        assert!(absent.is_empty(), "{absent:?}");
    }

    #[test]
    fn every_kind_of_extension_is_hinted_once() {
        let both = hint(&["EXT_texture_avif", "MSFT_texture_dds"]);
        assert_eq!(both, hint(&["EXT_texture_avif"]));
        let all = hint(&["EXT_texture_avif", "ACME_teapot", "ACME_kettle"]);
        assert_eq!(all.matches("; ").count(), 1, "{all}");
    }
}
