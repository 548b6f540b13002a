//! Material extensions beyond core glTF: checks what each adds, and converts it to the kernels'
//! units. Does not decode textures.

use crate::document::Document;
use crate::error::SceneError;
use crate::material::medium;
use crate::material::slot::{Slot, base_color_use, texture_ref};
use crate::report::warning::Warnings;
use crate::texture::{TextureTable, TextureUse};
use serde_json::{Map, Value};
use tessera_layout::{Layers, LayersTexture, Material, Medium, TextureRef, layers_flags};

/// Smallest share of light that an attenuation colour lets through, so that its logarithm is
/// finite.
const ATTENUATION_LEAST: f64 = 1e-6;
/// Largest absorption in 1/m, which stops all light within a micrometre.
const ABSORPTION_MAX: f64 = 1e8;
/// Largest factor if an extension sets no limit: specular colours, dispersion.
const FACTOR_MAX: f32 = 1e4;
/// Thickest film in nm. In a thicker film, fringes would be finer than the colours that are
/// computed here.
const FILM_NM_MAX: f32 = 1e5;

/// One extension of one material.
struct Extension<'a, 'b> {
    document: &'a Document,
    object: &'a Map<String, Value>,
    path: String,
    textures: &'b mut TextureTable,
    warnings: &'b mut Warnings,
}

/// Properties of the inside of a surface, if it has one.
#[derive(Default)]
struct Inside {
    thickness: f32,
    absorption: [f32; 3],
    dispersion: f32,
}

/// Reads the extensions of a material that is not unlit. Returns its layers and the medium that it
/// encloses, or None if none of them is visible.
pub(crate) fn read(
    document: &Document,
    index: usize,
    material: &mut Material,
    textures: &mut TextureTable,
    warnings: &mut Warnings,
) -> Result<Option<(Layers, Option<Medium>)>, SceneError> {
    let extensions = document.root.materials[index].extensions.as_ref();
    let Some(extensions) = extensions.map(|extensions| &extensions.others) else { return Ok(None) };
    let (mut layers, mut inside) = (Layers::NONE, Inside::default());
    for (name, value) in extensions {
        let path = format!("materials[{index}].extensions.{name}");
        let Some(object) = value.as_object() else {
            if is_ours(name) {
                return Err(document.invalid(path, "is not an object"));
            }
            continue;
        };
        let mut extension = Extension { document, object, path, textures, warnings };
        match name.as_str() {
            "KHR_materials_specular" => extension.specular(&mut layers)?,
            "KHR_materials_clearcoat" => extension.clearcoat(&mut layers)?,
            "KHR_materials_sheen" => extension.sheen(&mut layers)?,
            "KHR_materials_transmission" => {
                (layers.transmission, layers.textures[LayersTexture::Transmission as usize]) =
                    extension.factor(
                        "transmissionFactor",
                        "transmissionTexture",
                        TextureUse::Data,
                    )?;
            }
            "KHR_materials_diffuse_transmission" => extension.diffuse_transmission(&mut layers)?,
            "KHR_materials_volume" => extension.volume(&mut inside)?,
            "KHR_materials_dispersion" => {
                inside.dispersion = extension.positive("dispersion", 0.0)?
            }
            "KHR_materials_anisotropy" => extension.anisotropy(&mut layers)?,
            "KHR_materials_iridescence" => extension.iridescence(&mut layers)?,
            _ => {}
        }
    }
    // The archived model replaces that of core glTF and KHR_materials_specular.
    if let Some(object) =
        extensions.get("KHR_materials_pbrSpecularGlossiness").and_then(Value::as_object)
    {
        let path = format!("materials[{index}].extensions.KHR_materials_pbrSpecularGlossiness");
        let mut extension = Extension { document, object, path, textures, warnings };
        extension.specular_glossiness(material, &mut layers)?;
    }
    let lets_light_in = layers.transmission > 0.0 || layers.diffuse_transmission > 0.0;
    if inside.thickness > 0.0 && lets_light_in {
        let medium = Medium {
            absorption: inside.absorption,
            ior: material.ior,
            half_spread: Medium::half_spread_of(material.ior, inside.dispersion),
            priority: medium::priority(document, index)?,
            ..Medium::GLASS
        };
        return Ok(Some((layers, Some(medium))));
    }
    Ok((layers != Layers::NONE).then_some((layers, None)))
}

fn is_ours(name: &str) -> bool {
    name.starts_with("KHR_materials_")
}

impl Extension<'_, '_> {
    fn specular(&mut self, layers: &mut Layers) -> Result<(), SceneError> {
        layers.specular = self.unit("specularFactor", 1.0)?;
        layers.specular_color = self.color("specularColorFactor", [1.0; 3], FACTOR_MAX)?;
        // The value is the only one in its channel, so a colour texture in the other channels can
        // be shared.
        self.texture("specularTexture", TextureUse::Color, LayersTexture::Specular, layers)?;
        self.texture(
            "specularColorTexture",
            TextureUse::Color,
            LayersTexture::SpecularColor,
            layers,
        )
    }

