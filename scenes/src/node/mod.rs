//! The forest of nodes: parents, order and transforms. Knows the content of nodes only by number.

pub(crate) mod animation;
pub(crate) mod curve;

use crate::document::Document;
use crate::error::SceneError;
use crate::math::{Affine, Quat, Vec3, widen};
use crate::working_space::WorkingSpace;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Colour that changes nothing.
pub(crate) const WHITE: [f32; 4] = [1.0; 4];

/// Translation, rotation and scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Trs {
    pub(crate) translation: Vec3,
    pub(crate) rotation: Quat,
    pub(crate) scale: Vec3,
}

/// Transform of a node relative to its parent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Local {
    Matrix(Affine),
    Trs(Trs),
}

impl Local {
    pub(crate) fn affine(&self) -> Affine {
        match self {
            Self::Matrix(matrix) => *matrix,
            Self::Trs(trs) => Affine::from_trs(trs.translation, trs.rotation, trs.scale),
        }
    }
}

/// A node whose indices have been checked.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) parent: Option<usize>,
    pub(crate) local: Local,
    pub(crate) mesh: Option<usize>,
    pub(crate) skin: Option<usize>,
    pub(crate) camera: Option<usize>,
    pub(crate) light: Option<usize>,
    /// Morph weights, if the node has its own.
    pub(crate) weights: Option<Vec<f64>>,
    /// Places of EXT_mesh_gpu_instancing, relative to the node. One identity if the node does not
    /// use it.
    pub(crate) instances: Vec<Affine>,
    /// Colour of each of these places, which multiplies its vertex colours. Empty if all are white.
    pub(crate) instance_colors: Vec<[f32; 4]>,
}

impl Node {
    /// Returns the colour of an instance.
    pub(crate) fn instance_color(&self, instance: usize) -> [f32; 4] {
        self.instance_colors.get(instance).copied().unwrap_or(WHITE)
    }
}

/// All nodes, and those of the scene.
#[derive(Debug, Default)]
pub(crate) struct Forest {
    pub(crate) nodes: Vec<Node>,
    /// Every node, parents before children.
    parents_first: Vec<usize>,
    /// Nodes of the scene, depth first in the file's order. This is the canonical order of
    /// everything.
    pub(crate) in_scene: Vec<usize>,
    /// The visible ones of them, in the same order. Hidden nodes still carry cameras, joints and
    /// their children.
    pub(crate) shown: Vec<usize>,
    /// Which nodes are hidden by themselves.
    hidden: Vec<bool>,
    /// Space of the world transforms.
    pub(crate) space: WorkingSpace,
}

#[derive(Deserialize)]
struct Instancing {
    attributes: BTreeMap<String, u32>,
}

#[derive(Deserialize)]
struct PunctualRef {
    light: u32,
}

#[derive(Deserialize)]
struct Visibility {
    visible: Option<bool>,
}

/// Reads all nodes and finds the scene to show: the default one, or otherwise the first.
pub(crate) fn read(document: &Document, nodes_max: u64) -> Result<Forest, SceneError> {
    let mut left = nodes_max;
    let mut nodes = Vec::with_capacity(document.root.nodes.len());
    for index in 0..document.root.nodes.len() {
        let mut node = read_node(document, index)?;
        (node.instances, node.instance_colors) = instances_of(document, index, left)?;
        left = left.checked_sub(node.instances.len() as u64).ok_or_else(|| {
            document
                .invalid("nodes", format!("nodes and instances together are more than {nodes_max}"))
        })?;
        nodes.push(node);
    }
    arrange(document, nodes)
}

/// Reads all nodes without their instances, which are in buffers.
pub(crate) fn read_without_instances(document: &Document) -> Result<Forest, SceneError> {
    let nodes = 0..document.root.nodes.len();
    let nodes = nodes.map(|index| read_node(document, index)).collect::<Result<_, _>>()?;
    arrange(document, nodes)
}

/// Links the nodes, and finds the scene to show.
fn arrange(document: &Document, mut nodes: Vec<Node>) -> Result<Forest, SceneError> {
    link(document, &mut nodes)?;
    let roots: Vec<usize> = (0..nodes.len()).filter(|node| nodes[*node].parent.is_none()).collect();
    let parents_first = depth_first(document, &roots);
    if parents_first.len() < nodes.len() {
        // A node that no root reaches depends on a cycle. Walking up from it leads to the cycle.
        let reached: std::collections::BTreeSet<usize> = parents_first.iter().copied().collect();
        let mut node = (0..nodes.len()).find(|node| !reached.contains(node)).unwrap_or(0);
        for _ in 0..nodes.len() {
            node = nodes[node].parent.unwrap_or(node);
        }
        let problem = format!("node {:?} is its own ancestor; remove the cycle", nodes[node].name);
        return Err(document.invalid(format!("nodes[{node}].children"), problem));
    }
    let in_scene = depth_first(document, &scene_roots(document, &nodes)?);
    let hidden = read_hidden(document)?;
    let mut forest = Forest { nodes, parents_first, in_scene, hidden, ..Forest::default() };
    forest.shown = forest.shown_with(&BTreeMap::new());
    Ok(forest)
}

