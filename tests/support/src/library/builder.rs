//! A small writer of glTF: meshes, materials, nodes and animations with one embedded buffer. Owns
//! no scene.

use base64::Engine as _;
use serde_json::{Value, json};

/// glTF's number of a 32-bit float.
const FLOAT: u32 = 5126;
/// glTF's number of an unsigned 16-bit integer.
const UNSIGNED_SHORT: u32 = 5123;

/// A glTF file in the making. Functions that add something return its index.
#[derive(Default)]
pub struct Scene {
    bytes: Vec<u8>,
    views: Vec<Value>,
    accessors: Vec<Value>,
    meshes: Vec<Value>,
    materials: Vec<Value>,
    cameras: Vec<Value>,
    lights: Vec<Value>,
    nodes: Vec<Value>,
    animations: Vec<Value>,
}

/// Triangles with a normal per vertex.
#[derive(Default, Clone)]
pub(crate) struct Shape {
    pub(crate) positions: Vec<[f32; 3]>,
    pub(crate) normals: Vec<[f32; 3]>,
    pub(crate) triangles: Vec<[u16; 3]>,
}

/// Where a mesh is shown, one of each for every place.
#[derive(Default)]
pub(crate) struct Places {
    pub(crate) translations: Vec<[f32; 3]>,
    pub(crate) rotations: Vec<[f32; 4]>,
    pub(crate) scales: Vec<[f32; 3]>,
}

/// Something clear with an inside.
pub(crate) struct Glass {
    pub(crate) ior: f32,
    /// The colour that white light has after so many metres.
    pub(crate) attenuation: Option<([f32; 3], f32)>,
    pub(crate) priority: i32,
}

impl Shape {
    /// Adds a flat quadrilateral, its corners in order, that faces the side on which `front` lies.
    pub(crate) fn quad(&mut self, mut corners: [[f64; 3]; 4], front: [f64; 3]) {
        let towards = sub(front, corners[0]);
        let mut normal = cross(sub(corners[1], corners[0]), sub(corners[2], corners[0]));
        if dot(normal, towards) < 0.0 {
            corners.reverse();
            normal = normal.map(|c| -c);
        }
        let length = dot(normal, normal).sqrt();
        let first = self.positions.len() as u16;
        self.positions.extend(corners.map(|corner| corner.map(|c| c as f32)));
        self.normals.extend([normal.map(|c| (c / length) as f32); 4]);
        self.triangles.extend([[first, first + 1, first + 2], [first, first + 2, first + 3]]);
    }

    /// A sphere of radius 1 about the origin, from `rings` bands of `2 * rings` quadrilaterals.
    pub(crate) fn sphere(rings: u16) -> Self {
        let mut shape = Self::default();
        let sectors = 2 * rings;
        for ring in 0..=rings {
            let polar = std::f64::consts::PI * f64::from(ring) / f64::from(rings);
            for sector in 0..=sectors {
                let turn = 2.0 * std::f64::consts::PI * f64::from(sector) / f64::from(sectors);
                let sine = libm::sin(polar);
                let point = [sine * libm::sin(turn), libm::cos(polar), sine * libm::cos(turn)];
                shape.positions.push(point.map(|c| c as f32));
                shape.normals.push(point.map(|c| c as f32));
            }
        }
        for ring in 0..rings {
            for sector in 0..sectors {
                let upper = ring * (sectors + 1) + sector;
                let lower = upper + sectors + 1;
                shape.triangles.extend([[upper, lower, lower + 1], [upper, lower + 1, upper + 1]]);
            }
        }
        shape
    }

    /// A profile of distances from +Y and heights, turned about that axis. Its inside is to the
    /// left of the way along it.
    pub(crate) fn lathe(profile: &[[f64; 2]], sectors: u16) -> Self {
        let mut shape = Self::default();
        for ends in profile.windows(2) {
            let [[from, low], [to, high]] = [ends[0], ends[1]];
            let (across, up) = (to - from, high - low);
            let length = (across * across + up * up).sqrt();
            let first = shape.positions.len() as u16;
            for sector in 0..=sectors {
                let turn = 2.0 * std::f64::consts::PI * f64::from(sector) / f64::from(sectors);
                let (sine, cosine) = (libm::sin(turn), libm::cos(turn));
                for [radius, height] in [[from, low], [to, high]] {
                    shape
                        .positions
                        .push([radius * sine, height, radius * cosine].map(|c| c as f32));
                    let normal = [up * sine / length, -across / length, up * cosine / length];
                    shape.normals.push(normal.map(|c| c as f32));
                }
            }
            for sector in 0..sectors {
                let at = first + 2 * sector;
                // At the axis one of the two has no area.
                if from > 0.0 {
                    shape.triangles.push([at, at + 2, at + 1]);
                }
                if to > 0.0 {
                    shape.triangles.push([at + 1, at + 2, at + 3]);
                }
            }
        }
        shape
    }

