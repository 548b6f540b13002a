//! Accessors: typed numbers from buffer views, with a bounds check for every byte. Does not
//! interpret the numbers.

use crate::document::Document;
use crate::document::shape::Shape;
use crate::error::SceneError;
use gltf::json::accessor::{Accessor, ComponentType, Type};
use gltf::json::validation::Checked;
use serde_json::Value;

/// Most elements of an accessor without bytes (sparse over zeros): 2^22 × 16 floats are 256 MiB.
const ZERO_ELEMENTS_MAX: u64 = 1 << 22;

/// Place of elements: `count` elements of `size` bytes, at a distance of `stride`.
struct Run<'a> {
    bytes: &'a [u8],
    stride: usize,
    size: usize,
}

impl<'a> Run<'a> {
    fn element(&self, index: usize) -> &'a [u8] {
        let start = index * self.stride;
        &self.bytes[start..start + self.size]
    }
}

/// An accessor with checked JSON whose bytes exist.
struct CheckedAccessor<'a> {
    json: &'a Accessor,
    shape: Shape,
}

impl Document {
    /// Checks that smallest and largest elements, where accessors have them, have as many numbers
    /// as the others.
    pub(crate) fn check_extents(&self) -> Result<(), SceneError> {
        for (index, json) in self.root.accessors.iter().enumerate() {
            let Checked::Valid(kind) = json.type_ else { continue };
            let components = components_of(kind);
            for (name, value) in [("min", &json.min), ("max", &json.max)] {
                let Some(value) = value else { continue };
                let list = value.as_array().filter(|list| list.iter().all(Value::is_number));
                let have = list.map(Vec::len);
                if have != Some(components) {
                    let have = have.map_or("no".into(), |have| have.to_string());
                    let problem = format!(
                        "has {have} numbers, but an element has {components}; export the file again"
                    );
                    return Err(self.invalid(format!("accessors[{index}].{name}"), problem));
                }
            }
        }
        Ok(())
    }

    /// Returns the number of elements of an accessor, without reading them.
    pub(crate) fn accessor_count(&self, index: usize, path: &str) -> Result<u64, SceneError> {
        Ok(self.at(&self.root.accessors, index, path, "accessors")?.count.0)
    }

    /// Reads an accessor of `N` components as floats; integers are scaled where it says
    /// `normalized`. All finite.
    pub(crate) fn floats<const N: usize>(
        &self,
        index: usize,
        path: &str,
    ) -> Result<Vec<[f32; N]>, SceneError> {
        let checked = self.check_accessor(index, path, &[N])?;
        let flat = self.read(index, &checked, checked.json.normalized)?;
        Ok(flat.chunks_exact(N).map(|chunk| std::array::from_fn(|i| chunk[i])).collect())
    }

    /// Reads colours: three components (the fourth becomes `alpha`) or four.
    pub(crate) fn colors(
        &self,
        index: usize,
        path: &str,
        alpha: f32,
    ) -> Result<Vec<[f32; 4]>, SceneError> {
        let checked = self.check_accessor(index, path, &[3, 4])?;
        let flat = self.read(index, &checked, checked.json.normalized)?;
        let alpha = |chunk: &[f32]| chunk.get(3).copied().unwrap_or(alpha);
        Ok(flat
            .chunks_exact(checked.shape.components)
            .map(|chunk| [chunk[0], chunk[1], chunk[2], alpha(chunk)])
            .collect())
    }

    /// Reads unsigned integers of `N` components: indices and joints.
    pub(crate) fn integers<const N: usize>(
        &self,
        index: usize,
        path: &str,
    ) -> Result<Vec<[u32; N]>, SceneError> {
        let checked = self.check_accessor(index, path, &[N])?;
        if !matches!(
            checked.shape.component,
            ComponentType::U8 | ComponentType::U16 | ComponentType::U32
        ) {
            let place = format!("accessors[{index}].componentType");
            return Err(self
                .invalid(place, format!("{path} needs unsigned integers; export the file again")));
        }
        let mut values = vec![[0u32; N]; checked.shape.count];
        let width = checked.shape.component.size();
        self.visit(index, &checked, |element, bytes| {
            for (value, part) in values[element].iter_mut().zip(bytes.chunks_exact(width)) {
                *value = part.iter().rev().fold(0, |sum, byte| (sum << 8) | u32::from(*byte));
            }
        })?;
        Ok(values)
    }

