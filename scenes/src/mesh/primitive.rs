//! Reads one primitive: its attributes, triangles and morph targets, as its file has them, and the
//! normals and tangents that it lacks.

use crate::document::Document;
use crate::error::SceneError;
use crate::mesh::geometry::{Geometry, MorphTarget, UvSets};
use crate::mesh::tangent;
use crate::mesh::topology::{self, Topology};
use gltf::json::mesh::{Primitive, Semantic};
use gltf::json::validation::Checked;

/// Most sets of four joints that a vertex can have.
const JOINT_SETS_MAX: u32 = 8;

/// What the primitives of a scene may still use, all together.
#[derive(Debug)]
pub(crate) struct Allowance {
    /// Vertices that may still be read or made.
    vertices: u64,
    /// Bytes that were counted for making tangents. Each primitive frees its own.
    scratch: u64,
}

impl Allowance {
    pub(crate) fn new(vertices: u64) -> Self {
        Self { vertices, scratch: 0 }
    }
}

/// What a material wants of the primitives that it is on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// UV sets that its textures use.
    pub(crate) uv_sets: UvSets,
    /// Slot of the UVs for tangents that the file lacks and the material needs.
    pub(crate) tangents: Option<usize>,
}

/// Reads a primitive; None if it draws points or lines. `left` limits what may still be read.
pub(crate) fn read(
    document: &Document,
    primitive: &Primitive,
    path: &str,
    wanted: Wanted,
    left: &mut Allowance,
) -> Result<Option<Geometry>, SceneError> {
    let Checked::Valid(mode) = primitive.mode else {
        return Err(
            document.invalid(format!("{path}.mode"), "is not one of glTF's seven; export it again")
        );
    };
    let Some(topology) = Topology::of(mode) else { return Ok(None) };
    let Some(positions) = attribute(primitive, &Semantic::Positions) else {
        return Ok(Some(Geometry::default()));
    };
    let place = format!("{path}.attributes.POSITION");
    let count = document.accessor_count(positions, &place)?;
    spend(document, &mut left.vertices, count, &place)?;
    let mut geometry = read_attributes(document, primitive, path, (count, wanted.uv_sets))?;
    geometry.triangles =
        read_triangles(document, primitive, path, topology, count, &mut left.vertices)?;
    read_targets(document, primitive, path, wanted.uv_sets, &mut geometry)?;
    if geometry.normals.is_empty() {
        // Tangents without normals have no meaning (glTF 2.0, §3.7.2.1).
        geometry.tangents.clear();
        make_flat(document, path, &mut geometry, left)?;
    }
    if let Some(slot) = wanted.tangents
        && geometry.tangents.is_empty()
    {
        make_tangents(document, path, &mut geometry, slot, left)?;
    }
    Ok(Some(geometry))
}

/// Gives triangles the vertices that flat shading needs: one each where all corners are shaded
/// alike, which flattening makes, and otherwise three.
fn make_flat(
    document: &Document,
    path: &str,
    geometry: &mut Geometry,
    left: &mut Allowance,
) -> Result<(), SceneError> {
    if geometry.has_facets() {
        // Facets are fewer than the indices, or the vertices where there are none; those count.
        let sources = geometry.vertex_bytes() + 2 * size_of::<u32>() as u64;
        let count = geometry.positions.len() as u64;
        document.budget.spend(count, sources, &document.file, path)?;
        geometry.remove_unused();
        return Ok(());
    }
    let place = format!("{path}.attributes.POSITION");
    let corners = 3 * geometry.triangles.len() as u64;
    spend(document, &mut left.vertices, corners, &place)?;
    document.budget.spend(corners, geometry.vertex_bytes(), &document.file, path)?;
    geometry.unshare();
    Ok(())
}

/// Adds the tangents that the file lacks, and copies of the vertices that get several tangents.
fn make_tangents(
    document: &Document,
    path: &str,
    geometry: &mut Geometry,
    slot: usize,
    left: &mut Allowance,
) -> Result<(), SceneError> {
    let scratch = geometry.triangles.len() as u64 * tangent::SCRATCH_BYTES;
    document.budget.spend(scratch.saturating_sub(left.scratch), 1, &document.file, path)?;
    left.scratch = left.scratch.max(scratch);
    let Some(made) = tangent::generate(geometry, slot) else { return Ok(()) };
    let copies = (made.sources.len() - geometry.positions.len()) as u64;
    if copies > 0 {
        spend(document, &mut left.vertices, copies, path)?;
        document.budget.spend(copies, geometry.vertex_bytes(), &document.file, path)?;
        geometry.gather(&made.sources);
        geometry.triangles = made.triangles;
    }
    geometry.tangents = made.tangents;
    Ok(())
}

fn spend(document: &Document, left: &mut u64, count: u64, path: &str) -> Result<(), SceneError> {
    *left = left.checked_sub(count).ok_or_else(|| {
        document
            .invalid(path, format!("{count} more vertices go beyond the limit; simplify the scene"))
    })?;
    Ok(())
}

fn attribute(primitive: &Primitive, semantic: &Semantic) -> Option<usize> {
    primitive.attributes.get(&Checked::Valid(semantic.clone())).map(|index| index.value())
}

