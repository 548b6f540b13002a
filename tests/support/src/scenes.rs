//! Small scenes that between them use every feature of the kernels. What each is for stands in its
//! name.

use crate::builder::*;
use crate::layers::{vitrine, wardrobe};
use crate::panes::greenhouse;
use crate::steep_textures::steep_textures;
pub use crate::studio::{Noise, bright, look, texture, used};
use std::sync::Arc;
use tessera_kernels::CheckedScene;
use tessera_layout::*;

/// A scene with the unit that is rendered of it.
pub struct Case {
    /// What failures call it.
    pub name: &'static str,
    /// The scene.
    pub scene: CheckedScene,
    /// The unit that is rendered of it.
    pub unit: UnitParams,
}

/// Pixels across and down.
const SIZE: u32 = 24;

/// All of them, as small as they are rendered in every run.
pub fn all() -> Vec<Case> {
    sized(SIZE)
}

/// All of them, so many pixels across and down.
pub fn sized(size: u32) -> Vec<Case> {
    let unit = |samples, depth, filter: PixelFilter, aovs| {
        let whole = whole(size, size, samples, depth);
        UnitParams { filter: filter as u32, aovs, ..whole }
    };
    let case = |name, scene, unit| Case { name, scene, unit };
    vec![
        case("parlour", parlour(), unit(4, 8, PixelFilter::Box, 31)),
        case("foundry", foundry(), unit(3, 5, PixelFilter::Gaussian, 6)),
        case("veils", veils(), unit(3, 6, PixelFilter::BlackmanHarris, 31)),
        case("stage", stage(), unit(3, 3, PixelFilter::Gaussian, 9)),
        case("overcast", overcast(), UnitParams { clamp: 0.2, ..unit(3, 4, PixelFilter::Box, 1) }),
        case("thicket", thicket(), unit(3, 7, PixelFilter::BlackmanHarris, 15)),
        case("steep textures", steep_textures(), unit(3, 5, PixelFilter::Gaussian, 15)),
        case("vitrine", vitrine(), UnitParams { clamp: 0.5, ..unit(3, 8, PixelFilter::Box, 15) }),
        case(
            "greenhouse",
            greenhouse(),
            UnitParams { clamp: 2.0, ..unit(3, 4, PixelFilter::Box, 63) },
        ),
        case("wardrobe", wardrobe(), unit(3, 4, PixelFilter::Gaussian, 15)),
        case(
            "sky",
            sky(),
            UnitParams { first_sample: 5, frame: 3, ..unit(2, 2, PixelFilter::Gaussian, 15) },
        ),
        case(
            "dark",
            dark(),
            UnitParams { x: (size / 4) as i32, width: size / 2, ..unit(2, 2, PixelFilter::Box, 0) },
        ),
    ]
}

/// The cases of plain materials with a coat on every third: everything that plain surfaces do, in
/// the layered kernels.
pub fn coated(size: u32, every: usize) -> Vec<Case> {
    let plain = sized(size).into_iter().filter(|case| case.scene.layers.is_empty());
    plain.map(|case| Case { scene: coat(&case.scene, every), ..case }).collect()
}

/// A scene with a coat on every so manieth of its materials, from the first on.
pub fn coat(scene: &CheckedScene, every: usize) -> CheckedScene {
    let mut flat = FlatScene::clone(scene);
    let coat = Layers { clearcoat: 0.7, clearcoat_roughness: 0.5, ..Layers::NONE };
    (flat.layers, flat.media) = (vec![Layers::NONE, coat].into(), vec![Medium::AIR].into());
    let mut materials = flat.materials.to_vec();
    materials.iter_mut().step_by(every).for_each(|material| material.layers = 1);
    flat.materials = materials.into();
    CheckedScene::new(Arc::new(flat)).expect("scenes of tests are right")
}

fn floor(builder: &mut Builder, material: u32) {
    builder.quad(
        [[-3.0, -1.0, 3.0], [3.0, -1.0, 3.0], [3.0, -1.0, -3.0], [-3.0, -1.0, -3.0]],
        material,
    );
}

/// A camera whose lens has so many blades.
fn blades(count: u32, camera: Camera) -> Camera {
    let half = std::f64::consts::PI / f64::from(count);
    let (blade_apothem, blade_half_side) = (half.cos() as f32, half.sin() as f32);
    Camera { blades: count, blade_turn: 0.3, blade_apothem, blade_half_side, ..camera }
}

