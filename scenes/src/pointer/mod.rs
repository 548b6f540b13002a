//! KHR_animation_pointer: what the JSON pointer of a channel names (RFC 6901, and the glTF 2.0
//! Asset Object Model). Reads no keys.

pub(crate) mod property;

use crate::document::extension::is_applied;
use crate::document::{Document, POINTER, PointerChannel};
use crate::error::SceneError;
use crate::pointer::property::{Property, Range, of_camera, of_light, of_material};
use crate::report::warning::{Warnings, shortened};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Longest pointer that a message shows, in characters.
const SHOWN_CHARS_MAX: usize = 160;

/// Members of glTF's objects that tell what belongs together, and numbers of things. None of them
/// can be animated.
const READ_ONLY: &[&str] = &[
    "accessors",
    "alphaMode",
    "animations",
    "asset",
    "bufferViews",
    "buffers",
    "camera",
    "children",
    "doubleSided",
    "extensionsRequired",
    "extensionsUsed",
    "globalMatrix",
    "images",
    "index",
    "length",
    "light",
    "material",
    "matrix",
    "mesh",
    "name",
    "parent",
    "primitives",
    "samplers",
    "scene",
    "scenes",
    "skin",
    "skins",
    "texCoord",
    "textures",
    "type",
];

/// Extension of materials that changes its material even where it has no members.
const NOT_NEUTRAL: &str = "KHR_materials_pbrSpecularGlossiness";

/// Flags of nodes that no picture shows.
const UNSEEN_FLAGS: [(&str, &str); 2] =
    [("KHR_node_hoverability", "hoverable"), ("KHR_node_selectability", "selectable")];

/// What a channel moves.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Target {
    Translation(usize),
    Rotation(usize),
    Scale(usize),
    /// All morph weights of a node.
    Weights(usize),
    /// One of them.
    Weight(usize, usize),
    /// All morph weights of a mesh, for nodes that have none.
    MeshWeights(usize),
    /// One of them.
    MeshWeight(usize, usize),
    /// KHR_node_visibility of a node.
    Visible(usize),
    /// Something of a node that no picture shows, by its path in the node.
    Unseen(usize, String),
    /// A property of a material, a light or a camera.
    Value(Place),
}

impl Target {
    /// Returns the target of all weights for one of them.
    pub(crate) fn whole(&self) -> Option<Self> {
        match self {
            Self::Weight(node, _) => Some(Self::Weights(*node)),
            Self::MeshWeight(mesh, _) => Some(Self::MeshWeights(*mesh)),
            _ => None,
        }
    }
}

/// A material, light or camera of the file, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Item {
    Material(usize),
    Light(usize),
    Camera(usize),
}

/// A property of an item.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) item: Item,
    /// Path in the item, with `/` between its members.
    pub(crate) path: String,
    pub(crate) property: Property,
}

/// Everything that the channels of a file point at.
#[derive(Debug, Default)]
pub(crate) struct Pointed {
    /// By the number of the animation and of the channel. Channels that are left out have none.
    pub(crate) targets: BTreeMap<(usize, usize), Target>,
    /// JSON of the items that are pointed at, as the file has them.
    pub(crate) items: BTreeMap<Item, Value>,
}

#[derive(Deserialize)]
struct PointerJson {
    pointer: String,
}

/// Reads what every channel points at.
pub(crate) fn read_all(
    document: &Document,
    warnings: &mut Warnings,
) -> Result<Pointed, SceneError> {
    let mut reader = Reader { document, items: BTreeMap::new(), absent: None };
    let mut targets = BTreeMap::new();
    for (&(animation, channel), given) in &document.pointers {
        let path = format!("animations[{animation}].channels[{channel}]");
        let place = format!("{path}.target.extensions.{POINTER}.pointer");
        let pointer = text_of(document, given, &path)?;
        let shown = shortened(&pointer, SHOWN_CHARS_MAX);
        let wrong = |problem: String| document.invalid(&place, format!("{shown:?} {problem}"));
        let tokens = tokens_of(&pointer).map_err(wrong)?;
        match reader.resolve(&tokens).map_err(wrong)? {
            Some(target) => {
                if let Some(name) = reader.absent.take() {
                    warnings.add(format!(
                        "{path} moves {shown:?}, but {name} is not in the file there; it is taken \
                         as empty"
                    ));
                }
                targets.insert((animation, channel), target);
            }
            None => warnings.add(format!(
                "{path} moves {shown:?}, which Tessera does not show; it stands still"
            )),
        }
    }
    Ok(Pointed { targets, items: reader.items })
}