impl Forest {
    /// Returns the world transforms of all nodes in the working space, given each transform
    /// relative to the parent.
    pub(crate) fn worlds(&self, locals: &[Local]) -> Vec<Affine> {
        let mut worlds = vec![Affine::IDENTITY; self.nodes.len()];
        for &index in &self.parents_first {
            let local = locals[index].affine();
            worlds[index] = match self.nodes[index].parent {
                Some(parent) => worlds[parent].after(&local),
                None => local,
            };
        }
        if self.space != WorkingSpace::FILE {
            worlds.iter_mut().for_each(|world| *world = self.space.place(world));
        }
        worlds
    }

    /// Gives nodes these translations, which have more digits than those that they have.
    pub(crate) fn sharpen(&mut self, translations: Vec<Option<Vec3>>) {
        for (node, precise) in self.nodes.iter_mut().zip(translations) {
            let Some(precise) = precise.filter(|point| point.iter().all(|c| c.is_finite())) else {
                continue;
            };
            match &mut node.local {
                Local::Matrix(matrix) => matrix.offset = precise,
                Local::Trs(trs) => trs.translation = precise,
            }
        }
    }

    /// Returns the visible nodes of the scene in its order, where `visible` says otherwise than the
    /// file about some nodes.
    pub(crate) fn shown_with(&self, visible: &BTreeMap<usize, bool>) -> Vec<usize> {
        let mut hidden = self.hidden.clone();
        visible.iter().for_each(|(node, visible)| hidden[*node] = !visible);
        let hidden = self.spread(hidden);
        self.in_scene.iter().copied().filter(|node| !hidden[*node]).collect()
    }

    /// Marks all nodes below marked ones: which nodes move when some do, or which are hidden.
    pub(crate) fn spread(&self, mut marked: Vec<bool>) -> Vec<bool> {
        for &index in &self.parents_first {
            if let Some(parent) = self.nodes[index].parent {
                marked[index] |= marked[parent];
            }
        }
        marked
    }
}

/// Reads from KHR_node_visibility which nodes are not visible themselves.
fn read_hidden(document: &Document) -> Result<Vec<bool>, SceneError> {
    let nodes = document.root.nodes.iter().enumerate().map(|(index, json)| {
        let extensions = json.extensions.as_ref().map(|extensions| &extensions.others);
        let visibility: Option<Visibility> =
            document.extension(extensions, "KHR_node_visibility", &format!("nodes[{index}]"))?;
        Ok(visibility.and_then(|visibility| visibility.visible) == Some(false))
    });
    nodes.collect()
}

/// Reads a node with one instance, at its own place.
fn read_node(document: &Document, index: usize) -> Result<Node, SceneError> {
    let json = &document.root.nodes[index];
    let path = format!("nodes[{index}]");
    let root = &document.root;
    if let Some(mesh) = json.mesh {
        document.item(&root.meshes, mesh, &format!("{path}.mesh"), "meshes")?;
    }
    if let Some(skin) = json.skin {
        document.item(&root.skins, skin, &format!("{path}.skin"), "skins")?;
    }
    if let Some(camera) = json.camera {
        document.item(&root.cameras, camera, &format!("{path}.camera"), "cameras")?;
    }
    let extensions = json.extensions.as_ref().map(|extensions| &extensions.others);
    let light: Option<PunctualRef> =
        document.extension(extensions, "KHR_lights_punctual", &path)?;
    let weights: Option<Vec<f64>> =
        json.weights.as_ref().map(|weights| weights.iter().copied().map(f64::from).collect());
    if !weights.iter().flatten().all(|weight| weight.is_finite()) {
        return Err(
            document.invalid(format!("{path}.weights"), "holds a number that is not finite")
        );
    }
    Ok(Node {
        name: json.name.clone().unwrap_or_default(),
        parent: None,
        local: read_local(document, index)?,
        mesh: json.mesh.map(|mesh| mesh.value()),
        skin: json.skin.map(|skin| skin.value()),
        camera: json.camera.map(|camera| camera.value()),
        light: light.map(|light| light.light as usize),
        weights,
        instances: vec![Affine::IDENTITY],
        instance_colors: Vec::new(),
    })
}

fn instances_of(
    document: &Document,
    index: usize,
    instances_max: u64,
) -> Result<(Vec<Affine>, Vec<[f32; 4]>), SceneError> {
    let path = format!("nodes[{index}]");
    let extensions = document.root.nodes[index].extensions.as_ref();
    let instancing: Option<Instancing> = document.extension(
        extensions.map(|extensions| &extensions.others),
        "EXT_mesh_gpu_instancing",
        &path,
    )?;
    match instancing {
        Some(instancing) => read_instances(document, &instancing, &path, instances_max),
        None => Ok((vec![Affine::IDENTITY], Vec::new())),
    }
}

