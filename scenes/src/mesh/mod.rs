//! Meshes and skins: every primitive of the file with its material. Primitives with the same
//! accessors share their geometry. Owns no pose.

pub(crate) mod geometry;
mod primitive;
pub(crate) mod tangent;
mod tangent_turn;
pub(crate) mod topology;

use crate::document::Document;
use crate::error::SceneError;
use crate::material::variant::Variants;
use crate::math::Affine;
use crate::mesh::geometry::{Geometry, UvSets};
use crate::mesh::primitive::{Allowance, Wanted};
use crate::options::Limits;
use crate::report::warning::Warnings;
use gltf::json::mesh::Primitive;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tessera_layout::{Layers, LayersTexture, Material, NONE, TextureRef};

/// Geometry and the material on it.
#[derive(Clone, Debug)]
pub(crate) struct Surface {
    pub(crate) geometry: Arc<Geometry>,
    pub(crate) material: u32,
    /// Position among the mesh's primitives.
    pub(crate) number: usize,
}

/// A mesh.
#[derive(Clone, Debug)]
pub(crate) struct Mesh {
    pub(crate) surfaces: Vec<Surface>,
    /// Morph weights of nodes that have none.
    pub(crate) default_weights: Vec<f64>,
    /// Most morph targets of its primitives.
    pub(crate) target_count: usize,
}

/// A skin.
#[derive(Clone, Debug)]
pub(crate) struct Skin {
    /// Joint nodes.
    pub(crate) joints: Vec<usize>,
    /// Inverse bind matrix of each joint.
    pub(crate) inverse_binds: Vec<Affine>,
}

/// Morph weights of a mesh as its file has them.
#[derive(Clone, Debug)]
pub(crate) struct RestWeights {
    weights: Vec<f64>,
    /// Most morph targets of its primitives.
    pub(crate) target_count: usize,
}

impl RestWeights {
    /// Returns a weight for each morph target.
    pub(crate) fn padded(&self) -> Vec<f64> {
        let mut weights = self.weights.clone();
        weights.resize(weights.len().max(self.target_count), 0.0);
        weights
    }
}

/// Two primitives with the same key share their geometry: they have the same accessors, mode,
/// UV sets and way of making tangents.
type GeometryKey = (String, UvSets, Option<TangentFrame>);

/// What a material's tangents run along: the slot of the UVs, and the bits of the map that turns
/// them.
pub(crate) type TangentFrame = (usize, Option<[u32; 4]>);

/// Reads the morph weights of every mesh, without its geometry.
pub(crate) fn rest_weights(document: &Document) -> Vec<RestWeights> {
    let targets = |primitive: &Primitive| primitive.targets.as_ref().map_or(0, Vec::len);
    let weights = document.root.meshes.iter().map(|mesh| RestWeights {
        weights: mesh.weights.iter().flatten().copied().map(f64::from).collect(),
        target_count: mesh.primitives.iter().map(targets).max().unwrap_or(0),
    });
    weights.collect()
}

/// Returns the meshes at one moment, where the tangents of some materials turn over time. Those
/// are in `meshes` as they are before they are turned.
pub(crate) fn turned(meshes: &[Mesh], frames: &BTreeMap<u32, Option<TangentFrame>>) -> Vec<Mesh> {
    let mut shared: BTreeMap<(*const Geometry, u32), Arc<Geometry>> = BTreeMap::new();
    let mut meshes = meshes.to_vec();
    for surface in meshes.iter_mut().flat_map(|mesh| &mut mesh.surfaces) {
        let Some(Some((_, Some(map)))) = frames.get(&surface.material) else { continue };
        let key = (Arc::as_ptr(&surface.geometry), surface.material);
        let turned = shared.entry(key).or_insert_with(|| {
            let mut geometry = Geometry::clone(&surface.geometry);
            tangent_turn::turn(&mut geometry, map.map(f32::from_bits));
            Arc::new(geometry)
        });
        surface.geometry = Arc::clone(turned);
    }
    meshes
}