/// Returns the pointer of a channel, whose other members are checked.
fn text_of(document: &Document, given: &PointerChannel, path: &str) -> Result<String, SceneError> {
    if given.has_node {
        let problem = format!("must be left out where {POINTER} says what moves");
        return Err(document.invalid(format!("{path}.target.node"), problem));
    }
    if given.path.as_ref().and_then(Value::as_str) != Some("pointer") {
        let problem = format!("must be \"pointer\" where {POINTER} says what moves");
        return Err(document.invalid(format!("{path}.target.path"), problem));
    }
    let json: PointerJson = serde_json::from_value(given.json.clone()).map_err(|error| {
        document.invalid(format!("{path}.target.extensions.{POINTER}"), error.to_string())
    })?;
    Ok(json.pointer)
}

/// Splits a pointer into its members.
fn tokens_of(pointer: &str) -> Result<Vec<String>, String> {
    let Some(rest) = pointer.strip_prefix('/') else {
        return Err("is not a JSON pointer to a property; it must begin with /".into());
    };
    let tokens = rest.split('/').map(|token| {
        let mut parts = token.split('~');
        let mut text = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (sign, rest) = match part.as_bytes().first() {
                Some(b'0') => ('~', &part[1..]),
                Some(b'1') => ('/', &part[1..]),
                _ => return Err("is not a JSON pointer; after ~ it needs 0 or 1".to_owned()),
            };
            text.push(sign);
            text.push_str(rest);
        }
        Ok(text)
    });
    tokens.collect()
}

struct Reader<'a> {
    document: &'a Document,
    items: BTreeMap<Item, Value>,
    /// Extension that the last pointer leads into and the file leaves out.
    absent: Option<String>,
}

