//! What many lights cost: a room under 10, 100, 1,000 and 10,000 lamps of one total area and power.
//! Time of one processor times noise, over the same of the room with ten lamps.
//!
//!     cargo bench --bench lights [-- --spp N --rounds R]
//!
//! The ceiling is 1: a renderer that knew which lamps matter where would not notice their number.
//! Noise is the relative variance of a pixel, from pairs of pictures with other seeds, so that no
//! reference is needed. The camera looks down: lamps smaller than a pixel that it saw itself would
//! be noise however well lights are chosen. Rounds alternate over the rooms, and medians are
//! printed, since machines are noisy.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use tessera_kernels::CheckedScene;
use tessera_kernels::host::{RayCounts, best_isa, render_unit};
use tessera_layout::{FILM_FRACTION_BITS, PixelFilter, UnitParams};
use tessera_scenes::{CameraChoice, FlattenOptions, LoadOptions};

/// Edge of the picture, pixels.
const SIZE: u32 = 96;
const LAMPS: [usize; 4] = [10, 100, 1_000, 10_000];
/// Metres: half the room's width, and its height.
const HALF: f32 = 5.0;
const HEIGHT: f32 = 3.0;

struct Options {
    spp: u32,
    rounds: usize,
}

fn options() -> Options {
    let mut options = Options { spp: 64, rounds: 3 };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || arguments.next().and_then(|text| text.parse().ok());
        match argument.as_str() {
            "--spp" => options.spp = number().expect("--spp takes a number"),
            "--rounds" => options.rounds = number().expect("--rounds takes a number") as usize,
            _ => {}
        }
    }
    options
}

