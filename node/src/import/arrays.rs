//! A flattened scene between two processes: which arrays the other side lacks, and where they stand
//! in the files that they cross in. Checks lengths against a limit, but not the content of the
//! arrays.
//!
//! A frame has up to two files, so that memory goes when its arrays do: one of arrays that both
//! sides keep for the frames after it, and one of those that are this frame's alone.

use super::memory_file::{FILES_MAX, MemoryFile};
use bytemuck::{Pod, bytes_of, must_cast_slice, try_pod_read_unaligned};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tessera_layout::{
    AliasEntry, Array, Bvh, BvhNode8, EnvironmentCell, FlatScene, Instance, Layers, Light,
    LightNode, Material, Medium, Meshes, Region, ShadingVertex, Texture, Triangle, TriangleBlock,
};
use tessera_scenes::SharedArrays;

/// Source of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Part {
    /// The array of the last frame.
    Same,
    /// A new array with this many elements.
    New(u64),
}

/// Arrays of a frame.
const ARRAYS: usize = 21;
/// Arrays begin at multiples of so many bytes, which suit every element.
const ALIGNMENT: u64 = 64;

/// Bytes of an element of each array.
const ELEMENTS: [u64; ARRAYS] = [
    size_of::<Triangle>() as u64,
    size_of::<[u32; 3]>() as u64,
    size_of::<ShadingVertex>() as u64,
    size_of::<Material>() as u64,
    size_of::<Texture>() as u64,
    size_of::<u8>() as u64,
    size_of::<Light>() as u64,
    size_of::<AliasEntry>() as u64,
    size_of::<[f32; 3]>() as u64,
    size_of::<EnvironmentCell>() as u64,
    size_of::<BvhNode8>() as u64,
    size_of::<TriangleBlock>() as u64,
    size_of::<Layers>() as u64,
    size_of::<Medium>() as u64,
    size_of::<LightNode>() as u64,
    size_of::<Instance>() as u64,
    size_of::<Triangle>() as u64,
    size_of::<[u32; 3]>() as u64,
    size_of::<ShadingVertex>() as u64,
    size_of::<BvhNode8>() as u64,
    size_of::<TriangleBlock>() as u64,
];

/// Positions of the arrays of lights, which every frame has for itself.
const OF_LIGHTS: [usize; 3] = [6, 7, 14];
/// Positions of those that every frame has for itself where geometry moves.
const OF_GEOMETRY: [usize; 6] = [0, 1, 2, 10, 11, 15];

/// Head of a frame, before its arrays.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct FrameHead {
    /// Arrays in the order of `FlatScene`'s fields, then those of the hierarchy's nodes and blocks,
    /// the layers, the media, the light tree, the instances, and their meshes.
    parts: [Part; ARRAYS],
    environment: Vec<u8>,
    camera: Vec<u8>,
    padding: f32,
}

/// Why a frame was not received.
#[derive(Debug, thiserror::Error)]
pub(super) enum ArraysError {
    /// The arrays are longer than a scene may be.
    #[error("its frame takes more than {0} bytes")]
    TooLong(u64),
    /// The message refers to a frame that was never sent, or is not a frame.
    #[error("its frame is not whole")]
    Broken,
}

fn part<T: Pod>(array: &Array<T>, last: Option<&Array<T>>) -> Part {
    match last {
        Some(last) if last.ptr_eq(array) => Part::Same,
        _ => Part::New(array.len() as u64),
    }
}

