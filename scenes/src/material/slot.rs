//! A texture's place in a material, and its transform (KHR_texture_transform). Does not decode
//! textures.

use crate::document::Document;
use crate::error::SceneError;
use crate::report::warning::Warnings;
use crate::texture::{TextureTable, TextureUse};
use serde::Deserialize;
use serde_json::{Map, Value};
use tessera_layout::{AlphaMode, Material, NONE, TextureRef};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct TextureTransform {
    offset: [f32; 2],
    rotation: f32,
    scale: [f32; 2],
    tex_coord: Option<u32>,
}

impl Default for TextureTransform {
    fn default() -> Self {
        Self { offset: [0.0; 2], rotation: 0.0, scale: [1.0; 2], tex_coord: None }
    }
}

/// Returns how the base colour's texture is read, once the alpha mode is known.
pub(crate) fn base_color_use(material: &Material) -> TextureUse {
    if material.alpha_mode == AlphaMode::Opaque as u32 {
        TextureUse::Color
    } else {
        TextureUse::CoveringColor
    }
}

/// A texture in a material, with the fields that glTF's three kinds of texture infos share.
pub(crate) struct Slot<'a> {
    pub(crate) texture: usize,
    pub(crate) uv_set: u32,
    pub(crate) extensions: Option<&'a Map<String, Value>>,
    pub(crate) usage: TextureUse,
    pub(crate) path: String,
}

/// How a material refers to a texture; absent where it cannot be read, which is warned of. The UV
/// set is the file's; see `uv_sets`.
pub(crate) fn texture_ref(
    document: &Document,
    slot: Slot,
    textures: &mut TextureTable,
    warnings: &mut Warnings,
) -> Result<TextureRef, SceneError> {
    let texture = textures.request(document, slot.texture, slot.usage, &slot.path, warnings)?;
    if texture == NONE {
        return Ok(TextureRef::ABSENT);
    }
    let transform: TextureTransform = document
        .extension(slot.extensions, "KHR_texture_transform", &slot.path)?
        .unwrap_or_default();
    let uv_from_mesh = affine(&transform);
    if !uv_from_mesh.iter().all(|value| value.is_finite()) {
        let place = format!("{}.extensions.KHR_texture_transform", slot.path);
        return Err(document.invalid(place, "is not finite"));
    }
    let uv_set = transform.tex_coord.unwrap_or(slot.uv_set);
    Ok(TextureRef { uv_from_mesh, texture, uv_set, reserved: [0; 4] })
}

/// Returns scale, then rotation, then offset. A positive rotation turns UVs counter-clockwise in a
/// picture whose v grows downwards, as Khronos's TextureTransformTest shows. (The formula in the
/// extension's text has the opposite sign.)
fn affine(transform: &TextureTransform) -> [f32; 6] {
    let angle = f64::from(transform.rotation);
    let (sine, cosine) = (libm::sin(angle), libm::cos(angle));
    let [su, sv] = transform.scale.map(f64::from);
    let [ou, ov] = transform.offset;
    [(cosine * su) as f32, (sine * sv) as f32, ou, (-sine * su) as f32, (cosine * sv) as f32, ov]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_texture_transform_turns_as_the_khronos_test_model_wants() {
        // The "All" quad of TextureTransformTest: its arrow must show at mesh UV (0.43, 0.75).
        let transform = TextureTransform {
            offset: [-0.2, -0.1],
            rotation: 0.3,
            scale: [1.5, 1.5],
            tex_coord: None,
        };
        let m = affine(&transform);
        let (u, v) = (0.43, 0.75);
        let (u2, v2) = (m[0] * u + m[1] * v + m[2], m[3] * u + m[4] * v + m[5]);
        assert!((u2 - 0.7486).abs() < 1e-3 && (v2 - 0.7841).abs() < 1e-3, "{u2} {v2}");
    }
}