/// Dielectrics and a smooth metal in a room; a lamp that both sides of shine, and a point light.
fn parlour() -> CheckedScene {
    let mut builder = Builder::default();
    let wall = builder.add_material(material([0.8, 0.7, 0.6], 0.0, 1.0));
    let glaze = builder.add_material(Material { ior: 2.4, ..material([0.1, 0.3, 0.7], 0.0, 0.1) });
    let mirror = builder.add_material(material([0.95, 0.9, 0.8], 1.0, 0.02));
    let mut lamp = material([0.2; 3], 0.0, 0.7);
    (lamp.emission, lamp.flags) = ([9.0, 8.0, 6.0], material_flags::DOUBLE_SIDED);
    let lamp = builder.add_material(lamp);
    builder.sphere(7, glaze);
    floor(&mut builder, wall);
    builder
        .quad([[-3.0, -1.0, -2.0], [3.0, -1.0, -2.0], [3.0, 3.0, -2.0], [-3.0, 3.0, -2.0]], wall);
    builder
        .quad([[-2.0, -1.0, -1.9], [-1.2, -1.0, 1.2], [-1.2, 1.5, 1.2], [-2.0, 1.5, -1.9]], mirror);
    let lit =
        builder.quad([[0.2, 2.2, 0.1], [1.1, 2.3, 0.3], [1.0, 2.2, 1.2], [0.3, 2.1, 1.0]], lamp);
    builder.emit(lit, 2.0);
    builder.emit(lit + 1, 1.0);
    let mut point = light(LightKind::Point, [4.0, 5.0, 6.0]);
    (point.position, point.range) = ([-1.0, 2.0, 2.5], 7.0);
    builder.lights.push((point, 1.0));
    builder.camera = look([0.0, 0.2, 4.5]);
    bright(builder)
}

/// Rough metals, which scatter more than once, and mixtures, under a map, through a lens.
fn foundry() -> CheckedScene {
    let mut builder = Builder::default();
    let linear = texture(
        &mut builder,
        TexelFormat::Rgba8Linear,
        (Wrap::MirroredRepeat, Wrap::Repeat),
        true,
        (13, 9),
    );
    let rough = builder.add_material(material([0.95, 0.6, 0.3], 1.0, 0.9));
    let mut mixed = material([0.7, 0.8, 0.9], 0.6, 0.8);
    mixed.metallic_roughness_texture = used(linear, 0);
    let mixed = builder.add_material(mixed);
    builder.sphere(6, rough);
    floor(&mut builder, mixed);
    builder.map(17, 8, |x, y| {
        [
            0.1 + (x % 5) as f32 * 0.2,
            0.3 + y as f32 * 0.05,
            if (x, y) == (11, 2) { 40.0 } else { 0.25 },
        ]
    });
    builder.environment.map_from_world = [0.6, 0.0, 0.8, 0.0, 1.0, 0.0, -0.8, 0.0, 0.6];
    builder.environment.intensity = 1.3;
    builder.camera = look([0.1, 0.1, 4.2]);
    (builder.camera.lens_radius, builder.camera.focus_distance) = (0.08, 3.6);
    bright(builder)
}