impl FrameHead {
    /// Makes the head of a frame for a receiver that has [`kept`] of the last one.
    pub(super) fn of(scene: &FlatScene, last: Option<&FlatScene>) -> Self {
        let same_bvh = last.is_some_and(|last| Arc::ptr_eq(&last.bvh, &scene.bvh));
        let bvh = |count: usize| if same_bvh { Part::Same } else { Part::New(count as u64) };
        let same_meshes = last.is_some_and(|last| Arc::ptr_eq(&last.meshes, &scene.meshes));
        let of_meshes =
            |count: usize| if same_meshes { Part::Same } else { Part::New(count as u64) };
        let parts = [
            part(&scene.triangles, last.map(|last| &last.triangles)),
            part(&scene.triangle_vertices, last.map(|last| &last.triangle_vertices)),
            part(&scene.vertices, last.map(|last| &last.vertices)),
            part(&scene.materials, last.map(|last| &last.materials)),
            part(&scene.textures, last.map(|last| &last.textures)),
            part(&scene.texels, last.map(|last| &last.texels)),
            part(&scene.lights, last.map(|last| &last.lights)),
            part(&scene.light_alias, last.map(|last| &last.light_alias)),
            part(&scene.environment_texels, last.map(|last| &last.environment_texels)),
            part(&scene.environment_cells, last.map(|last| &last.environment_cells)),
            bvh(scene.bvh.nodes.len()),
            bvh(scene.bvh.blocks.len()),
            part(&scene.layers, last.map(|last| &last.layers)),
            part(&scene.media, last.map(|last| &last.media)),
            part(&scene.light_nodes, last.map(|last| &last.light_nodes)),
            part(&scene.instances, last.map(|last| &last.instances)),
            of_meshes(scene.meshes.triangles.len()),
            of_meshes(scene.meshes.triangle_vertices.len()),
            of_meshes(scene.meshes.vertices.len()),
            of_meshes(scene.meshes.nodes.len()),
            of_meshes(scene.meshes.blocks.len()),
        ];
        let (environment, camera) =
            (bytes_of(&scene.environment).to_vec(), bytes_of(&scene.camera).to_vec());
        Self { parts, environment, camera, padding: scene.bvh.padding }
    }

    /// Makes the scene from its files, in the order of [`Layout::lengths`]. Arrays that did not
    /// come are those of the last frame.
    pub(super) fn receive(
        &self,
        last: Option<&FlatScene>,
        layout: &Layout,
        files: &[Region],
    ) -> Result<FlatScene, ArraysError> {
        let taking = Taking { parts: &self.parts, layout, files };
        let bvh = match (self.parts[10], self.parts[11], last) {
            (Part::Same, Part::Same, Some(last)) => Arc::clone(&last.bvh),
            (Part::New(_), Part::New(_), _) => {
                let (nodes, blocks) = (taking.array(10, None)?, taking.array(11, None)?);
                Arc::new(Bvh { nodes, blocks, padding: self.padding })
            }
            _ => return Err(ArraysError::Broken),
        };
        Ok(FlatScene {
            triangles: taking.array(0, last.map(|last| &last.triangles))?,
            triangle_vertices: taking.array(1, last.map(|last| &last.triangle_vertices))?,
            vertices: taking.array(2, last.map(|last| &last.vertices))?,
            materials: taking.array(3, last.map(|last| &last.materials))?,
            textures: taking.array(4, last.map(|last| &last.textures))?,
            texels: taking.array(5, last.map(|last| &last.texels))?,
            lights: taking.array(6, last.map(|last| &last.lights))?,
            light_alias: taking.array(7, last.map(|last| &last.light_alias))?,
            environment_texels: taking.array(8, last.map(|last| &last.environment_texels))?,
            environment_cells: taking.array(9, last.map(|last| &last.environment_cells))?,
            layers: taking.array(12, last.map(|last| &last.layers))?,
            media: taking.array(13, last.map(|last| &last.media))?,
            light_nodes: taking.array(14, last.map(|last| &last.light_nodes))?,
            instances: taking.array(15, last.map(|last| &last.instances))?,
            environment: whole(&self.environment)?,
            camera: whole(&self.camera)?,
            bvh,
            meshes: taking.meshes(last)?,
        })
    }
}

/// Reads one value from exactly its bytes.
fn whole<T: Pod>(bytes: &[u8]) -> Result<T, ArraysError> {
    try_pod_read_unaligned(bytes).map_err(|_| ArraysError::Broken)
}

/// Place of a new array: which file of the frame, and where its bytes begin there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    file: usize,
    start: u64,
}

/// Where the new arrays of a frame stand. Both sides find the same from the frame's head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// Places of the arrays that are new and not empty.
    places: [Option<Place>; ARRAYS],
    lengths: Vec<u64>,
    /// Position of the file of arrays that are kept.
    kept: Option<usize>,
}

