//! A flattened scene over a pipe. Arrays that the other side already has are not sent again. Checks
//! lengths against a limit, but not the content of the arrays.

use bytemuck::{Pod, bytes_of, must_cast_slice, try_pod_read_unaligned};
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};
use std::sync::Arc;
use tessera_layout::{Array, Bvh, FlatScene, Meshes, read_array};

/// Source of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Part {
    /// The array of the last frame.
    Same,
    /// A new array with this many elements, which follow.
    New(u64),
}

/// Head of a frame, before its arrays.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct FrameHead {
    /// Arrays in the order of `FlatScene`'s fields, then those of the hierarchy's nodes and blocks,
    /// the layers, the media, the light tree, the instances, and their meshes.
    parts: [Part; 21],
    environment: Vec<u8>,
    camera: Vec<u8>,
    padding: f32,
}

/// Why a frame was not received.
#[derive(Debug, thiserror::Error)]
pub(super) enum ArraysError {
    /// The pipe failed, or there is no memory here.
    #[error("the pipe from the scene importer failed")]
    Pipe(#[from] std::io::Error),
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

    /// Writes the arrays that are new.
    pub(super) fn send(&self, scene: &FlatScene, to: &mut impl Write) -> std::io::Result<()> {
        let arrays = [
            must_cast_slice(&scene.triangles),
            must_cast_slice(&scene.triangle_vertices),
            must_cast_slice(&scene.vertices),
            must_cast_slice(&scene.materials),
            must_cast_slice(&scene.textures),
            must_cast_slice(&scene.texels),
            must_cast_slice(&scene.lights),
            must_cast_slice(&scene.light_alias),
            must_cast_slice(&scene.environment_texels),
            must_cast_slice(&scene.environment_cells),
            must_cast_slice(&scene.bvh.nodes),
            must_cast_slice(&scene.bvh.blocks),
            must_cast_slice(&scene.layers),
            must_cast_slice(&scene.media),
            must_cast_slice(&scene.light_nodes),
            must_cast_slice(&scene.instances),
            must_cast_slice(&scene.meshes.triangles),
            must_cast_slice(&scene.meshes.triangle_vertices),
            must_cast_slice(&scene.meshes.vertices),
            must_cast_slice(&scene.meshes.nodes),
            must_cast_slice(&scene.meshes.blocks),
        ];
        for (part, bytes) in self.parts.iter().zip(arrays) {
            if *part != Part::Same {
                to.write_all(bytes)?;
            }
        }
        to.flush()
    }

    /// Reads the new arrays, at most `bytes_max` bytes. The others are those of the last frame.
    pub(super) fn receive(
        &self,
        last: Option<&FlatScene>,
        bytes_max: u64,
        from: &mut impl Read,
    ) -> Result<FlatScene, ArraysError> {
        let mut taking = Taking { from, bytes_max, bytes_left: bytes_max };
        let p = &self.parts;
        let triangles = taking.array(p[0], last.map(|last| &last.triangles))?;
        let triangle_vertices = taking.array(p[1], last.map(|last| &last.triangle_vertices))?;
        let vertices = taking.array(p[2], last.map(|last| &last.vertices))?;
        let materials = taking.array(p[3], last.map(|last| &last.materials))?;
        let textures = taking.array(p[4], last.map(|last| &last.textures))?;
        let texels = taking.array(p[5], last.map(|last| &last.texels))?;
        let lights = taking.array(p[6], last.map(|last| &last.lights))?;
        let light_alias = taking.array(p[7], last.map(|last| &last.light_alias))?;
        let environment_texels = taking.array(p[8], last.map(|last| &last.environment_texels))?;
        let environment_cells = taking.array(p[9], last.map(|last| &last.environment_cells))?;
        let bvh = match (p[10], p[11], last) {
            (Part::Same, Part::Same, Some(last)) => Arc::clone(&last.bvh),
            (Part::New(nodes), Part::New(blocks), _) => {
                let (nodes, blocks) = (taking.new_array(nodes)?, taking.new_array(blocks)?);
                Arc::new(Bvh { nodes, blocks, padding: self.padding })
            }
            _ => return Err(ArraysError::Broken),
        };
        let layers = taking.array(p[12], last.map(|last| &last.layers))?;
        let media = taking.array(p[13], last.map(|last| &last.media))?;
        let light_nodes = taking.array(p[14], last.map(|last| &last.light_nodes))?;
        let instances = taking.array(p[15], last.map(|last| &last.instances))?;
        let meshes = taking.meshes(&p[16..], last)?;
        Ok(FlatScene {
            triangles,
            triangle_vertices,
            vertices,
            materials,
            layers,
            media,
            textures,
            texels,
            lights,
            light_alias,
            light_nodes,
            environment: whole(&self.environment)?,
            environment_texels,
            environment_cells,
            camera: whole(&self.camera)?,
            bvh,
            instances,
            meshes,
        })
    }
}

/// Reads one value from exactly its bytes.
fn whole<T: Pod>(bytes: &[u8]) -> Result<T, ArraysError> {
    try_pod_read_unaligned(bytes).map_err(|_| ArraysError::Broken)
}

struct Taking<'a, R> {
    from: &'a mut R,
    bytes_max: u64,
    bytes_left: u64,
}