    fn clearcoat(&mut self, layers: &mut Layers) -> Result<(), SceneError> {
        let strength = self.unit("clearcoatFactor", 0.0)?;
        let roughness = self.unit("clearcoatRoughnessFactor", 0.0)?;
        let scale = self.texture_scale("clearcoatNormalTexture")?;
        if strength == 0.0 {
            return Ok(());
        }
        (layers.clearcoat, layers.clearcoat_roughness) = (strength, roughness);
        layers.clearcoat_normal_scale = scale;
        self.texture("clearcoatTexture", TextureUse::Data, LayersTexture::Clearcoat, layers)?;
        let place = LayersTexture::ClearcoatRoughness;
        self.texture("clearcoatRoughnessTexture", TextureUse::Data, place, layers)?;
        self.texture(
            "clearcoatNormalTexture",
            TextureUse::Data,
            LayersTexture::ClearcoatNormal,
            layers,
        )
    }

    fn sheen(&mut self, layers: &mut Layers) -> Result<(), SceneError> {
        let color = self.color("sheenColorFactor", [0.0; 3], 1.0)?;
        let roughness = self.unit("sheenRoughnessFactor", 0.0)?;
        if color == [0.0; 3] {
            return Ok(());
        }
        (layers.sheen_color, layers.sheen_roughness) = (color, roughness);
        self.texture("sheenColorTexture", TextureUse::Color, LayersTexture::SheenColor, layers)?;
        self.texture(
            "sheenRoughnessTexture",
            TextureUse::Color,
            LayersTexture::SheenRoughness,
            layers,
        )
    }

    fn diffuse_transmission(&mut self, layers: &mut Layers) -> Result<(), SceneError> {
        let name = "diffuseTransmissionTexture";
        let (share, texture) = self.factor("diffuseTransmissionFactor", name, TextureUse::Color)?;
        let color = self.color("diffuseTransmissionColorFactor", [1.0; 3], 1.0)?;
        if share == 0.0 {
            return Ok(());
        }
        layers.diffuse_transmission = share;
        layers.textures[LayersTexture::DiffuseTransmission as usize] = texture;
        layers.diffuse_transmission_color = color;
        let place = LayersTexture::DiffuseTransmissionColor;
        self.texture("diffuseTransmissionColorTexture", TextureUse::Color, place, layers)
    }

    /// Reads the volume. The thickness texture is for rasterisers; a path finds the thickness
    /// itself.
    fn volume(&mut self, inside: &mut Inside) -> Result<(), SceneError> {
        inside.thickness = self.positive("thicknessFactor", 0.0)?;
        let color = self.color("attenuationColor", [1.0; 3], 1.0)?;
        let distance = match self.object.get("attenuationDistance") {
            None => return Ok(()),
            Some(_) => f64::from(self.positive("attenuationDistance", 0.0)?),
        };
        if distance <= 0.0 {
            return Err(self.wrong("attenuationDistance", "must be greater than 0"));
        }
        inside.absorption = color.map(|share| {
            let share = f64::from(share).max(ATTENUATION_LEAST);
            // This gives 0 and not -0 for white.
            (-libm::log(share) / distance).clamp(0.0, ABSORPTION_MAX) as f32 + 0.0
        });
        Ok(())
    }

    fn anisotropy(&mut self, layers: &mut Layers) -> Result<(), SceneError> {
        let strength = self.unit("anisotropyStrength", 0.0)?;
        let rotation = f64::from(self.number("anisotropyRotation", 0.0)?);
        if strength == 0.0 {
            return Ok(());
        }
        layers.anisotropy = strength;
        layers.anisotropy_cosine = libm::cos(rotation) as f32;
        layers.anisotropy_sine = libm::sin(rotation) as f32;
        self.texture("anisotropyTexture", TextureUse::Data, LayersTexture::Anisotropy, layers)
    }

    fn iridescence(&mut self, layers: &mut Layers) -> Result<(), SceneError> {
        let (strength, texture) =
            self.factor("iridescenceFactor", "iridescenceTexture", TextureUse::Data)?;
        let ior = self.number("iridescenceIor", 1.3)?;
        let least = self.positive("iridescenceThicknessMinimum", 100.0)?;
        let most = self.positive("iridescenceThicknessMaximum", 400.0)?;
        if ior < 1.0 {
            return Err(self.wrong("iridescenceIor", "must be at least 1"));
        }
        if strength == 0.0 {
            return Ok(());
        }
        layers.iridescence = strength;
        layers.textures[LayersTexture::Iridescence as usize] = texture;
        layers.iridescence_ior = ior.min(FACTOR_MAX);
        layers.iridescence_thickness_min = least.min(FILM_NM_MAX);
        layers.iridescence_thickness_max = most.min(FILM_NM_MAX);
        let place = LayersTexture::IridescenceThickness;
        self.texture("iridescenceThicknessTexture", TextureUse::Data, place, layers)
    }