fn read_attributes(
    document: &Document,
    primitive: &Primitive,
    path: &str,
    (count, uv_sets): (u64, UvSets),
) -> Result<Geometry, SceneError> {
    let mut geometry = Geometry::default();
    for (semantic, index) in &primitive.attributes {
        let Checked::Valid(semantic) = semantic else { continue };
        let index = index.value();
        let place = format!("{path}.attributes.{}", name_of(semantic));
        let have = document.accessor_count(index, &place)?;
        if have != count {
            let problem = format!("has {have} elements, but POSITION has {count}; they must agree");
            return Err(document.invalid(place, problem));
        }
        match semantic {
            Semantic::Positions => geometry.positions = document.floats(index, &place)?,
            Semantic::Normals => geometry.normals = document.floats(index, &place)?,
            Semantic::Tangents => geometry.tangents = document.floats(index, &place)?,
            Semantic::TexCoords(set) => {
                let slot = uv_sets.iter().position(|used| used == set);
                if let Some(slot) = slot {
                    geometry.uvs[slot] = document.floats(index, &place)?;
                }
            }
            Semantic::Colors(0) => geometry.colors = document.colors(index, &place, 1.0)?,
            _ => {}
        }
    }
    for set in 0..JOINT_SETS_MAX {
        let joints = attribute(primitive, &Semantic::Joints(set));
        let weights = attribute(primitive, &Semantic::Weights(set));
        let (Some(joints), Some(weights)) = (joints, weights) else { break };
        let joints = document.integers(joints, &format!("{path}.attributes.JOINTS_{set}"))?;
        let weights = document.floats(weights, &format!("{path}.attributes.WEIGHTS_{set}"))?;
        geometry.influences.push((joints, weights));
    }
    Ok(geometry)
}

fn name_of(semantic: &Semantic) -> String {
    match semantic {
        Semantic::Positions => "POSITION".into(),
        Semantic::Normals => "NORMAL".into(),
        Semantic::Tangents => "TANGENT".into(),
        Semantic::Colors(set) => format!("COLOR_{set}"),
        Semantic::TexCoords(set) => format!("TEXCOORD_{set}"),
        Semantic::Joints(set) => format!("JOINTS_{set}"),
        Semantic::Weights(set) => format!("WEIGHTS_{set}"),
        Semantic::Extras(name) => format!("_{name}"),
    }
}

fn read_triangles(
    document: &Document,
    primitive: &Primitive,
    path: &str,
    topology: Topology,
    count: u64,
    vertices_left: &mut u64,
) -> Result<Vec<[u32; 3]>, SceneError> {
    let Some(indices) = primitive.indices else {
        let count = u32::try_from(count).map_err(|_| {
            document.invalid(path, "has more vertices than 32-bit indices can name")
        })?;
        check_corners(document, topology, count as usize, &format!("{path}.attributes.POSITION"))?;
        return Ok(topology::triangles(topology, &(0..count).collect::<Vec<_>>()));
    };
    let place = format!("{path}.indices");
    spend(document, vertices_left, document.accessor_count(indices.value(), &place)?, &place)?;
    let corners: Vec<u32> =
        document.integers::<1>(indices.value(), &place)?.into_iter().map(|[index]| index).collect();
    if let Some(entry) = corners.iter().position(|corner| u64::from(*corner) >= count) {
        let problem =
            format!("entry {entry} names vertex {}, but there are {count}", corners[entry]);
        return Err(document.invalid(place, problem));
    }
    // The largest number of a type restarts a strip in graphics APIs, so that no vertex can have it
    // (glTF 2.0, §3.7.2.1).
    let size = document.shape(indices.value(), &place, &[1])?.component.size();
    let restart = u32::MAX >> (32 - 8 * size);
    if let Some(entry) = corners.iter().position(|corner| *corner == restart) {
        let problem = format!(
            "entry {entry} is {restart}, which cannot name a vertex; export the file with larger \
                indices"
        );
        return Err(document.invalid(place, problem));
    }
    check_corners(document, topology, corners.len(), &place)?;
    Ok(topology::triangles(topology, &corners))
}

/// Checks that corners give whole triangles.
fn check_corners(
    document: &Document,
    topology: Topology,
    count: usize,
    place: &str,
) -> Result<(), SceneError> {
    if topology::is_whole(topology, count) {
        return Ok(());
    }
    let problem = format!("{count} corners are not whole triangles; export the file again");
    Err(document.invalid(place, problem))
}

fn read_targets(
    document: &Document,
    primitive: &Primitive,
    path: &str,
    uv_sets: UvSets,
    geometry: &mut Geometry,
) -> Result<(), SceneError> {
    let count = geometry.positions.len();
    for (number, json) in primitive.targets.iter().flatten().enumerate() {
        let path = format!("{path}.targets[{number}]");
        // The place of an attribute whose accessor has the right number of elements.
        let place = |index: usize, name: &str| {
            let place = format!("{path}.{name}");
            let have = document.accessor_count(index, &place)?;
            if have == count as u64 {
                return Ok(place);
            }
            let problem = format!("has {have} elements, but POSITION has {count}; they must agree");
            Err(document.invalid(place, problem))
        };
        let directions = |index: Option<gltf::json::Index<_>>, name: &str| match index {
            Some(index) => document.floats(index.value(), &place(index.value(), name)?),
            None => Ok(Vec::new()),
        };
        let mut target = MorphTarget {
            positions: directions(json.positions, "POSITION")?,
            normals: directions(json.normals, "NORMAL")?,
            tangents: directions(json.tangents, "TANGENT")?,
            ..MorphTarget::default()
        };
        for (set, uvs) in uv_sets.iter().zip(&mut target.uvs) {
            let name = format!("TEXCOORD_{set}");
            if let Some(index) = document.leftover.attribute(&path, &name) {
                *uvs = document.floats(index, &place(index, &name)?)?;
            }
        }
        if let Some(index) = document.leftover.attribute(&path, "COLOR_0") {
            target.colors = document.colors(index, &place(index, "COLOR_0")?, 0.0)?;
        }
        geometry.targets.push(target);
    }
    Ok(())
}