impl Layout {
    /// Lays out at most `bytes_max` bytes.
    pub(super) fn of(
        head: &FrameHead,
        geometry_moves: bool,
        bytes_max: u64,
    ) -> Result<Self, ArraysError> {
        let mut made = Self { places: [None; ARRAYS], lengths: Vec::new(), kept: None };
        let is_own = |index: &usize| {
            OF_LIGHTS.contains(index) || geometry_moves && OF_GEOMETRY.contains(index)
        };
        let (own, kept): (Vec<usize>, Vec<usize>) = (0..ARRAYS).partition(is_own);
        let mut left = bytes_max;
        for (indices, is_kept) in [(kept, true), (own, false)] {
            let bytes = made.add_file(head, &indices, left);
            let bytes = bytes.ok_or(ArraysError::TooLong(bytes_max))?;
            left -= bytes;
            if bytes > 0 {
                made.kept = made.kept.or(is_kept.then_some(made.lengths.len()));
                made.lengths.push(bytes);
            }
        }
        Ok(made)
    }

    /// Places the new ones of these arrays in one more file. Returns its length, or None if that is
    /// more than `bytes_max`.
    fn add_file(&mut self, head: &FrameHead, indices: &[usize], bytes_max: u64) -> Option<u64> {
        let mut end = 0u64;
        for &index in indices {
            let Part::New(count @ 1..) = head.parts[index] else { continue };
            self.places[index] = Some(Place { file: self.lengths.len(), start: end });
            let bytes = count.checked_mul(ELEMENTS[index])?;
            end = end.checked_add(bytes)?.checked_next_multiple_of(ALIGNMENT)?;
        }
        (end <= bytes_max).then_some(end)
    }

    /// Returns what belongs to the file of arrays that are kept, of one for each file.
    pub(super) fn of_film<'a, T>(&self, files: &'a [T]) -> Option<&'a T> {
        files.get(self.kept?)
    }

    /// Lengths of the frame's files, in bytes.
    pub(super) fn lengths(&self) -> &[u64] {
        &self.lengths
    }
}

const _: () = assert!(FILES_MAX == 2, "one of arrays that are kept, and one of the others");

/// Arrays on their way out of files.
struct Taking<'a> {
    parts: &'a [Part; ARRAYS],
    layout: &'a Layout,
    files: &'a [Region],
}

impl Taking<'_> {
    fn array<T: Pod + Send + Sync>(
        &self,
        index: usize,
        last: Option<&Array<T>>,
    ) -> Result<Array<T>, ArraysError> {
        match (self.parts[index], last) {
            (Part::New(count), _) => self.new_array(index, count).ok_or(ArraysError::Broken),
            (Part::Same, Some(last)) => Ok(last.clone()),
            (Part::Same, None) => Err(ArraysError::Broken),
        }
    }

    fn new_array<T: Pod + Send + Sync>(&self, index: usize, count: u64) -> Option<Array<T>> {
        let Some(place) = self.layout.places[index] else { return Some(Array::default()) };
        let (start, count) = (usize::try_from(place.start).ok()?, usize::try_from(count).ok()?);
        Array::view(self.files.get(place.file)?, start, count)
    }

    fn meshes(&self, last: Option<&FlatScene>) -> Result<Arc<Meshes>, ArraysError> {
        let parts = &self.parts[16..];
        if let (true, Some(last)) = (parts.iter().all(|part| *part == Part::Same), last) {
            return Ok(Arc::clone(&last.meshes));
        }
        Ok(Arc::new(Meshes {
            triangles: self.array(16, None)?,
            triangle_vertices: self.array(17, None)?,
            vertices: self.array(18, None)?,
            nodes: self.array(19, None)?,
            blocks: self.array(20, None)?,
        }))
    }
}

