//! Buffer views that are compressed (EXT_meshopt_compression, KHR_meshopt_compression): what the
//! JSON says of each, and their bytes. Filters, which come after decompression, stand in
//! filter.rs.
//!
//! Decompression is meshoptimizer's own. It takes any bytes, but trusts the numbers beside them, so
//! that all of those are checked here.

mod filter;
pub(crate) mod view_json;

use crate::document::Document;
use crate::document::compression::filter::Filter;
use crate::document::compression::view_json::{CompressedViews, Mode, ViewJson};
use crate::error::SceneError;
use gltf::json::Root;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// The extension and its successor. They have the same JSON. The successor has one more filter, and
/// a second version of ATTRIBUTES data, which names its version itself.
const NAMES: [&str; 2] = ["EXT_meshopt_compression", "KHR_meshopt_compression"];
/// The successor. Its filter COLOR is refused in the first extension.
const SUCCESSOR: &str = NAMES[1];

/// Largest element of ATTRIBUTES in bytes.
const STRIDE_MAX: u64 = 256;
/// Most elements of a block of ATTRIBUTES, and its most bytes.
const BLOCK_ELEMENTS: u64 = 256;
const BLOCK_BYTES: u64 = 8192;

/// The extension's JSON object in a buffer.
#[derive(Default, Deserialize)]
struct BufferJson {
    #[serde(default)]
    fallback: bool,
}

impl CompressedViews {
    /// Reads the JSON without further checks.
    pub(crate) fn read(document: &Document) -> Result<Self, SceneError> {
        let mut views = BTreeMap::new();
        for (index, view) in document.root.buffer_views.iter().enumerate() {
            let place = format!("bufferViews[{index}]");
            let extensions = view.extensions.as_ref().map(|extensions| &extensions.others);
            for name in NAMES {
                let Some(json) = document.extension::<ViewJson>(extensions, name, &place)? else {
                    continue;
                };
                if views.insert(index, (json, name)).is_some() {
                    let problem =
                        format!("has both {} and {}; keep one of them", NAMES[0], NAMES[1]);
                    return Err(document.invalid(place, problem));
                }
            }
        }
        let mut read = Self { views, placeholders: BTreeSet::new() };
        read.placeholders = read.find_placeholders(document)?;
        Ok(read)
    }

    fn find_placeholders(&self, document: &Document) -> Result<BTreeSet<usize>, SceneError> {
        let Root { buffers, buffer_views, .. } = &document.root;
        let mut placeholders = BTreeSet::new();
        for (index, buffer) in buffers.iter().enumerate() {
            let extensions = buffer.extensions.as_ref().map(|extensions| &extensions.others);
            for name in NAMES {
                let json = document.extension::<BufferJson>(
                    extensions,
                    name,
                    &format!("buffers[{index}]"),
                )?;
                if json.is_some_and(|json| json.fallback) {
                    placeholders.insert(index);
                }
            }
        }
        let (compressed, plain): (Vec<_>, Vec<_>) =
            buffer_views.iter().enumerate().partition(|(index, _)| self.views.contains_key(index));
        // A buffer without the mark is a placeholder too, if all its content is in compressed
        // views.
        placeholders.extend(compressed.iter().map(|(_, view)| view.buffer.value()));
        for (_, view) in plain {
            placeholders.remove(&view.buffer.value());
        }
        for (json, _) in self.views.values() {
            placeholders.remove(&json.buffer);
        }
        Ok(placeholders)
    }

    /// Decompresses every view. The document has read its buffers.
    pub(crate) fn decode(
        &self,
        document: &Document,
    ) -> Result<BTreeMap<usize, Vec<u8>>, SceneError> {
        self.views
            .iter()
            .map(|(&index, (json, name))| Ok((index, decode(document, index, json, name)?)))
            .collect()
    }
}

fn decode(
    document: &Document,
    index: usize,
    json: &ViewJson,
    name: &str,
) -> Result<Vec<u8>, SceneError> {
    let view = &document.root.buffer_views[index];
    let place = format!("bufferViews[{index}].extensions.{name}");
    let invalid = |problem: String| document.invalid(place.clone(), problem);
    let target = view.buffer.value();
    document.at(
        &document.root.buffers,
        target,
        &format!("bufferViews[{index}].buffer"),
        "buffers",
    )?;
    let (count, stride) = sizes(json, name).map_err(invalid)?;
    let bytes = json.count.checked_mul(json.byte_stride);
    if bytes != Some(view.byte_length.0) {
        let problem = format!(
            "count {} times byteStride {} is not the byteLength {} of bufferViews[{index}]",
            json.count, json.byte_stride, view.byte_length.0
        );
        return Err(invalid(problem));
    }
    let range = (json.buffer, json.byte_offset, json.byte_length);
    let packed = document.bytes_of(range, &place)?;
    let least = least_bytes(json);
    if (packed.len() as u64) < least {
        let problem = format!(
            "{count} elements of {stride} bytes take at least {least} bytes as {}, but byteLength \
                is {}; export the file again",
            json.mode.name(),
            packed.len()
        );
        return Err(invalid(problem));
    }
    // Count them once as the decompressor's elements, and once as bytes.
    document.budget.spend(json.count, 2 * json.byte_stride, &document.file, &place)?;
    let mut bytes = match json.mode {
        Mode::Attributes => attributes(packed, count, stride),
        Mode::Triangles if stride == 2 => meshopt::decode_index_buffer(packed, count).map(halves),
        Mode::Triangles => meshopt::decode_index_buffer(packed, count).map(words),
        Mode::Indices if stride == 2 => meshopt::decode_index_sequence(packed, count).map(halves),
        Mode::Indices => meshopt::decode_index_sequence(packed, count).map(words),
    }
    .map_err(|error| {
        let (what, why) = (json.mode.name(), told(&error));
        invalid(format!(
            "its bytes are not {what} of {count} elements ({why}); export the file again"
        ))
    })?;
    filter::apply(json.filter, &mut bytes, stride);
    Ok(bytes)
}

