//! Properties of materials, lights and cameras that an animation can move (glTF 2.0 Asset Object
//! Model), with the numbers that each of them takes. Does not parse pointers.

use std::f64::consts::FRAC_PI_2;

/// Numbers that a property takes. Where the reader of the property clamps, every number is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Range {
    Any,
    NotNegative,
    Positive,
    AtLeastOne,
    /// 0, or at least 1.
    Ior,
    /// Angle of a spot's cone in radians.
    Cone,
    /// Field of view in radians.
    View,
}

impl Range {
    fn ends(self) -> (f64, f64) {
        const MOST: f64 = f32::MAX as f64;
        const LEAST: f64 = f32::MIN_POSITIVE as f64;
        match self {
            Self::Any => (-MOST, MOST),
            Self::NotNegative => (0.0, MOST),
            Self::Positive => (LEAST, MOST),
            Self::AtLeastOne | Self::Ior => (1.0, MOST),
            Self::Cone => (0.0, FRAC_PI_2 + 1e-6),
            // The largest float below pi.
            Self::View => (LEAST, f64::from(std::f32::consts::PI.next_down())),
        }
    }

    /// Returns whether a file may give this number.
    pub(crate) fn holds(self, value: f64) -> bool {
        let (least, most) = self.ends();
        (least..=most).contains(&value) || (self == Self::Ior && value == 0.0)
    }

    /// Returns the nearest number that a file may give, for splines that go beyond their keys.
    pub(crate) fn clamp(self, value: f64) -> f64 {
        let (least, most) = self.ends();
        if self.holds(value) { value } else { value.clamp(least, most) }
    }

    /// Returns what the numbers must be, in words.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Any => "a number that fits in 32 bits",
            Self::NotNegative => "0 or greater",
            Self::Positive => "greater than 0",
            Self::AtLeastOne => "at least 1",
            Self::Ior => "0, or at least 1",
            Self::Cone => "from 0 to pi/2",
            Self::View => "between 0 and pi",
        }
    }
}

/// A property that an animation can move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Property {
    /// Count of its numbers.
    pub(crate) width: usize,
    pub(crate) range: Range,
    /// Whether it has a default, so that the file may leave it out.
    pub(crate) has_default: bool,
}

