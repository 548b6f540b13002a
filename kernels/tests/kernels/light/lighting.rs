//! Every kind of light gives the radiance that its formula gives: the reflection's value times what
//! arrives.

use std::f64::consts::PI;
use tessera_kernels::test_hooks::bsdf;
use tessera_layout::*;
use tessera_support::builder::*;

const BASE: [f32; 3] = [0.8, 0.6, 0.4];
const ROUGH: f32 = 0.7;
const SURFACE: [f32; 6] = [BASE[0], BASE[1], BASE[2], 0.0, ROUGH, 0.04];

/// A large floor at y = 0, seen by a camera with a narrow view from straight above (0, 5, 0).
fn floor() -> Builder {
    let mut builder = Builder::default();
    let diffuse = builder.add_material(material(BASE, 0.0, ROUGH));
    builder.quad([[-9.0, 0.0, 9.0], [9.0, 0.0, 9.0], [9.0, 0.0, -9.0], [-9.0, 0.0, -9.0]], diffuse);
    builder.camera = camera_at([0.0; 3], CameraKind::Perspective, 1e-3);
    builder.camera.world_from_camera =
        [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 5.0, 0.0, -1.0, 0.0, 0.0];
    builder
}

/// Radiance per unit of irradiance from the direction `towards` (y up), channel 0.
fn reflected(towards: [f32; 3]) -> f64 {
    let local = [towards[0], towards[2], towards[1]];
    f64::from(bsdf(&SURFACE, [0.0, 0.0, 1.0], local)[0])
}

/// Mean of channel 0 with one scattering.
fn seen(builder: Builder, samples: u32) -> f64 {
    let unit = whole(4, 4, samples, 1);
    channel_mean(&means(&builder.finish(), &unit), &unit, 0)
}

fn assert_close(what: &str, seen: f64, want: f64, tolerance: f64) {
    assert!((seen - want).abs() <= tolerance * want, "{what}: {seen} where {want} is right");
}

#[test]
fn a_point_light_falls_with_the_square_of_the_distance() {
    for position in [[0.0f32, 2.0, 0.0], [1.0, 1.5, -2.0]] {
        let mut builder = floor();
        let mut lamp = light(LightKind::Point, [7.0; 3]);
        lamp.position = position;
        builder.lights.push((lamp, 1.0));
        let distance = f64::from(length(position));
        let want = reflected(unit(position)) * 7.0 / (distance * distance);
        assert_close("point", seen(builder, 4), want, 2e-3);
    }
}

#[test]
fn a_range_ends_smoothly() {
    let at = |range: f32| {
        let mut builder = floor();
        let mut lamp = light(LightKind::Point, [7.0; 3]);
        (lamp.position, lamp.range) = ([0.0, 2.0, 0.0], range);
        builder.lights.push((lamp, 1.0));
        seen(builder, 4)
    };
    assert_eq!(at(1.9), 0.0);
    assert_close("window", at(3.0) / at(0.0), 1.0 - (2.0f64 / 3.0).powi(4), 1e-3);
}

#[test]
fn a_spot_shines_into_its_cone() {
    let (inner, outer) = (0.3f32.cos(), 0.6f32.cos());
    let at = |angle: f32| {
        let mut builder = floor();
        let mut lamp = light(LightKind::Spot, [7.0; 3]);
        lamp.position = [0.0, 2.0, 0.0];
        lamp.direction = [angle.sin(), -angle.cos(), 0.0];
        lamp.spot_scale = 1.0 / (inner - outer);
        lamp.spot_offset = -outer * lamp.spot_scale;
        builder.lights.push((lamp, 1.0));
        seen(builder, 4)
    };
    let full = reflected([0.0, 1.0, 0.0]) * 7.0 / 4.0;
    assert_close("inside", at(0.1), full, 2e-3);
    let between = f64::from((0.45f32.cos() - outer) / (inner - outer));
    assert_close("between", at(0.45), full * between * between, 5e-3);
    assert_eq!(at(0.7), 0.0);
}