/// Describes the decompressor's error codes.
fn told(error: &meshopt::Error) -> String {
    match error {
        meshopt::Error::Native(-1) => "they begin as something else".into(),
        meshopt::Error::Native(-2) => "they are cut short".into(),
        meshopt::Error::Native(-3) => "some are left over".into(),
        other => other.to_string(),
    }
}

/// Returns count and stride if mode and filter allow them. The error says what is wrong.
fn sizes(json: &ViewJson, name: &str) -> Result<(usize, usize), String> {
    let stride = json.byte_stride;
    let (fits, wanted) = match (json.mode, json.filter) {
        (Mode::Triangles | Mode::Indices, Filter::None) => (matches!(stride, 2 | 4), "2 or 4"),
        (Mode::Triangles | Mode::Indices, _) => {
            return Err(format!("{} take no filter; export the file again", json.mode.name()));
        }
        (Mode::Attributes, Filter::Color) if name != SUCCESSOR => {
            return Err(format!(
                "has the filter COLOR, which only {SUCCESSOR} has; export the file again"
            ));
        }
        (Mode::Attributes, Filter::Octahedral | Filter::Color) => {
            (matches!(stride, 4 | 8), "4 or 8")
        }
        (Mode::Attributes, Filter::Quaternion) => (stride == 8, "8"),
        (Mode::Attributes, Filter::None | Filter::Exponential) => (
            (4..=STRIDE_MAX).contains(&stride) && stride.is_multiple_of(4),
            "a multiple of 4 from 4 to 256",
        ),
    };
    if !fits {
        return Err(format!("byteStride is {stride}, but must be {wanted}; export the file again"));
    }
    if json.count == 0 || (json.mode == Mode::Triangles && !json.count.is_multiple_of(3)) {
        return Err(format!("count is {}, which {} cannot have", json.count, json.mode.name()));
    }
    let count = usize::try_from(json.count).map_err(|_| "count is beyond this machine's memory")?;
    Ok((count, stride as usize))
}

/// Returns the fewest bytes that the elements can take, so that no memory is reserved for elements
/// that cannot exist. Strides have been checked.
fn least_bytes(json: &ViewJson) -> u64 {
    match json.mode {
        // One byte of header, two bits for each byte of an element in each block, and the first
        // element.
        Mode::Attributes => {
            let block = ((BLOCK_BYTES / json.byte_stride) & !15).min(BLOCK_ELEMENTS);
            let controls = json.count.div_ceil(block).saturating_mul(json.byte_stride / 4);
            controls.saturating_add(1 + json.byte_stride)
        }
        // One byte of header, one byte for each triangle, and a table.
        Mode::Triangles => 1 + json.count / 3 + 16,
        // One byte of header, one byte for each index, and four bytes at the end.
        Mode::Indices => json.count.saturating_add(1 + 4),
    }
}

/// An element of `N` words, because the decompressor needs the size at compile time.
#[derive(Clone)]
struct Element<const N: usize>([u32; N]);

impl<const N: usize> Default for Element<N> {
    fn default() -> Self {
        Self([0; N])
    }
}

/// Decompresses elements to their form in memory.
fn elements<const N: usize>(packed: &[u8], count: usize) -> meshopt::Result<Vec<u8>> {
    let elements: Vec<Element<N>> = meshopt::decode_vertex_buffer(packed, count)?;
    let mut bytes = Vec::with_capacity(count * N * 4);
    for word in elements.iter().flat_map(|element| &element.0) {
        bytes.extend_from_slice(&word.to_ne_bytes());
    }
    Ok(bytes)
}

/// Calls [`elements`] for a size that is only known at run time.
macro_rules! elements_of {
    ($words:expr, $packed:expr, $count:expr, $($size:literal)*) => {
        match $words {
            $($size => elements::<$size>($packed, $count),)*
            _ => unreachable!("strides are checked"),
        }
    };
}

fn attributes(packed: &[u8], count: usize, stride: usize) -> meshopt::Result<Vec<u8>> {
    elements_of!(stride / 4, packed, count,
        1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32
        33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61
        62 63 64
    )
}

fn halves(indices: Vec<u16>) -> Vec<u8> {
    indices.into_iter().flat_map(u16::to_le_bytes).collect()
}

fn words(indices: Vec<u32>) -> Vec<u8> {
    indices.into_iter().flat_map(u32::to_le_bytes).collect()
}