type Row = (&'static str, usize, Range);

const CAMERA: &[Row] = &[
    ("orthographic/xmag", 1, Range::Any),
    ("orthographic/ymag", 1, Range::Any),
    ("orthographic/zfar", 1, Range::NotNegative),
    ("orthographic/znear", 1, Range::NotNegative),
    ("perspective/aspectRatio", 1, Range::Positive),
    ("perspective/yfov", 1, Range::View),
    ("perspective/zfar", 1, Range::Positive),
    ("perspective/znear", 1, Range::NotNegative),
];

const LIGHT: &[Row] = &[
    ("color", 3, Range::NotNegative),
    ("intensity", 1, Range::NotNegative),
    ("range", 1, Range::Positive),
    ("spot/innerConeAngle", 1, Range::Cone),
    ("spot/outerConeAngle", 1, Range::Cone),
];

/// Properties of cameras and lights that have no default.
const WITHOUT_DEFAULT: [&str; 3] = ["perspective/aspectRatio", "perspective/zfar", "range"];

const MATERIAL: &[Row] = &[
    ("alphaCutoff", 1, Range::Any),
    ("emissiveFactor", 3, Range::NotNegative),
    ("normalTexture/scale", 1, Range::Any),
    ("occlusionTexture/strength", 1, Range::Any),
    ("pbrMetallicRoughness/baseColorFactor", 4, Range::Any),
    ("pbrMetallicRoughness/metallicFactor", 1, Range::Any),
    ("pbrMetallicRoughness/roughnessFactor", 1, Range::Any),
];

/// Properties of the extensions of materials.
const MATERIAL_EXTENSIONS: &[Row] = &[
    ("KHR_materials_anisotropy/anisotropyRotation", 1, Range::Any),
    ("KHR_materials_anisotropy/anisotropyStrength", 1, Range::Any),
    ("KHR_materials_clearcoat/clearcoatFactor", 1, Range::Any),
    ("KHR_materials_clearcoat/clearcoatNormalTexture/scale", 1, Range::Any),
    ("KHR_materials_clearcoat/clearcoatRoughnessFactor", 1, Range::Any),
    ("KHR_materials_diffuse_transmission/diffuseTransmissionColorFactor", 3, Range::Any),
    ("KHR_materials_diffuse_transmission/diffuseTransmissionFactor", 1, Range::Any),
    ("KHR_materials_dispersion/dispersion", 1, Range::NotNegative),
    ("KHR_materials_emissive_strength/emissiveStrength", 1, Range::NotNegative),
    ("KHR_materials_ior/ior", 1, Range::Ior),
    ("KHR_materials_iridescence/iridescenceFactor", 1, Range::Any),
    ("KHR_materials_iridescence/iridescenceIor", 1, Range::AtLeastOne),
    ("KHR_materials_iridescence/iridescenceThicknessMaximum", 1, Range::NotNegative),
    ("KHR_materials_iridescence/iridescenceThicknessMinimum", 1, Range::NotNegative),
    ("KHR_materials_pbrSpecularGlossiness/diffuseFactor", 4, Range::Any),
    ("KHR_materials_pbrSpecularGlossiness/glossinessFactor", 1, Range::Any),
    ("KHR_materials_pbrSpecularGlossiness/specularFactor", 3, Range::Any),
    ("KHR_materials_sheen/sheenColorFactor", 3, Range::Any),
    ("KHR_materials_sheen/sheenRoughnessFactor", 1, Range::Any),
    ("KHR_materials_specular/specularColorFactor", 3, Range::Any),
    ("KHR_materials_specular/specularFactor", 1, Range::Any),
    ("KHR_materials_transmission/transmissionFactor", 1, Range::Any),
    ("KHR_materials_volume/attenuationColor", 3, Range::Any),
    ("KHR_materials_volume/attenuationDistance", 1, Range::Positive),
    ("KHR_materials_volume/thicknessFactor", 1, Range::NotNegative),
];

/// Textures of core glTF, by the object that holds them.
const CORE_TEXTURES: &[&str] = &[
    "emissiveTexture",
    "normalTexture",
    "occlusionTexture",
    "pbrMetallicRoughness/baseColorTexture",
    "pbrMetallicRoughness/metallicRoughnessTexture",
];

fn find(rows: &[Row], path: &str) -> Option<Property> {
    let (_, width, range) = rows.iter().find(|(known, _, _)| *known == path)?;
    let has_default = !WITHOUT_DEFAULT.contains(&path);
    Some(Property { width: *width, range: *range, has_default })
}

/// Returns the property of a camera at this path in it.
pub(crate) fn of_camera(path: &str) -> Option<Property> {
    find(CAMERA, path)
}

/// Returns the property of a punctual light at this path in it.
pub(crate) fn of_light(path: &str) -> Option<Property> {
    find(LIGHT, path)
}

/// Returns the property of a material at this path in it.
pub(crate) fn of_material(path: &str) -> Option<Property> {
    if let Some((texture, member)) = path.rsplit_once("/extensions/KHR_texture_transform/") {
        let width = match member {
            "offset" | "scale" => 2,
            "rotation" => 1,
            _ => return None,
        };
        let known = CORE_TEXTURES.contains(&texture) || is_texture_of_extension(texture);
        return known.then_some(Property { width, range: Range::Any, has_default: true });
    }
    match path.strip_prefix("extensions/") {
        Some(path) => find(MATERIAL_EXTENSIONS, path),
        None => find(MATERIAL, path),
    }
}

/// Returns whether a path names a texture of an extension that has properties.
fn is_texture_of_extension(path: &str) -> bool {
    let Some(path) = path.strip_prefix("extensions/") else { return false };
    let Some((extension, texture)) = path.split_once('/') else { return false };
    let is_known = |(known, _, _): &Row| known.split('/').next() == Some(extension);
    texture.ends_with("Texture")
        && !texture.contains('/')
        && MATERIAL_EXTENSIONS.iter().any(is_known)
}