/// Cut-out and see-through surfaces, normal maps, vertex colours, a second set of texture
/// coordinates, a textured lamp.
fn veils() -> CheckedScene {
    let mut builder = Builder::default();
    let colour = texture(
        &mut builder,
        TexelFormat::Rgba8Srgb,
        (Wrap::Repeat, Wrap::ClampToEdge),
        true,
        (16, 11),
    );
    let sharp = texture(
        &mut builder,
        TexelFormat::Rgba8Srgb,
        (Wrap::ClampToEdge, Wrap::MirroredRepeat),
        false,
        (5, 7),
    );
    let fine = texture(
        &mut builder,
        TexelFormat::Rgba16Linear,
        (Wrap::Repeat, Wrap::Repeat),
        true,
        (9, 9),
    );
    let mut bumpy = material([0.9, 0.9, 0.8], 0.2, 0.4);
    (bumpy.normal_texture, bumpy.normal_scale, bumpy.base_color_texture) =
        (used(fine, 0), 0.7, used(colour, 1));
    let mut mask = material([0.7, 0.9, 0.5], 0.0, 0.6);
    (mask.alpha_mode, mask.base_color_texture) = (AlphaMode::Mask as u32, used(colour, 0));
    let mut blend = material([0.4, 0.6, 0.9], 0.0, 0.3);
    (blend.alpha_mode, blend.base_color_texture, blend.base_color[3]) =
        (AlphaMode::Blend as u32, used(sharp, 0), 0.8);
    let mut lamp = material([0.1; 3], 0.0, 1.0);
    (lamp.emission, lamp.emission_texture) = ([7.0, 5.0, 4.0], used(sharp, 1));
    let [bumpy, mask, blend, lamp] =
        [bumpy, mask, blend, lamp].map(|look| builder.add_material(look));
    floor(&mut builder, bumpy);
    builder.sphere(5, bumpy);
    builder.quad([[-1.6, -1.0, 1.3], [0.3, -1.0, 1.5], [0.4, 0.9, 1.4], [-1.5, 1.0, 1.2]], mask);
    builder.quad([[0.0, -0.8, 1.8], [1.9, -0.9, 1.2], [1.8, 1.1, 1.0], [0.1, 1.2, 1.6]], blend);
    let lit = builder
        .quad([[-0.5, 2.4, 0.6], [-0.4, 2.4, -0.7], [0.8, 2.5, -0.6], [0.7, 2.5, 0.5]], lamp);
    builder.emit(lit, 1.0);
    builder.emit(lit + 1, 3.0);
    let mut noise = Noise(5);
    for vertex in &mut builder.vertices {
        vertex.color = [
            noise.between(0.4, 1.0),
            noise.between(0.4, 1.0),
            noise.between(0.4, 1.0),
            noise.between(0.7, 1.0),
        ];
        vertex.uv1 = [noise.between(-2.0, 2.0), noise.between(-2.0, 2.0)];
        vertex.tangent_sign = if noise.bits() & 1 == 0 { 1.0 } else { -1.0 };
    }
    builder.camera = look([0.0, 0.1, 4.4]);
    bright(builder)
}

/// Parallel rays between two planes; a spot with a range, a sun, something unlit, and a lamp seen
/// from behind.
fn stage() -> CheckedScene {
    let mut builder = Builder::default();
    let boards = builder.add_material(material([0.5, 0.4, 0.3], 0.1, 0.5));
    let sign = builder.add_material(Material {
        flags: material_flags::UNLIT,
        ..material([0.2, 0.9, 0.4], 0.0, 1.0)
    });
    let lamp = builder
        .add_material(Material { emission: [3.0, 2.0, 4.0], ..material([0.3; 3], 0.0, 0.6) });
    floor(&mut builder, boards);
    builder.sphere(5, boards);
    builder.quad([[-1.9, 0.2, 0.9], [-1.1, 0.3, 1.1], [-1.2, 1.0, 1.0], [-1.8, 0.9, 0.8]], sign);
    let lit =
        builder.quad([[1.1, 0.0, 0.3], [1.0, 1.0, 0.2], [1.9, 1.1, 0.6], [1.8, 0.1, 0.7]], lamp);
    builder.emit(lit, 1.0);
    builder.emit(lit + 1, 1.0);
    let mut spot = light(LightKind::Spot, [30.0, 25.0, 20.0]);
    (spot.position, spot.range, spot.spot_scale, spot.spot_offset) =
        ([1.5, 2.5, 2.0], 9.0, 5.0, -3.4);
    spot.direction = unit([-1.2, -2.6, -1.9]);
    let mut sun = light(LightKind::Directional, [1.5, 1.4, 1.2]);
    sun.direction = unit([0.3, -1.0, -0.4]);
    builder.lights.extend([(spot, 2.0), (sun, 1.5)]);
    builder.camera = Camera { kind: CameraKind::Orthographic as u32, ..look([0.0, 0.2, 4.0]) };
    (builder.camera.half_width, builder.camera.half_height) = (2.1, 1.9);
    (builder.camera.near, builder.camera.far) = (0.5, 6.5);
    (builder.camera.shift_x, builder.camera.shift_y) = (0.125, -0.0625);
    bright(builder)
}

