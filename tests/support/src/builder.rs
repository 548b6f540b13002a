//! Small scenes made by hand, with a plain hierarchy, for tests of the kernels alone.

use bytemuck::Zeroable;
use std::sync::Arc;
use tessera_kernels::CheckedScene;
use tessera_kernels::host::{Isa, RayCounts, best_isa, render_unit};
use tessera_layout::*;

/// A scene under construction: no triangles, no light, a camera at (0, 0, 4) that looks at the
/// origin.
pub struct Builder {
    /// Triangles, by id.
    pub triangles: Vec<Triangle>,
    /// The three vertices of each triangle.
    pub triangle_vertices: Vec<[u32; 3]>,
    /// Shading vertices.
    pub vertices: Vec<ShadingVertex>,
    /// Materials.
    pub materials: Vec<Material>,
    /// Layers of materials; the first means none.
    pub layers: Vec<Layers>,
    /// Media; the first is air.
    pub media: Vec<Medium>,
    /// Textures.
    pub textures: Vec<Texture>,
    /// The bytes of all textures.
    pub texels: Vec<u8>,
    /// Lights and their powers.
    pub lights: Vec<(Light, f64)>,
    /// The environment, absent at first.
    pub environment: Environment,
    /// Texels of the environment map.
    pub environment_texels: Vec<[f32; 3]>,
    /// The table by which a texel of the map is chosen.
    pub environment_cells: Vec<EnvironmentCell>,
    /// The camera.
    pub camera: Camera,
}

/// An opaque material without textures.
pub fn material(base: [f32; 3], metallic: f32, roughness: f32) -> Material {
    Material {
        base_color: [base[0], base[1], base[2], 1.0],
        emission: [0.0; 3],
        metallic,
        roughness,
        normal_scale: 1.0,
        alpha_cutoff: 0.5,
        ior: 1.5,
        alpha_mode: AlphaMode::Opaque as u32,
        flags: 0,
        layers: 0,
        reserved: 0,
        base_color_texture: TextureRef::ABSENT,
        metallic_roughness_texture: TextureRef::ABSENT,
        normal_texture: TextureRef::ABSENT,
        emission_texture: TextureRef::ABSENT,
    }
}

/// A camera at `eye` that looks along -z.
pub fn camera_at(eye: [f32; 3], kind: CameraKind, half: f32) -> Camera {
    Camera {
        world_from_camera: [1.0, 0.0, 0.0, eye[0], 0.0, 1.0, 0.0, eye[1], 0.0, 0.0, 1.0, eye[2]],
        kind: kind as u32,
        half_width: half,
        half_height: half,
        lens_radius: 0.0,
        focus_distance: 1.0,
        near: 0.0,
        far: f32::INFINITY,
        ..Zeroable::zeroed()
    }
}

/// A light at the origin that shines downwards.
pub fn light(kind: LightKind, emission: [f32; 3]) -> Light {
    Light {
        position: [0.0; 3],
        kind: kind as u32,
        direction: [0.0, -1.0, 0.0],
        range: 0.0,
        emission,
        triangle: NONE,
        spot_scale: 0.0,
        spot_offset: 0.0,
        pick_probability: 0.0,
        area: 0.0,
        trail: 0,
        reserved: [0; 3],
    }
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            triangles: Vec::new(),
            triangle_vertices: Vec::new(),
            vertices: Vec::new(),
            materials: Vec::new(),
            layers: Vec::new(),
            media: Vec::new(),
            textures: Vec::new(),
            texels: Vec::new(),
            lights: Vec::new(),
            environment: Environment {
                light: NONE,
                map_from_world: [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0],
                scene_radius: 10.0,
                ..Environment::default()
            },
            environment_texels: Vec::new(),
            environment_cells: Vec::new(),
            camera: camera_at([0.0, 0.0, 4.0], CameraKind::Perspective, 0.3),
        }
    }
}

impl Builder {
    /// Adds a material; its id.
    pub fn add_material(&mut self, material: Material) -> u32 {
        self.materials.push(material);
        self.materials.len() as u32 - 1
    }

    /// A material with layers.
    pub fn add_layered(&mut self, mut material: Material, layers: Layers) -> u32 {
        if self.layers.is_empty() {
            self.layers.push(Layers::NONE);
        }
        if self.media.is_empty() {
            self.media.push(Medium::AIR);
        }
        material.layers = self.layers.len() as u32;
        if layers.may_be_pane(&material) {
            material.flags |= material_flags::PANE;
        }
        self.layers.push(layers);
        self.add_material(material)
    }

    /// A material that encloses a medium, of the material's own index.
    pub fn add_closed(&mut self, material: Material, layers: Layers, inside: Medium) -> u32 {
        if self.media.is_empty() {
            self.media.push(Medium::AIR);
        }
        let medium = self.media.len() as u32;
        self.media.push(Medium { ior: material.ior, ..inside });
        self.add_layered(material, Layers { medium, ..layers })
    }