impl Reader<'_> {
    /// Returns what the members of a pointer name; None if it is something that is not shown.
    fn resolve(&mut self, tokens: &[String]) -> Result<Option<Target>, String> {
        let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
        let root = &self.document.root;
        let found = match tokens.as_slice() {
            ["nodes", index, path @ ..] => {
                let node = number(index, "nodes", root.nodes.len())?;
                self.of_node(node, path)?
            }
            ["meshes", index, path @ ..] => {
                let mesh = number(index, "meshes", root.meshes.len())?;
                match path {
                    ["weights"] => Some(Target::MeshWeights(mesh)),
                    ["weights", index] => Some(Target::MeshWeight(mesh, weight(index)?)),
                    _ => None,
                }
            }
            ["materials", index, path @ ..] => {
                let item = number(index, "materials", root.materials.len())?;
                self.of_item(Item::Material(item), path)?
            }
            ["cameras", index, path @ ..] => {
                let item = number(index, "cameras", root.cameras.len())?;
                self.of_item(Item::Camera(item), path)?
            }
            ["extensions", "KHR_lights_punctual", "lights", index, path @ ..] => {
                let item = number(index, "lights", lights(self.document).len())?;
                self.of_item(Item::Light(item), path)?
            }
            _ => None,
        };
        match found {
            Some(target) => Ok(Some(target)),
            None if is_foreign(&tokens) => Ok(None),
            None => Err(unknown(&tokens)),
        }
    }

    fn of_node(&mut self, node: usize, path: &[&str]) -> Result<Option<Target>, String> {
        Ok(Some(match path {
            ["translation"] => Target::Translation(node),
            ["rotation"] => Target::Rotation(node),
            ["scale"] => Target::Scale(node),
            ["weights"] => Target::Weights(node),
            ["weights", index] => Target::Weight(node, weight(index)?),
            ["extensions", "KHR_node_visibility", "visible"] => {
                self.expect_extension(node, "KHR_node_visibility");
                Target::Visible(node)
            }
            ["extensions", name, flag] if UNSEEN_FLAGS.contains(&(*name, *flag)) => {
                self.expect_extension(node, name);
                Target::Unseen(node, path.join("/"))
            }
            _ => return Ok(None),
        }))
    }

    fn expect_extension(&mut self, node: usize, name: &str) {
        let extensions = self.document.root.nodes[node].extensions.as_ref();
        if !extensions.is_some_and(|extensions| extensions.others.contains_key(name)) {
            self.absent = Some(name.to_owned());
        }
    }

    fn of_item(&mut self, item: Item, path: &[&str]) -> Result<Option<Target>, String> {
        // An escaped / is part of a name, and no known name has one.
        if path.iter().any(|member| member.contains('/')) {
            return Ok(None);
        }
        let joined = path.join("/");
        let property = match item {
            Item::Material(_) => of_material(&joined),
            Item::Light(_) => of_light(&joined),
            Item::Camera(_) => of_camera(&joined),
        };
        let Some((path, property)) = property.map(|property| (joined, property)).or_else(|| {
            // Blender joins the spot and its angles by a dot.
            let path = path.join("/").replacen("spot.", "spot/", 1);
            of_light(&path).filter(|_| matches!(item, Item::Light(_))).map(|found| (path, found))
        }) else {
            return Ok(None);
        };
        if !self.items.contains_key(&item) {
            self.items.insert(item, json_of(self.document, item)?);
        }
        self.expect(item, &path, property)?;
        Ok(Some(Target::Value(Place { item, path, property })))
    }

    /// Checks that the file has the object with a property, or can have it. Blender points into
    /// extensions of materials that it leaves out.
    fn expect(&mut self, item: Item, path: &str, property: Property) -> Result<(), String> {
        let (parents, last) = path.rsplit_once('/').unwrap_or(("", path));
        let mut object = self.items.get_mut(&item);
        let mut before = "";
        for parent in parents.split('/').filter(|parent| !parent.is_empty()) {
            let found = object.and_then(Value::as_object_mut);
            let found = found.ok_or_else(|| format!("needs an object in {before:?}"))?;
            let is_extension = before == "extensions";
            let may_be_empty = parent == "extensions" || (is_extension && parent != NOT_NEUTRAL);
            if !found.contains_key(parent) {
                if !may_be_empty {
                    return Err(format!("needs {parent:?}, which the file does not have there"));
                }
                if is_extension {
                    self.absent = Some(parent.to_owned());
                }
                found.insert(parent.to_owned(), json!({}));
            }
            (object, before) = (found.get_mut(parent), parent);
        }
        let has_it = object.is_some_and(|object| object.get(last).is_some());
        match has_it || property.has_default {
            true => Ok(()),
            false => Err(format!("moves {last:?}, which has no default and is not in the file")),
        }
    }
}

