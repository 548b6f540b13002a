//! A scene in the memory of a device: one range of memory with every array in it. Uploads nothing
//! itself.

use super::film::{FilmImages, Owner};
use super::hierarchy::CompressedBvh;
use super::params::{DeviceScene, MESH_ARRAYS, VIEW_ARRAYS};
use super::standing::{StandingTriangles, standing};
use crate::CheckedScene;
use bytemuck::{Pod, must_cast_slice};
use std::sync::Arc;
use tessera_layout::Array;

/// Arrays begin at multiples of this, like device allocations.
const ALIGNMENT: u64 = 256;

/// A piece of a [`SceneImage`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImagePart<'a> {
    /// Position in bytes from the image's start.
    pub offset: u64,
    /// Bytes of the piece. May be empty.
    pub bytes: &'a [u8],
    /// Parts of this process's images that have the same name and length have the same bytes.
    pub name: u64,
}

/// A checked scene laid out for a device. Clones are cheap. The arrays are the scene's own, except
/// for the hierarchy, and for the triangles of what stands still in a film, which are among the
/// scene's own here: a device walks them without a map and in fewer registers.
#[derive(Clone, Debug)]
pub struct SceneImage {
    scene: CheckedScene,
    standing: Option<Arc<StandingTriangles>>,
    hierarchy: Arc<CompressedBvh>,
    /// Where each array begins.
    arrays: [u64; ARRAYS],
    /// Where each piece begins, and its name.
    places: Vec<(u64, u64)>,
    bytes: u64,
}

/// Positions in [`pieces`] of the compressed hierarchy's two arrays, the materials' layers, the
/// media, and the instances with their meshes.
const HIERARCHY: usize = VIEW_ARRAYS;
const LAYERS: usize = HIERARCHY + 2;
const MEDIA: usize = LAYERS + 1;
const INSTANCES: usize = MEDIA + 1;
const ARRAYS: usize = INSTANCES + MESH_ARRAYS;

impl SceneImage {
    /// Lays a scene out. Compresses its hierarchies, which takes some seconds for ten million
    /// triangles.
    pub fn of(scene: &CheckedScene) -> Self {
        Self::in_film(scene, &mut FilmImages::default())
    }

    /// Lays a frame of a film out. What it has in common with the frame before is not made again,
    /// and has the same name.
    pub fn in_film(scene: &CheckedScene, film: &mut FilmImages) -> Self {
        let standing = standing(scene);
        let hierarchy = film.compress(scene, standing);
        let standing = standing.map(|instance| film.place(scene, instance));
        let pieces = pieces(scene, standing.as_ref(), &hierarchy);
        let names = film.name(&pieces.iter().map(|piece| piece.owner.clone()).collect::<Vec<_>>());
        let (mut arrays, mut places, mut end) = ([0; ARRAYS], Vec::new(), 0u64);
        let mut last = None;
        for (piece, name) in pieces.iter().zip(names) {
            if last.replace(piece.array) != Some(piece.array) {
                end = end.next_multiple_of(ALIGNMENT);
                arrays[piece.array] = end;
            }
            places.push((end, name));
            end += piece.bytes.len() as u64;
        }
        let bytes = end.next_multiple_of(ALIGNMENT).max(ALIGNMENT);
        drop(pieces);
        Self { scene: scene.clone(), standing, hierarchy, arrays, places, bytes }
    }

    /// Returns the device memory that the image needs, in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the pieces to upload. Bytes between them are never read.
    pub fn parts(&self) -> impl Iterator<Item = ImagePart<'_>> {
        let pieces = pieces(&self.scene, self.standing.as_ref(), &self.hierarchy);
        self.places.iter().zip(pieces).map(|(&(offset, name), piece)| ImagePart {
            offset,
            bytes: piece.bytes,
            name,
        })
    }

    /// Returns the scene with offsets in place of addresses; see [`DeviceScene::at`].
    pub fn scene(&self) -> DeviceScene {
        let view = self.scene.view();
        let standing = self.standing.as_ref().map_or(0, |it| it.placed.triangles.len() as u32);
        DeviceScene {
            arrays: std::array::from_fn(|index| self.arrays[index]),
            absent: [0; 2],
            triangle_count: view.triangle_count + standing,
            material_count: view.material_count,
            texture_count: view.texture_count,
            light_count: view.light_count,
            bvh_node_count: view.bvh_node_count,
            bvh_padding: view.bvh_padding,
            placed_light_count: view.placed_light_count,
            light_node_count: view.light_node_count,
            // The offset is never 0, because triangles or materials are at the image's start.
            layers: if self.scene.layers.is_empty() { 0 } else { self.arrays[LAYERS] },
            environment: view.environment,
            camera: view.camera,
            instances: std::array::from_fn(|index| self.arrays[INSTANCES + index]),
            absent_of_meshes: [0; 2],
            media: self.arrays[MEDIA],
            instance_count: view.instance_count - u32::from(self.standing.is_some()),
            medium_count: view.medium_count,
            pane_count: view.pane_count,
            reserved: view.reserved,
            hierarchy: [self.arrays[HIERARCHY], self.arrays[HIERARCHY + 1]],
        }
    }
}