    /// A cube with corners at ±half.
    pub(crate) fn cube(half: f64) -> Self {
        let mut shape = Self::default();
        for axis in 0..3 {
            for side in [-half, half] {
                let corner = |a: f64, b: f64| {
                    let mut point = [side; 3];
                    point[(axis + 1) % 3] = a;
                    point[(axis + 2) % 3] = b;
                    point
                };
                let corners = [
                    corner(-half, -half),
                    corner(half, -half),
                    corner(half, half),
                    corner(-half, half),
                ];
                let mut front = [0.0; 3];
                front[axis] = 2.0 * side;
                shape.quad(corners, front);
            }
        }
        shape
    }
}

impl Scene {
    pub(crate) fn mesh(&mut self, shape: &Shape, material: usize) -> usize {
        let lower = fold(&shape.positions, f32::min);
        let upper = fold(&shape.positions, f32::max);
        let positions = self.floats(&shape.positions.concat(), "VEC3", Some((lower, upper)));
        let normals = self.floats(&shape.normals.concat(), "VEC3", None);
        let corners: Vec<u16> = shape.triangles.concat();
        let bytes: Vec<u8> = corners.iter().flat_map(|corner| corner.to_le_bytes()).collect();
        let indices = self.accessor(&bytes, UNSIGNED_SHORT, corners.len(), "SCALAR");
        self.add_mesh([positions, normals, indices], material)
    }

    /// The same triangles as another mesh, with another material.
    pub(crate) fn mesh_like(&mut self, mesh: usize, material: usize) -> usize {
        let primitive = &self.meshes[mesh]["primitives"][0];
        let index = |value: &Value| value.as_u64().unwrap_or_default() as usize;
        let attributes = &primitive["attributes"];
        let accessors = [
            index(&attributes["POSITION"]),
            index(&attributes["NORMAL"]),
            index(&primitive["indices"]),
        ];
        self.add_mesh(accessors, material)
    }

    fn add_mesh(&mut self, [positions, normals, indices]: [usize; 3], material: usize) -> usize {
        let attributes = json!({ "POSITION": positions, "NORMAL": normals });
        let primitive =
            json!({ "attributes": attributes, "indices": indices, "material": material });
        push(&mut self.meshes, json!({ "primitives": [primitive] }))
    }

    pub(crate) fn material(
        &mut self,
        name: &str,
        color: [f32; 3],
        metallic: f32,
        roughness: f32,
    ) -> usize {
        let [r, g, b] = color;
        push(
            &mut self.materials,
            json!({ "name": name, "pbrMetallicRoughness": {
                "baseColorFactor": [r, g, b, 1.0], "metallicFactor": metallic,
                    "roughnessFactor": roughness } }),
        )
    }

    /// A smooth surface that encloses a medium.
    pub(crate) fn glass(&mut self, name: &str, glass: &Glass) -> usize {
        let mut volume = json!({ "thicknessFactor": 1.0 });
        if let Some((color, metres)) = glass.attenuation {
            volume["attenuationColor"] = json!(color);
            volume["attenuationDistance"] = json!(metres);
        }
        push(
            &mut self.materials,
            json!({ "name": name,
                "pbrMetallicRoughness": { "metallicFactor": 0.0, "roughnessFactor": 0.0 },
                "extensions": {
                    "KHR_materials_ior": { "ior": glass.ior },
                    "KHR_materials_transmission": { "transmissionFactor": 1.0 },
                    "KHR_materials_volume": volume },
                "extras": { "tessera_medium_priority": glass.priority } }),
        )
    }

    /// A black surface that emits `radiance` (linear Rec. 709).
    pub(crate) fn emitter(&mut self, name: &str, radiance: [f32; 3]) -> usize {
        let strength = radiance.into_iter().fold(1.0, f32::max);
        push(
            &mut self.materials,
            json!({ "name": name,
                "pbrMetallicRoughness": { "baseColorFactor": [0.0, 0.0, 0.0, 1.0],
                "metallicFactor": 0.0 },
                "emissiveFactor": radiance.map(|value| value / strength),
                "extensions": {
                    "KHR_materials_emissive_strength": { "emissiveStrength": strength } } }),
        )
    }

    pub(crate) fn node(&mut self, node: Value) -> usize {
        push(&mut self.nodes, node)
    }

    /// A mesh in many places (EXT_mesh_gpu_instancing).
    pub(crate) fn places(&mut self, name: &str, mesh: usize, places: &Places) {
        let translations = self.floats(&places.translations.concat(), "VEC3", None);
        let rotations = self.floats(&places.rotations.concat(), "VEC4", None);
        let scales = self.floats(&places.scales.concat(), "VEC3", None);
        let attributes =
            json!({ "TRANSLATION": translations, "ROTATION": rotations, "SCALE": scales });
        let extensions = json!({ "EXT_mesh_gpu_instancing": { "attributes": attributes } });
        self.node(json!({ "name": name, "mesh": mesh, "extensions": extensions }));
    }

