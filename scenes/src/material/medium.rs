//! Media that closed surfaces enclose: each medium of a scene once, and the priority that a file
//! can give it. Owns no surface.

use crate::document::Document;
use crate::error::SceneError;
use crate::mesh::geometry::UvSets;
use crate::report::warning::Warnings;
use crate::working_space::WorkingSpace;
use serde_json::{Map, Value};
use tessera_layout::{Layers, MEDIA_MAX, Medium};

/// Member of a material's `extras` that decides which of several overlapping bodies a place belongs
/// to.
const PRIORITY: &str = "tessera_medium_priority";
/// Largest distance of a priority from 0.
const PRIORITY_MOST: f64 = 1000.0;

/// What extensions add to a material: its layers, and the medium that it encloses.
pub(crate) type Added = (Layers, Option<Medium>);

/// Layers of a scene, and the enclosed media. Both begin with those of a plain surface in air, or
/// are empty. Also the UV sets of every material, the default one included.
#[derive(Debug, Default)]
pub(crate) struct Layered {
    pub(crate) layers: Vec<Layers>,
    pub(crate) media: Vec<Medium>,
    pub(crate) uv_sets: Vec<UvSets>,
}

impl Layered {
    /// Adds a material's layers, and what they enclose. Equal media have one number.
    ///
    /// # Errors
    /// If a scene has more media than a path can tell from each other.
    pub(crate) fn add(
        &mut self,
        document: &Document,
        index: usize,
        (mut layers, inside): Added,
    ) -> Result<u32, SceneError> {
        if self.layers.is_empty() {
            self.layers.push(Layers::NONE);
            self.media.push(Medium::AIR);
        }
        if let Some(inside) = inside {
            let known = self.media.iter().position(|medium| *medium == inside);
            if known.is_none() {
                if self.media.len() == MEDIA_MAX {
                    let problem = format!(
                        "encloses one of more than {} different media; give materials that \
                         look alike the same index of \
                         refraction, attenuation, dispersion and priority",
                        MEDIA_MAX - 1
                    );
                    return Err(document.invalid(format!("materials[{index}]"), problem));
                }
                self.media.push(inside);
            }
            layers.medium = known.unwrap_or(self.media.len() - 1) as u32;
        }
        self.layers.push(layers);
        Ok(self.layers.len() as u32 - 1)
    }
}

/// Returns media as kernels see them in a working space: what a metre of the file absorbs is
/// absorbed over its length there.
pub(crate) fn all_within(mut media: Vec<Medium>, space: &WorkingSpace) -> Vec<Medium> {
    for absorption in media.iter_mut().flat_map(|medium| &mut medium.absorption) {
        // Even where all light is absorbed at once, it is by a number.
        *absorption = ((f64::from(*absorption) / space.factor()) as f32).min(f32::MAX);
    }
    media
}

/// The priority that a material's `extras` give its medium, 0 by default.
///
/// # Errors
/// If it is not a whole number, or far from 0.
pub(crate) fn priority(document: &Document, index: usize) -> Result<i32, SceneError> {
    let Some(value) = given(document, index) else { return Ok(0) };
    let number =
        value.as_f64().filter(|number| number.fract() == 0.0 && number.abs() <= PRIORITY_MOST);
    let problem =
        || format!("{value} must be a whole number from -{PRIORITY_MOST} to {PRIORITY_MOST}");
    number.map(|number| number as i32).ok_or_else(|| document.invalid(path(index), problem()))
}

/// Warns if a surface that encloses nothing has a priority.
pub(crate) fn warn_of_priority(document: &Document, index: usize, warnings: &mut Warnings) {
    if given(document, index).is_some() {
        warnings.add(format!(
            "{} has no effect: the material encloses nothing (that takes KHR_materials_volume with \
                a thickness, and transmission)",
            path(index)
        ));
    }
}

fn path(index: usize) -> String {
    format!("materials[{index}].extras.{PRIORITY}")
}

/// Returns the value in `extras`, which can have any form. Anything but an object is ignored.
fn given(document: &Document, index: usize) -> Option<Value> {
    let extras = document.root.materials[index].extras.as_ref()?;
    serde_json::from_str::<Map<String, Value>>(extras.get()).ok()?.remove(PRIORITY)
}
