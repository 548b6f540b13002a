//! The films: a ground of many triangles, and what moves over it. All share one buffer.

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use tessera_support::sheet::grid_corners;

/// Figures of a crowd, and the rings and corners of a ring of each: some 4,700 triangles, as many
/// as a small walking figure has.
const FIGURES: usize = 100;
const RINGS: usize = 73;
const RING: usize = 32;

/// What moves in a film.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moves {
    /// The camera alone.
    Camera,
    /// One small triangle.
    Triangle,
    /// The ground itself.
    Ground,
    /// A crowd of figures that bend, over the ground.
    Crowd,
    /// The same crowd without the ground.
    CrowdAlone,
}

/// A file in the making.
#[derive(Default)]
struct File {
    bytes: Vec<u8>,
    views: Vec<Value>,
    accessors: Vec<Value>,
}

impl File {
    /// Adds an array of numbers of one component type, and returns its accessor.
    fn add(&mut self, bytes: &[u8], component: u32, kind: &str, count: usize) -> usize {
        let (from, to) = (self.bytes.len(), self.bytes.len() + bytes.len());
        self.bytes.extend_from_slice(bytes);
        self.views.push(json!({ "buffer": 0, "byteOffset": from, "byteLength": to - from }));
        let view = self.views.len() - 1;
        self.accessors.push(json!({ "bufferView": view, "componentType": component,
            "type": kind, "count": count }));
        self.accessors.len() - 1
    }

    fn floats(&mut self, numbers: &[f32], kind: &str) -> usize {
        let of_one = match kind {
            "SCALAR" => 1,
            "VEC3" => 3,
            "VEC4" => 4,
            _ => 16,
        };
        self.add(bytemuck::cast_slice(numbers), 5126, kind, numbers.len() / of_one)
    }

    fn indices(&mut self, numbers: &[u32]) -> usize {
        self.add(bytemuck::cast_slice(numbers), 5125, "SCALAR", numbers.len())
    }
}

/// Accessors that the films use.
struct Arrays {
    ground: [usize; 2],
    small: usize,
    figure: [usize; 4],
    binds: usize,
    times: usize,
    moves: usize,
    camera: usize,
    turns: usize,
}

/// Writes the films over a ground of 2 `edge`² triangles, and returns their files in this order.
pub(crate) fn write(folder: &Path, edge: usize, films: &[Moves]) -> Vec<PathBuf> {
    let mut file = File::default();
    let ground = ground(edge);
    let figure = figure();
    let joints: Vec<u8> = (0..RINGS * RING).flat_map(|_| [0, 1, 0, 0]).collect();
    let weights = (0..RINGS * RING).flat_map(|vertex| {
        let high = (vertex / RING) as f32 / (RINGS - 1) as f32;
        [1.0 - high, high, 0.0, 0.0]
    });
    let weights: Vec<f32> = weights.collect();
    // The second joint stands in the middle of a figure.
    let mut binds = [[0.0f32; 16]; 2];
    for bind in &mut binds {
        (0..4).for_each(|diagonal| bind[5 * diagonal] = 1.0);
    }
    binds[1][13] = -0.5;
    let arrays = Arrays {
        ground: [file.floats(&ground.0, "VEC3"), file.indices(&ground.1)],
        small: file.floats(&[0.0, 1.0, 0.0, 0.4, 1.0, 0.0, 0.0, 1.4, 0.0], "VEC3"),
        figure: [
            file.floats(&figure.0, "VEC3"),
            file.indices(&figure.1),
            file.add(&joints, 5121, "VEC4", RINGS * RING),
            file.floats(&weights, "VEC4"),
        ],
        binds: file.floats(binds.as_flattened(), "MAT4"),
        times: file.floats(&[0.0, 1.0], "SCALAR"),
        moves: file.floats(&[0.0, 0.0, 0.0, 0.6, 0.0, 0.0], "VEC3"),
        camera: file.floats(&[0.0, 3.0, 9.0, 0.6, 3.0, 9.0], "VEC3"),
        turns: file.floats(&[0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.5, 0.866_025_4], "VEC4"),
    };
    std::fs::write(folder.join("films.bin"), &file.bytes).expect("the folder takes files");
    let write = |(index, moves): (usize, &Moves)| {
        let path = folder.join(format!("film{index}.gltf"));
        std::fs::write(&path, film(&file, &arrays, *moves).to_string())
            .expect("the folder takes files");
        path
    };
    films.iter().enumerate().map(write).collect()
}