    /// A quad of two triangles: corners counter-clockwise from the front, UVs over the unit square.
    /// Returns the first id.
    pub fn quad(&mut self, corners: [[f32; 3]; 4], material: u32) -> u32 {
        let (u, v) = (sub(corners[1], corners[0]), sub(corners[3], corners[0]));
        let normal = unit(cross(u, v));
        let first = self.vertices.len() as u32;
        for (corner, uv) in corners.iter().zip([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]) {
            self.vertices.push(vertex(normal, unit(u), uv));
            let _ = corner;
        }
        let id = self.triangles.len() as u32;
        self.triangle(corners, [0, 1, 2], first, material);
        self.triangle(corners, [0, 2, 3], first, material);
        id
    }

    fn triangle(&mut self, corners: [[f32; 3]; 4], order: [usize; 3], first: u32, material: u32) {
        let look = &self.materials[material as usize];
        let mut flags = 0;
        if look.alpha_mode != AlphaMode::Opaque as u32 || look.flags & material_flags::PANE != 0 {
            flags |= triangle_flags::ALPHA;
        }
        if look.flags & material_flags::DOUBLE_SIDED != 0 {
            flags |= triangle_flags::DOUBLE_SIDED;
        }
        self.triangles.push(Triangle {
            v0: corners[order[0]],
            material,
            v1: corners[order[1]],
            flags,
            v2: corners[order[2]],
            light: NONE,
        });
        self.triangle_vertices.push(order.map(|corner| first + corner as u32));
    }

    /// A unit sphere about the origin of `rings` × 2 `rings` quads, with smooth normals.
    pub fn sphere(&mut self, rings: usize, material: u32) {
        let point = |i: usize, j: usize| -> [f32; 3] {
            let theta = std::f64::consts::PI * i as f64 / rings as f64;
            let phi = std::f64::consts::PI * j as f64 / rings as f64;
            [(theta.sin() * phi.cos()) as f32, theta.cos() as f32, (theta.sin() * phi.sin()) as f32]
        };
        for i in 0..rings {
            for j in 0..2 * rings {
                let corners = [point(i, j), point(i, j + 1), point(i + 1, j + 1), point(i + 1, j)];
                let first = self.vertices.len() as u32;
                for corner in corners {
                    self.vertices.push(vertex(unit(corner), [0.0; 3], [0.0; 2]));
                }
                if i > 0 {
                    self.triangle(corners, [0, 1, 2], first, material);
                }
                if i + 1 < rings {
                    self.triangle(corners, [0, 2, 3], first, material);
                }
            }
        }
    }

    /// Scales and moves what has been added since a triangle. A negative scale turns it inside out.
    pub fn shrink(&mut self, first: usize, scale: f32, at: [f32; 3]) {
        for triangle in &mut self.triangles[first..] {
            for corner in [&mut triangle.v0, &mut triangle.v1, &mut triangle.v2] {
                *corner = std::array::from_fn(|axis| scale * corner[axis] + at[axis]);
            }
        }
    }

    /// Makes a triangle emit, with a place in the light table in proportion to `power`.
    pub fn emit(&mut self, id: u32, power: f64) {
        let triangle = &mut self.triangles[id as usize];
        triangle.flags |= triangle_flags::EMISSIVE;
        triangle.light = self.lights.len() as u32;
        let mut entry =
            light(LightKind::Triangle, self.materials[triangle.material as usize].emission);
        let (a, b) = (sub(triangle.v1, triangle.v0), sub(triangle.v2, triangle.v0));
        entry.area = 0.5 * length(cross(a, b));
        entry.triangle = id;
        self.lights.push((entry, power));
    }

    /// A constant environment, as a light too.
    pub fn constant(&mut self, radiance: [f32; 3]) {
        self.environment.present = 1;
        self.environment.constant = radiance;
        self.environment.intensity = 1.0;
        self.lights.push((light(LightKind::Environment, radiance), 1.0));
    }

    /// An environment map from a function of (column, row), as a light too.
    pub fn map(&mut self, width: u32, height: u32, texel: impl Fn(u32, u32) -> [f32; 3]) {
        let mut weights = Vec::new();
        for row in 0..height {
            let sine = (std::f64::consts::PI * (f64::from(row) + 0.5) / f64::from(height)).sin();
            for column in 0..width {
                let value = texel(column, row);
                self.environment_texels.push(value);
                weights.push(value.iter().map(|v| f64::from(*v)).sum::<f64>() * sine);
            }
        }
        self.environment_cells = build_environment_cells(&weights, width);
        (self.environment.width, self.environment.height) = (width, height);
        (self.environment.present, self.environment.intensity) = (1, 1.0);
        self.lights.push((light(LightKind::Environment, [1.0; 3]), 1.0));
    }