/// Writes the new arrays of a frame into its files, the largest first. Each that the loaded scene
/// has for later frames too becomes a view of its file in both places, so that it is in memory
/// once. Those of this frame alone are freed as soon as they are written. Leaves in `scene` what
/// [`kept`] wants.
pub(super) fn hand_over(
    layout: &Layout,
    scene: &mut FlatScene,
    shared: SharedArrays<'_>,
    files: &[MemoryFile],
) -> std::io::Result<()> {
    // Where there are no addresses for it, arrays stay where they are.
    let region = layout.of_film(files).and_then(|file| file.map().ok());
    let giving = Giving { layout, files, region };
    giving.bvh(&mut scene.bvh, shared.bvh)?;
    giving.meshes(&mut scene.meshes, shared.meshes)?;
    giving.array(0, &mut scene.triangles, shared.triangles)?;
    giving.array(1, &mut scene.triangle_vertices, shared.triangle_vertices)?;
    giving.array(2, &mut scene.vertices, shared.vertices)?;
    giving.array(3, &mut scene.materials, None)?;
    giving.array(4, &mut scene.textures, None)?;
    giving.array(5, &mut scene.texels, Some(shared.texels))?;
    giving.array(6, &mut scene.lights, None)?;
    giving.array(7, &mut scene.light_alias, None)?;
    giving.array(8, &mut scene.environment_texels, Some(shared.environment_texels))?;
    giving.array(9, &mut scene.environment_cells, Some(shared.environment_cells))?;
    giving.array(12, &mut scene.layers, None)?;
    giving.array(13, &mut scene.media, None)?;
    giving.array(14, &mut scene.light_nodes, None)?;
    giving.array(15, &mut scene.instances, None)
}

/// Arrays on their way into files.
struct Giving<'a> {
    layout: &'a Layout,
    files: &'a [MemoryFile],
    /// The file of arrays that are kept, in this process's memory.
    region: Option<Region>,
}

impl Giving<'_> {
    fn array<T: Pod + Send + Sync>(
        &self,
        index: usize,
        own: &mut Array<T>,
        shared: Option<&mut Array<T>>,
    ) -> std::io::Result<()> {
        self.write(index, own)?;
        if self.is_of_frame(index) {
            *own = Array::default();
        } else if let Some(shared) = shared.filter(|shared| shared.ptr_eq(own)) {
            let view = self.view(index, own);
            *shared = view.clone();
            *own = view;
        }
        Ok(())
    }

    fn bvh(&self, own: &mut Arc<Bvh>, shared: Option<&mut Arc<Bvh>>) -> std::io::Result<()> {
        let mut shared = shared.filter(|shared| Arc::ptr_eq(shared, own));
        self.part(10, (own, shared.as_deref_mut()), |bvh| &mut bvh.nodes)?;
        self.part(11, (own, shared), |bvh| &mut bvh.blocks)
    }

    fn meshes(&self, own: &mut Arc<Meshes>, shared: &mut Arc<Meshes>) -> std::io::Result<()> {
        let mut shared = Some(shared).filter(|shared| Arc::ptr_eq(shared, own));
        self.part(16, (own, shared.as_deref_mut()), |meshes| &mut meshes.triangles)?;
        self.part(17, (own, shared.as_deref_mut()), |meshes| &mut meshes.triangle_vertices)?;
        self.part(18, (own, shared.as_deref_mut()), |meshes| &mut meshes.vertices)?;
        self.part(19, (own, shared.as_deref_mut()), |meshes| &mut meshes.nodes)?;
        self.part(20, (own, shared), |meshes| &mut meshes.blocks)
    }

    /// Hands one array of several over that are shared together.
    fn part<S: Clone, T: Pod + Send + Sync>(
        &self,
        index: usize,
        (own, shared): (&mut Arc<S>, Option<&mut Arc<S>>),
        array: fn(&mut S) -> &mut Array<T>,
    ) -> std::io::Result<()> {
        let mut new = S::clone(own);
        let place = array(&mut new);
        self.write(index, place)?;
        if self.is_of_frame(index) {
            *place = Array::default();
            *own = Arc::new(new);
        } else if let Some(shared) = shared {
            *place = self.view(index, place);
            *own = Arc::new(new);
            *shared = Arc::clone(own);
        }
        Ok(())
    }

    fn write<T: Pod>(&self, index: usize, array: &Array<T>) -> std::io::Result<()> {
        let Some(place) = self.layout.places[index] else { return Ok(()) };
        let file = self.files.get(place.file).ok_or(std::io::ErrorKind::NotFound)?;
        file.write(place.start, must_cast_slice(array))
    }

    fn is_of_frame(&self, index: usize) -> bool {
        self.layout.places[index].is_some_and(|place| Some(place.file) != self.layout.kept)
    }

    /// Returns an array that was written as its file has it, if that is in memory; else itself.
    fn view<T: Pod + Send + Sync>(&self, index: usize, own: &Array<T>) -> Array<T> {
        let place = self.layout.places[index].filter(|place| Some(place.file) == self.layout.kept);
        let view = place.zip(self.region.as_ref()).and_then(|(place, region)| {
            Array::view(region, usize::try_from(place.start).ok()?, own.len())
        });
        view.unwrap_or_else(|| own.clone())
    }
}