/// Consecutive bytes of an array, and what owns them.
struct Piece<'a> {
    array: usize,
    bytes: &'a [u8],
    owner: Owner,
}

/// Collects pieces. One position always has the same part of its owner, or nothing.
struct Pieces<'a> {
    pieces: Vec<Piece<'a>>,
    /// The array that is added to.
    array: usize,
}

impl<'a> Pieces<'a> {
    fn push<T: Pod, O: Send + Sync + 'static>(&mut self, bytes: &'a [T], owner: &Arc<O>) {
        self.add(bytes, owner.clone());
    }

    fn add<T: Pod>(&mut self, bytes: &'a [T], owner: Owner) {
        let (array, bytes) = (self.array, must_cast_slice(bytes));
        self.pieces.push(Piece { array, bytes, owner });
    }

    /// Adds an array of one piece.
    fn whole<T: Pod + Send + Sync>(&mut self, array: &'a Array<T>) {
        self.add(array, array.identity());
        self.array += 1;
    }

    /// Adds an array of the scene's own elements and those of what stands.
    fn joined<T: Pod + Send + Sync>(
        &mut self,
        own: &'a Array<T>,
        standing: Option<(&'a [T], &Arc<StandingTriangles>)>,
    ) {
        self.add(own, own.identity());
        match standing {
            Some((elements, owner)) => self.push(elements, owner),
            None => self.add::<T>(&[], own.identity()),
        }
        self.array += 1;
    }
}

/// Returns the scene's arrays in the order of `SceneView`'s pointers, then the compressed
/// hierarchy's, the layers, the media, and the instances and meshes. The number of pieces is always
/// the same.
fn pieces<'a>(
    scene: &'a CheckedScene,
    standing: Option<&'a Arc<StandingTriangles>>,
    hierarchy: &'a Arc<CompressedBvh>,
) -> Vec<Piece<'a>> {
    let mut all = Pieces { pieces: Vec::with_capacity(2 * ARRAYS), array: 0 };
    all.joined(&scene.triangles, standing.map(|it| (&it.placed.triangles[..], it)));
    all.joined(&scene.triangle_vertices, standing.map(|it| (&it.placed.triangle_vertices[..], it)));
    all.joined(&scene.vertices, standing.map(|it| (&it.placed.vertices[..], it)));
    all.whole(&scene.materials);
    all.whole(&scene.textures);
    all.whole(&scene.texels);
    all.whole(&scene.lights);
    all.whole(&scene.light_alias);
    all.whole(&scene.light_nodes);
    all.whole(&scene.environment_texels);
    all.whole(&scene.environment_cells);
    let [root, held, others] = hierarchy.node_parts();
    all.push(root, hierarchy);
    all.push(held, hierarchy.held());
    all.push(others, hierarchy);
    all.array += 1;
    let [held, own] = hierarchy.triangle_parts();
    all.push(held, hierarchy.held());
    all.push(own, hierarchy);
    all.array += 1;
    all.whole(&scene.layers);
    all.whole(&scene.media);
    let instances = &scene.instances[usize::from(standing.is_some())..];
    all.add(instances, scene.instances.identity());
    all.array += 1;
    // What stands needs no mesh.
    let meshes = (!instances.is_empty()).then_some(&scene.meshes);
    all.push(meshes.map_or(&[][..], |meshes| &meshes.triangles), &scene.meshes);
    all.array += 1;
    all.push(meshes.map_or(&[][..], |meshes| &meshes.triangle_vertices), &scene.meshes);
    all.array += 1;
    all.push(meshes.map_or(&[][..], |meshes| &meshes.vertices), &scene.meshes);
    all.pieces
}