impl<R: Read> Taking<'_, R> {
    fn array<T: Pod>(
        &mut self,
        part: Part,
        last: Option<&Array<T>>,
    ) -> Result<Array<T>, ArraysError> {
        match (part, last) {
            (Part::New(count), _) => self.new_array(count),
            (Part::Same, Some(last)) => Ok(last.clone()),
            (Part::Same, None) => Err(ArraysError::Broken),
        }
    }

    fn meshes(
        &mut self,
        parts: &[Part],
        last: Option<&FlatScene>,
    ) -> Result<Arc<Meshes>, ArraysError> {
        match (parts, last) {
            ([Part::Same, Part::Same, Part::Same, Part::Same, Part::Same], Some(last)) => {
                Ok(Arc::clone(&last.meshes))
            }
            (
                &[
                    Part::New(triangles),
                    Part::New(corners),
                    Part::New(vertices),
                    Part::New(nodes),
                    Part::New(blocks),
                ],
                _,
            ) => Ok(Arc::new(Meshes {
                triangles: self.new_array(triangles)?,
                triangle_vertices: self.new_array(corners)?,
                vertices: self.new_array(vertices)?,
                nodes: self.new_array(nodes)?,
                blocks: self.new_array(blocks)?,
            })),
            _ => Err(ArraysError::Broken),
        }
    }

    fn new_array<T: Pod>(&mut self, count: u64) -> Result<Array<T>, ArraysError> {
        let bytes = count.checked_mul(size_of::<T>() as u64);
        let left = bytes.and_then(|bytes| self.bytes_left.checked_sub(bytes));
        self.bytes_left = left.ok_or(ArraysError::TooLong(self.bytes_max))?;
        // The memory limit also bounds the count by the address space.
        Ok(read_array(count as usize, |piece| self.from.read_exact(piece))?.into())
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

    fn over_the_pipe(
        scene: &FlatScene,
        last: (Option<&FlatScene>, Option<&FlatScene>),
    ) -> (FlatScene, usize) {
        let head = FrameHead::of(scene, last.0);
        let mut pipe = Vec::new();
        head.send(scene, &mut pipe).unwrap();
        (head.receive(last.1, 1 << 20, &mut pipe.as_slice()).unwrap(), pipe.len())
    }

    #[test]
    fn a_scene_round_trips_and_shared_arrays_are_sent_once() {
        let frame = test_scene::frame();
        let scene: &FlatScene = &frame.scene;
        let (first, bytes) = over_the_pipe(scene, (None, None));
        assert_eq!(first.triangles, scene.triangles);
        // Unused lanes are NaN, so compare bytes.
        let blocks = |scene: &FlatScene| must_cast_slice::<_, u8>(&scene.bvh.blocks).to_vec();
        assert_eq!(blocks(&first), blocks(scene));
        assert_eq!((first.camera, first.environment), (scene.camera, scene.environment));
        assert_eq!(bytes as u64, scene.bytes());
        let (ours, theirs) = (kept(scene, false), kept(&first, false));
        let (second, bytes) = over_the_pipe(scene, (Some(&ours), Some(&theirs)));
        assert!(second.triangles.ptr_eq(&first.triangles) && Arc::ptr_eq(&second.bvh, &first.bvh));
        assert_eq!((second.lights.len(), bytes), (1, 80 + 16));
        let (ours, theirs) = (kept(scene, true), kept(&first, true));
        let (third, _) = over_the_pipe(scene, (Some(&ours), Some(&theirs)));
        assert!(third.materials.ptr_eq(&first.materials));
        assert_eq!(third.triangles, scene.triangles);
    }

    #[test]
    fn a_forged_header_is_refused_before_allocation() {
        let frame = test_scene::frame();
        let good = FrameHead::of(&frame.scene, None);
        let refusal = |change: fn(&mut FrameHead)| {
            let mut head = good.clone();
            change(&mut head);
            head.receive(None, 1 << 20, &mut [0u8; 4096].as_slice()).map(drop).unwrap_err()
        };
        assert!(matches!(
            refusal(|head| head.parts[0] = Part::New(u64::MAX)),
            ArraysError::TooLong(_)
        ));
        assert!(matches!(
            refusal(|head| head.parts[5] = Part::New(2 << 20)),
            ArraysError::TooLong(_)
        ));
        assert!(matches!(refusal(|head| head.parts[0] = Part::Same), ArraysError::Broken));
        assert!(matches!(refusal(|head| head.parts[11] = Part::Same), ArraysError::Broken));
        assert!(matches!(refusal(|head| head.parts[18] = Part::Same), ArraysError::Broken));
        assert!(matches!(
            refusal(|head| head.parts[19] = Part::New(u64::MAX)),
            ArraysError::TooLong(_)
        ));
        assert!(matches!(refusal(|head| head.camera.truncate(3)), ArraysError::Broken));
        assert!(matches!(refusal(|head| head.parts[5] = Part::New(5000)), ArraysError::Pipe(_)));
    }
}
