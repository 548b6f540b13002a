//! Materials, lights, cameras and visible nodes at one moment. An animated value is set in the
//! JSON, and what depends on it is read as that of a file which has it. Owns no geometry.

use crate::camera::{self, ShownCamera};
use crate::document::Document;
use crate::error::SceneError;
use crate::light::emitter;
use crate::light::punctual::{self, Punctual};
use crate::material::{self, medium};
use crate::mesh::geometry::UvSets;
use crate::mesh::{TangentFrame, tangent_frame};
use crate::node::Forest;
use crate::node::animation::{self, Clip, played};
use crate::node::curve::FrameTime;
use crate::options::LightUnits;
use crate::pointer::{self, Item, Place, Target};
use crate::report::warning::Warnings;
use crate::texture::{TextureSet, TextureTable};
use crate::working_space::WorkingSpace;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use tessera_layout::{Array, Layers, Material, Medium};

/// What a frame shows, apart from its geometry.
#[derive(Clone, Debug)]
pub(crate) struct Values {
    pub(crate) materials: Array<Material>,
    /// Layers that extensions add to materials.
    pub(crate) layers: Array<Layers>,
    /// Media that closed surfaces enclose, as kernels see them.
    pub(crate) media: Array<Medium>,
    /// UV sets of every material, the default one included.
    pub(crate) uv_sets: Vec<UvSets>,
    pub(crate) cameras: Vec<ShownCamera>,
    pub(crate) punctual: Vec<Punctual>,
    /// Visible nodes of the scene, in its order.
    pub(crate) shown: Vec<usize>,
    /// Node and index into `punctual` of the visible lights, in the same order.
    pub(crate) shown_lights: Vec<(usize, usize)>,
}

impl Values {
    /// Reads the values that the file gives, in its own space, and requests textures from `table`.
    pub(crate) fn read(
        document: &Document,
        forest: &Forest,
        (table, units): (&mut TextureTable, LightUnits),
        warnings: &mut Warnings,
    ) -> Result<Self, SceneError> {
        let (materials, layered) = material::read_all(document, &BTreeMap::new(), table, warnings)?;
        let punctual = punctual::read_all(document, units)?;
        let shown = forest.shown.clone();
        Ok(Self {
            materials: materials.into(),
            layers: layered.layers.into(),
            media: layered.media.into(),
            uv_sets: layered.uv_sets,
            cameras: camera::shown(document, forest)?,
            shown_lights: lights_of(document, forest, &shown, punctual.len())?,
            punctual,
            shown,
        })
    }

    /// Changes the media of the file's own space to those of a working space.
    pub(crate) fn enter(&mut self, space: &WorkingSpace) {
        self.media = medium::all_within(self.media.to_vec(), space).into();
    }

    /// Returns what a material's tangents run along.
    pub(crate) fn tangent_frame(&self, material: usize) -> Option<TangentFrame> {
        let material = &self.materials[material];
        let layers = self.layers.get(material.layers as usize).filter(|_| material.layers != 0);
        tangent_frame(material, layers)
    }

    /// Returns the number of visible lights with a place, which are the first lights of a frame.
    pub(crate) fn placed_lights(&self) -> u32 {
        let placed = |(_, light): &&(usize, usize)| self.punctual[*light].is_placed();
        self.shown_lights.iter().filter(placed).count() as u32
    }

    /// Returns whether the triangles of a frame, with their flags, tangents and lights, are the
    /// same with either values. `turning` are the materials whose tangents turn over time.
    pub(crate) fn has_triangles_of(&self, other: &Self, turning: &BTreeSet<u32>) -> bool {
        let is_alike = |(a, b): (&Material, &Material)| {
            (a.flags, a.alpha_mode, a.emission) == (b.flags, b.alpha_mode, b.emission)
                && a.emission_texture == b.emission_texture
        };
        let turns_alike = |material: &u32| {
            let material = *material as usize;
            self.tangent_frame(material) == other.tangent_frame(material)
        };
        self.shown == other.shown
            && self.shown_lights == other.shown_lights
            && self.materials.iter().zip(&*other.materials).all(is_alike)
            && turning.iter().all(turns_alike)
    }

    /// Shares arrays with other values where they are equal.
    fn share(mut self, other: &Self) -> Self {
        fn share<T>(own: &mut Array<T>, other: &Array<T>)
        where
            Array<T>: PartialEq,
        {
            if *own == *other {
                *own = other.clone();
            }
        }
        share(&mut self.materials, &other.materials);
        share(&mut self.layers, &other.layers);
        share(&mut self.media, &other.media);
        self
    }
}

