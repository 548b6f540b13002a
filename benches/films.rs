//! What a film costs beside one in which only the camera moves. Prints ratios; fails on nothing.
//!
//!     cargo bench --bench films [-- --edge N --frames N --rounds R]
//!
//! A ground of 2 N² triangles (N = 708: a million) and one small triangle above it, 320 × 180 with
//! 4 samples. In the first film the camera moves, in the second the small triangle, in the third
//! the ground itself. Each is rendered by `tessera render`, in turns; medians of wall time and
//! memory are printed, and their ratios to the first film's. The ceiling is that first film: its
//! scene is prepared once, whatever a frame shows.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::time::Instant;
use tessera_support::farm::tessera;

/// Films: what moves, its node, and the most wall time and memory beside the first film.
const FILMS: [(&str, u32, f64, f64); 3] =
    [("camera", 2, 1.0, 1.0), ("small triangle", 1, 1.15, 1.3), ("ground", 0, 1.6, 1.3)];

fn main() {
    let (mut edge, mut frames, mut rounds) = (708, 8, 3);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || arguments.next().and_then(|text| text.parse().ok()).expect("a number");
        match argument.as_str() {
            "--edge" => edge = number(),
            "--frames" => frames = number(),
            "--rounds" => rounds = number(),
            _ => {}
        }
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    write_films(folder, edge);
    let mut taken: Vec<Vec<[f64; 2]>> = vec![Vec::new(); FILMS.len()];
    for _ in 0..rounds {
        for (index, taken) in taken.iter_mut().enumerate() {
            taken.push(render(folder, index, frames));
        }
    }
    let median = |film: usize, figure: usize| {
        let mut values: Vec<f64> = taken[film].iter().map(|taken| taken[figure]).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    println!("{} triangles that could stand still, {frames} frames", 2 * edge * edge);
    for (index, (what, _, time_max, memory_max)) in FILMS.into_iter().enumerate() {
        let [time, memory] = [0, 1].map(|figure| median(index, figure));
        println!(
            "{what} moves: {time:.2} s, {:.2} times the camera's (at most {time_max}); {memory:.0} \
                MB, {:.2} times (at most {memory_max})",
            time / median(0, 0),
            memory / median(0, 1)
        );
    }
}

/// Renders a film; its wall time in seconds, and the memory of all its processes in MB.
fn render(folder: &Path, film: usize, frames: usize) -> [f64; 2] {
    let begun = Instant::now();
    let output = Command::new(tessera())
        .arg("render")
        .arg(folder.join(format!("film{film}.gltf")))
        .args(["--size", "320x180", "--spp", "4", "--device", "cpu", "-q", "--json"])
        .args(["--frames", &format!("0-{}", frames.max(1) - 1), "-o"])
        .arg(folder.join("frame.####.exr"))
        .output()
        .expect("the binary runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let bytes = report["peak_bytes"].as_f64().expect("bytes");
    [begun.elapsed().as_secs_f64(), bytes / 1e6]
}

/// Writes the films, which share their buffer.
fn write_films(folder: &Path, edge: usize) {
    let side = edge + 1;
    let height = |x: f32, z: f32| 0.3 * (3.0 * x).sin() * (2.0 * z).cos();
    let at = |step: usize| step as f32 / edge as f32 * 10.0 - 5.0;
    let places = (0..side * side).map(|index| (at(index % side), at(index / side)));
    let ground: Vec<f32> = places.flat_map(|(x, z)| [x, height(x, z), z]).collect();
    let corners: Vec<u32> = (0..edge * edge)
        .flat_map(|index| {
            let first = (index / edge * side + index % edge) as u32;
            let below = first + side as u32;
            [first, below, first + 1, first + 1, below, below + 1]
        })
        .collect();
    let small = [0.0f32, 1.0, 0.0, 0.4, 1.0, 0.0, 0.0, 1.4, 0.0];
    let times = [0.0f32, 1.0];
    let moves = [0.0f32, 0.0, 0.0, 0.6, 0.0, 0.0];
    let camera = [0.0f32, 3.0, 9.0, 0.6, 3.0, 9.0];
    let mut buffer = Vec::new();
    let mut accessors = Vec::new();
    let mut views = Vec::new();
    let mut add = |bytes: &[u8], kind: u32, of: &str, count: usize| {
        views.push(json!({ "buffer": 0, "byteOffset": buffer.len(), "byteLength": bytes.len() }));
        let view = views.len() - 1;
        accessors
            .push(json!({ "bufferView": view, "componentType": kind, "type": of, "count": count }));
        buffer.extend_from_slice(bytes);
    };
    let floats: fn(&[f32]) -> &[u8] = bytemuck::cast_slice;
    add(floats(&ground), 5126, "VEC3", side * side);
    add(bytemuck::cast_slice(&corners), 5125, "SCALAR", corners.len());
    add(floats(&small), 5126, "VEC3", 3);
    add(floats(&times), 5126, "SCALAR", 2);
    add(floats(&moves), 5126, "VEC3", 2);
    add(floats(&camera), 5126, "VEC3", 2);
    std::fs::write(folder.join("films.bin"), &buffer).expect("the folder takes files");
    for (index, (_, node, ..)) in FILMS.iter().enumerate() {
        let output = if *node == 2 { 5 } else { 4 };
        let film = json!({
            "asset": { "version": "2.0" },
            "buffers": [{ "uri": "films.bin", "byteLength": buffer.len() }],
            "bufferViews": views,
            "accessors": accessors,
            "meshes": [
                { "primitives": [{ "attributes": { "POSITION": 0 }, "indices": 1 }] },
                { "primitives": [{ "attributes": { "POSITION": 2 } }] },
            ],
            "cameras": [{ "type": "perspective", "perspective": { "yfov": 0.8, "znear": 0.1 } }],
            "nodes": [
                { "mesh": 0 },
                { "mesh": 1 },
                { "camera": 0, "translation": [0, 3, 9], "rotation": [-0.16, 0, 0, 0.987] },
            ],
            "scenes": [{ "nodes": [0, 1, 2] }],
            "scene": 0,
            "animations": [{
                "samplers": [{ "input": 3, "output": output }],
                "channels": [
                    { "sampler": 0, "target": { "node": node, "path": "translation" } },
                ],
            }],
        });
        let path = folder.join(format!("film{index}.gltf"));
        std::fs::write(path, film.to_string()).expect("the folder takes files");
    }
}