#[test]
fn a_directional_light_gives_its_irradiance() {
    let mut builder = floor();
    let mut sun = light(LightKind::Directional, [3.0; 3]);
    sun.direction = unit([0.5, -1.0, 0.2]);
    builder.lights.push((sun, 1.0));
    let want = 3.0 * reflected(sun.direction.map(|v| -v));
    assert_close("directional", seen(builder, 4), want, 2e-3);
}

#[test]
fn lights_share_the_samples_without_bias() {
    let mut builder = floor();
    let mut want = 0.0;
    for (x, power) in [(-2.0f32, 0.1), (1.0, 5.0), (3.0, 1.0)] {
        let mut lamp = light(LightKind::Point, [2.0; 3]);
        lamp.position = [x, 1.0, 0.0];
        builder.lights.push((lamp, power));
        let squared = f64::from(x * x + 1.0);
        want += reflected(unit(lamp.position)) * 2.0 / squared;
    }
    assert_close("three lamps", seen(builder, 4096), want, 0.02);
}

/// A square lamp of 2 × 2 metres, 2 above the floor, facing down.
fn lamp_above(roughness: f32, power: f64) -> (Builder, f64) {
    let mut builder = floor();
    builder.materials[0].roughness = roughness;
    let mut glow = material([0.0; 3], 0.0, 1.0);
    glow.emission = [2.0; 3];
    let glow = builder.add_material(glow);
    let first = builder
        .quad([[-1.0, 2.0, -1.0], [1.0, 2.0, -1.0], [1.0, 2.0, 1.0], [-1.0, 2.0, 1.0]], glow);
    builder.emit(first, power);
    builder.emit(first + 1, power);
    // The camera must see the floor past the lamp: look from below it.
    builder.camera.world_from_camera[7] = 1.5;
    let (mut want, steps) = (0.0, 150);
    for i in 0..steps * steps {
        let x = (f64::from(i / steps) + 0.5) / f64::from(steps) * 2.0 - 1.0;
        let z = (f64::from(i % steps) + 0.5) / f64::from(steps) * 2.0 - 1.0;
        let squared = x * x + z * z + 4.0;
        let towards = unit([x as f32, 2.0, z as f32]);
        let surface = [BASE[0], BASE[1], BASE[2], 0.0, roughness, 0.04];
        let value =
            f64::from(bsdf(&surface, [0.0, 0.0, 1.0], [towards[0], towards[2], towards[1]])[0]);
        want += value * 2.0 * (2.0 / squared.sqrt()) / squared * 4.0 / f64::from(steps * steps);
    }
    (builder, want)
}

#[test]
fn a_lamp_with_a_surface_gives_the_integral_over_it() {
    for roughness in [0.15, 0.5, 1.0] {
        let (builder, want) = lamp_above(roughness, 1.0);
        assert_close("area", seen(builder, 1024), want, 0.01);
    }
}

#[test]
fn a_lamp_shines_from_its_front_only_unless_double_sided() {
    let flipped = |flags: u32| {
        let (mut builder, want) = lamp_above(0.8, 1.0);
        let lamps: Vec<usize> =
            (0..builder.triangles.len()).filter(|i| builder.triangles[*i].light != NONE).collect();
        for id in lamps {
            let triangle = &mut builder.triangles[id];
            std::mem::swap(&mut triangle.v1, &mut triangle.v2);
            triangle.flags |= flags;
            builder.triangle_vertices[id].swap(1, 2);
        }
        (seen(builder, 1024), want)
    };
    assert_eq!(flipped(0).0, 0.0);
    let (both, want) = flipped(triangle_flags::DOUBLE_SIDED);
    assert_close("double sided", both, want, 0.01);
}