    /// The finished scene, checked.
    pub fn finish(self) -> CheckedScene {
        CheckedScene::new(Arc::new(self.flat())).expect("scenes of tests are right")
    }

    /// Brings lights with a place before the others, and says how one is chosen.
    fn place_lights(&mut self) -> (Vec<Light>, LightChoices) {
        let mut order: Vec<usize> = (0..self.lights.len()).collect();
        order.sort_by_key(|index| !is_placed(&self.lights[*index].0));
        for triangle in self.triangles.iter_mut().filter(|triangle| triangle.light != NONE) {
            let moved = order.iter().position(|index| *index == triangle.light as usize);
            triangle.light = moved.expect("it is one of the lights") as u32;
        }
        let mut lights: Vec<Light> = order.iter().map(|index| self.lights[*index].0).collect();
        let choices: Vec<LightChoice> = order
            .iter()
            .map(|index| {
                let (light, power) = self.lights[*index];
                LightChoice { power, bounds: is_placed(&light).then(|| self.bounds_of(&light)) }
            })
            .collect();
        let choices = build_light_choices(&mut lights, &choices);
        (lights, choices)
    }

    fn bounds_of(&self, light: &Light) -> LightBounds {
        let wide = |point: [f32; 3]| point.map(f64::from);
        let lamp = LightBounds {
            lower: wide(light.position),
            upper: wide(light.position),
            axis: wide(light.direction),
            spread: std::f64::consts::PI,
            emission: std::f64::consts::FRAC_PI_2,
            both_sides: false,
        };
        if light.kind == LightKind::Spot as u32 {
            let outer = -f64::from(light.spot_offset) / f64::from(light.spot_scale);
            return LightBounds { spread: outer.clamp(-1.0, 1.0).acos(), emission: 0.01, ..lamp };
        }
        let Some(triangle) = self.triangles.get(light.triangle as usize) else { return lamp };
        let corners = [triangle.v0, triangle.v1, triangle.v2];
        let fold = |pick: fn(f64, f64) -> f64| {
            std::array::from_fn(|k| {
                corners
                    .iter()
                    .map(|corner| f64::from(corner[k]))
                    .reduce(pick)
                    .expect("three corners")
            })
        };
        LightBounds {
            lower: fold(f64::min),
            upper: fold(f64::max),
            axis: wide(unit(cross(sub(corners[1], corners[0]), sub(corners[2], corners[0])))),
            spread: 0.0,
            both_sides: triangle.flags & triangle_flags::DOUBLE_SIDED != 0,
            ..lamp
        }
    }

    /// The finished scene, unchecked.
    pub fn flat(mut self) -> FlatScene {
        let (lights, choices) = self.place_lights();
        let mut environment = self.environment;
        if lights.last().is_some_and(|last| last.kind == LightKind::Environment as u32) {
            environment.light = lights.len() as u32 - 1;
        }
        FlatScene {
            bvh: Arc::new(plain_bvh(&self.triangles)),
            triangles: self.triangles.into(),
            triangle_vertices: self.triangle_vertices.into(),
            vertices: self.vertices.into(),
            materials: self.materials.into(),
            layers: self.layers.into(),
            media: self.media.into(),
            textures: self.textures.into(),
            texels: self.texels.into(),
            lights: lights.into(),
            light_alias: choices.alias.into(),
            light_nodes: choices.nodes.into(),
            environment,
            environment_texels: self.environment_texels.into(),
            environment_cells: self.environment_cells.into(),
            camera: self.camera,
            instances: Array::default(),
            meshes: Arc::default(),
        }
    }
}

/// A texture of linear bytes that repeats, bilinear, whose texels are the first of all.
pub fn linear_texture((width, height): (u32, u32), level_count: u32) -> Texture {
    Texture {
        offset: 0,
        width,
        height,
        format: TexelFormat::Rgba8Linear as u32,
        wrap_u: Wrap::Repeat as u32,
        wrap_v: Wrap::Repeat as u32,
        bilinear: 1,
        level_count,
        reserved: [0; 3],
    }
}

fn vertex(normal: [f32; 3], tangent: [f32; 3], uv: [f32; 2]) -> ShadingVertex {
    ShadingVertex {
        normal,
        u0: uv[0],
        tangent,
        tangent_sign: 1.0,
        color: [1.0; 4],
        v0: uv[1],
        uv1: uv,
        reserved: 0.0,
    }
}

/// A hierarchy that splits the triangles in the order of their ids: slow, and right.
pub fn plain_bvh(triangles: &[Triangle]) -> Bvh {
    let (mut nodes, mut blocks) = (Vec::new(), Vec::new());
    if !triangles.is_empty() {
        let ids: Vec<u32> = (0..triangles.len() as u32).collect();
        build_node((&mut nodes, &mut blocks), triangles, &ids);
    }
    Bvh { nodes: nodes.into(), blocks: blocks.into(), padding: PADDING }
}