/// Reads every mesh, each primitive with the material of the chosen variant. `frames` says of each
/// material what its tangents run along, and `all_uv_sets` which UVs it has; the default material
/// is the last.
pub(crate) fn read_all(
    document: &Document,
    (frames, all_uv_sets): (&[Option<TangentFrame>], &[UvSets]),
    variants: &Variants,
    limits: &Limits,
    warnings: &mut Warnings,
) -> Result<Vec<Mesh>, SceneError> {
    let mut shared: BTreeMap<GeometryKey, Option<Arc<Geometry>>> = BTreeMap::new();
    let mut left = Allowance::new(limits.vertices);
    let mut meshes = Vec::with_capacity(document.root.meshes.len());
    for (index, json) in document.root.meshes.iter().enumerate() {
        let weights = json.weights.clone().unwrap_or_default();
        if !weights.iter().all(|weight| weight.is_finite()) {
            return Err(document
                .invalid(format!("meshes[{index}].weights"), "holds a number that is not finite"));
        }
        if json.primitives.is_empty() {
            let problem = "is empty, so that nothing is drawn; export the file again";
            return Err(document.invalid(format!("meshes[{index}].primitives"), problem));
        }
        let default_weights = weights.into_iter().map(f64::from).collect();
        let mut mesh = Mesh { surfaces: Vec::new(), default_weights, target_count: 0 };
        for (number, primitive) in json.primitives.iter().enumerate() {
            let path = format!("meshes[{index}].primitives[{number}]");
            let material = material_of(document, primitive, &path, (frames.len(), variants))?;
            let (frame, uv_sets) = (frames[material as usize], all_uv_sets[material as usize]);
            let key = (key_of(document, primitive, &path), uv_sets, frame);
            let geometry = match shared.get(&key) {
                Some(geometry) => geometry.clone(),
                None => {
                    let wanted = Wanted { uv_sets, tangents: frame.map(|(slot, _)| slot) };
                    let mut read = primitive::read(document, primitive, &path, wanted, &mut left)?;
                    if let (Some(geometry), Some((_, Some(map)))) = (&mut read, frame) {
                        tangent_turn::turn(geometry, map.map(f32::from_bits));
                    }
                    let loose = read.as_ref().map_or(0, Geometry::loose_vertices);
                    if loose > 0 {
                        let what = "vertices have no weight for any joint and stay where they are";
                        warnings.add(format!("{path}: {loose} {what}"));
                    }
                    let read = read.map(Arc::new);
                    shared.insert(key, read.clone());
                    read
                }
            };
            let targets = primitive.targets.as_ref().map_or(0, Vec::len);
            mesh.target_count = mesh.target_count.max(targets);
            match geometry {
                Some(geometry) => mesh.surfaces.push(Surface { geometry, material, number }),
                None => {
                    let name = json.name.as_deref().unwrap_or_default();
                    warnings.add(format!(
                        "{path} of {name:?} draws points or lines, which have no surface"
                    ));
                }
            }
        }
        meshes.push(mesh);
    }
    Ok(meshes)
}

/// Reads every skin.
pub(crate) fn read_skins(document: &Document, meshes: &[Mesh]) -> Result<Vec<Skin>, SceneError> {
    let mut skins = Vec::with_capacity(document.root.skins.len());
    for (index, json) in document.root.skins.iter().enumerate() {
        let path = format!("skins[{index}]");
        for (number, joint) in json.joints.iter().enumerate() {
            document.item(
                &document.root.nodes,
                *joint,
                &format!("{path}.joints[{number}]"),
                "nodes",
            )?;
        }
        if json.joints.is_empty() {
            return Err(
                document.invalid(format!("{path}.joints"), "is empty; export the file again")
            );
        }
        let joints: Vec<usize> = json.joints.iter().map(|joint| joint.value()).collect();
        let inverse_binds = match json.inverse_bind_matrices {
            None => vec![Affine::IDENTITY; joints.len()],
            Some(accessor) => {
                let place = format!("{path}.inverseBindMatrices");
                let matrices = document.floats::<16>(accessor.value(), &place)?;
                if matrices.len() < joints.len() {
                    let problem =
                        format!("holds {} matrices for {} joints", matrices.len(), joints.len());
                    return Err(document.invalid(place, problem));
                }
                matrices.into_iter().take(joints.len()).map(Affine::from_columns).collect()
            }
        };
        skins.push(Skin { joints, inverse_binds });
    }
    check_joints(document, meshes, &skins)?;
    Ok(skins)
}

