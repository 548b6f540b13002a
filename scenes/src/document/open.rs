//! Opens a glTF file: the container, the JSON in it, and the buffers that it names. Owns no meaning
//! of what is read.

use crate::document::compression::view_json::CompressedViews;
use crate::document::container::{read_json, split};
use crate::document::draco::decoded::DecodedAccessors;
use crate::document::leftover::Leftover;
use crate::document::source::Source;
use crate::document::{Document, NO_NODE, POINTER, PointerChannel, Pointers};
use crate::error::SceneError;
use crate::math::Vec3;
use gltf::json::Root;
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;

/// The numbers of a file's JSON that double precision counts for.
#[derive(Deserialize)]
struct PreciseRoot {
    #[serde(default)]
    nodes: Vec<PreciseNode>,
}

#[derive(Deserialize)]
struct PreciseNode {
    translation: Option<[f64; 3]>,
    matrix: Option<[f64; 16]>,
}

impl Document {
    /// Reads only the main file.
    pub(crate) fn open(source: &Source) -> Result<Self, SceneError> {
        let bytes = source.read_main()?;
        let (json, binary) = split(&bytes)
            .map_err(|problem| SceneError::Container { file: source.main.clone(), problem })?;
        Self::of_json(source, json, binary)
    }

    /// Reads only the JSON of the main file, for those who need no bytes of the scene. Takes no
    /// memory for a binary chunk.
    pub(crate) fn open_json(source: &Source) -> Result<Self, SceneError> {
        let (main, length) = source.open_main()?;
        let json = read_json(main, length)
            .map_err(|error| SceneError::Read { path: source.locate(&source.main), source: error })?
            .map_err(|problem| SceneError::Container { file: source.main.clone(), problem })?;
        Self::of_json(source, &json, None)
    }

    fn of_json(source: &Source, json: &[u8], binary: Option<&[u8]>) -> Result<Self, SceneError> {
        let file = source.main.clone();
        source.budget.spend_json(json, &file)?;
        let not_json = |error: serde_json::Error| SceneError::Json {
            file: file.clone(),
            problem: match error.is_eof() {
                true => format!("{error}; the file is cut off, so copy or export it again"),
                false => error.to_string(),
            },
        };
        let (root, pointers) = parse_root(json).map_err(not_json)?;
        let mut leftover = Leftover::default();
        if Leftover::is_possible(&root) {
            source.budget.spend_json(json, &file)?;
            leftover = Leftover::read(json).map_err(not_json)?;
        }
        if !pointers.is_empty() {
            // What they point at is kept a second time, for every frame.
            source.budget.spend_json(json, &file)?;
        }
        let binary = binary.map(<[u8]>::to_vec);
        let budget = Arc::clone(&source.budget);
        budget.spend(binary.as_ref().map_or(0, Vec::len) as u64, 1, &file, "(its binary chunk)")?;
        let mut document = Self {
            file,
            root,
            pointers,
            budget,
            leftover,
            binary,
            compressed: Default::default(),
            buffers: Default::default(),
            decoded: Default::default(),
            decoded_accessors: Default::default(),
        };
        document.check_version()?;
        document.check_extents()?;
        if let Some(index) = document.leftover.empty_animation {
            let problem = "is empty, so that nothing moves; export the file again without it";
            return Err(document.invalid(format!("animations[{index}].channels"), problem));
        }
        document.compressed = CompressedViews::read(&document)?;
        Ok(document)
    }