/// Returns the arrays that both sides keep for the next frame. Arrays that change with every frame
/// of this scene would only use memory.
pub(super) fn kept(scene: &FlatScene, geometry_moves: bool) -> FlatScene {
    let mut kept = FlatScene {
        lights: Array::default(),
        light_alias: Array::default(),
        light_nodes: Array::default(),
        ..scene.clone()
    };
    if geometry_moves {
        (kept.triangles, kept.triangle_vertices) = (Array::default(), Array::default());
        (kept.vertices, kept.bvh) = (Array::default(), Arc::default());
        kept.instances = Array::default();
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_scene;

    const BYTES_MAX: u64 = 1 << 20;

    /// Sends a frame, of which both sides have these parts of the last one. Returns what comes out,
    /// what the sender still has, and the lengths of the files.
    fn across(
        scene: &FlatScene,
        last: (Option<&FlatScene>, Option<&FlatScene>),
        geometry_moves: bool,
    ) -> (FlatScene, FlatScene, Vec<u64>) {
        let head = FrameHead::of(scene, last.0);
        let layout = Layout::of(&head, geometry_moves, BYTES_MAX).unwrap();
        let files: Vec<MemoryFile> =
            layout.lengths().iter().map(|bytes| MemoryFile::new(*bytes).unwrap()).collect();
        let mut ours = scene.clone();
        // The sender's loaded scene has the triangles, the hierarchy and no other array.
        let (mut triangles, mut bvh) = (scene.triangles.clone(), scene.bvh.clone());
        let (mut texels, mut meshes) = (Array::default(), Arc::default());
        let (mut environment_texels, mut environment_cells) = (Array::default(), Array::default());
        let shared = SharedArrays {
            triangles: Some(&mut triangles),
            triangle_vertices: None,
            vertices: None,
            texels: &mut texels,
            environment_texels: &mut environment_texels,
            environment_cells: &mut environment_cells,
            bvh: Some(&mut bvh),
            meshes: &mut meshes,
        };
        hand_over(&layout, &mut ours, shared, &files).unwrap();
        if !geometry_moves {
            assert!(triangles.ptr_eq(&ours.triangles) && Arc::ptr_eq(&bvh, &ours.bvh));
        }
        files.iter().for_each(|file| file.seal().unwrap());
        let regions: Vec<Region> = files.iter().map(|file| file.map().unwrap()).collect();
        let theirs = head.receive(last.1, &layout, &regions).unwrap();
        (theirs, ours, layout.lengths().to_vec())
    }

    // Unused lanes are NaN, so compare bytes.
    fn blocks(scene: &FlatScene) -> &[u8] {
        must_cast_slice(&scene.bvh.blocks)
    }

    #[test]
    fn a_scene_crosses_whole_and_shared_arrays_once() {
        let frame = test_scene::frame();
        let scene: &FlatScene = &frame.scene;
        let (first, ours, lengths) = across(scene, (None, None), false);
        assert_eq!(first.triangles, scene.triangles);
        assert_eq!(first.vertices, scene.vertices);
        assert_eq!(blocks(&first), blocks(scene));
        assert_eq!((first.camera, first.environment), (scene.camera, scene.environment));
        let (bytes, padding) = (lengths.iter().sum::<u64>(), ALIGNMENT * ARRAYS as u64);
        assert!((scene.bytes()..scene.bytes() + padding).contains(&bytes), "{lengths:?}");
        let (ours, theirs) = (kept(&ours, false), kept(&first, false));
        let (second, _, lengths) =
            across(&later(scene, &ours), (Some(&ours), Some(&theirs)), false);
        assert!(second.triangles.ptr_eq(&first.triangles) && Arc::ptr_eq(&second.bvh, &first.bvh));
        assert_eq!(second.lights, scene.lights);
        assert_eq!((second.lights.len(), lengths), (1, vec![128 + 64]), "the light and its entry");
    }

    /// The next frame of a scene, which has what was kept of the last.
    fn later(scene: &FlatScene, kept: &FlatScene) -> FlatScene {
        FlatScene {
            lights: scene.lights.clone(),
            light_alias: scene.light_alias.clone(),
            light_nodes: scene.light_nodes.clone(),
            ..kept.clone()
        }
    }

    #[test]
    fn arrays_of_one_frame_are_not_in_the_films_file() {
        let frame = test_scene::frame();
        let scene: &FlatScene = &frame.scene;
        let (first, ours, lengths) = across(scene, (None, None), true);
        assert_eq!(lengths.len(), 2);
        assert_eq!(lengths[0], (size_of::<Material>() as u64).next_multiple_of(ALIGNMENT));
        let (ours, theirs) = (kept(&ours, true), kept(&first, true));
        assert!(theirs.triangles.is_empty() && theirs.bvh.nodes.is_empty());
        let second = FlatScene { materials: ours.materials.clone(), ..scene.clone() };
        let (second, _, lengths) = across(&second, (Some(&ours), Some(&theirs)), true);
        assert!(second.materials.ptr_eq(&first.materials));
        assert_eq!(second.triangles, scene.triangles);
        assert!(!second.triangles.ptr_eq(&first.triangles));
        assert_eq!(lengths.len(), 1);
    }

    #[test]
    fn arrays_that_are_handed_over_are_in_memory_once() {
        let frame = test_scene::frame();
        let scene: &FlatScene = &frame.scene;
        let (_, ours, _) = across(scene, (None, None), false);
        assert_eq!(ours.triangles, scene.triangles);
        assert!(!ours.triangles.ptr_eq(&scene.triangles), "it is a view of the file");
        assert!(ours.vertices.ptr_eq(&scene.vertices), "nobody else has a view of it");
        assert!(ours.lights.is_empty(), "it was of this frame alone");
    }

    #[test]
    fn a_forged_header_is_refused_before_a_file_is_made() {
        let frame = test_scene::frame();
        let good = FrameHead::of(&frame.scene, None);
        let refusal = |change: fn(&mut FrameHead)| {
            let mut head = good.clone();
            change(&mut head);
            Layout::of(&head, false, BYTES_MAX).unwrap_err()
        };
        assert!(matches!(
            refusal(|head| head.parts[0] = Part::New(u64::MAX)),
            ArraysError::TooLong(BYTES_MAX)
        ));
        // Whose bytes fit only beyond the alignment, and which fit only without the others.
        let most = |head: &mut FrameHead| head.parts[5] = Part::New(u64::MAX - 1);
        assert!(matches!(refusal(most), ArraysError::TooLong(_)));
        let most = |head: &mut FrameHead| head.parts[5] = Part::New(BYTES_MAX);
        assert!(matches!(refusal(most), ArraysError::TooLong(_)));
        let meshes = |head: &mut FrameHead| head.parts[19] = Part::New(u64::MAX);
        assert!(matches!(refusal(meshes), ArraysError::TooLong(_)));
    }

    #[test]
    fn a_frame_that_is_not_whole_is_refused() {
        let frame = test_scene::frame();
        let good = FrameHead::of(&frame.scene, None);
        let refusal = |change: fn(&mut FrameHead)| {
            let mut head = good.clone();
            change(&mut head);
            let layout = Layout::of(&head, false, BYTES_MAX).unwrap();
            let file = |bytes: &u64| MemoryFile::new(*bytes).unwrap().map().unwrap();
            let files: Vec<Region> = layout.lengths().iter().map(file).collect();
            head.receive(None, &layout, &files).map(drop).unwrap_err()
        };
        assert!(matches!(refusal(|head| head.parts[0] = Part::Same), ArraysError::Broken));
        assert!(matches!(refusal(|head| head.parts[11] = Part::Same), ArraysError::Broken));
        assert!(matches!(refusal(|head| head.parts[18] = Part::Same), ArraysError::Broken));
        assert!(matches!(refusal(|head| head.camera.truncate(3)), ArraysError::Broken));
        // Files that are not those of the layout.
        let layout = Layout::of(&good, false, BYTES_MAX).unwrap();
        let short = MemoryFile::new(64).unwrap().map().unwrap();
        for files in [Vec::new(), vec![short.clone(), short]] {
            let refused = good.receive(None, &layout, &files).map(drop);
            assert!(matches!(refused, Err(ArraysError::Broken)));
        }
    }
}