/// Checks that no vertex follows a joint that its skin does not have.
fn check_joints(document: &Document, meshes: &[Mesh], skins: &[Skin]) -> Result<(), SceneError> {
    let nodes = document.root.nodes.iter();
    let pairs = nodes.filter_map(|node| Some((node.mesh?.value(), node.skin?.value())));
    for (mesh, skin) in pairs.collect::<BTreeSet<_>>() {
        let joints = skins[skin].joints.len();
        for surface in &meshes[mesh].surfaces {
            let used = surface.geometry.influences.iter().map(geometry::largest_joint);
            let far = used.enumerate().find(|(_, used)| used.is_some_and(|used| used >= joints));
            if let Some((set, Some(joint))) = far {
                let number = surface.number;
                let path = format!("meshes[{mesh}].primitives[{number}].attributes.JOINTS_{set}");
                let problem = format!(
                    "names joint {joint}, but skins[{skin}] has {joints}; export the file again"
                );
                return Err(document.invalid(path, problem));
            }
        }
    }
    Ok(())
}

/// Returns what a material's tangents run along: the UVs of its normal map, its coat's normal map,
/// or its anisotropy.
pub(crate) fn tangent_frame(material: &Material, layers: Option<&Layers>) -> Option<TangentFrame> {
    let texture = |place: LayersTexture| layers.map(|layers| layers.textures[place as usize]);
    let coat = texture(LayersTexture::ClearcoatNormal);
    let grain = texture(LayersTexture::Anisotropy);
    let maps = [Some(material.normal_texture), coat, grain];
    let map = maps.into_iter().flatten().find(|map| map.texture != NONE);
    let has_grain = layers.is_some_and(|layers| layers.anisotropy > 0.0);
    let frame = |map: TextureRef| {
        let turning = tangent_turn::turning(map.uv_from_mesh);
        (map.uv_set as usize, turning.map(|map| map.map(f32::to_bits)))
    };
    map.map(frame).or(has_grain.then_some((0, None)))
}

fn material_of(
    document: &Document,
    primitive: &Primitive,
    path: &str,
    (count, variants): (usize, &Variants),
) -> Result<u32, SceneError> {
    let default = count - 1;
    if let Some(material) = variants.material(document, primitive, path)? {
        return Ok(material as u32);
    }
    let Some(material) = primitive.material else { return Ok(default as u32) };
    document.at(
        &document.root.materials,
        material.value(),
        &format!("{path}.material"),
        "materials",
    )?;
    Ok(material.value() as u32)
}

fn key_of(document: &Document, primitive: &Primitive, path: &str) -> String {
    let index = |accessor: &Option<gltf::json::Index<_>>| accessor.map(|a| a.value());
    let targets: Vec<_> = (primitive.targets.iter().flatten().enumerate())
        .map(|(number, target)| {
            let further = document.leftover.attributes(&format!("{path}.targets[{number}]"));
            let own = [index(&target.positions), index(&target.normals), index(&target.tangents)];
            (own, further)
        })
        .collect();
    let indices = index(&primitive.indices);
    format!("{:?} {:?} {:?} {:?}", primitive.mode, primitive.attributes, indices, targets)
}
