//! Light from infinity: reads `.hdr` and `.exr` maps, and makes the table for importance sampling.
//!
//! The map is equirectangular, +Y up. Row i is at the polar angle π(i + ½)/height from +Y, the
//! centre column is towards +Z, and u grows to the right of an observer at the centre.

use crate::document::source::{self, Source};
use crate::error::SceneError;
use crate::image_file::radiance;
use crate::math::{luminance, widen};
use crate::options::EnvironmentSource;
use crate::report::warning::Warnings;
use std::f64::consts::PI;
use tessera_layout::{Array, Environment, EnvironmentCell, NONE, build_environment_cells};

/// Bytes of a texel: decoded, stored, its weight, and its cell. Rows need few bytes.
const TEXEL_BYTES: u64 = 12 + 12 + 8 + 12;

/// Light from infinity, ready for every frame.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoadedEnvironment {
    width: u32,
    height: u32,
    /// Radiance if there is no map; None if there is no light from infinity.
    constant: Option<[f32; 3]>,
    pub(crate) texels: Array<[f32; 3]>,
    pub(crate) cells: Array<EnvironmentCell>,
    /// ∫ luminance dω over the sphere, without any factor.
    flux: f64,
    /// Description for the report.
    pub(crate) description: String,
}

/// Reads the caller's choice. `is_lit` says whether the scene has lights. A scene without any light
/// gets a white environment.
pub(crate) fn read(
    choice: &EnvironmentSource,
    is_lit: bool,
    source: &Source,
    warnings: &mut Warnings,
) -> Result<LoadedEnvironment, SceneError> {
    match choice {
        EnvironmentSource::Map { path } => {
            let file = source::confined(path, path)?;
            read_map(&source.read(&file)?, file, source, warnings)
        }
        EnvironmentSource::File { path } => {
            let file = path.display().to_string();
            read_map(&source.read_at(path.clone(), &file)?, file, source, warnings)
        }
        EnvironmentSource::Constant(rgb) => {
            if !rgb.iter().all(|value| value.is_finite() && *value >= 0.0) {
                let problem = format!("{rgb:?} is not three finite numbers >= 0");
                return Err(SceneError::Image {
                    file: "(environment)".into(),
                    path: "constant".into(),
                    problem,
                });
            }
            Ok(constant(*rgb, format!("constant {} {} {}", rgb[0], rgb[1], rgb[2])))
        }
        EnvironmentSource::None | EnvironmentSource::Auto if is_lit => Ok(without()),
        EnvironmentSource::None => {
            warnings.add("the scene has no light and no environment; surfaces are black");
            Ok(without())
        }
        EnvironmentSource::Auto => {
            warnings
                .add("the scene has no light; it stands in a plain white environment (see --env)");
            Ok(constant([1.0; 3], "plain white, because the scene has no light".into()))
        }
    }
}

fn without() -> LoadedEnvironment {
    LoadedEnvironment { description: "none".into(), ..LoadedEnvironment::default() }
}

fn constant(rgb: [f32; 3], description: String) -> LoadedEnvironment {
    let flux = 4.0 * PI * luminance(widen(rgb));
    LoadedEnvironment { constant: Some(rgb), flux, description, ..LoadedEnvironment::default() }
}

fn read_map(
    bytes: &[u8],
    file: String,
    source: &Source,
    warnings: &mut Warnings,
) -> Result<LoadedEnvironment, SceneError> {
    let wrong =
        |problem| SceneError::Image { file: file.clone(), path: "environment".into(), problem };
    let size = radiance::size(bytes, source.limits.environment_texels).map_err(wrong)?;
    source.budget.expand(bytes.len() as u64, size.file_bytes).map_err(wrong)?;
    source.budget.spend(size.texels, TEXEL_BYTES, &file, "environment")?;
    let map = radiance::decode(bytes, source.limits.environment_texels).map_err(wrong)?;
    if map.repaired > 0 {
        let what = "were negative, infinite or not a number; they are 0 or the largest film value";
        warnings.add(format!("`{file}`: {} values {what}", map.repaired));
    }
    let weights = weights(&map.texels, map.width, map.height);
    let solid_angle = (2.0 * PI / f64::from(map.width)) * (PI / f64::from(map.height));
    let flux = weights.iter().sum::<f64>() * solid_angle;
    Ok(LoadedEnvironment {
        width: map.width,
        height: map.height,
        constant: Some([0.0; 3]),
        cells: build_environment_cells(&weights, map.width).into(),
        texels: map.texels.into(),
        flux,
        description: format!("`{file}`, {}x{}", map.width, map.height),
    })
}