/// Nothing but a constant sky, which many leaves let through.
fn overcast() -> CheckedScene {
    let mut builder = Builder::default();
    let leaf = Material {
        alpha_mode: AlphaMode::Blend as u32,
        base_color: [0.3, 0.7, 0.2, 0.45],
        ..material([0.0; 3], 0.0, 0.8)
    };
    let leaf = builder.add_material(leaf);
    let ground = builder.add_material(material([0.6, 0.5, 0.4], 0.0, 0.9));
    floor(&mut builder, ground);
    let mut noise = Noise(11);
    for _ in 0..30 {
        let at = noise.point(1.3);
        let corner =
            |noise: &mut Noise| std::array::from_fn(|axis| at[axis] + noise.between(-0.5, 0.5));
        let corners =
            [corner(&mut noise), corner(&mut noise), corner(&mut noise), corner(&mut noise)];
        builder.quad(corners, leaf);
    }
    builder.constant([0.8, 0.9, 1.1]);
    builder.camera = look([0.0, 0.0, 4.4]);
    bright(builder)
}

/// Triangles in general position, some twice in the same place, deep in the hierarchy; every kind
/// of light at once, through a lens of seven blades.
fn thicket() -> CheckedScene {
    let mut builder = Builder::default();
    let fine = texture(
        &mut builder,
        TexelFormat::Rgba16Linear,
        (Wrap::MirroredRepeat, Wrap::ClampToEdge),
        false,
        (7, 4),
    );
    let mut looks = Vec::new();
    let mut noise = Noise(23);
    for at in 0..9u32 {
        let mut look = material(
            [noise.between(0.2, 1.0), noise.between(0.2, 1.0), noise.between(0.2, 1.0)],
            [0.0, 1.0, noise.unit()][at as usize % 3],
            noise.unit(),
        );
        (look.ior, look.normal_scale) = (noise.between(1.1, 2.0), noise.between(0.2, 1.5));
        if at % 4 == 1 {
            (look.alpha_mode, look.base_color[3]) = (AlphaMode::Blend as u32, 0.6);
        }
        if at % 3 == 2 {
            (look.normal_texture, look.metallic_roughness_texture) = (used(fine, 0), used(fine, 1));
        }
        if at == 8 {
            look.emission = [5.0, 6.0, 3.0];
        }
        looks.push(builder.add_material(look));
    }
    for at in 0..120usize {
        let centre = noise.point(2.0);
        let corner =
            |noise: &mut Noise| std::array::from_fn(|axis| centre[axis] + noise.between(-0.6, 0.6));
        let corners =
            [corner(&mut noise), corner(&mut noise), corner(&mut noise), corner(&mut noise)];
        let id = builder.quad(corners, looks[at % looks.len()]);
        if at % 10 == 0 {
            builder.quad(corners, looks[(at + 1) % looks.len()]);
        }
        if at % looks.len() == 8 {
            builder.emit(id, noise.between(0.1, 2.0).into());
        }
    }
    let mut point = light(LightKind::Point, [3.0, 2.0, 4.0]);
    point.position = [2.5, 2.0, 3.0];
    let mut sun = light(LightKind::Directional, [0.7, 0.6, 0.5]);
    sun.direction = unit([-0.5, -0.8, 0.3]);
    builder.lights.extend([(point, 1.0), (sun, 1.0)]);
    builder.map(9, 5, |x, y| [0.2 + x as f32 * 0.1, 0.4, 0.1 + y as f32 * 0.3]);
    builder.camera = blades(7, look([0.0, 0.0, 5.0]));
    (builder.camera.lens_radius, builder.camera.focus_distance) = (0.06, 4.5);
    bright(builder)
}

/// No surface at all: the map alone.
fn sky() -> CheckedScene {
    let mut builder = Builder::default();
    builder
        .map(6, 3, |x, y| [x as f32, y as f32 * 0.5, 1e7 * f32::from(u8::from((x, y) == (2, 1)))]);
    builder.camera = look([0.0; 3]);
    bright(builder)
}

/// No light at all, and a triangle without area.
fn dark() -> CheckedScene {
    let mut builder = Builder::default();
    let grey = builder.add_material(material([0.5; 3], 0.0, 0.5));
    builder.sphere(4, grey);
    builder.quad([[0.0; 3], [1.0, 1.0, 0.0], [2.0, 2.0, 0.0], [3.0, 3.0, 0.0]], grey);
    builder.camera = look([0.0, 0.0, 4.0]);
    bright(builder)
}
