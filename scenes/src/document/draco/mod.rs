//! Primitives that are compressed with Draco (KHR_draco_mesh_compression): the bytes of their
//! accessors. Conversion of values stands in values.rs.
//!
//! Decoding is `draco-core`'s. The accessors say before it begins how much may come out, and are
//! compared with what does.

pub(crate) mod decoded;
mod values;

use crate::document::Document;
use crate::document::draco::decoded::{DecodedAccessors, Origin};
use crate::document::shape::Shape;
use crate::error::SceneError;
use draco_core::{DecodeLimits, DecoderBuffer, ErrorKind, Mesh, MeshDecoder};
use gltf::json::mesh::{Mode, Primitive};
use gltf::json::validation::Checked;
use serde::Deserialize;
use std::collections::BTreeMap;

const NAME: &str = "KHR_draco_mesh_compression";

/// Bytes of a vertex that a stream may hold in attributes which the file does not name.
const UNNAMED_BYTES: u64 = 64;
/// Approximate bytes that the decoder needs for a triangle, once and for each attribute, and for a
/// number of a vertex.
const TRIANGLE_BYTES: u64 = 160;
const SEAM_BYTES: u64 = 48;
const NUMBER_BYTES: u64 = 16;

/// The extension's JSON object in a primitive.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DracoJson {
    buffer_view: usize,
    /// Number of each attribute in the stream.
    attributes: BTreeMap<String, u32>,
}

/// An accessor that a stream fills.
struct Target {
    accessor: usize,
    origin: Origin,
    /// Place in the JSON.
    path: String,
    shape: Shape,
}

/// A compressed primitive, as its JSON describes it.
struct Packed {
    view: usize,
    path: String,
    points: u64,
    triangles: u64,
    targets: Vec<Target>,
}

impl DecodedAccessors {
    /// Decodes every compressed primitive. The document has read its buffers.
    pub(crate) fn decode(document: &Document) -> Result<Self, SceneError> {
        let mut decoded = Self::default();
        let mut scratch = 0;
        for (index, mesh) in document.root.meshes.iter().enumerate() {
            for (number, primitive) in mesh.primitives.iter().enumerate() {
                let path = format!("meshes[{index}].primitives[{number}]");
                let extensions = primitive.extensions.as_ref().map(|json| &json.others);
                let Some(json) = document.extension::<DracoJson>(extensions, NAME, &path)? else {
                    continue;
                };
                let packed = Packed::new(document, primitive, &json, &path)?;
                if decoded.holds(document, &packed)? {
                    continue;
                }
                let mesh = packed.decode(document, &mut scratch)?;
                for target in &packed.targets {
                    let bytes = packed.bytes_of(document, &mesh, target)?;
                    decoded.0.insert(target.accessor, (target.origin, bytes));
                }
            }
        }
        Ok(decoded)
    }

    /// Returns whether the content of a primitive is there already, because another one has the
    /// same.
    fn holds(&self, document: &Document, packed: &Packed) -> Result<bool, SceneError> {
        let mut known = 0;
        for target in &packed.targets {
            match self.0.get(&target.accessor) {
                Some((origin, _)) if *origin == target.origin => known += 1,
                Some(_) => {
                    let problem = format!(
                        "fills accessors[{}], which another primitive fills from another place; \
                            export the file again",
                        target.accessor
                    );
                    return Err(document.invalid(&target.path, problem));
                }
                None => {}
            }
        }
        Ok(known == packed.targets.len())
    }
}