    /// A perspective camera; `vfov` in radians.
    pub(crate) fn camera(
        &mut self,
        name: &str,
        vfov: f64,
        translation: [f64; 3],
        rotation: [f64; 4],
    ) {
        let perspective = json!({ "yfov": vfov, "znear": 0.001 });
        let camera = push(
            &mut self.cameras,
            json!({ "name": name, "type": "perspective", "perspective": perspective }),
        );
        self.node(json!({ "camera": camera, "translation": translation, "rotation": rotation }));
    }

    /// A point light; `intensity` in candela.
    pub(crate) fn point_light(&mut self, color: [f32; 3], intensity: f32, translation: [f64; 3]) {
        let light = push(
            &mut self.lights,
            json!({ "type": "point", "color": color, "intensity": intensity }),
        );
        let extensions = json!({ "KHR_lights_punctual": { "light": light } });
        self.node(json!({ "translation": translation, "extensions": extensions }));
    }

    /// Turns a node: keys of time in seconds and rotation.
    pub(crate) fn turn(&mut self, name: &str, node: usize, times: &[f32], rotations: &[[f32; 4]]) {
        let ends = (vec![times[0]], vec![times[times.len() - 1]]);
        let input = self.floats(times, "SCALAR", Some(ends));
        let output = self.floats(&rotations.concat(), "VEC4", None);
        let target = json!({ "node": node, "path": "rotation" });
        self.animations.push(json!({ "name": name,
            "samplers": [{ "input": input, "output": output, "interpolation": "LINEAR" }],
            "channels": [{ "sampler": 0, "target": target }] }));
    }

    fn floats(&mut self, values: &[f32], kind: &str, ends: Option<(Vec<f32>, Vec<f32>)>) -> usize {
        let width = match kind {
            "SCALAR" => 1,
            "VEC3" => 3,
            _ => 4,
        };
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let index = self.accessor(&bytes, FLOAT, values.len() / width, kind);
        if let Some((lower, upper)) = ends {
            self.accessors[index]["min"] = json!(lower);
            self.accessors[index]["max"] = json!(upper);
        }
        index
    }

    fn accessor(&mut self, bytes: &[u8], component: u32, count: usize, kind: &str) -> usize {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        let view =
            json!({ "buffer": 0, "byteOffset": self.bytes.len(), "byteLength": bytes.len() });
        self.bytes.extend_from_slice(bytes);
        let view = push(&mut self.views, view);
        let accessor =
            json!({ "bufferView": view, "componentType": component, "count": count, "type": kind });
        push(&mut self.accessors, accessor)
    }

    /// The file's text.
    pub fn into_json(self) -> String {
        let data = base64::engine::general_purpose::STANDARD.encode(&self.bytes);
        let uri = format!("data:application/octet-stream;base64,{data}");
        let children: std::collections::BTreeSet<u64> = (self.nodes.iter())
            .flat_map(|node| node["children"].as_array().cloned().unwrap_or_default())
            .filter_map(|child| child.as_u64())
            .collect();
        let roots: Vec<u64> =
            (0..self.nodes.len() as u64).filter(|node| !children.contains(node)).collect();
        let mut root = json!({
            "asset": { "version": "2.0", "generator": "tessera make_library" },
            "scene": 0,
            "scenes": [{ "nodes": roots }],
            "nodes": self.nodes, "meshes": self.meshes, "materials": self.materials,
            "cameras": self.cameras, "accessors": self.accessors, "bufferViews": self.views,
            "buffers": [{ "byteLength": self.bytes.len(), "uri": uri }],
        });
        let mut used = vec!["KHR_materials_emissive_strength"];
        if !self.lights.is_empty() {
            used.push("KHR_lights_punctual");
            root["extensions"] = json!({ "KHR_lights_punctual": { "lights": self.lights } });
        }
        if root["nodes"]
            .as_array()
            .into_iter()
            .flatten()
            .any(|node| !node["extensions"]["EXT_mesh_gpu_instancing"].is_null())
        {
            used.push("EXT_mesh_gpu_instancing");
        }
        let materials = root["materials"].as_array().into_iter().flatten();
        if materials
            .into_iter()
            .any(|material| !material["extensions"]["KHR_materials_volume"].is_null())
        {
            used.extend([
                "KHR_materials_ior",
                "KHR_materials_transmission",
                "KHR_materials_volume",
            ]);
        }
        if !self.animations.is_empty() {
            root["animations"] = json!(self.animations);
        }
        root["extensionsUsed"] = json!(used);
        format!("{root}\n")
    }
}

fn push(list: &mut Vec<Value>, value: Value) -> usize {
    list.push(value);
    list.len() - 1
}

fn fold(points: &[[f32; 3]], pick: fn(f32, f32) -> f32) -> Vec<f32> {
    (0..3)
        .map(|axis| points.iter().map(|point| point[axis]).reduce(pick).unwrap_or_default())
        .collect()
}

fn sub(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}
