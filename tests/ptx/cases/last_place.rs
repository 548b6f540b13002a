//! Pictures in which the last place decides: every pixel has a surface of its own, whose cutoff or
//! opacity is found by bisection on the host so that the next float would decide otherwise; boxes
//! without padding; lamps at grazing angles. Made for the mutation check; knows no machine.

use std::sync::Arc;

use crate::ptx::pictures::on_host;
use tessera_kernels::CheckedScene;
use tessera_kernels::host::best_isa;
use tessera_layout::*;
use tessera_support::builder::*;
use tessera_support::scenes::{Case, Noise, texture};

/// Pixels across and down.
const SIZE: u32 = 16;

/// Those of every run.
pub(crate) fn all() -> Vec<Case> {
    let several = UnitParams { aovs: 15, ..whole(SIZE, SIZE, 2, 5) };
    let case = |name, scene, unit| Case { name, scene, unit };
    let mut cases = panes_of_pixels(31);
    cases.extend([
        case("crates", crates(0.0, 1.0), several),
        case("tight crates", crates(2e-7, 1.0), several),
        case("tiny crates", crates(1e-9, 0.01), several),
        case("horizon", horizon(), UnitParams { aovs: 1, ..whole(SIZE, SIZE, 1, 3) }),
    ]);
    cases
}

/// Which places of its texture a pane shows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Places {
    /// Any.
    Anywhere,
    /// One place, which lies exactly in the centre of a texel, or on the border of two.
    OnTexels,
}

/// Pictures in which a float decides whether a ray passes, for every pixel: another set for another
/// seed.
pub(crate) fn panes_of_pixels(seed: u32) -> Vec<Case> {
    let names =
        ["lattice, just there", "lattice, just not", "canopy, just there", "canopy, just not"];
    decided(names, seed, Places::Anywhere)
}

/// The same with coordinates that are exactly centres and borders of texels.
pub(crate) fn panes_on_texels(seed: u32) -> Vec<Case> {
    let names = [
        "texels, just there",
        "texels, just not",
        "shade of texels, just there",
        "shade of texels, just not",
    ];
    decided(names, seed, Places::OnTexels)
}