/// Returns the JSON of the file's punctual lights.
fn lights(document: &Document) -> &[Value] {
    let extensions = document.root.extensions.as_ref();
    let lights = extensions.and_then(|all| all.others.get("KHR_lights_punctual")?.get("lights"));
    lights.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn json_of(document: &Document, item: Item) -> Result<Value, String> {
    fn value(of: impl Serialize) -> Result<Value, String> {
        serde_json::to_value(of).map_err(|error| format!("names what cannot be read: {error}"))
    }
    match item {
        Item::Material(index) => value(&document.root.materials[index]),
        Item::Camera(index) => value(&document.root.cameras[index]),
        Item::Light(index) => Ok(lights(document)[index].clone()),
    }
}

/// Reads the index of an element.
fn index(token: &str) -> Option<usize> {
    let is_plain = token == "0" || !token.starts_with('0');
    let is_index = is_plain && !token.is_empty() && token.bytes().all(|c| c.is_ascii_digit());
    token.parse::<u32>().ok().filter(|_| is_index).map(|index| index as usize)
}

fn number(token: &str, array: &str, count: usize) -> Result<usize, String> {
    if READ_ONLY.contains(&token) {
        return Err(unknown(&[array, token]));
    }
    let shown = shortened(token, SHOWN_CHARS_MAX);
    let found = index(token).ok_or_else(|| format!("has {shown:?} where {array} need a number"))?;
    match found < count {
        true => Ok(found),
        false => Err(format!("points at {array}[{found}], but there are {count} of them")),
    }
}

fn weight(token: &str) -> Result<usize, String> {
    let shown = shortened(token, SHOWN_CHARS_MAX);
    let wrong = || format!("has {shown:?} where a weight needs its number");
    index(token).ok_or_else(|| match token {
        "length" => unknown(&["weights", token]),
        _ => wrong(),
    })
}

/// Returns whether a pointer leads into what Tessera does not read: `extras`, or an extension that
/// it does not apply.
fn is_foreign(tokens: &[&str]) -> bool {
    let into = |pair: &[&str]| pair[0] == "extensions" && !is_applied(pair[1]);
    tokens.contains(&"extras") || tokens.windows(2).any(into)
}

/// Returns what is wrong with a pointer to something that no animation can move.
fn unknown(tokens: &[&str]) -> String {
    let is_length = |token: &&str| token.ends_with(".length");
    if tokens.iter().any(|token| READ_ONLY.contains(token)) || tokens.iter().any(is_length) {
        return "is read-only: names, numbers of things and what belongs together cannot be \
            animated"
            .into();
    }
    let is_element = tokens.len() > 1 && tokens.last().is_some_and(|last| index(last).is_some());
    match is_element {
        true => "is no property; point at a whole vector, or at one property of a thing".into(),
        false => "is no property that glTF can animate; see the Object Model of glTF 2.0".into(),
    }
}

/// Sets properties of an item.
pub(crate) fn set(item: &mut Value, path: &str, numbers: &[f64]) {
    let (parents, last) = path.rsplit_once('/').unwrap_or(("", path));
    let mut object = item;
    for parent in parents.split('/').filter(|parent| !parent.is_empty()) {
        match object.get_mut(parent) {
            Some(found) => object = found,
            None => return,
        }
    }
    if let Some(object) = object.as_object_mut() {
        put(object, last, numbers);
    }
}

fn put(object: &mut Map<String, Value>, name: &str, numbers: &[f64]) {
    let value = match numbers {
        [number] => Value::from(*number),
        _ => Value::from(numbers.to_vec()),
    };
    object.insert(name.to_owned(), value);
}

impl Place {
    /// Returns the numbers as the property takes them.
    pub(crate) fn clamp(&self, numbers: &[f64]) -> Vec<f64> {
        numbers.iter().map(|number| self.property.range.clamp(*number)).collect()
    }

    /// Returns a number that the property does not take.
    pub(crate) fn refused(&self, numbers: &[f64]) -> Option<(f64, Range)> {
        let range = self.property.range;
        numbers.iter().find(|number| !range.holds(**number)).map(|number| (*number, range))
    }
}

/// Puts an item's JSON in place of that of the file.
pub(crate) fn replace(document: &mut Document, item: Item, json: Value) -> Result<(), SceneError> {
    let failed = match item {
        Item::Material(index) => serde_json::from_value(json)
            .map(|material| document.root.materials[index] = material)
            .map_err(|error| (format!("materials[{index}]"), error)),
        Item::Camera(index) => serde_json::from_value(json)
            .map(|camera| document.root.cameras[index] = camera)
            .map_err(|error| (format!("cameras[{index}]"), error)),
        Item::Light(index) => {
            let extensions = document.root.extensions.as_mut();
            let lights = extensions.and_then(|all| all.others.get_mut("KHR_lights_punctual"));
            let lights = lights.and_then(|object| object.get_mut("lights"));
            if let Some(light) = lights.and_then(|lights| lights.get_mut(index)) {
                *light = json;
            }
            Ok(())
        }
    };
    failed.map_err(|(path, error)| document.invalid(path, error.to_string()))
}