fn read_local(document: &Document, index: usize) -> Result<Local, SceneError> {
    let json = &document.root.nodes[index];
    let local = match json.matrix {
        Some(matrix) => Local::Matrix(Affine::from_columns(matrix)),
        None => Local::Trs(Trs {
            translation: widen(json.translation.unwrap_or([0.0; 3])),
            rotation: json
                .rotation
                .map_or([0.0, 0.0, 0.0, 1.0], |rotation| rotation.0.map(f64::from)),
            scale: widen(json.scale.unwrap_or([1.0; 3])),
        }),
    };
    if local.affine().is_finite() {
        Ok(local)
    } else {
        Err(document
            .invalid(format!("nodes[{index}]"), "its transform is not finite; export it again"))
    }
}

/// Reads the places of instances and their colours, which are an attribute that the extension does
/// not name and that exporters and viewers agree on.
fn read_instances(
    document: &Document,
    instancing: &Instancing,
    path: &str,
    instances_max: u64,
) -> Result<(Vec<Affine>, Vec<[f32; 4]>), SceneError> {
    let path = format!("{path}.extensions.EXT_mesh_gpu_instancing.attributes");
    let mut count = None;
    for (name, accessor) in &instancing.attributes {
        let place = format!("{path}.{name}");
        let have = document.accessor_count(*accessor as usize, &place)?;
        document.budget.spend(have, size_of::<Affine>() as u64, &document.file, &place)?;
        if have > instances_max || count.is_some_and(|count| count != have) {
            let problem = format!(
                "{have} instances are more than {instances_max}, or not as many as others say"
            );
            return Err(document.invalid(place, problem));
        }
        count = Some(have);
    }
    let count = count.unwrap_or(0) as usize;
    let vec3 = |name: &str, default: f32| match instancing.attributes.get(name) {
        Some(accessor) => document.floats::<3>(*accessor as usize, &format!("{path}.{name}")),
        None => Ok(vec![[default; 3]; count]),
    };
    let (translations, scales) = (vec3("TRANSLATION", 0.0)?, vec3("SCALE", 1.0)?);
    let rotations = match instancing.attributes.get("ROTATION") {
        Some(accessor) => document.floats::<4>(*accessor as usize, &format!("{path}.ROTATION"))?,
        None => vec![[0.0, 0.0, 0.0, 1.0]; count],
    };
    let mut colors = match instancing.attributes.get("_COLOR_0") {
        Some(accessor) => document.colors(*accessor as usize, &format!("{path}._COLOR_0"), 1.0)?,
        None => Vec::new(),
    };
    if colors.iter().all(|color| *color == WHITE) {
        colors.clear();
    }
    let place = |i: usize| {
        Affine::from_trs(widen(translations[i]), rotations[i].map(f64::from), widen(scales[i]))
    };
    Ok(((0..count).map(place).collect(), colors))
}

/// Sets every node's parent. Fails if a node has two.
fn link(document: &Document, nodes: &mut [Node]) -> Result<(), SceneError> {
    for (index, json) in document.root.nodes.iter().enumerate() {
        for (number, child) in json.children.iter().flatten().enumerate() {
            let path = format!("nodes[{index}].children[{number}]");
            let child = child.value();
            document.at(nodes, child, &path, "nodes")?;
            if let Some(other) = nodes[child].parent {
                let name = &nodes[child].name;
                let problem = format!(
                    "nodes[{child}] {name:?} is already a child of nodes[{other}]; copy it"
                );
                return Err(document.invalid(path, problem));
            }
            nodes[child].parent = Some(index);
        }
    }
    Ok(())
}

fn scene_roots(document: &Document, nodes: &[Node]) -> Result<Vec<usize>, SceneError> {
    let root = &document.root;
    if root.scenes.is_empty() {
        return Err(document.invalid("scenes", "the file has no scene; export it with one"));
    }
    let number = root.scene.map_or(0, |scene| scene.value());
    let scene = document.at(&root.scenes, number, "scene", "scenes")?;
    let mut roots = Vec::with_capacity(scene.nodes.len());
    let mut listed = vec![false; nodes.len()];
    for (entry, node) in scene.nodes.iter().enumerate() {
        let path = format!("scenes[{number}].nodes[{entry}]");
        let node = node.value();
        document.at(nodes, node, &path, "nodes")?;
        if let Some(parent) = nodes[node].parent {
            let problem =
                format!("nodes[{node}] is a child of nodes[{parent}]; a scene lists roots only");
            return Err(document.invalid(path, problem));
        }
        if std::mem::replace(&mut listed[node], true) {
            return Err(
                document.invalid(path, format!("nodes[{node}] is listed twice; remove one"))
            );
        }
        roots.push(node);
    }
    Ok(roots)
}

/// Returns the nodes depth first, with children in the file's order, without recursion. Each node
/// has at most one parent, so this ends.
fn depth_first(document: &Document, roots: &[usize]) -> Vec<usize> {
    let mut order = Vec::new();
    let mut stack: Vec<usize> = roots.iter().rev().copied().collect();
    while let Some(node) = stack.pop() {
        order.push(node);
        let children = document.root.nodes[node].children.iter().flatten();
        stack.extend(children.map(|child| child.value()).rev());
    }
    order
}
