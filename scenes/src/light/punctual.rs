//! KHR_lights_punctual: point, spot and directional lights of the file, and their places in the
//! world.

use crate::document::Document;
use crate::error::SceneError;
use crate::math::{Affine, luminance, narrow, normalize, scale, widen};
use crate::options::LightUnits;
use crate::working_space::WorkingSpace;
use serde::Deserialize;
use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, PI};
use tessera_layout::{Light, LightBounds, LightChoice, LightKind, NONE};

/// Smallest difference between the cosines of a spot's cones. The extension recommends it against a
/// division by zero.
const SPOT_COSINE_GAP_MIN: f64 = 0.001;

/// Angle in radians beyond a spot's outer cone that counts as inside when lights are chosen.
const SPOT_MARGIN: f64 = 0.01;

#[derive(Deserialize)]
struct Lights {
    #[serde(default)]
    lights: Vec<LightJson>,
}

#[derive(Deserialize)]
struct LightJson {
    #[serde(default)]
    name: String,
    #[serde(rename = "type")]
    kind: String,
    color: Option<[f32; 3]>,
    intensity: Option<f32>,
    range: Option<f32>,
    spot: Option<SpotJson>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SpotJson {
    inner_cone_angle: Option<f64>,
    outer_cone_angle: Option<f64>,
}

/// A light of the file, before any node places it.
#[derive(Clone, Debug)]
pub(crate) struct Punctual {
    kind: LightKind,
    emission: [f32; 3],
    range: f32,
    cos_inner: f64,
    cos_outer: f64,
}

/// Reads the file's lights, whose intensities are in these units.
pub(crate) fn read_all(
    document: &Document,
    units: LightUnits,
) -> Result<Vec<Punctual>, SceneError> {
    let extensions = document.root.extensions.as_ref().map(|extensions| &extensions.others);
    let lights: Option<Lights> = document.extension(extensions, "KHR_lights_punctual", "")?;
    let lights = lights.map(|lights| lights.lights).unwrap_or_default();
    let read_one = |(index, json): (usize, &LightJson)| {
        let light = read(document, index, json)?;
        Ok(Punctual { emission: light.emission.map(|value| value * units.factor()), ..light })
    };
    lights.iter().enumerate().map(read_one).collect()
}

/// Reads a light with the intensity that the file gives.
fn read(document: &Document, index: usize, json: &LightJson) -> Result<Punctual, SceneError> {
    let path = format!("extensions.KHR_lights_punctual.lights[{index}]");
    let wrong = |field: &str, problem: &str| {
        Err(document
            .invalid(format!("{path}.{field}"), format!("{problem} (light {:?})", json.name)))
    };
    let kind = match json.kind.as_str() {
        "point" => LightKind::Point,
        "spot" => LightKind::Spot,
        "directional" => LightKind::Directional,
        _ => return wrong("type", "is not point, spot or directional"),
    };
    let intensity = json.intensity.unwrap_or(1.0);
    let emission = json.color.unwrap_or([1.0; 3]).map(|value| value * intensity);
    if !emission.iter().all(|value| value.is_finite() && *value >= 0.0) {
        return wrong("intensity", "and color must be finite and not below 0");
    }
    let range = json.range.unwrap_or(0.0);
    if !(range >= 0.0 && range.is_finite()) || json.range == Some(0.0) {
        return wrong("range", "must be finite and above 0; leave it out for an infinite one");
    }
    let inner = json.spot.as_ref().and_then(|spot| spot.inner_cone_angle).unwrap_or(0.0);
    let outer = json.spot.as_ref().and_then(|spot| spot.outer_cone_angle).unwrap_or(FRAC_PI_4);
    // The extension asks for an inner cone below the outer one, and Blender writes equal ones for a
    // hard edge.
    if !(inner >= 0.0 && inner <= outer && outer > 0.0 && outer <= FRAC_PI_2 + 1e-6) {
        return wrong("spot", "needs 0 <= innerConeAngle <= outerConeAngle <= pi/2, not both 0");
    }
    Ok(Punctual { kind, emission, range, cos_inner: libm::cos(inner), cos_outer: libm::cos(outer) })
}

impl Punctual {
    /// Returns the light as its node places it in the working space. The node's scale changes
    /// neither brightness nor cone. The space's changes distances, whose squares light falls with.
    pub(crate) fn place(&self, world: &Affine, space: &WorkingSpace) -> Light {
        let direction = normalize(scale(world.column(2), -1.0)).unwrap_or([0.0, 0.0, -1.0]);
        let spot_scale = 1.0 / (self.cos_inner - self.cos_outer).max(SPOT_COSINE_GAP_MIN);
        let is_spot = self.kind == LightKind::Spot;
        let factor = space.factor();
        let brightness = if self.is_placed() { factor * factor } else { 1.0 };
        Light {
            position: narrow(world.offset),
            kind: self.kind as u32,
            direction: narrow(direction),
            range: space.length(self.range),
            emission: self.emission.map(|value| (f64::from(value) * brightness) as f32),
            triangle: NONE,
            spot_scale: if is_spot { spot_scale as f32 } else { 0.0 },
            spot_offset: if is_spot { (-self.cos_outer * spot_scale) as f32 } else { 0.0 },
            pick_probability: 0.0,
            area: 0.0,
            trail: 0,
            reserved: [0; 3],
        }
    }

    /// Returns the irradiance in W/m² of a surface that faces the light, `distance` metres from its
    /// place. A directional light has no place.
    pub(crate) fn irradiance(&self, distance: f64) -> f64 {
        let emission = luminance(widen(self.emission));
        if self.is_placed() { emission / (distance * distance) } else { emission }
    }

    /// Returns whether the light has a place. A directional light comes from infinity.
    pub(crate) fn is_placed(&self) -> bool {
        self.kind != LightKind::Directional
    }

    /// Returns how the light is chosen. `placed` has its place.
    pub(crate) fn choice(&self, placed: &Light, scene_radius: f64) -> LightChoice {
        let is_spot = self.kind == LightKind::Spot;
        let bounds = LightBounds {
            lower: widen(placed.position),
            upper: widen(placed.position),
            axis: widen(placed.direction),
            // A spot shines only into its outer cone.
            spread: if is_spot { libm::acos(self.cos_outer) } else { PI },
            emission: if is_spot { SPOT_MARGIN } else { FRAC_PI_2 },
            both_sides: false,
        };
        LightChoice {
            power: self.power(placed, scene_radius),
            bounds: self.is_placed().then_some(bounds),
        }
    }

    /// Returns the estimated power. For a point it is the intensity over the whole sphere, and for
    /// a spot over half of the range between the cones. For a directional light it is the
    /// irradiance over the scene's disk, with the radius `scene_radius` in the working space.
    fn power(&self, placed: &Light, scene_radius: f64) -> f64 {
        let emission = luminance(widen(placed.emission));
        match self.kind {
            LightKind::Spot => {
                emission * 2.0 * PI * (1.0 - 0.5 * (self.cos_inner + self.cos_outer))
            }
            LightKind::Directional => emission * PI * scene_radius * scene_radius,
            _ => emission * 4.0 * PI,
        }
    }
}
