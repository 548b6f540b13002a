//! Values of a decoded Draco mesh in the form of glTF's accessors. Decodes nothing.

use crate::document::shape::Shape;
use draco_core::{DataType, Mesh, PointAttribute, PointIndex};
use gltf::json::accessor::ComponentType;

/// A number of an attribute.
#[derive(Clone, Copy)]
enum Number {
    Whole(i64),
    Real(f32),
}

/// Returns the corners of all triangles. The error says what is wrong.
pub(super) fn of_indices(mesh: &Mesh, component: ComponentType) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(3 * mesh.num_faces() * component.size());
    for corner in mesh.faces().iter().flatten() {
        put(Number::Whole(corner.0.into()), component, &mut bytes)
            .ok_or_else(|| format!("cannot hold vertex {}", corner.0))?;
    }
    Ok(bytes)
}

/// Returns the values of all vertices. The error says what is wrong.
pub(super) fn of_attribute(attribute: &PointAttribute, shape: Shape) -> Result<Vec<u8>, String> {
    let (kind, components) = (attribute.data_type(), usize::from(attribute.num_components()));
    if components != shape.components {
        let wanted = shape.components;
        return Err(format!("has {components} components in its stream, but {wanted} here"));
    }
    let largest = largest(kind).ok_or("holds numbers in its stream that no accessor can hold")?;
    let whole_as_real = shape.component == ComponentType::F32 && attribute.normalized();
    let (width, data) = (kind.byte_length(), attribute.buffer().data());
    let stride = usize::try_from(attribute.byte_stride()).unwrap_or(usize::MAX);
    let mut bytes = Vec::with_capacity(shape.count * components * shape.component.size());
    for point in 0..shape.count {
        let value = attribute.mapped_index(PointIndex(point as u32)).0 as usize;
        let start = value.checked_mul(stride);
        let element = start.and_then(|start| data.get(start..)?.get(..components * width));
        let element = element.ok_or_else(|| format!("has no value for vertex {point}"))?;
        for part in element.chunks_exact(width) {
            let number = match (number(part, kind), largest) {
                (Number::Whole(value), Some(largest)) if whole_as_real => {
                    Number::Real((value as f32 / largest).max(-1.0))
                }
                (number, _) => number,
            };
            put(number, shape.component, &mut bytes)
                .ok_or_else(|| format!("cannot hold the value of vertex {point}"))?;
        }
    }
    Ok(bytes)
}

/// Returns the value that stands for 1 in normalised numbers, Some(None) for floats, and None for
/// kinds that glTF does not have.
fn largest(kind: DataType) -> Option<Option<f32>> {
    match kind {
        DataType::Int8 => Some(Some(127.0)),
        DataType::Uint8 => Some(Some(255.0)),
        DataType::Int16 => Some(Some(32_767.0)),
        DataType::Uint16 => Some(Some(65_535.0)),
        DataType::Int32 => Some(Some(2_147_483_647.0)),
        DataType::Uint32 => Some(Some(4_294_967_295.0)),
        DataType::Float32 => Some(None),
        _ => None,
    }
}

/// Reads a number of a kind that [`largest`] knows.
fn number(bytes: &[u8], kind: DataType) -> Number {
    let word = bytes.iter().rev().fold(0u32, |sum, byte| (sum << 8) | u32::from(*byte));
    match kind {
        DataType::Int8 => Number::Whole((word as u8 as i8).into()),
        DataType::Int16 => Number::Whole((word as u16 as i16).into()),
        DataType::Int32 => Number::Whole((word as i32).into()),
        DataType::Float32 => Number::Real(f32::from_bits(word)),
        _ => Number::Whole(word.into()),
    }
}

/// Appends a number. Returns None if the component type cannot hold it.
fn put(number: Number, component: ComponentType, bytes: &mut Vec<u8>) -> Option<()> {
    match (number, component) {
        (Number::Real(value), ComponentType::F32) => bytes.extend(value.to_le_bytes()),
        (Number::Whole(value), ComponentType::F32) => bytes.extend((value as f32).to_le_bytes()),
        (Number::Whole(value), ComponentType::I8) => {
            bytes.extend(i8::try_from(value).ok()?.to_le_bytes());
        }
        (Number::Whole(value), ComponentType::U8) => bytes.push(u8::try_from(value).ok()?),
        (Number::Whole(value), ComponentType::I16) => {
            bytes.extend(i16::try_from(value).ok()?.to_le_bytes());
        }
        (Number::Whole(value), ComponentType::U16) => {
            bytes.extend(u16::try_from(value).ok()?.to_le_bytes());
        }
        (Number::Whole(value), ComponentType::U32) => {
            bytes.extend(u32::try_from(value).ok()?.to_le_bytes());
        }
        (Number::Real(_), _) => return None,
    }
    Some(())
}