fn decided(names: [&'static str; 4], seed: u32, places: Places) -> Vec<Case> {
    let unit = UnitParams { aovs: 15, ..whole(SIZE, SIZE, 1, 1) };
    let lattice = |numbers: &[f32]| lattice(numbers, seed, places);
    let lattices = edges(lattice, &UnitParams { aovs: 4, depth: 0, ..unit }, |film, pixel| {
        // The wall behind is farther than every pane.
        film[(3 * SIZE * SIZE + pixel) as usize] < 5 << 24
    });
    let canopy = |numbers: &[f32]| canopy(numbers, seed, places);
    let canopies = edges(canopy, &UnitParams { aovs: 0, ..unit }, |film, pixel| {
        (0..3).all(|channel| film[(channel * SIZE * SIZE + pixel) as usize] == 0)
    });
    let scenes = names.into_iter().zip(lattices.into_iter().chain(canopies));
    scenes.map(|(name, scene)| Case { name, scene, unit }).collect()
}

fn is_blend(pixel: u32) -> bool {
    pixel % 3 == 1
}

/// Two scenes whose numbers, one for each pixel, are next to each other, and between which the
/// pixel changes: a cutoff that still lets a surface stop a ray and one that does not, or an
/// opacity that does not and one that does.
fn edges(
    build: impl Fn(&[f32]) -> CheckedScene,
    unit: &UnitParams,
    is_stopped: impl Fn(&[i64], u32) -> bool,
) -> [CheckedScene; 2] {
    let pixels = SIZE * SIZE;
    let mut low = vec![0u32; pixels as usize];
    let mut high: Vec<u32> =
        (0..pixels).map(|at| if is_blend(at) { 64.0f32 } else { 2.0 }.to_bits()).collect();
    let floats =
        |bits: &[u32]| -> Vec<f32> { bits.iter().map(|bits| f32::from_bits(*bits)).collect() };
    for _ in 0..32 {
        let middle: Vec<u32> =
            low.iter().zip(&high).map(|(low, high)| low + (high - low) / 2).collect();
        let case = Case { name: "bisection", scene: build(&floats(&middle)), unit: *unit };
        let film = on_host(&case, best_isa()).0;
        for (pixel, middle) in (0..pixels).zip(middle) {
            let side =
                if is_stopped(&film, pixel) != is_blend(pixel) { &mut low } else { &mut high };
            side[pixel as usize] = middle;
        }
    }
    [build(&floats(&low)), build(&floats(&high))]
}

/// Adds a material for each pixel: every format, wrap mode, filter and set of coordinates, cut out
/// or blended.
fn panes(builder: &mut Builder, numbers: &[f32], seed: u32, places: Places) -> Vec<u32> {
    use TexelFormat::{Rgba8Linear, Rgba8Srgb, Rgba16Linear};
    use Wrap::{ClampToEdge, MirroredRepeat, Repeat};
    let textures = [
        (Rgba8Srgb, (Repeat, MirroredRepeat), true, (13, 16)),
        (Rgba8Linear, (MirroredRepeat, ClampToEdge), true, (16, 9)),
        (Rgba16Linear, (ClampToEdge, Repeat), true, (7, 11)),
        (Rgba16Linear, (MirroredRepeat, MirroredRepeat), false, (9, 16)),
        (Rgba8Srgb, (Repeat, ClampToEdge), false, (8, 8)),
    ];
    let textures =
        textures.map(|(format, wrap, bilinear, (width, height)): (_, _, _, (u32, u32))| {
            // Centres and borders of texels are floats where the size is a power of two.
            let size = match places {
                Places::Anywhere => (width, height),
                Places::OnTexels => (width.next_power_of_two(), height.next_power_of_two()),
            };
            texture(builder, format, wrap, bilinear, size)
        });
    let mut noise = Noise(seed + 66);
    (0..)
        .zip(numbers)
        .map(|(pixel, number)| {
            // Some stay within a texture's first texel, where differences of coordinates round.
            let spread = if pixel % 4 == 0 { 0.02 } else { 3.0 };
            let map: [f32; 6] = match places {
                Places::Anywhere => std::array::from_fn(|_| noise.between(-spread, spread)),
                Places::OnTexels => {
                    // Halves of a sixteenth: of sixteen texels centres and borders.
                    let mut place = || (noise.bits() % 65) as f32 / 32.0;
                    // The last texture repeats, also to the left of its first copy.
                    let left = if pixel % 5 == 4 { 2.0 } else { 0.0 };
                    [0.0, 0.0, place() - left, 0.0, 0.0, place()]
                }
            };
            let used = match pixel % 7 {
                6 => TextureRef::ABSENT,
                _ => TextureRef {
                    uv_from_mesh: map,
                    texture: textures[pixel % 5],
                    uv_set: pixel as u32 / 5 % 2,
                    ..TextureRef::ABSENT
                },
            };
            let mut look =
                Material { base_color_texture: used, ..material([0.3, 0.6, 0.8], 0.0, 0.6) };
            if places == Places::OnTexels {
                (look.metallic_roughness_texture, look.normal_texture) = (used, used);
                (look.emission_texture, look.emission) = (used, [0.2, 0.3, 0.1]);
            }
            if is_blend(pixel as u32) {
                (look.alpha_mode, look.base_color[3]) = (AlphaMode::Blend as u32, *number);
            } else {
                (look.alpha_mode, look.alpha_cutoff) = (AlphaMode::Mask as u32, *number);
                look.base_color[3] = noise.between(0.8, 1.0);
            }
            builder.add_material(look)
        })
        .collect()
}

/// Gives every vertex colours and coordinates of its own.
fn vary(builder: &mut Builder, seed: u32) {
    let mut noise = Noise(seed);
    for vertex in &mut builder.vertices {
        vertex.color = std::array::from_fn(|_| noise.between(0.5, 1.0));
        (vertex.u0, vertex.v0) = (noise.between(-1.0, 1.0), noise.between(-1.0, 1.0));
        vertex.uv1 = [noise.between(-1.0, 1.0), noise.between(-1.0, 1.0)];
    }
}

/// The corners of a pixel of a picture whose pixels are a metre wide, moved and at a height over
/// each corner.
fn cell(pixel: u32, moved: [f32; 2], mut height: impl FnMut() -> f32) -> [[f32; 3]; 4] {
    let half = SIZE as f32 / 2.0;
    let (x, y) =
        ((pixel % SIZE) as f32 - half + moved[0], half - 1.0 - (pixel / SIZE) as f32 + moved[1]);
    [[x, y], [x + 1.0, y], [x + 1.0, y + 1.0], [x, y + 1.0]].map(|[x, y]| [x, y, height()])
}

fn from_above(builder: &mut Builder, height: f32) {
    builder.camera = camera_at([0.0, 0.0, height], CameraKind::Orthographic, SIZE as f32 / 2.0);
}

fn wall(builder: &mut Builder, height: f32) {
    let look = builder.add_material(material([0.7, 0.6, 0.5], 0.0, 0.9));
    builder.quad(
        [[-40.0, -40.0], [40.0, -40.0], [40.0, 40.0], [-40.0, 40.0]].map(|[x, y]| [x, y, height]),
        look,
    );
}

fn sun(builder: &mut Builder, towards: [f32; 3]) {
    let mut sun = light(LightKind::Directional, [700.0, 650.0, 600.0]);
    sun.direction = unit(towards.map(|v| -v));
    builder.lights.push((sun, 1.0));
}

/// A pane in the way of every camera ray.
fn lattice(numbers: &[f32], seed: u32, places: Places) -> CheckedScene {
    let mut builder = Builder::default();
    let looks = panes(&mut builder, numbers, seed, places);
    let mut noise = Noise(seed);
    for (pixel, look) in (0..).zip(looks) {
        builder.quad(cell(pixel, [0.0; 2], || noise.between(-0.4, 0.4)), look);
    }
    vary(&mut builder, seed + 6);
    wall(&mut builder, -2.0);
    sun(&mut builder, [0.1, 0.2, 1.0]);
    from_above(&mut builder, 4.0);
    builder.finish()
}

/// A pane in the way of every shadow ray; the camera stands below them.
fn canopy(numbers: &[f32], seed: u32, places: Places) -> CheckedScene {
    let mut builder = Builder::default();
    let looks = panes(&mut builder, numbers, seed, places);
    for (pixel, look) in (0..).zip(looks) {
        // Where the sun's rays to this pixel pass, a metre above it.
        builder.quad(cell(pixel, [1.0, 0.5], || 1.0), look);
    }
    vary(&mut builder, seed + 12);
    wall(&mut builder, 0.0);
    sun(&mut builder, [1.0, 0.5, 1.0]);
    from_above(&mut builder, 0.5);
    builder.finish()
}

/// Boxes along the axes in a closed room, all of them lamps, whose triangles have next to no
/// padding: every ray is at the edge of a triangle's own box. Scaled down, every coordinate is near
/// zero, where origins are moved by another rule.
fn crates(padding: f32, scale: f32) -> CheckedScene {
    let mut builder = Builder::default();
    let mut noise = Noise(53);
    let looks: Vec<u32> = (0..6)
        .map(|at| {
            let mut look =
                material([0.9, 0.8, 0.85], [0.0, 1.0, 0.5][at % 3], noise.between(0.1, 0.9));
            let channel = |noise: &mut Noise| noise.between(50.0, 300.0);
            look.emission = [channel(&mut noise), channel(&mut noise), channel(&mut noise)];
            if at > 2 {
                look.emission[at - 3] = 0.0;
            }
            look.flags = material_flags::DOUBLE_SIDED;
            builder.add_material(look)
        })
        .collect();
    let mut shut = |low: [f32; 3], high: [f32; 3], noise: &mut Noise| {
        let [low, high] = [low, high].map(|corner| corner.map(|v| v * scale));
        for axis in 0..3 {
            for side in [low[axis], high[axis]] {
                let (a, b) = ((axis + 1) % 3, (axis + 2) % 3);
                let corners =
                    [[low[a], low[b]], [high[a], low[b]], [high[a], high[b]], [low[a], high[b]]];
                let corners = corners.map(|[across, up]| {
                    let mut corner = [0.0; 3];
                    (corner[a], corner[b]) = (across, up);
                    // Some a little off their plane, by less than anybody can see.
                    corner[axis] =
                        if noise.bits().is_multiple_of(4) { side.next_up() } else { side };
                    corner
                });
                let id = builder.quad(corners, looks[noise.bits() as usize % looks.len()]);
                builder.emit(id, noise.between(0.5, 1.5).into());
                builder.emit(id + 1, noise.between(0.5, 1.5).into());
            }
        }
    };
    shut([-2.3, -2.1, -2.7], [2.9, 2.2, 4.3], &mut noise);
    for _ in 0..14 {
        let low = noise.point(1.8);
        let high = low.map(|v| v + noise.between(0.2, 0.9));
        shut(low, high, &mut noise);
    }
    vary(&mut builder, 61);
    builder.camera = tessera_support::scenes::look([0.0, 0.1, 2.4]);
    for place in [3, 7, 11] {
        builder.camera.world_from_camera[place] *= scale;
    }
    let mut flat = builder.flat();
    Arc::make_mut(&mut flat.bvh).padding = padding;
    CheckedScene::new(Arc::new(flat)).expect("scenes of tests are right")
}

/// A floor, and a wide lamp so far away and so low over it that hardly anything faces it.
fn horizon() -> CheckedScene {
    let mut builder = Builder::default();
    let floor = builder.add_material(material([0.6, 0.7, 0.5], 0.2, 0.7));
    let mut lamp = material([0.2; 3], 0.0, 1.0);
    (lamp.emission, lamp.flags) = ([9e4, 8e4, 7e4], material_flags::DOUBLE_SIDED);
    let lamp = builder.add_material(lamp);
    builder.quad([[-3.0, 0.0, 3.0], [3.0, 0.0, 3.0], [3.0, 0.0, -3.0], [-3.0, 0.0, -3.0]], floor);
    let far = [[400.0, -300.0], [900.0, -300.0], [900.0, 300.0], [400.0, 300.0]];
    let lit = builder.quad(far.map(|[x, z]| [x, 3e-5, z]), lamp);
    builder.emit(lit, 1.0);
    builder.emit(lit + 1, 1.0);
    let mut point = light(LightKind::Point, [900.0, 800.0, 700.0]);
    point.position = [0.5, 2.0, 0.3];
    builder.lights.push((point, 1.0));
    // Straight down.
    let world_from_camera = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 3.0, 0.0, -1.0, 0.0, 0.0];
    builder.camera =
        Camera { world_from_camera, ..camera_at([0.0; 3], CameraKind::Perspective, 0.6) };
    builder.finish()
}