fn lights_of(
    document: &Document,
    forest: &Forest,
    shown: &[usize],
    light_count: usize,
) -> Result<Vec<(usize, usize)>, SceneError> {
    let mut lights = Vec::new();
    for &node in shown {
        let Some(light) = forest.nodes[node].light else { continue };
        if light >= light_count {
            let path = format!("nodes[{node}].extensions.KHR_lights_punctual.light");
            return Err(
                document.invalid(path, format!("names light {light}, but there are {light_count}"))
            );
        }
        lights.push((node, light));
    }
    Ok(lights)
}

/// What the values of moving things are read from.
#[derive(Debug)]
pub(crate) struct Moving {
    document: Document,
    /// Every texture that a frame may want.
    table: TextureTable,
    units: LightUnits,
    /// JSON of the items that move, as the file has them.
    items: BTreeMap<Item, Value>,
    /// Materials whose tangents turn over time.
    pub(crate) turning: BTreeSet<u32>,
    /// UV sets of the materials that move: those of all textures that they can ever want.
    uv_sets: BTreeMap<usize, UvSets>,
}

/// What decisions for all frames depend on, where values move.
#[derive(Debug, Default)]
pub(crate) struct Lasting {
    /// Nodes that are visible in a frame, or may be.
    pub(crate) shown: Vec<usize>,
    /// Materials that move, with every layer that they can have.
    richest: BTreeMap<usize, (Material, Layers)>,
    /// Materials whose tangents turn over time.
    turning: BTreeSet<u32>,
}

impl Moving {
    /// Returns what moves by the played clips, if that is more than nodes and morph weights.
    /// `items` are the items that any clip points at.
    pub(crate) fn of(
        document: &Document,
        clips: &[Clip],
        items: &BTreeMap<Item, Value>,
        units: LightUnits,
    ) -> Option<Self> {
        let moves = |target: &Target| matches!(target, Target::Value(_) | Target::Visible(_));
        if !played(clips).any(|channel| moves(&channel.target)) {
            return None;
        }
        let moved: BTreeSet<Item> = places(clips).map(|place| place.item).collect();
        let items = items.iter().filter(|(item, _)| moved.contains(item));
        Some(Self {
            document: document.without_bytes(),
            table: TextureTable::default(),
            units,
            items: items.map(|(item, json)| (*item, json.clone())).collect(),
            turning: places(clips).filter_map(turning_material).collect(),
            uv_sets: BTreeMap::new(),
        })
    }

    /// Finds what holds over all frames, and requests textures that the file's own values do not
    /// want. A material wants all that it can ever want where every moving value is 1. Its vertices
    /// have the UV sets of all that in every frame, with the values in `rest` too.
    pub(crate) fn lasting(
        &mut self,
        forest: &Forest,
        (clips, rest): (&[Clip], &mut Values),
        table: &mut TextureTable,
        warnings: &mut Warnings,
    ) -> Result<Lasting, SceneError> {
        let ones: Vec<(&Place, Vec<f64>)> =
            places(clips).map(|place| (place, vec![1.0; place.property.width])).collect();
        let document = self.document_with(&ones)?;
        let mut richest = BTreeMap::new();
        for item in self.items.keys() {
            if let Item::Material(index) = *item {
                let (material, added, uv_sets) =
                    material::read_one(&document, (index, None), table, warnings)?;
                let layers = added.map_or(Layers::NONE, |(layers, _)| layers);
                richest.insert(index, (material, layers));
                self.uv_sets.insert(index, uv_sets);
            }
        }
        self.read_materials(&self.document, (rest, &mut table.clone()))?;
        let shows = |channel: &animation::Channel| match channel.target {
            Target::Visible(node) => Some((node, true)),
            _ => None,
        };
        let visible = played(clips).filter_map(shows).collect();
        let turning = self.turning.clone();
        Ok(Lasting { shown: forest.shown_with(&visible), richest, turning })
    }

    /// Reads the materials of a document into `values`, in the file's own space. `table` has all of
    /// their textures.
    fn read_materials(
        &self,
        document: &Document,
        (values, table): (&mut Values, &mut TextureTable),
    ) -> Result<(), SceneError> {
        let mut unheard = Warnings::default();
        let (materials, layered) =
            material::read_all(document, &self.uv_sets, table, &mut unheard)?;
        values.materials = materials.into();
        values.layers = layered.layers.into();
        values.media = layered.media.into();
        values.uv_sets = layered.uv_sets;
        Ok(())
    }

    /// Keeps the textures that were decoded.
    pub(crate) fn with_textures(self, table: TextureTable) -> Self {
        Self { table, ..self }
    }

