//! Pictures in which numbers meet exactly: a sun level with what it could light, channels of which
//! one alone is more than a film takes, each in turn. Pixels of panes stand in
//! `last_place.rs`. Made for
//! the mutation check; knows no machine.

use tessera_kernels::CheckedScene;
use tessera_layout::*;
use tessera_support::builder::*;
use tessera_support::scenes::Case;

/// Pixels across and down.
const SIZE: u32 = 12;
/// More than a film takes of a channel (`FILM_VALUE_MAX`, 2^18).
const BEYOND: f32 = 300_000.0;

/// Those that every comparison takes.
pub(crate) fn all() -> Vec<Case> {
    let unit = UnitParams { aovs: 15, ..whole(SIZE, SIZE, 4, 1) };
    let case = |name, scene| Case { name, scene, unit };
    vec![
        case("level suns", level_suns()),
        case("beyond, depth", beyond(100_000.0)),
        case("beyond, height", beyond(-120_000.0)),
    ]
}

/// Samples that a film drops, for one channel alone: not among [`all`], where nothing may be
/// dropped.
pub(crate) fn overflowing() -> Case {
    let mut builder = Builder::default();
    // Two texels wide each, so that some pixels see one channel alone too large; finite, and
    // infinite once 512 times brighter.
    builder.map(24, 8, |x, y| {
        let mut texel = [0.5, 0.25, 0.75];
        texel[x as usize / 2 % 3] = [f32::MAX, 1e4][y as usize / 2 % 2];
        texel
    });
    builder.environment.intensity = 512.0;
    builder.camera = camera_at([0.0; 3], CameraKind::Perspective, 1.5);
    let unit = UnitParams { aovs: 15, ..whole(SIZE, SIZE, 1, 1) };
    Case { name: "overflowing sky", scene: builder.finish(), unit }
}

/// The inside of a corner, each side along two axes, under suns that lie exactly in one of the
/// sides, or none; shading normals lean towards them.
fn level_suns() -> CheckedScene {
    let mut builder = Builder::default();
    let look = builder.add_material(material([0.7, 0.6, 0.8], 0.3, 0.6));
    let sides = [
        [[0.0, 0.0, 0.0], [0.0, 0.0, 4.0], [4.0, 0.0, 4.0], [4.0, 0.0, 0.0]],
        [[0.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 4.0, 4.0], [0.0, 0.0, 4.0]],
        [[0.0, 0.0, 0.0], [4.0, 0.0, 0.0], [4.0, 4.0, 0.0], [0.0, 4.0, 0.0]],
    ];
    for side in sides {
        builder.quad(side, look);
    }
    for (at, vertex) in (0u8..).zip(&mut builder.vertices) {
        let lean = 0.3 + 0.01 * f32::from(at);
        vertex.normal = unit(vertex.normal.map(|along| along + lean));
    }
    for (at, towards) in
        [[0.6, 0.0, 0.8], [0.8, 0.6, 0.0], [0.0, 0.8, 0.6], [0.6, -0.0, 0.8]].iter().enumerate()
    {
        let mut sun = light(LightKind::Directional, [700.0, 500.0 + 50.0 * at as f32, 600.0]);
        sun.direction = towards.map(|v: f32| -v);
        builder.lights.push((sun, 1.0));
    }
    // Looks into the corner along the diagonal.
    let third = 3.0f32.sqrt().recip();
    let [right, up] = [unit([1.0, 0.0, -1.0]), unit([-1.0, 2.0, -1.0])];
    builder.camera = camera_at([0.0; 3], CameraKind::Orthographic, 1.6);
    for axis in 0..3 {
        builder.camera.world_from_camera[4 * axis..][..4].copy_from_slice(&[
            right[axis],
            up[axis],
            third,
            4.0,
        ]);
    }
    builder.finish()
}

/// A vast room seen from a point of its axis: a side's points are beyond the film's range in one
/// coordinate, the far end's in depth or in their third coordinate. Before it hang panes, each
/// beyond in one channel of what it emits or of its colour.
fn beyond(eye: f32) -> CheckedScene {
    let mut builder = Builder::default();
    let grey = builder.add_material(material([0.5; 3], 0.0, 0.8));
    let (half, end) = (BEYOND, if eye > 0.0 { eye - BEYOND } else { -BEYOND });
    let ring = [[-half, -half], [half, -half], [half, half], [-half, half]];
    builder.quad(ring.map(|[x, y]| [x, y, end]), grey);
    for at in 0..4 {
        let [[ax, ay], [bx, by]] = [ring[at], ring[(at + 1) % 4]];
        builder.quad([[ax, ay, end], [bx, by, end], [bx, by, eye], [ax, ay, eye]], grey);
    }
    for channel in 0..3 {
        let mut shines = material([0.5; 3], 0.0, 0.8);
        shines.emission = [0.1, 0.2, 0.3];
        shines.emission[channel] = BEYOND;
        shines.flags = material_flags::DOUBLE_SIDED;
        let mut gaudy = material([0.4; 3], 0.0, 0.8);
        gaudy.base_color[channel] = BEYOND;
        for (row, look) in [shines, gaudy].into_iter().enumerate() {
            let look = builder.add_material(look);
            let (x, y) = (0.5 * channel as f32 - 0.75, 0.5 * row as f32 - 0.5);
            let corners = [[x, y], [x + 0.5, y], [x + 0.5, y + 0.5], [x, y + 0.5]];
            builder.quad(corners.map(|[x, y]| [x, y, eye - 1.0]), look);
        }
    }
    builder.camera = camera_at([0.0, 0.0, eye], CameraKind::Perspective, 3.0);
    builder.finish()
}
