//! Opens a glTF file: the container, the JSON in it, and the buffers that it names. Owns no meaning
//! of what is read.

use crate::document::compression::view_json::CompressedViews;
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

const GLB_MAGIC: &[u8; 4] = b"glTF";
const GLB_CHUNK_JSON: u32 = 0x4E4F_534A;
const GLB_CHUNK_BIN: u32 = 0x004E_4942;

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
        let file = source.main.clone();
        let bytes = source.read_main()?;
        let (json, binary) = split(&bytes)
            .map_err(|problem| SceneError::Container { file: file.clone(), problem })?;
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

/// Returns the JSON of a file, and its binary chunk if it is a GLB.
fn split(bytes: &[u8]) -> Result<(&[u8], Option<&[u8]>), String> {
    let (json, binary) = if bytes.starts_with(GLB_MAGIC) {
        split_glb(bytes)?
    } else if looks_like_json(bytes) {
        (bytes, None)
    } else {
        return Err("it begins neither with `glTF` nor with a JSON object; export it again".into());
    };
    Ok((json.strip_prefix(b"\xef\xbb\xbf").unwrap_or(json), binary))
}

fn looks_like_json(bytes: &[u8]) -> bool {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{')
}

/// Returns the JSON and binary chunks of a GLB container (glTF 2.0, §4.4).
fn split_glb(bytes: &[u8]) -> Result<(&[u8], Option<&[u8]>), String> {
    let word = |at: usize| -> Option<u32> {
        Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
    };
    let (Some(version), Some(length)) = (word(4), word(8)) else {
        return Err("the file is cut short inside its header; copy it again".into());
    };
    if version != 2 {
        return Err(format!(
            "its container has version {version}; only 2 is read, so export it as glTF 2.0"
        ));
    }
    let length = length as usize;
    if length > bytes.len() {
        let have = bytes.len();
        return Err(format!(
            "its header says {length} bytes, but only {have} are there; copy it again"
        ));
    }
    let (mut json, mut binary) = (None, None);
    let mut at = 12;
    while at + 8 <= length {
        let (Some(size), Some(kind)) = (word(at), word(at + 4)) else { break };
        let start = at + 8;
        let end = start.checked_add(size as usize).filter(|end| *end <= length);
        let Some(end) = end else {
            return Err(format!(
                "the chunk at byte {at} reaches beyond the end; copy the file again"
            ));
        };
        match kind {
            GLB_CHUNK_JSON if json.is_none() => json = Some(&bytes[start..end]),
            GLB_CHUNK_BIN if binary.is_none() => binary = Some(&bytes[start..end]),
            _ => {}
        }
        at = end.next_multiple_of(4);
    }
    let json = json.ok_or("it has no JSON chunk; export it again")?;
    Ok((json, binary))
}
