//! What the JSON says and the types of the `gltf` crate leave out: attributes of morph targets
//! beyond position, normal and tangent, and animations without any channel. Reads no accessor.

use gltf::json::Root;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use std::collections::BTreeMap;

/// Accessors of a morph target's further attributes, by name.
pub(crate) type TargetAttributes = BTreeMap<String, usize>;

#[derive(Deserialize)]
struct RootJson {
    #[serde(default)]
    meshes: Vec<MeshJson>,
    #[serde(default)]
    animations: Vec<AnimationJson>,
}

#[derive(Deserialize)]
struct AnimationJson {
    #[serde(default)]
    channels: Vec<IgnoredAny>,
}

#[derive(Deserialize)]
struct MeshJson {
    #[serde(default)]
    primitives: Vec<PrimitiveJson>,
}

#[derive(Deserialize)]
struct PrimitiveJson {
    #[serde(default)]
    targets: Option<Vec<BTreeMap<String, Value>>>,
}

/// All of it.
#[derive(Debug, Default)]
pub(crate) struct Leftover {
    /// The first animation that has no channel in the file.
    pub(crate) empty_animation: Option<usize>,
    /// Keys are places in the JSON, such as `meshes[0].primitives[0].targets[0]`.
    targets: BTreeMap<String, TargetAttributes>,
}

impl Leftover {
    /// Returns whether the file can have any.
    pub(crate) fn is_possible(root: &Root) -> bool {
        let mut primitives = root.meshes.iter().flat_map(|mesh| &mesh.primitives);
        primitives.any(|primitive| primitive.targets.iter().flatten().next().is_some())
            || root.animations.iter().any(|animation| animation.channels.is_empty())
    }

    /// Reads a file's JSON.
    pub(crate) fn read(json: &[u8]) -> Result<Self, serde_json::Error> {
        let root: RootJson = serde_json::from_slice(json)?;
        let empty_animation =
            root.animations.iter().position(|animation| animation.channels.is_empty());
        let mut targets = BTreeMap::new();
        for (mesh, json) in root.meshes.into_iter().enumerate() {
            for (number, primitive) in json.primitives.into_iter().enumerate() {
                for (target, json) in primitive.targets.into_iter().flatten().enumerate() {
                    let found: TargetAttributes = json.into_iter().filter_map(further).collect();
                    if !found.is_empty() {
                        let path = format!("meshes[{mesh}].primitives[{number}].targets[{target}]");
                        targets.insert(path, found);
                    }
                }
            }
        }
        Ok(Self { empty_animation, targets })
    }

    /// Returns the accessor of an attribute of the morph target at a place.
    pub(crate) fn attribute(&self, target: &str, name: &str) -> Option<usize> {
        self.targets.get(target)?.get(name).copied()
    }

    /// Returns all attributes of the morph target at a place.
    pub(crate) fn attributes(&self, target: &str) -> Option<&TargetAttributes> {
        self.targets.get(target)
    }
}

/// Returns an attribute that is drawn. An index that is none is beyond every accessor.
fn further((name, value): (String, Value)) -> Option<(String, usize)> {
    let is_drawn = name == "COLOR_0" || name.starts_with("TEXCOORD_");
    let index = value.as_u64().and_then(|index| usize::try_from(index).ok());
    is_drawn.then(|| (name, index.unwrap_or(usize::MAX)))
}