#[test]
fn an_environment_map_gives_the_integral_over_it() {
    for roughness in [0.3, 0.6] {
        let mut builder = floor();
        builder.materials[0].roughness = roughness;
        builder.map(24, 12, |x, y| {
            [if (x, y) == (5, 3) { 40.0 } else { 0.2 + 0.02 * x as f32 }, 0.0, 0.0]
        });
        builder.environment.map_from_world = [0.6, 0.0, 0.8, 0.0, 1.0, 0.0, -0.8, 0.0, 0.6];
        let surface = [BASE[0], BASE[1], BASE[2], 0.0, roughness, 0.04];
        let unit_scene = {
            let mut copy = floor();
            copy.environment = builder.environment;
            copy.environment_texels = builder.environment_texels.clone();
            copy.environment_cells = builder.environment_cells.clone();
            copy.finish()
        };
        let (mut want, rows, columns) = (0.0, 300, 400);
        for row in 0..rows {
            let y = (f64::from(row) + 0.5) / f64::from(rows);
            let radius = (1.0 - y * y).sqrt();
            for column in 0..columns {
                let angle = f64::from(column) / f64::from(columns) * 2.0 * PI;
                let towards =
                    [(radius * angle.cos()) as f32, y as f32, (radius * angle.sin()) as f32];
                let value =
                    bsdf(&surface, [0.0, 0.0, 1.0], [towards[0], towards[2], towards[1]])[0];
                let light = tessera_kernels::test_hooks::environment(&unit_scene, towards)[0];
                want += f64::from(value * light) * 2.0 * PI / f64::from(rows * columns);
            }
        }
        assert_close("map", seen(builder, 2048), want, 0.01);
    }
}

/// A sphere under a point light: the picture against the formula, pixel by pixel.
#[test]
fn a_lit_sphere_matches_its_formula() {
    let mut builder = Builder::default();
    let diffuse = builder.add_material(material(BASE, 0.0, ROUGH));
    builder.sphere(96, diffuse);
    let mut lamp = light(LightKind::Point, [5.0; 3]);
    lamp.position = [2.0, 2.0, 3.0];
    builder.lights.push((lamp, 1.0));
    builder.camera = camera_at([0.0, 0.0, 4.0], CameraKind::Orthographic, 0.6);
    let frame = whole(8, 8, 64, 1);
    let picture = means(&builder.finish(), &frame);
    for (pixel, seen) in picture[..64].iter().enumerate() {
        let (mut want, steps) = (0.0, 8);
        for part in 0..steps * steps {
            let across = (pixel % 8) as f32 + ((part % steps) as f32 + 0.5) / steps as f32;
            let down = (pixel / 8) as f32 + ((part / steps) as f32 + 0.5) / steps as f32;
            let (x, y) = ((across / 4.0 - 1.0) * 0.6, (1.0 - down / 4.0) * 0.6);
            let normal = [x, y, (1.0 - x * x - y * y).sqrt()];
            let towards = sub(lamp.position, normal);
            let squared = f64::from(length(towards)).powi(2);
            let (tangent, bitangent) = frame_of(normal);
            let local = |d: [f32; 3]| [dot(d, tangent), dot(d, bitangent), dot(d, normal)];
            let value = bsdf(&SURFACE, local([0.0, 0.0, 1.0]), local(unit(towards)))[0];
            want += f64::from(value) * 5.0 / squared / (steps * steps) as f64;
        }
        // At the terminator the mesh's facets and its smooth normals disagree about which pixels
        // are lit.
        assert!((seen - want).abs() < 0.01 * want + 1e-3, "pixel {pixel}: {seen}, not {want}");
    }
}

fn dot(a: [f32; 3], b: [f32; 3]) -> f32 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn frame_of(normal: [f32; 3]) -> ([f32; 3], [f32; 3]) {
    let tangent = unit(cross([0.0, 1.0, 0.0], normal));
    (tangent, cross(normal, tangent))
}
