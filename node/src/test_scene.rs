//! A scene for this crate's tests: one triangle under a plain environment.

use crate::device::PreparedFrame;
use std::sync::Arc;
use tessera_kernels::CheckedScene;
use tessera_layout::{
    AliasEntry, Array, Bvh, BvhNode8, CHILD_EMPTY, CHILD_LEAF_FLAG, Camera, CameraKind,
    Environment, FlatScene, Light, LightKind, Material, NONE, ShadingVertex, TextureRef, Triangle,
    TriangleBlock, UnitParams,
};

pub(crate) fn frame() -> Arc<PreparedFrame> {
    let scene = CheckedScene::new(Arc::new(scene())).unwrap();
    Arc::new(PreparedFrame::new(scene, 1))
}

/// Returns a unit of a 64 × 48 frame with every AOV.
pub(crate) fn unit(
    x: u32,
    y: u32,
    width: u32,
    height: u32,
    samples: std::ops::Range<u32>,
) -> UnitParams {
    UnitParams {
        frame_width: 64,
        frame_height: 48,
        x: x as i32,
        y: y as i32,
        width,
        height,
        first_sample: samples.start,
        sample_count: samples.end - samples.start,
        seed: 3,
        depth: 4,
        aovs: 15,
        filter: 1,
        frame: 2,
        ..UnitParams::default()
    }
}

fn scene() -> FlatScene {
    let corners = [[-1.0, -1.0, -3.0], [1.5, -0.5, -4.0], [0.0, 1.2, -3.5f32]];
    let mut bounds = [[[f32::INFINITY; 8]; 3], [[f32::NEG_INFINITY; 8]; 3]];
    let mut corner = [[[f32::NAN; 4]; 3]; 3];
    for (index, point) in corners.iter().enumerate() {
        for axis in 0..3 {
            bounds[0][axis][0] = bounds[0][axis][0].min(point[axis] - 1e-3);
            bounds[1][axis][0] = bounds[1][axis][0].max(point[axis] + 1e-3);
            corner[index][axis][0] = point[axis];
        }
    }
    let mut child = [CHILD_EMPTY; 8];
    child[0] = CHILD_LEAF_FLAG;
    let node = BvhNode8 { bounds, child, reserved: [0; 8] };
    let block = TriangleBlock { corner, triangle: [0, NONE, NONE, NONE] };
    let vertex = ShadingVertex { normal: [0.0, 0.0, 1.0], color: [1.0; 4], ..Default::default() };
    let light = Light {
        position: [0.0; 3],
        kind: LightKind::Environment as u32,
        direction: [0.0; 3],
        range: f32::INFINITY,
        emission: [1.0; 3],
        triangle: NONE,
        spot_scale: 0.0,
        spot_offset: 0.0,
        pick_probability: 1.0,
        area: 0.0,
        trail: 0,
        reserved: [0; 3],
    };
    let alias = AliasEntry { threshold: u32::MAX, alias: 0, probability: 1.0, reserved: 0 };
    let [v0, v1, v2] = corners;
    FlatScene {
        triangles: vec![Triangle { v0, v1, v2, material: 0, flags: 2, light: NONE }].into(),
        triangle_vertices: vec![[0, 1, 2]].into(),
        vertices: vec![vertex; 3].into(),
        materials: vec![material()].into(),
        layers: Array::default(),
        media: Array::default(),
        textures: Array::default(),
        texels: Array::default(),
        lights: vec![light].into(),
        light_alias: vec![alias].into(),
        light_nodes: Array::default(),
        environment: Environment {
            present: 1,
            constant: [1.0, 0.8, 0.6],
            intensity: 1.0,
            map_from_world: [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0],
            scene_radius: 3.0,
            scene_center: [0.0, 0.0, -3.5],
            ..Default::default()
        },
        environment_texels: Array::default(),
        environment_cells: Array::default(),
        camera: camera(),
        bvh: Arc::new(Bvh { nodes: vec![node].into(), blocks: vec![block].into(), padding: 1e-5 }),
        instances: Array::default(),
        meshes: Arc::default(),
    }
}

fn camera() -> Camera {
    Camera {
        world_from_camera: [1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0],
        kind: CameraKind::Perspective as u32,
        half_width: 0.6,
        half_height: 0.45,
        lens_radius: 0.0,
        focus_distance: 1.0,
        near: 0.0,
        far: f32::INFINITY,
        ..bytemuck::Zeroable::zeroed()
    }
}

fn material() -> Material {
    Material {
        base_color: [0.7, 0.5, 0.3, 1.0],
        emission: [0.0; 3],
        metallic: 0.2,
        roughness: 0.5,
        normal_scale: 1.0,
        alpha_cutoff: 0.5,
        ior: 1.5,
        alpha_mode: 0,
        flags: 1,
        layers: 0,
        reserved: 0,
        base_color_texture: TextureRef::ABSENT,
        metallic_roughness_texture: TextureRef::ABSENT,
        normal_texture: TextureRef::ABSENT,
        emission_texture: TextureRef::ABSENT,
    }
}