/// Padding of [`plain_bvh`], in metres.
const PADDING: f32 = 4e-5;

fn build_node(
    (nodes, blocks): (&mut Vec<BvhNode8>, &mut Vec<TriangleBlock>),
    triangles: &[Triangle],
    ids: &[u32],
) -> u32 {
    let node = nodes.len();
    nodes.push(BvhNode8 {
        bounds: [[[f32::INFINITY; 8]; 3], [[f32::NEG_INFINITY; 8]; 3]],
        child: [CHILD_EMPTY; 8],
        reserved: [0; 8],
    });
    let share = ids.len().div_ceil(8).max(LEAF_TRIANGLES_MAX as usize);
    for (slot, part) in ids.chunks(share).enumerate() {
        for id in part {
            let triangle = &triangles[*id as usize];
            for corner in [triangle.v0, triangle.v1, triangle.v2] {
                for (axis, value) in corner.into_iter().enumerate() {
                    let padding = 2.0 * PADDING;
                    let bounds = &mut nodes[node].bounds;
                    bounds[0][axis][slot] = bounds[0][axis][slot].min(value - padding);
                    bounds[1][axis][slot] = bounds[1][axis][slot].max(value + padding);
                }
            }
        }
        nodes[node].child[slot] = if part.len() <= LEAF_TRIANGLES_MAX as usize {
            blocks.push(block(triangles, part));
            CHILD_LEAF_FLAG | (blocks.len() as u32 - 1)
        } else {
            build_node((nodes, blocks), triangles, part)
        };
    }
    node as u32
}

fn block(triangles: &[Triangle], ids: &[u32]) -> TriangleBlock {
    let mut block = TriangleBlock { corner: [[[f32::NAN; 4]; 3]; 3], triangle: [NONE; 4] };
    for (lane, id) in ids.iter().enumerate() {
        let triangle = &triangles[*id as usize];
        for (corner, position) in [triangle.v0, triangle.v1, triangle.v2].into_iter().enumerate() {
            for (axis, value) in position.into_iter().enumerate() {
                block.corner[corner][axis][lane] = value;
            }
        }
        let alpha = triangle.flags & triangle_flags::ALPHA != 0;
        block.triangle[lane] = id | if alpha { BLOCK_ALPHA_FLAG } else { 0 };
    }
    block
}

/// `a - b`.
pub fn sub(a: [f32; 3], b: [f32; 3]) -> [f32; 3] {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

/// Cross product.
pub fn cross(a: [f32; 3], b: [f32; 3]) -> [f32; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

/// Euclidean length.
pub fn length(a: [f32; 3]) -> f32 {
    (a[0] * a[0] + a[1] * a[1] + a[2] * a[2]).sqrt()
}

/// A vector of length 1 in the same direction.
pub fn unit(a: [f32; 3]) -> [f32; 3] {
    let scale = 1.0 / length(a);
    [a[0] * scale, a[1] * scale, a[2] * scale]
}

/// A whole frame of `width` × `height` pixels as one unit.
pub fn whole(width: u32, height: u32, samples: u32, depth: u32) -> UnitParams {
    UnitParams {
        frame_width: width,
        frame_height: height,
        width,
        height,
        sample_count: samples,
        seed: 1,
        depth,
        filter: PixelFilter::Box as u32,
        ..UnitParams::default()
    }
}

/// The sums of a unit.
pub fn sums(isa: Isa, scene: &CheckedScene, unit: &UnitParams) -> (Vec<i64>, RayCounts) {
    let mut film = vec![0; (unit.channels() * unit.width * unit.height) as usize];
    let mut counts = RayCounts::default();
    render_unit(isa, scene, unit, &mut film, &mut counts).expect("units of tests are right");
    assert_eq!(counts.non_finite, 0);
    (film, counts)
}

/// Means of a unit's samples, channel by channel.
pub fn means(scene: &CheckedScene, unit: &UnitParams) -> Vec<f64> {
    let (film, _) = sums(best_isa(), scene, unit);
    let scale = f64::from(1u32 << FILM_FRACTION_BITS) * f64::from(unit.sample_count);
    film.iter().map(|sum| *sum as f64 / scale).collect()
}

/// Mean of one channel over all pixels.
pub fn channel_mean(values: &[f64], unit: &UnitParams, channel: usize) -> f64 {
    let plane = (unit.width * unit.height) as usize;
    values[channel * plane..(channel + 1) * plane].iter().sum::<f64>() / plane as f64
}

fn is_placed(light: &Light) -> bool {
    light.kind != LightKind::Directional as u32 && light.kind != LightKind::Environment as u32
}