impl Packed {
    fn new(
        document: &Document,
        primitive: &Primitive,
        json: &DracoJson,
        primitive_path: &str,
    ) -> Result<Self, SceneError> {
        let path = format!("{primitive_path}.extensions.{NAME}");
        if primitive.mode != Checked::Valid(Mode::Triangles) {
            let problem = "is not TRIANGLES, which Draco needs; export the file again";
            return Err(document.invalid(format!("{primitive_path}.mode"), problem));
        }
        let Some(indices) = primitive.indices else {
            let problem = "needs indices in its primitive; export the file again";
            return Err(document.invalid(path, problem));
        };
        let (accessor, place) = (indices.value(), format!("{primitive_path}.indices"));
        let shape = document.shape(accessor, &place, &[1])?;
        let mut packed = Self {
            view: json.buffer_view,
            path,
            points: 0,
            triangles: shape.count as u64 / 3,
            targets: vec![Target {
                accessor,
                origin: (json.buffer_view, None),
                path: place,
                shape,
            }],
        };
        for (name, id) in &json.attributes {
            let path = format!("{}.attributes.{name}", packed.path);
            let mut own = primitive.attributes.iter();
            let Some((_, accessor)) = own.find(|(semantic, _)| semantic.to_string() == *name)
            else {
                let problem = "is not an attribute of the primitive; export the file again";
                return Err(document.invalid(path, problem));
            };
            let accessor = accessor.value();
            let shape = document.shape(accessor, &path, &[1, 2, 3, 4])?;
            let points = shape.count as u64;
            if packed.targets.len() > 1 && points != packed.points {
                let problem = format!("has {points} elements, but others have {}", packed.points);
                return Err(document.invalid(path, problem));
            }
            packed.points = points;
            let origin = (json.buffer_view, Some(*id));
            packed.targets.push(Target { accessor, origin, path, shape });
        }
        Ok(packed)
    }

    /// Decodes the stream. `scratch` is the memory that was counted for decoding before, which is
    /// free again.
    fn decode(&self, document: &Document, scratch: &mut u64) -> Result<Mesh, SceneError> {
        let bytes = document.view(self.view, &format!("{}.bufferView", self.path))?;
        let numbers: u64 =
            self.targets.iter().skip(1).map(|target| target.shape.components as u64).sum();
        let named = self.targets.len() as u64;
        let needed = self
            .triangles
            .saturating_mul(TRIANGLE_BYTES + SEAM_BYTES * named)
            .saturating_add(self.points.saturating_mul(NUMBER_BYTES * numbers + UNNAMED_BYTES));
        document.budget.spend(needed.saturating_sub(*scratch), 1, &document.file, &self.path)?;
        *scratch = needed.max(*scratch);
        let limits = DecodeLimits::default()
            .with_max_points(self.points)
            .with_max_faces(self.triangles)
            .with_max_decoded_bytes(self.points.saturating_mul(8 * numbers + UNNAMED_BYTES));
        let mut mesh = Mesh::new();
        let mut buffer = DecoderBuffer::new(bytes).with_limits(limits);
        MeshDecoder::new().decode(&mut buffer, &mut mesh).map_err(|error| {
            let problem = match error.kind() {
                ErrorKind::LimitExceeded => "its stream holds more than its accessors say".into(),
                _ => format!("its bytes are not a Draco mesh ({})", error.message()),
            };
            document.invalid(&self.path, format!("{problem}; export the file again"))
        })?;
        let found = (mesh.num_points() as u64, 3 * mesh.num_faces() as u64);
        let wanted = (self.points, self.targets[0].shape.count as u64);
        if found != wanted {
            let problem = format!(
                "its stream holds {} vertices and {} indices, but its accessors say {} and {}; \
                    export the file again",
                found.0, found.1, wanted.0, wanted.1
            );
            return Err(document.invalid(&self.path, problem));
        }
        Ok(mesh)
    }

    /// Returns the content of an accessor in the form that it says.
    fn bytes_of(
        &self,
        document: &Document,
        mesh: &Mesh,
        target: &Target,
    ) -> Result<Vec<u8>, SceneError> {
        let shape = target.shape;
        document.budget.spend(
            shape.count as u64,
            shape.bytes() as u64,
            &document.file,
            &target.path,
        )?;
        let bytes = match target.origin.1 {
            None => values::of_indices(mesh, shape.component),
            Some(id) => match mesh.attribute_by_unique_id(id) {
                Some(attribute) => values::of_attribute(attribute, shape),
                None => Err(format!("names attribute {id}, which its stream does not have")),
            },
        };
        bytes.map_err(|problem| {
            document.invalid(&target.path, format!("{problem}; export the file again"))
        })
    }
}