/// Returns luminance times the sine of the polar angle, for each texel.
fn weights(texels: &[[f32; 3]], width: u32, height: u32) -> Vec<f64> {
    let rows = texels.chunks_exact(width.max(1) as usize).enumerate();
    rows.flat_map(|(row, texels)| {
        let sine = libm::sin(PI * (row as f64 + 0.5) / f64::from(height));
        texels.iter().map(move |texel| luminance(widen(*texel)) * sine)
    })
    .collect()
}

impl LoadedEnvironment {
    /// Returns whether the environment gives any light.
    pub(crate) fn shines(&self, intensity: f32) -> bool {
        self.flux > 0.0 && intensity > 0.0
    }

    /// Returns the mean irradiance in W/m² over all directions that a surface can face, without any
    /// factor.
    pub(crate) fn irradiance(&self) -> f64 {
        self.flux / 4.0
    }

    /// Returns the power that reaches the disk of a scene with radius `scene_radius` in metres,
    /// summed over all directions.
    pub(crate) fn power(&self, intensity: f32, scene_radius: f64) -> f64 {
        self.flux * f64::from(intensity) * PI * scene_radius * scene_radius
    }

    /// Returns the environment of one frame. `light` is the index of its light.
    pub(crate) fn place(
        &self,
        intensity: f32,
        rotation_degrees: f32,
        light: u32,
        (center, radius): ([f32; 3], f32),
    ) -> Environment {
        let shines = self.shines(intensity);
        let angle = f64::from(rotation_degrees) * (PI / 180.0);
        let (sine, cosine) = (libm::sin(angle) as f32, libm::cos(angle) as f32);
        Environment {
            width: self.width,
            height: self.height,
            light: if shines { light } else { NONE },
            present: u32::from(shines),
            constant: self.constant.unwrap_or_default().map(|value| value * intensity),
            intensity,
            // The inverse of a rotation by `angle` about +Y, which turns +Z towards +X.
            map_from_world: [cosine, 0.0, -sine, 0.0, 1.0, 0.0, sine, 0.0, cosine],
            scene_radius: radius,
            scene_center: center,
            reserved: [0; 7],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_turn_moves_the_front_to_the_right() {
        let white = constant([1.0; 3], String::new());
        let m = white.place(1.0, 90.0, 0, ([0.0; 3], 1.0)).map_from_world;
        // The map's content towards +Z must be visible towards +X.
        let seen = [m[0], m[3], m[6]];
        for (got, wanted) in seen.iter().zip([0.0, 0.0, 1.0]) {
            assert!((got - wanted).abs() < 1e-6, "{seen:?}");
        }
    }

    #[test]
    fn rows_weigh_by_their_solid_angle() {
        let (width, height) = (4u32, 64u32);
        let texels = vec![[1.0f32; 3]; (width * height) as usize];
        let weights = weights(&texels, width, height);
        assert!(weights[0] < weights[4 * 31] && (weights[0] - weights[4 * 63]).abs() < 1e-12);
        let sphere: f64 = weights.iter().sum::<f64>() * (2.0 * PI / 4.0) * (PI / 64.0);
        assert!((sphere / (4.0 * PI) - 1.0).abs() < 1e-3, "{sphere}");
    }

    #[test]
    fn a_black_environment_gives_no_light() {
        let black = constant([0.0; 3], String::new());
        let placed = black.place(1.0, 0.0, 7, ([0.0; 3], 1.0));
        assert_eq!((placed.light, placed.present), (NONE, 0));
    }
}