    /// Returns the shape of an accessor whose elements have one of the `allowed` numbers of
    /// components.
    pub(crate) fn shape(
        &self,
        index: usize,
        path: &str,
        allowed: &[usize],
    ) -> Result<Shape, SceneError> {
        let json = self.at(&self.root.accessors, index, path, "accessors")?;
        let place = format!("accessors[{index}]");
        let Checked::Valid(component) = json.component_type else {
            return Err(self.invalid(
                format!("{place}.componentType"),
                "is not one of glTF's; export it again",
            ));
        };
        let Checked::Valid(kind) = json.type_ else {
            return Err(
                self.invalid(format!("{place}.type"), "is not one of glTF's; export it again")
            );
        };
        let components = components_of(kind);
        if !allowed.contains(&components) {
            let wanted = allowed.iter().map(usize::to_string).collect::<Vec<_>>().join(" or ");
            let problem = format!("has {components} components, but {path} needs {wanted}");
            return Err(self.invalid(format!("{place}.type"), problem));
        }
        let count = usize::try_from(json.count.0).map_err(|_| {
            self.invalid(format!("{place}.count"), "is beyond this machine's memory")
        })?;
        Ok(Shape { count, component: component.0, components })
    }

    fn check_accessor(
        &self,
        index: usize,
        path: &str,
        allowed: &[usize],
    ) -> Result<CheckedAccessor<'_>, SceneError> {
        let shape = self.shape(index, path, allowed)?;
        let json = &self.root.accessors[index];
        let place = format!("accessors[{index}]");
        let has_bytes = json.buffer_view.is_some() || self.decoded_accessors.get(index).is_some();
        if !has_bytes && json.count.0 > ZERO_ELEMENTS_MAX {
            let problem = format!(
                "{} elements without a buffer view are more than {ZERO_ELEMENTS_MAX}",
                json.count.0
            );
            return Err(self.invalid(format!("{place}.count"), problem));
        }
        let checked = CheckedAccessor { json, shape };
        // Check that the bytes exist before memory for `count` elements is allocated.
        self.base_run(index, &checked)?;
        // Count them once as numbers, and once in the form that the caller keeps.
        self.budget.spend(json.count.0, 8 * shape.components as u64, &self.file, &place)?;
        Ok(checked)
    }

    fn base_run(
        &self,
        index: usize,
        checked: &CheckedAccessor,
    ) -> Result<Option<Run<'_>>, SceneError> {
        let place = format!("accessors[{index}]");
        let size = checked.shape.bytes();
        if let Some(bytes) = self.decoded_accessors.get(index) {
            return Ok(Some(Run { bytes, stride: size, size }));
        }
        let Some(view) = checked.json.buffer_view else { return Ok(None) };
        let offset = checked.json.byte_offset.map_or(0, |offset| offset.0);
        let stride = self.root.buffer_views.get(view.value()).and_then(|view| view.byte_stride);
        let stride = stride.map_or(size, |stride| stride.0);
        self.run(view.value(), offset, checked.shape.count, (size, stride), &place).map(Some)
    }

    fn run(
        &self,
        view: usize,
        offset: u64,
        count: usize,
        (size, stride): (usize, usize),
        place: &str,
    ) -> Result<Run<'_>, SceneError> {
        let bytes = self.view(view, &format!("{place}.bufferView"))?;
        if stride < size {
            let problem = format!(
                "byteStride {stride} is less than the {size} bytes of an element of {place}"
            );
            return Err(self.invalid(format!("bufferViews[{view}].byteStride"), problem));
        }
        let needed = match count {
            0 => Some(0),
            _ => (count - 1).checked_mul(stride).and_then(|bytes| bytes.checked_add(size)),
        };
        let start = usize::try_from(offset).ok();
        let end = start.zip(needed).and_then(|(start, needed)| start.checked_add(needed));
        let bytes =
            start.zip(end).and_then(|(start, end)| bytes.get(start..end)).ok_or_else(|| {
                let have = bytes.len();
                let problem = format!(
                    "{count} elements of {size} bytes from byte {offset} reach beyond \
                    bufferViews[{view}], which has {have}"
                );
                self.invalid(place, problem)
            })?;
        Ok(Run { bytes, stride, size })
    }

    /// Calls `each` with every element's bytes, and then again with those that the sparse part
    /// replaces.
    fn visit(
        &self,
        index: usize,
        checked: &CheckedAccessor,
        mut each: impl FnMut(usize, &[u8]),
    ) -> Result<(), SceneError> {
        if let Some(run) = self.base_run(index, checked)? {
            for element in 0..checked.shape.count {
                each(element, run.element(element));
            }
        }
        let Some(sparse) = &checked.json.sparse else { return Ok(()) };
        let place = format!("accessors[{index}].sparse");
        let Checked::Valid(component) = sparse.indices.component_type else {
            return Err(
                self.invalid(format!("{place}.indices.componentType"), "is not one of glTF's")
            );
        };
        let width = component.0.size();
        let size = checked.shape.bytes();
        let count = usize::try_from(sparse.count.0).unwrap_or(usize::MAX);
        let indices = &sparse.indices;
        let at_indices = format!("{place}.indices");
        let keys = self.run(
            indices.buffer_view.value(),
            indices.byte_offset.0,
            count,
            (width, width),
            &at_indices,
        )?;
        let values = &sparse.values;
        let at_values = format!("{place}.values");
        let replaced = self.run(
            values.buffer_view.value(),
            values.byte_offset.0,
            count,
            (size, size),
            &at_values,
        )?;
        for entry in 0..count {
            let key = keys
                .element(entry)
                .iter()
                .rev()
                .fold(0usize, |sum, byte| (sum << 8) | usize::from(*byte));
            if key >= checked.shape.count {
                let problem =
                    format!("entry {entry} replaces element {key} of {}", checked.shape.count);
                return Err(self.invalid(at_indices, problem));
            }
            each(key, replaced.element(entry));
        }
        Ok(())
    }

    fn read(
        &self,
        index: usize,
        checked: &CheckedAccessor,
        normalized: bool,
    ) -> Result<Vec<f32>, SceneError> {
        let components = checked.shape.components;
        let mut values = vec![0.0f32; checked.shape.count * components];
        let component = checked.shape.component;
        let width = component.size();
        self.visit(index, checked, |element, bytes| {
            let target = &mut values[element * components..][..components];
            for (value, part) in target.iter_mut().zip(bytes.chunks_exact(width)) {
                *value = float_from(part, component, normalized);
            }
        })?;
        match values.iter().position(|value| !value.is_finite()) {
            None => Ok(values),
            Some(bad) => {
                let (element, value) = (bad / components, values[bad]);
                let problem =
                    format!("element {element} holds {value}; export the file without it");
                Err(self.invalid(format!("accessors[{index}]"), problem))
            }
        }
    }
}

fn components_of(kind: Type) -> usize {
    match kind {
        Type::Scalar => 1,
        Type::Vec2 => 2,
        Type::Vec3 => 3,
        Type::Vec4 | Type::Mat2 => 4,
        Type::Mat3 => 9,
        Type::Mat4 => 16,
    }
}

/// One component as a float (glTF 2.0, §3.6.2.2 for the normalized ones).
fn float_from(bytes: &[u8], component: ComponentType, normalized: bool) -> f32 {
    let word = bytes.iter().rev().fold(0u32, |sum, byte| (sum << 8) | u32::from(*byte));
    let (value, largest) = match component {
        ComponentType::F32 => return f32::from_bits(word),
        ComponentType::I8 => (f32::from(word as u8 as i8), 127.0),
        ComponentType::U8 => (f32::from(word as u8), 255.0),
        ComponentType::I16 => (f32::from(word as u16 as i16), 32_767.0),
        ComponentType::U16 => (f32::from(word as u16), 65_535.0),
        ComponentType::U32 => (word as f32, 4_294_967_295.0),
    };
    if normalized { (value / largest).max(-1.0) } else { value }
}
