//! A parsed glTF file: its JSON, its buffers, and errors that name a place in it. Does not
//! interpret the parts.

pub(crate) mod accessor;
pub(crate) mod budget;
pub(crate) mod compression;
mod container;
pub(crate) mod draco;
pub(crate) mod extension;
pub(crate) mod files;
pub(crate) mod leftover;
mod open;
pub(crate) mod shape;
pub(crate) mod source;
pub(crate) mod uri;

use crate::choice::Choice;
use crate::document::budget::Budget;
use crate::document::compression::view_json::CompressedViews;
use crate::document::draco::decoded::DecodedAccessors;
use crate::document::leftover::Leftover;
use crate::document::source::Source;
use crate::document::uri::Uri;
use crate::error::SceneError;
use gltf::json::{Index, Root};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Extension whose channels point at any property of the file.
pub(crate) const POINTER: &str = "KHR_animation_pointer";
/// Node of a channel whose file gives it none.
pub(crate) const NO_NODE: u32 = u32::MAX;

/// Extension's part of a channel of KHR_animation_pointer.
#[derive(Clone, Debug)]
pub(crate) struct PointerChannel {
    /// Object of the extension.
    pub(crate) json: Value,
    /// `target.path`, which must be `pointer`.
    pub(crate) path: Option<Value>,
    /// Whether the channel has a node as well, which it must not.
    pub(crate) has_node: bool,
}

/// Channels of KHR_animation_pointer, by the number of the animation and of the channel in it.
pub(crate) type Pointers = BTreeMap<(usize, usize), PointerChannel>;

/// A parsed file.
#[derive(Debug)]
pub(crate) struct Document {
    /// Path of the main file within the scene's folder.
    pub(crate) file: String,
    /// The JSON. Its indices have not been checked; see [`Document::item`].
    pub(crate) root: Root,
    /// Channels of KHR_animation_pointer.
    pub(crate) pointers: Pointers,
    /// What may still be allocated.
    pub(crate) budget: Arc<Budget>,
    /// What the JSON says beyond `root`.
    pub(crate) leftover: Leftover,
    binary: Option<Vec<u8>>,
    /// The compressed views.
    compressed: CompressedViews,
    /// One entry for each of `buffers`, after [`Document::read_buffers`]. Placeholders are empty.
    buffers: Vec<Vec<u8>>,
    /// Content of the compressed views, after the same call.
    decoded: BTreeMap<usize, Vec<u8>>,
    /// Content of accessors of compressed primitives, after the same call.
    decoded_accessors: DecodedAccessors,
}

impl Document {
    /// Makes a scene of the file the one that is shown.
    ///
    /// # Errors
    /// The file has no such scene.
    pub(crate) fn choose_scene(&mut self, choice: Option<&Choice>) -> Result<(), SceneError> {
        let Some(choice) = choice else { return Ok(()) };
        let names = self.root.scenes.iter().map(|scene| scene.name.as_deref().unwrap_or_default());
        let names: Vec<&str> = names.collect();
        let chosen = choice.find("scene", &names);
        let chosen = chosen.map_err(|problem| SceneError::Option { problem })?;
        self.root.scene = Some(gltf::json::Index::new(chosen as u32));
        Ok(())
    }

    /// Returns a copy of what materials, lights and cameras are read from: without buffers, and
    /// with images only by number.
    pub(crate) fn without_bytes(&self) -> Self {
        let image = gltf::json::Image {
            buffer_view: None,
            mime_type: None,
            name: None,
            uri: None,
            extensions: None,
            extras: None,
        };
        let others = self.root.extensions.iter().flat_map(|extensions| &extensions.others);
        let lights = others.filter(|(name, _)| *name == "KHR_lights_punctual");
        let others = lights.map(|(name, value)| (name.clone(), value.clone())).collect();
        let root = Root {
            materials: self.root.materials.clone(),
            cameras: self.root.cameras.clone(),
            textures: self.root.textures.clone(),
            samplers: self.root.samplers.clone(),
            images: vec![image; self.root.images.len()],
            extensions: Some(gltf::json::extensions::root::Root { others }),
            ..Root::default()
        };
        Self {
            file: self.file.clone(),
            root,
            pointers: Pointers::new(),
            budget: Arc::clone(&self.budget),
            leftover: Leftover::default(),
            binary: None,
            compressed: CompressedViews::default(),
            buffers: Vec::new(),
            decoded: BTreeMap::new(),
            decoded_accessors: DecodedAccessors::default(),
        }
    }

