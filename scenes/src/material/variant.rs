//! Material variants (KHR_materials_variants): which there are, and which material of a primitive
//! one shows. Owns no material.

use crate::document::Document;
use crate::error::SceneError;
use crate::report::warning::shortened;
use gltf::json::mesh::Primitive;
use serde::Deserialize;

const NAME: &str = "KHR_materials_variants";
/// Names that an error lists.
const LISTED_MAX: usize = 32;
/// Longest name that an error shows, characters.
const LISTED_CHARS_MAX: usize = 60;

#[derive(Deserialize)]
struct VariantsJson {
    #[serde(default)]
    variants: Vec<VariantJson>,
}

#[derive(Deserialize)]
struct VariantJson {
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
struct MappingsJson {
    #[serde(default)]
    mappings: Vec<MappingJson>,
}

#[derive(Deserialize)]
struct MappingJson {
    material: usize,
    variants: Vec<usize>,
}

/// The variants of a file, and the one that is shown.
#[derive(Debug, Default)]
pub(crate) struct Variants {
    /// In the order of the file.
    pub(crate) names: Vec<String>,
    chosen: Option<usize>,
}

impl Variants {
    /// Reads the file's variants and finds `choice` among them; the first where a name is there
    /// twice.
    pub(crate) fn read(document: &Document, choice: Option<&str>) -> Result<Self, SceneError> {
        let extensions = document.root.extensions.as_ref().map(|extensions| &extensions.others);
        let json: Option<VariantsJson> = document.extension(extensions, NAME, "")?;
        let variants = json.map(|json| json.variants).unwrap_or_default();
        let names: Vec<String> = variants.into_iter().map(|variant| variant.name).collect();
        let Some(choice) = choice else { return Ok(Self { names, chosen: None }) };
        match names.iter().position(|name| name == choice) {
            Some(chosen) => Ok(Self { names, chosen: Some(chosen) }),
            None => {
                let (file, choice) = (document.file.clone(), shortened(choice, LISTED_CHARS_MAX));
                let problem = format!("there is no variant named {choice:?}; {}", list(&names));
                Err(SceneError::Variant { file, problem })
            }
        }
    }

    /// The material that the chosen variant gives a primitive; None where the primitive's own is
    /// shown. Every mapping is checked, whichever is chosen, so that a file is in order with all of
    /// its variants or with none.
    pub(crate) fn material(
        &self,
        document: &Document,
        primitive: &Primitive,
        path: &str,
    ) -> Result<Option<usize>, SceneError> {
        let extensions = primitive.extensions.as_ref().map(|extensions| &extensions.others);
        let json: Option<MappingsJson> = document.extension(extensions, NAME, path)?;
        let mut found = None;
        for (number, mapping) in
            json.map(|json| json.mappings).unwrap_or_default().iter().enumerate()
        {
            let place = format!("{path}.extensions.{NAME}.mappings[{number}]");
            document.at(
                &document.root.materials,
                mapping.material,
                &format!("{place}.material"),
                "materials",
            )?;
            for variant in &mapping.variants {
                document.at(&self.names, *variant, &format!("{place}.variants"), "variants")?;
                if self.chosen == Some(*variant) {
                    found = found.or(Some(mapping.material));
                }
            }
        }
        Ok(found)
    }
}

/// The names there are, in words.
fn list(names: &[String]) -> String {
    if names.is_empty() {
        return "the scene has none".into();
    }
    let shown = names
        .iter()
        .take(LISTED_MAX)
        .map(|name| format!("{:?}", shortened(name, LISTED_CHARS_MAX)));
    let shown = shown.collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(LISTED_MAX) {
        0 => format!("the scene has {shown}"),
        more => format!("the scene has {shown} and {more} more"),
    }
}