    fn specular_glossiness(
        &mut self,
        material: &mut Material,
        layers: &mut Layers,
    ) -> Result<(), SceneError> {
        let diffuse = self.numbers("diffuseFactor", [1.0; 4])?;
        material.base_color = diffuse.map(|value| value.clamp(0.0, 1.0));
        material.metallic = 0.0;
        material.metallic_roughness_texture = TextureRef::ABSENT;
        material.roughness = 1.0 - self.unit("glossinessFactor", 1.0)?;
        material.base_color_texture =
            self.texture_ref("diffuseTexture", base_color_use(material))?;
        layers.flags |= layers_flags::SPECULAR_GLOSSINESS;
        layers.specular_color = self.color("specularFactor", [1.0; 3], 1.0)?;
        let place = LayersTexture::SpecularGlossiness;
        self.texture("specularGlossinessTexture", TextureUse::Color, place, layers)
    }

    fn wrong(&self, name: &str, problem: &str) -> SceneError {
        self.document.invalid(format!("{}.{name}", self.path), problem)
    }

    /// Reads a factor in [0, 1] with the default 0, and its texture. The texture is absent if the
    /// factor is 0.
    fn factor(
        &mut self,
        factor: &str,
        texture: &str,
        usage: TextureUse,
    ) -> Result<(f32, TextureRef), SceneError> {
        let value = self.unit(factor, 0.0)?;
        let used = if value > 0.0 { self.texture_ref(texture, usage)? } else { TextureRef::ABSENT };
        Ok((value, used))
    }

    fn numbers<const N: usize>(
        &self,
        name: &str,
        default: [f32; N],
    ) -> Result<[f32; N], SceneError> {
        let Some(value) = self.object.get(name) else { return Ok(default) };
        let list = value.as_array().filter(|list| list.len() == N);
        let mut numbers = default;
        for (at, number) in numbers.iter_mut().enumerate() {
            let found = list.and_then(|list| list[at].as_f64()).map(|number| number as f32);
            *number = found
                .filter(|number| number.is_finite())
                .ok_or_else(|| self.wrong(name, &format!("{value} must be {N} finite numbers")))?;
        }
        Ok(numbers)
    }

    fn number(&self, name: &str, default: f32) -> Result<f32, SceneError> {
        let Some(value) = self.object.get(name) else { return Ok(default) };
        let number = value.as_f64().map(|number| number as f32).filter(|number| number.is_finite());
        number.ok_or_else(|| self.wrong(name, &format!("{value} must be a finite number")))
    }

    /// Reads a number and clamps it to [0, 1].
    fn unit(&self, name: &str, default: f32) -> Result<f32, SceneError> {
        Ok(self.number(name, default)?.clamp(0.0, 1.0))
    }

    fn positive(&self, name: &str, default: f32) -> Result<f32, SceneError> {
        let number = self.number(name, default)?;
        if number < 0.0 {
            return Err(self.wrong(name, &format!("{number} must not be negative")));
        }
        Ok(number.min(if name == "dispersion" { FACTOR_MAX } else { f32::MAX }))
    }

    /// Reads a colour and clamps it to [0, most].
    fn color(&self, name: &str, default: [f32; 3], most: f32) -> Result<[f32; 3], SceneError> {
        Ok(self.numbers(name, default)?.map(|value| value.clamp(0.0, most)))
    }

    fn texture(
        &mut self,
        name: &str,
        usage: TextureUse,
        place: LayersTexture,
        layers: &mut Layers,
    ) -> Result<(), SceneError> {
        layers.textures[place as usize] = self.texture_ref(name, usage)?;
        Ok(())
    }

    fn texture_scale(&self, name: &str) -> Result<f32, SceneError> {
        let scale = self.object.get(name).and_then(|info| info.get("scale"));
        let Some(scale) = scale else { return Ok(1.0) };
        let number = scale.as_f64().map(|number| number as f32).filter(|number| number.is_finite());
        number.ok_or_else(|| self.wrong(&format!("{name}.scale"), "is not finite"))
    }

    fn texture_ref(&mut self, name: &str, usage: TextureUse) -> Result<TextureRef, SceneError> {
        let Some(info) = self.object.get(name) else { return Ok(TextureRef::ABSENT) };
        let whole =
            |key: &str| info.get(key).and_then(Value::as_u64).and_then(|n| u32::try_from(n).ok());
        let texture = whole("index").ok_or_else(|| self.wrong(name, "has no texture's index"))?;
        let uv_set = match info.get("texCoord") {
            None => 0,
            Some(_) => whole("texCoord")
                .ok_or_else(|| self.wrong(name, "has a texCoord that is not an index"))?,
        };
        let slot = Slot {
            texture: texture as usize,
            uv_set,
            extensions: info.get("extensions").and_then(Value::as_object),
            usage,
            path: format!("{}.{name}", self.path),
        };
        texture_ref(self.document, slot, self.textures, self.warnings)
    }
}