    /// Returns the URI of a buffer whose bytes are needed, if it has one.
    pub(crate) fn buffer_uri(&self, buffer: usize) -> Option<&str> {
        if self.compressed.is_placeholder(buffer) {
            None
        } else {
            self.root.buffers[buffer].uri.as_deref()
        }
    }

    /// Returns the bytes that a URI names.
    pub(crate) fn resolve(
        &self,
        source: &Source,
        uri: &str,
        path: &str,
    ) -> Result<Vec<u8>, SceneError> {
        // Base64 has more characters than bytes, and nothing else is decoded.
        self.budget.spend(uri.len() as u64, 1, &self.file, path)?;
        match self.parse_uri(uri, path)? {
            Uri::Data(bytes) => Ok(bytes),
            Uri::File(relative) => source.read(&source.beside_main(&relative)),
        }
    }

    /// Parses a URI and checks that it may be read.
    pub(crate) fn parse_uri(&self, uri: &str, path: &str) -> Result<Uri, SceneError> {
        uri::parse(uri).map_err(|problem| SceneError::Uri {
            file: self.file.clone(),
            path: path.into(),
            uri: uri::shown(uri),
            problem,
        })
    }

    /// Returns the bytes of a buffer view.
    pub(crate) fn view(&self, view: usize, path: &str) -> Result<&[u8], SceneError> {
        let view_json = self.at(&self.root.buffer_views, view, path, "bufferViews")?;
        if let Some(bytes) = self.decoded.get(&view) {
            return Ok(bytes);
        }
        let start = view_json.byte_offset.map_or(0, |offset| offset.0);
        let range = (view_json.buffer.value(), start, view_json.byte_length.0);
        self.bytes_of(range, &format!("bufferViews[{view}]"))
    }

    /// Returns `length` bytes of a buffer from `start` on. `place` is their place in the JSON.
    pub(crate) fn bytes_of(
        &self,
        (buffer, start, length): (usize, u64, u64),
        place: &str,
    ) -> Result<&[u8], SceneError> {
        let bytes = self.at(&self.buffers, buffer, &format!("{place}.buffer"), "buffers")?;
        start
            .checked_add(length)
            .and_then(|end| bytes.get(usize::try_from(start).ok()?..usize::try_from(end).ok()?))
            .ok_or_else(|| {
                let have = bytes.len();
                let problem = format!(
                    "bytes {start} to {start} + {length} reach beyond buffers[{buffer}], which has \
                        {have}"
                );
                self.invalid(place, problem)
            })
    }

    /// Returns the item that the index at `path` names.
    pub(crate) fn item<'a, T>(
        &self,
        items: &'a [T],
        index: Index<T>,
        path: &str,
        array: &str,
    ) -> Result<&'a T, SceneError> {
        self.at(items, index.value(), path, array)
    }

    /// Does the same with a plain number.
    pub(crate) fn at<'a, T>(
        &self,
        items: &'a [T],
        index: usize,
        path: &str,
        array: &str,
    ) -> Result<&'a T, SceneError> {
        items.get(index).ok_or_else(|| {
            self.invalid(
                path,
                format!("points at {array}[{index}], but there are {} of them", items.len()),
            )
        })
    }

    /// Returns an extension's object, if it exists.
    pub(crate) fn extension<T: DeserializeOwned>(
        &self,
        extensions: Option<&Map<String, Value>>,
        name: &str,
        path: &str,
    ) -> Result<Option<T>, SceneError> {
        let Some(value) = extensions.and_then(|extensions| extensions.get(name)) else {
            return Ok(None);
        };
        serde_json::from_value(value.clone())
            .map(Some)
            .map_err(|error| self.invalid(format!("{path}.extensions.{name}"), error.to_string()))
    }

    /// Returns an error that names a place in the JSON.
    pub(crate) fn invalid(
        &self,
        path: impl Into<String>,
        problem: impl Into<String>,
    ) -> SceneError {
        SceneError::Invalid { file: self.file.clone(), path: path.into(), problem: problem.into() }
    }
}