    /// Reads every buffer, from the binary chunk, data URIs and files, and decompresses the
    /// compressed views and primitives.
    pub(crate) fn read_buffers(&mut self, source: &Source) -> Result<(), SceneError> {
        for index in 0..self.root.buffers.len() {
            if self.compressed.is_placeholder(index) {
                self.buffers.push(Vec::new());
                continue;
            }
            let buffer = &self.root.buffers[index];
            let (length, uri) = (buffer.byte_length.0, buffer.uri.clone());
            let path = format!("buffers[{index}]");
            let mut bytes = match uri {
                Some(uri) => self.resolve(source, &uri, &format!("{path}.uri"))?,
                None if index == 0 => self.binary.take().ok_or_else(|| {
                    self.invalid(
                        &path,
                        "has no uri, and the file has no binary chunk; export it again",
                    )
                })?,
                None => {
                    return Err(
                        self.invalid(&path, "has no uri; only buffers[0] of a .glb may be without")
                    );
                }
            };
            if (bytes.len() as u64) < length {
                let problem =
                    format!("byteLength is {length}, but only {} bytes are there", bytes.len());
                return Err(self.invalid(&path, problem));
            }
            bytes.truncate(length as usize);
            self.buffers.push(bytes);
        }
        self.decoded = self.compressed.decode(self)?;
        self.decoded_accessors = DecodedAccessors::decode(self)?;
        Ok(())
    }

    /// Reads the translation of each node again, in double precision: the `gltf` crate rounds
    /// numbers to single precision. None where a node has none.
    pub(crate) fn translations(&self, source: &Source) -> Result<Vec<Option<Vec3>>, SceneError> {
        let bytes = source.read_main()?;
        let (json, _) = split(&bytes)
            .map_err(|problem| SceneError::Container { file: self.file.clone(), problem })?;
        let root: PreciseRoot = serde_json::from_slice(json).map_err(|error| SceneError::Json {
            file: self.file.clone(),
            problem: error.to_string(),
        })?;
        let translation = |node: PreciseNode| match node.matrix {
            Some(matrix) => Some([matrix[12], matrix[13], matrix[14]]),
            None => node.translation,
        };
        Ok(root.nodes.into_iter().map(translation).collect())
    }

    fn check_version(&self) -> Result<(), SceneError> {
        let asset = &self.root.asset;
        let needed = asset.min_version.as_deref().unwrap_or(&asset.version);
        if asset.version.split('.').next() == Some("2") && matches!(needed, "2.0" | "2") {
            return Ok(());
        }
        let problem =
            format!("this is glTF {needed}; only 2.0 is read, so export or convert it to 2.0");
        Err(self.invalid("asset.version", problem))
    }
}

/// Parses the JSON. The `gltf` crate does not accept channels without a node, as
/// KHR_animation_pointer has them. Such channels get the node [`NO_NODE`], what they point at is
/// returned beside the rest, and the rest is parsed again.
fn parse_root(json: &[u8]) -> Result<(Root, Pointers), serde_json::Error> {
    let parsed: Result<Root, _> = serde_json::from_slice(json);
    let may_point = |root: &Root| root.extensions_used.iter().any(|name| name == POINTER);
    if parsed.as_ref().is_ok_and(|root| root.animations.is_empty() || !may_point(root)) {
        return parsed.map(|root| (root, Pointers::new()));
    }
    let Ok(mut value) = serde_json::from_slice::<Value>(json) else {
        return parsed.map(|root| (root, Pointers::new()));
    };
    let mut pointers = Pointers::new();
    let mut changed = false;
    let animations = value.get_mut("animations").and_then(Value::as_array_mut);
    for (index, animation) in animations.into_iter().flatten().enumerate() {
        let channels = animation.get_mut("channels").and_then(Value::as_array_mut);
        for (number, channel) in channels.into_iter().flatten().enumerate() {
            let Some(target) = channel.get_mut("target").and_then(Value::as_object_mut) else {
                continue;
            };
            let has_node = target.contains_key("node");
            if let Some(json) = target.get("extensions").and_then(|given| given.get(POINTER)) {
                let path = target.get("path").cloned();
                let channel = PointerChannel { json: json.clone(), path, has_node };
                pointers.insert((index, number), channel);
            }
            if !has_node {
                changed = true;
                target.insert("node".into(), NO_NODE.into());
                target.entry("path").or_insert_with(|| "pointer".into());
            }
        }
    }
    let root = if changed { serde_json::from_value(value) } else { parsed };
    root.map(|root| (root, pointers))
}