fn main() {
    let options = options();
    let folder = std::env::temp_dir().join(format!("tessera-lights-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let rooms: Vec<CheckedScene> = LAMPS.iter().map(|lamps| room(&folder, *lamps)).collect();
    let mut costs = vec![Vec::new(); LAMPS.len()];
    let mut parts = vec![Vec::new(); LAMPS.len()];
    for round in 0..options.rounds {
        for (index, room) in rooms.iter().enumerate() {
            let (secs, noise) = measure(room, options.spp, 2 * round as u32);
            costs[index].push(secs * noise);
            parts[index].push((secs, noise));
        }
    }
    let costs: Vec<f64> = costs.into_iter().map(median).collect();
    println!(
        "{SIZE} x {SIZE}, {} spp, depth 4, one thread, {} rounds",
        options.spp, options.rounds
    );
    for (index, lamps) in LAMPS.iter().enumerate() {
        let (secs, noise): (Vec<f64>, Vec<f64>) = parts[index].iter().copied().unzip();
        println!(
            "{lamps:>6} lamps: {:.2} s, relative variance {:.5}, time for equal noise {:.2} of ten \
                lamps' (target 2)",
            median(secs),
            median(noise),
            costs[index] / costs[0]
        );
    }
    let _ = std::fs::remove_dir_all(&folder);
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Seconds of a picture, and its noise from another one.
fn measure(scene: &CheckedScene, spp: u32, seed: u32) -> (f64, f64) {
    let start = Instant::now();
    let one = luminances(scene, spp, seed);
    let secs = start.elapsed().as_secs_f64();
    let other = luminances(scene, spp, seed + 1);
    let pixels = one.len() as f64;
    let level = one.iter().sum::<f64>() / pixels;
    let pairs = one.iter().zip(&other);
    let noise: f64 = pairs
        .map(|(a, b)| {
            let mean = 0.5 * (a + b);
            0.5 * (a - b) * (a - b) / (mean * mean + 1e-4 * level * level)
        })
        .sum();
    (secs, noise / pixels)
}

fn luminances(scene: &CheckedScene, spp: u32, seed: u32) -> Vec<f64> {
    let unit = UnitParams {
        frame_width: SIZE,
        frame_height: SIZE,
        width: SIZE,
        height: SIZE,
        sample_count: spp,
        seed,
        depth: 4,
        filter: PixelFilter::Box as u32,
        ..UnitParams::default()
    };
    let pixels = (SIZE * SIZE) as usize;
    let mut film = vec![0i64; 3 * pixels];
    render_unit(best_isa(), scene, &unit, &mut film, &mut RayCounts::default()).expect("a picture");
    let scale = f64::from(1u32 << FILM_FRACTION_BITS) * f64::from(spp);
    (0..pixels)
        .map(|at| {
            let channel = |which: usize| film[which * pixels + at] as f64 / scale;
            0.2126 * channel(0) + 0.7152 * channel(1) + 0.0722 * channel(2)
        })
        .collect()
}

/// Quads as glTF wants them.
#[derive(Default)]
struct Mesh {
    positions: Vec<f32>,
    indices: Vec<u32>,
}

impl Mesh {
    /// A parallelogram that faces where `across` × `along` points.
    fn quad(&mut self, corner: [f32; 3], across: [f32; 3], along: [f32; 3]) {
        let first = (self.positions.len() / 3) as u32;
        for (a, b) in [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)] {
            self.positions.extend((0..3).map(|k| corner[k] + a * across[k] + b * along[k]));
        }
        self.indices.extend([0, 1, 2, 0, 2, 3].map(|corner| first + corner));
    }

    fn boxed(&mut self, lower: [f32; 3], size: [f32; 3]) {
        let [x, y, z] = size;
        let upper = [lower[0] + x, lower[1] + y, lower[2] + z];
        self.quad([lower[0], upper[1], lower[2]], [0.0, 0.0, z], [x, 0.0, 0.0]);
        self.quad(lower, [0.0, 0.0, z], [0.0, y, 0.0]);
        self.quad(lower, [0.0, y, 0.0], [x, 0.0, 0.0]);
        self.quad(upper, [0.0, 0.0, -z], [0.0, -y, 0.0]);
        self.quad(upper, [0.0, -y, 0.0], [-x, 0.0, 0.0]);
    }
}

/// The room: floor, ceiling, walls and thirty boxes; lamps in a jittered grid below the ceiling.
fn room(folder: &Path, lamps: usize) -> CheckedScene {
    let mut state = 1u32;
    let mut random = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / 16_777_216.0
    };
    let (mut walls, mut glow) = (Mesh::default(), Mesh::default());
    let wide = 2.0 * HALF;
    walls.quad([-HALF, 0.0, -HALF], [0.0, 0.0, wide], [wide, 0.0, 0.0]);
    walls.quad([-HALF, HEIGHT, -HALF], [wide, 0.0, 0.0], [0.0, 0.0, wide]);
    walls.quad([-HALF, 0.0, -HALF], [wide, 0.0, 0.0], [0.0, HEIGHT, 0.0]);
    walls.quad([-HALF, 0.0, -HALF], [0.0, HEIGHT, 0.0], [0.0, 0.0, wide]);
    walls.quad([HALF, 0.0, -HALF], [0.0, 0.0, wide], [0.0, HEIGHT, 0.0]);
    for _ in 0..30 {
        let place = [(random() - 0.5) * 8.0, 0.0, (random() - 0.5) * 8.0 - 0.5];
        walls.boxed(place, [0.2 + 0.4 * random(), 0.2 + 1.2 * random(), 0.2 + 0.4 * random()]);
    }
    let columns = (lamps as f32).sqrt().ceil() as usize;
    let edge = (0.1 / lamps as f32).sqrt();
    for index in 0..lamps {
        let cell = wide / columns as f32;
        let at = |number: usize, jitter: f32| -HALF + cell * (number as f32 + 0.1 + 0.7 * jitter);
        let corner = [
            at(index % columns, random()),
            HEIGHT - 0.05 - 0.2 * random(),
            at(index / columns, random()),
        ];
        glow.quad(corner, [edge, 0.0, 0.0], [0.0, 0.0, edge]);
    }
    let path = folder.join(format!("room-{lamps}.gltf"));
    write(&path, &[&walls, &glow]);
    let name = path.file_name().and_then(|name| name.to_str()).expect("a UTF-8 name");
    let loaded = tessera_scenes::load(folder, name, &LoadOptions::default()).expect("a scene");
    let mut view = FlattenOptions::still(SIZE, SIZE);
    view.camera = CameraChoice::LookAt {
        eye: [0.0, 1.7, 4.8],
        target: [0.0; 3],
        up: [0.0, 1.0, 0.0],
        vfov_degrees: 45.0,
    };
    CheckedScene::new(Arc::new(loaded.flatten(&view).expect("a frame"))).expect("a right scene")
}

fn write(path: &Path, meshes: &[&Mesh; 2]) {
    let mut bytes: Vec<u8> = Vec::new();
    let (mut views, mut accessors, mut primitives) = (Vec::new(), Vec::new(), Vec::new());
    for (material, mesh) in meshes.iter().enumerate() {
        let start = bytes.len();
        bytes.extend(mesh.positions.iter().flat_map(|value| value.to_le_bytes()));
        let middle = bytes.len();
        bytes.extend(mesh.indices.iter().flat_map(|value| value.to_le_bytes()));
        let bound = |axis: usize, pick: fn(f32, f32) -> f32| {
            mesh.positions.chunks(3).map(|corner| corner[axis]).reduce(pick).expect("a corner")
        };
        let (view, count) = (views.len(), mesh.positions.len() / 3);
        views.push(
            serde_json::json!({"buffer": 0, "byteOffset": start, "byteLength": middle - start}),
        );
        views.push(serde_json::json!({"buffer": 0, "byteOffset": middle,
                "byteLength": bytes.len() - middle}));
        accessors.push(
            serde_json::json!({"bufferView": view, "componentType": 5126, "type": "VEC3",
                "count": count,
            "min": [bound(0, f32::min), bound(1, f32::min), bound(2, f32::min)],
            "max": [bound(0, f32::max), bound(1, f32::max), bound(2, f32::max)]}),
        );
        accessors.push(
            serde_json::json!({"bufferView": view + 1, "componentType": 5125, "type": "SCALAR",
            "count": mesh.indices.len()}),
        );
        primitives.push(serde_json::json!({"attributes": {"POSITION": view}, "indices": view + 1,
                "material": material}));
    }
    let bin = path.with_extension("bin");
    std::fs::write(&bin, &bytes).expect("a file");
    let matte = serde_json::json!({"pbrMetallicRoughness": {"baseColorFactor": [0.6, 0.6, 0.6, 1.0],
        "metallicFactor": 0.0, "roughnessFactor": 1.0}});
    let lamp = serde_json::json!({"emissiveFactor": [1.0, 1.0, 1.0],
        "extensions": {"KHR_materials_emissive_strength": {"emissiveStrength": 200.0}}});
    let scene = serde_json::json!({"asset": {"version": "2.0"}, "scene": 0,
        "scenes": [{"nodes": [0]}],
        "nodes": [{"mesh": 0}], "meshes": [{"primitives": primitives}], "materials": [matte, lamp],
        "extensionsUsed": ["KHR_materials_emissive_strength"], "accessors": accessors,
        "bufferViews": views,
        "buffers": [{"uri": bin.file_name().and_then(|name| name.to_str()),
        "byteLength": bytes.len()}]});
    std::fs::write(path, scene.to_string()).expect("a file");
}