fn film(file: &File, arrays: &Arrays, moves: Moves) -> Value {
    let camera = json!({ "camera": 0, "translation": [0, 3, 9],
        "rotation": [-0.16, 0, 0, 0.987] });
    let mut nodes = vec![json!({ "mesh": 0 }), json!({ "mesh": 1 }), camera];
    let mut shown = vec![0, 1, 2];
    let is_crowd = matches!(moves, Moves::Crowd | Moves::CrowdAlone);
    let (moved, path, places) = match moves {
        Moves::Camera => (vec![2], "translation", arrays.camera),
        Moves::Triangle => (vec![1], "translation", arrays.moves),
        Moves::Ground => (vec![0], "translation", arrays.moves),
        // The upper joint of each figure.
        _ => ((0..FIGURES).map(|figure| 3 + 3 * figure + 1).collect(), "rotation", arrays.turns),
    };
    let mut skins = Vec::new();
    for figure in (0..FIGURES).filter(|_| is_crowd) {
        let (x, z) = (figure % 10, figure / 10);
        let place = [x as f32 - 4.5, 0.3, z as f32 - 6.0];
        let first = nodes.len();
        nodes.push(json!({ "translation": place, "children": [first + 1] }));
        nodes.push(json!({ "translation": [0.0, 0.5, 0.0] }));
        nodes.push(json!({ "mesh": 2, "skin": figure }));
        skins.push(json!({ "joints": [first, first + 1], "inverseBindMatrices": arrays.binds }));
        shown.extend([first, first + 2]);
    }
    if moves == Moves::CrowdAlone {
        shown.remove(0);
    }
    let channel = |node: &usize| json!({ "sampler": 0, "target": { "node": node, "path": path } });
    let channels: Vec<Value> = moved.iter().map(channel).collect();
    let [place, corners, joints, weights] = arrays.figure;
    let mut film = json!({
        "asset": { "version": "2.0" },
        "buffers": [{ "uri": "films.bin", "byteLength": file.bytes.len() }],
        "bufferViews": file.views,
        "accessors": file.accessors,
        "meshes": [
            { "primitives": [{ "attributes": { "POSITION": arrays.ground[0] },
                "indices": arrays.ground[1] }] },
            { "primitives": [{ "attributes": { "POSITION": arrays.small } }] },
            { "primitives": [{ "attributes": { "POSITION": place, "JOINTS_0": joints,
                "WEIGHTS_0": weights }, "indices": corners }] },
        ],
        "cameras": [{ "type": "perspective", "perspective": { "yfov": 0.8, "znear": 0.1 } }],
        "nodes": nodes,
        "scenes": [{ "nodes": shown }],
        "scene": 0,
        "animations": [{ "samplers": [{ "input": arrays.times, "output": places }],
            "channels": channels }],
    });
    if is_crowd {
        film["skins"] = skins.into();
    }
    film
}

/// Places and triangles of a ground with waves, 10 m along a side.
fn ground(edge: usize) -> (Vec<f32>, Vec<u32>) {
    let side = edge + 1;
    let height = |x: f32, z: f32| 0.3 * (3.0 * x).sin() * (2.0 * z).cos();
    let at = |step: usize| step as f32 / edge as f32 * 10.0 - 5.0;
    let places = (0..side * side).map(|index| (at(index % side), at(index / side)));
    let corners = grid_corners(edge as u32);
    (places.flat_map(|(x, z)| [x, height(x, z), z]).collect(), corners.collect())
}

/// Places and triangles of a figure: a post of one metre.
fn figure() -> (Vec<f32>, Vec<u32>) {
    let place = |vertex: usize| {
        let (ring, corner) = (vertex / RING, vertex % RING);
        let turn = corner as f32 / RING as f32 * std::f32::consts::TAU;
        [0.2 * turn.cos(), ring as f32 / (RINGS - 1) as f32, 0.2 * turn.sin()]
    };
    let corners = (0..(RINGS - 1) * RING).flat_map(|quad| {
        let (ring, corner) = (quad / RING, quad % RING);
        let at = |ring: usize, corner: usize| (ring * RING + corner % RING) as u32;
        let [a, b] = [at(ring, corner), at(ring, corner + 1)];
        let [c, d] = [at(ring + 1, corner), at(ring + 1, corner + 1)];
        [a, c, b, b, c, d]
    });
    ((0..RINGS * RING).flat_map(place).collect(), corners.collect())
}
