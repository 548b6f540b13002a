//! Same bits from every hierarchy: the builders differ, the pictures may not.

use crate::render::compilers::scenes;
use crate::render::picture::{checked, hash, sums, whole_frame};
use std::sync::Arc;
use tessera_kernels::host;
use tessera_scenes::bvh::{self, BuilderKind};

const BUILDERS: [BuilderKind; 3] =
    [BuilderKind::SurfaceArea, BuilderKind::Median, BuilderKind::Random(20_261)];

#[test]
fn builders_change_no_bit() {
    for (name, scene) in scenes(64, 48) {
        // A random hierarchy over many triangles is slow by design: there, fewer paths.
        let samples = if scene.triangles.len() > 10_000 { 1 } else { 8 };
        let frame = whole_frame(64, 48, samples, 6);
        let reach = reach(&scene);
        let hashes: Vec<String> = BUILDERS
            .into_iter()
            .map(|kind| {
                let mut other = scene.clone();
                other.bvh = Arc::new(bvh::build(&scene.triangles, kind, reach));
                hash(&sums(host::best_isa(), &checked(other), &frame))
            })
            .collect();
        println!("{name}: {}", hashes[0]);
        assert!(hashes.windows(2).all(|pair| pair[0] == pair[1]), "{name}: {hashes:?}");
    }
}

/// Largest coordinate of a corner or of the camera, metres.
fn reach(scene: &tessera_layout::FlatScene) -> f32 {
    let corners = scene
        .triangles
        .iter()
        .flat_map(|triangle| [triangle.v0, triangle.v1, triangle.v2])
        .flatten();
    let camera = scene.camera.world_from_camera.into_iter();
    corners.chain(camera).fold(0.0, |reach, coordinate| reach.max(coordinate.abs()))
}