    /// Returns the values at a time. `rest` are those of the file.
    pub(crate) fn at(
        &self,
        forest: &Forest,
        clips: &[Clip],
        rest: &Values,
        time: FrameTime,
    ) -> Result<Values, SceneError> {
        let values = animation::values(clips, time);
        let read = || -> Result<Values, SceneError> {
            let document = self.document_with(&values)?;
            let mut now = rest.clone();
            if self.moves(|item| matches!(item, Item::Material(_))) {
                self.read_materials(&document, (&mut now, &mut self.table.clone()))?;
                now.enter(&forest.space);
            }
            if self.moves(|item| matches!(item, Item::Light(_))) {
                now.punctual = punctual::read_all(&document, self.units)?;
            }
            if self.moves(|item| matches!(item, Item::Camera(_))) {
                now.cameras = camera::shown(&document, forest)?;
            }
            now.shown = forest.shown_with(&animation::visible(clips, time));
            now.shown_lights = lights_of(&document, forest, &now.shown, now.punctual.len())?;
            Ok(now.share(rest))
        };
        read().map_err(|error| match error {
            SceneError::Invalid { file, path, problem } => {
                let problem = format!("{problem} (as animated, at {:.3} s)", time.secs);
                SceneError::Invalid { file, path, problem }
            }
            other => other,
        })
    }

    fn moves(&self, kind: impl Fn(&Item) -> bool) -> bool {
        self.items.keys().any(kind)
    }

    /// Returns the document with these values in place of those of the file.
    fn document_with(&self, values: &[(&Place, Vec<f64>)]) -> Result<Document, SceneError> {
        let mut document = self.document.without_bytes();
        let mut items = self.items.clone();
        for (place, numbers) in values {
            if let Some(item) = items.get_mut(&place.item) {
                pointer::set(item, &place.path, numbers);
            }
        }
        for (item, json) in items {
            pointer::replace(&mut document, item, json)?;
        }
        Ok(document)
    }
}

impl Lasting {
    /// Returns what holds where no values move.
    pub(crate) fn of(forest: &Forest) -> Self {
        Self { shown: forest.shown.clone(), ..Self::default() }
    }

    /// Returns what each material's tangents run along, when meshes are read. Tangents that turn
    /// over time are read as they are before.
    pub(crate) fn tangent_frames(&self, rest: &Values) -> Vec<Option<TangentFrame>> {
        let mut frames: Vec<_> =
            (0..rest.materials.len()).map(|material| rest.tangent_frame(material)).collect();
        for &material in &self.turning {
            let (richest, layers) = &self.richest[&(material as usize)];
            frames[material as usize] =
                tangent_frame(richest, Some(layers)).map(|(set, _)| (set, None));
        }
        frames
    }

    /// Returns whether a material emits in a frame, or may.
    pub(crate) fn emits(&self, material: u32, rest: &Values, textures: &TextureSet) -> bool {
        let richest = self.richest.get(&(material as usize)).map(|(richest, _)| richest);
        let emits = |material: &Material| emitter::emits(material, textures);
        emits(&rest.materials[material as usize]) || richest.is_some_and(emits)
    }

    /// Returns whether values may change triangles: their count, flags, tangents or lights.
    pub(crate) fn moves_triangles(&self, clips: &[Clip]) -> bool {
        let of_material = |place: &Place| match place.item {
            Item::Material(index) => {
                place.path.contains("emissive") || self.changes_triangles(index as u32)
            }
            Item::Light(_) | Item::Camera(_) => false,
        };
        let is_flag = |channel: &animation::Channel| matches!(channel.target, Target::Visible(_));
        places(clips).any(of_material) || played(clips).any(is_flag)
    }

    /// Returns whether the triangles of a material may change over time, while nothing moves.
    pub(crate) fn changes_triangles(&self, material: u32) -> bool {
        let lets_light_in =
            |layers: &Layers| layers.transmission > 0.0 || layers.diffuse_transmission > 0.0;
        let richest = self.richest.get(&(material as usize));
        self.turning.contains(&material) || richest.is_some_and(|(_, layers)| lets_light_in(layers))
    }
}

/// Returns what the played clips move in materials, lights and cameras.
fn places(clips: &[Clip]) -> impl Iterator<Item = &Place> {
    played(clips).filter_map(|channel| match &channel.target {
        Target::Value(place) => Some(place),
        _ => None,
    })
}

/// Returns the material of a place that decides how tangents run.
fn turning_material(place: &Place) -> Option<u32> {
    const TEXTURES: [&str; 3] = [
        "normalTexture",
        "extensions/KHR_materials_clearcoat/clearcoatNormalTexture",
        "extensions/KHR_materials_anisotropy/anisotropyTexture",
    ];
    const FACTORS: [&str; 2] = [
        "extensions/KHR_materials_clearcoat/clearcoatFactor",
        "extensions/KHR_materials_anisotropy/anisotropyStrength",
    ];
    let Item::Material(index) = place.item else { return None };
    let transform = place.path.rsplit_once("/extensions/KHR_texture_transform/");
    let turns = transform.is_some_and(|(texture, _)| TEXTURES.contains(&texture));
    (turns || FACTORS.contains(&place.path.as_str())).then_some(index as u32)
}
