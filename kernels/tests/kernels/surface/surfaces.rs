//! What a surface shows of itself: alpha, unlit colour, AOVs, sides; and the camera that looks at
//! it.

use tessera_kernels::CheckedScene;
use tessera_kernels::host::{BEYOND_MAX, RayCounts, RenderError, best_isa, render_unit};
use tessera_kernels::rays::{OPTICAL_DEPTH_OPAQUE, Ray, trace_shadow};
use tessera_kernels::test_hooks::{alpha_accepts, camera};
use tessera_layout::*;
use tessera_support::builder::*;

const WALL: [[f32; 3]; 4] =
    [[-9.0, -9.0, 0.0], [9.0, -9.0, 0.0], [9.0, 9.0, 0.0], [-9.0, 9.0, 0.0]];

fn unlit(base: [f32; 3]) -> Material {
    Material { flags: material_flags::UNLIT, ..material(base, 0.0, 1.0) }
}

/// A wall through the origin that faces the camera at (0, 0, 4), before a white environment.
fn wall(look: Material) -> Builder {
    let mut builder = Builder::default();
    let look = builder.add_material(look);
    builder.quad(WALL, look);
    builder.constant([1.0; 3]);
    builder
}

fn seen(scene: &CheckedScene, samples: u32) -> f64 {
    let unit = whole(8, 8, samples, 4);
    channel_mean(&means(scene, &unit), &unit, 0)
}

#[test]
fn an_unlit_surface_shows_its_colour() {
    assert_eq!(seen(&wall(unlit([0.25, 0.5, 0.75])).finish(), 4), 0.25);
}

#[test]
fn a_blended_surface_covers_its_share() {
    let mut veil = unlit([0.0; 3]);
    (veil.alpha_mode, veil.base_color[3]) = (AlphaMode::Blend as u32, 0.3);
    let through = seen(&wall(veil).finish(), 1024);
    assert!((through - 0.7).abs() < 0.01, "{through}");
}

#[test]
fn a_masked_surface_is_there_or_not() {
    for (alpha, want) in [(0.49, 1.0), (0.51, 0.0)] {
        let mut mask = unlit([0.0; 3]);
        (mask.alpha_mode, mask.base_color[3]) = (AlphaMode::Mask as u32, alpha);
        assert_eq!(seen(&wall(mask).finish(), 4), want);
    }
}

#[test]
fn a_veil_dims_shadows_by_its_alpha() {
    let lit = |alpha: f32| {
        let mut builder = Builder::default();
        let floor = builder.add_material(material([0.8; 3], 0.0, 1.0));
        builder.quad(WALL, floor);
        let mut veil = unlit([0.0; 3]);
        (veil.alpha_mode, veil.base_color[3]) = (AlphaMode::Blend as u32, alpha);
        let veil = builder.add_material(veil);
        builder.quad(WALL.map(|[x, y, _]| [x, y, 5.0]), veil);
        let mut sun = light(LightKind::Directional, [2.0; 3]);
        sun.direction = [0.0, 0.0, -1.0];
        builder.lights.push((sun, 1.0));
        seen(&builder.finish(), 1024)
    };
    assert!((lit(0.4) / lit(0.0) - 0.6).abs() < 1e-6, "no chance is in it");
}

#[test]
fn alpha_depends_only_on_the_ray_and_the_triangle() {
    let mut veil = unlit([0.0; 3]);
    (veil.alpha_mode, veil.base_color[3]) = (AlphaMode::Blend as u32, 0.5);
    let scene = wall(veil).finish();
    let answers = |triangle| (0..4096).map(move |key| (key, triangle));
    let stops: Vec<bool> =
        answers(0).map(|(k, t)| alpha_accepts(&scene, [k, 0], t, [0.2, 0.3])).collect();
    let again: Vec<bool> =
        answers(0).map(|(k, t)| alpha_accepts(&scene, [k, 0], t, [0.6, 0.1])).collect();
    let other: Vec<bool> =
        answers(1).map(|(k, t)| alpha_accepts(&scene, [k, 0], t, [0.2, 0.3])).collect();
    assert_eq!(stops, again);
    let same = stops.iter().zip(&other).filter(|(a, b)| a == b).count();
    assert!((1850..2250).contains(&same), "{same} of 4096");
}

#[test]
fn a_pixels_samples_are_stopped_in_the_share_that_alpha_says() {
    let mut veil = unlit([0.0; 3]);
    (veil.alpha_mode, veil.base_color[3]) = (AlphaMode::Blend as u32, 0.3);
    let scene = wall(veil).finish();
    let stopped = |key, triangle, first: u32, stops: bool| {
        (first..first + 64)
            .filter(|sample| alpha_accepts(&scene, [key, *sample], triangle, [0.2, 0.3]) == stops)
            .count()
    };
    for key in 0..256 {
        for first in [0, 64, 192] {
            assert!(
                (19..=20).contains(&stopped(key, 0, first, true)),
                "19.2 of 64, {key} from {first}"
            );
        }
    }
    // What one triangle stops says nothing of another.
    let both = |key| {
        (0..64)
            .filter(|s| [0, 1].iter().all(|t| alpha_accepts(&scene, [key, *s], *t, [0.2, 0.3])))
            .count()
    };
    let sum: usize = (0..1024).map(both).sum();
    assert!((5700..6100).contains(&sum), "{sum} of 65,536, 5,898 expected");
}

#[test]
fn veils_dim_a_shadow_ray_in_any_order_and_walls_stop_it() {
    let along = |alphas: &[f32]| {
        let mut builder = Builder::default();
        for (index, alpha) in alphas.iter().enumerate() {
            let mut veil = unlit([0.0; 3]);
            (veil.alpha_mode, veil.base_color[3]) = (AlphaMode::Blend as u32, *alpha);
            let veil = builder.add_material(veil);
            builder.quad(WALL.map(|[x, y, _]| [x, y, index as f32]), veil);
        }
        let ray = Ray { origin: [0.1, 0.2, -1.0], direction: [0.0, 0.0, 1.0], t_max: 100.0 };
        trace_shadow(best_isa(), &builder.finish(), &[ray]).unwrap()[0]
    };
    assert_eq!(along(&[0.0, 0.0]), 0);
    assert_eq!(along(&[0.5]), 1 << 20);
    assert_eq!(along(&[0.5, 0.75, 0.875]), 6 << 20);
    assert_eq!(along(&[0.3, 0.9, 0.6, 0.1]), along(&[0.1, 0.6, 0.9, 0.3]));
    assert_eq!(along(&[0.1, 1.0, 0.9, 0.3]), OPTICAL_DEPTH_OPAQUE);
    assert_eq!(along(&[0.999_999_9; 2]), OPTICAL_DEPTH_OPAQUE, "what is too dark to matter stops");
}

/// A wall of black and white squares of half a millimetre, with alpha as its white.
fn fine_squares(alpha_mode: AlphaMode) -> CheckedScene {
    let mut look = unlit([1.0; 3]);
    look.alpha_mode = alpha_mode as u32;
    look.alpha_cutoff = 0.6;
    look.base_color_texture = TextureRef {
        uv_from_mesh: [500.0, 0.0, 0.0, 0.0, 500.0, 0.0],
        texture: 0,
        ..TextureRef::ABSENT
    };
    let mut builder = wall(look);
    builder.texels =
        (0..64 * 64).flat_map(|at| [if (at / 64 + at) % 2 == 0 { 255 } else { 0 }; 4]).collect();
    builder.texels.resize(5461 * 4, 128);
    builder.textures.push(linear_texture((64, 64), 7));
    builder.finish()
}

#[test]
fn detail_finer_than_a_pixel_is_averaged() {
    let unit = UnitParams { aovs: 1, ..whole(8, 8, 1, 4) };
    let values = means(&fine_squares(AlphaMode::Opaque), &unit);
    assert!(
        values[3 * 64..].iter().all(|value| (value - 128.0 / 255.0).abs() < 1e-6),
        "{values:?}"
    );
    // Of a veil the mean goes for what it lets through; of a mask each texel is asked, since 0.5 is
    // below the threshold of 0.6.
    let through = |mode| seen(&fine_squares(mode), 256);
    let (veil, mask) = (through(AlphaMode::Blend), through(AlphaMode::Mask));
    assert!((veil - (0.502 * 0.502 + 0.498)).abs() < 0.02, "{veil}");
    assert!(mask < 0.95, "something of the mask is there: {mask}");
}

#[test]
fn aovs_tell_of_the_first_surface() {
    let unit = UnitParams { aovs: 15, ..whole(3, 3, 4, 2) };
    let values = means(&wall(material([0.2, 0.4, 0.6], 0.0, 0.5)).finish(), &unit);
    let center: Vec<f64> = values.chunks(9).map(|plane| plane[4]).collect();
    let want = [0.2, 0.4, 0.6, 0.0, 0.0, 1.0, 4.0, 0.0, 0.0, 0.0];
    assert_eq!(center.len(), 13);
    for (index, (got, want)) in center[3..].iter().zip(want).enumerate() {
        // Position varies over the pixel: ±0.4 m.
        assert!(
            (got - want).abs() < if index > 6 { 0.15 } else { 1e-5 },
            "{index}: {got}, not {want}"
        );
    }
    let nothing = means(&Builder::default().finish(), &unit);
    assert!(nothing.iter().all(|value| *value == 0.0), "a miss adds nothing");
}

#[test]
fn pixels_beyond_the_frame_continue_it() {
    let (width, height) = (8 + 2 * 20, 8 + 2 * 16);
    let unit = UnitParams {
        aovs: Aov::Position as u32,
        x: -20,
        y: -16,
        width,
        height,
        ..whole(8, 8, 16, 0)
    };
    let values = means(&wall(unlit([1.0; 3])).finish(), &unit);
    let plane = (width * height) as usize;
    for (index, (across, down)) in
        values[3 * plane..][..plane].iter().zip(&values[4 * plane..]).enumerate()
    {
        // The frame shows 2.4 m with 8 pixels.
        let (x, y) = ((index as u32 % width) as f64 - 20.0, (index as u32 / width) as f64 - 16.0);
        let want = (0.3 * (x + 0.5) - 1.2, 1.2 - 0.3 * (y + 0.5));
        let error = (across - want.0).abs().max((down - want.1).abs());
        assert!(error < 0.02, "{x},{y}: {across},{down} and not {want:?}");
    }
}

#[test]
fn the_half_is_the_beauty_of_the_second_half_of_the_samples() {
    let scene = wall(material([0.8; 3], 0.0, 1.0)).finish();
    let unit = UnitParams { aovs: Aov::Half as u32, ..whole(5, 5, 27, 2) };
    let (film, _) = sums(best_isa(), &scene, &unit);
    // Those of the second half are the latter ones of 2..4, 4..8, 8..16 and 16..32.
    let mut want = vec![0; 3 * 25];
    for (first_sample, sample_count) in [(1, 1), (3, 1), (6, 2), (12, 4), (24, 3)] {
        let second = UnitParams { first_sample, sample_count, aovs: 0, ..unit };
        let (part, _) = sums(best_isa(), &scene, &second);
        want.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
    }
    assert!(want.iter().any(|sum| *sum != 0));
    assert_eq!(film[3 * 25..], want);
    let (beauty, _) = sums(best_isa(), &scene, &UnitParams { aovs: 0, ..unit });
    assert_eq!(film[..3 * 25], beauty);
}

#[test]
fn halves_of_shorter_films_join_to_those_of_longer_ones() {
    let scene = wall(material([0.8; 3], 0.0, 1.0)).finish();
    let half = UnitParams { aovs: Aov::Half as u32, ..whole(4, 4, 0, 1) };
    let of = |samples: std::ops::Range<u32>| {
        let (first_sample, sample_count) = (samples.start, samples.len() as u32);
        sums(best_isa(), &scene, &UnitParams { first_sample, sample_count, ..half }).0
    };
    let whole = of(0..21);
    for cut in [1, 2, 5, 8, 16, 20] {
        let joined: Vec<i64> =
            of(0..cut).into_iter().zip(of(cut..21)).map(|(a, b)| a + b).collect();
        assert_eq!(joined, whole, "films of {cut} and {} samples", 21 - cut);
    }
}

#[test]
fn both_sides_are_lit() {
    let mut behind = wall(material([0.8; 3], 0.0, 1.0));
    let front = seen(&wall(material([0.8; 3], 0.0, 1.0)).finish(), 64);
    behind.camera.world_from_camera =
        [-1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, -1.0, -4.0];
    let back = seen(&behind.finish(), 64);
    assert!(front > 0.7 && (front - back).abs() < 0.01, "{front} {back}");
}

#[test]
fn a_normal_map_tilts_the_surface() {
    let lit = |texel: [u8; 4], towards: [f32; 3]| {
        let mut builder = Builder::default();
        builder.texels.extend([texel; 4].concat());
        builder.textures.push(linear_texture((1, 1), 1));
        let mut look = material([0.8; 3], 0.0, 1.0);
        look.normal_texture.texture = 0;
        let look = builder.add_material(look);
        builder.quad(WALL, look);
        let mut sun = light(LightKind::Directional, [1.0; 3]);
        sun.direction = unit(towards.map(|v| -v));
        builder.lights.push((sun, 1.0));
        seen(&builder.finish(), 16)
    };
    let (right, up) = ([218, 128, 218, 255], [128, 218, 218, 255]);
    assert!(
        lit(right, [1.0, 0.0, 1.0]) > 1.5 * lit(right, [-1.0, 0.0, 1.0]),
        "red points along +u"
    );
    assert!(lit(up, [0.0, 1.0, 1.0]) > 1.5 * lit(up, [0.0, -1.0, 1.0]), "green points along +v");
}

#[test]
fn cameras_look_where_they_should() {
    let perspective = camera_at([1.0, 2.0, 3.0], CameraKind::Perspective, 0.5);
    let ray = camera(&perspective, [1.0, -1.0], [0.0; 2]);
    assert_eq!(ray[..3], [1.0, 2.0, 3.0]);
    let want = unit([0.5, -0.5, -1.0]);
    assert!((0..3).all(|axis| (ray[3 + axis] - want[axis]).abs() < 1e-6));
    let orthographic =
        Camera { near: 0.5, far: 2.5, ..camera_at([0.0; 3], CameraKind::Orthographic, 4.0) };
    let ray = camera(&orthographic, [0.5, 0.25], [0.0; 2]);
    assert_eq!(ray, [2.0, 1.0, -0.5, 0.0, 0.0, -1.0, 2.0]);
}

#[test]
fn a_shift_moves_the_picture_and_does_not_turn_the_camera() {
    for kind in [CameraKind::Perspective, CameraKind::Orthographic] {
        let plain = camera_at([1.0, 2.0, 3.0], kind, 0.75);
        // Half a picture to the right and a quarter down, in halves of its edges.
        let shifted = Camera { shift_x: 1.0, shift_y: -0.5, ..plain };
        for [x, y] in [[0.0, 0.0], [-1.0, 0.5], [0.25, 1.0]] {
            let seen = camera(&shifted, [x, y], [0.0; 2]);
            assert_eq!(seen, camera(&plain, [x + 1.0, y - 0.5], [0.0; 2]));
        }
    }
    // What is in focus moves with the picture, and stays in focus.
    let lens = Camera {
        lens_radius: 0.5,
        focus_distance: 4.0,
        shift_x: 0.5,
        ..camera_at([0.0; 3], CameraKind::Perspective, 0.5)
    };
    for point in [[0.0, 0.0], [1.0, 0.0], [0.0, -1.0]] {
        let ray = camera(&lens, [0.25, 0.0], point);
        let t = -4.0 / ray[5];
        assert!((ray[0] + t * ray[3] - 4.0 * 0.75 * 0.5).abs() < 1e-5, "{ray:?}");
    }
}

#[test]
fn a_lens_keeps_its_focus_plane_sharp() {
    let lens = Camera {
        lens_radius: 0.3,
        focus_distance: 5.0,
        ..camera_at([0.0; 3], CameraKind::Perspective, 0.5)
    };
    let at = |ray: [f32; 7]| {
        let t = (-5.0 - ray[2]) / ray[5];
        [ray[0] + t * ray[3], ray[1] + t * ray[4]]
    };
    let sharp = at(camera(&lens, [0.4, -0.6], [0.0; 2]));
    for point in [[1.0, 0.0], [0.0, -1.0], [-0.5, 0.5]] {
        let seen = at(camera(&lens, [0.4, -0.6], point));
        assert!(
            (seen[0] - sharp[0]).abs() < 1e-5 && (seen[1] - sharp[1]).abs() < 1e-5,
            "{seen:?} {sharp:?}"
        );
    }
}

#[test]
fn non_finite_numbers_in_a_scene_keep_the_film_bounded() {
    let mut builder = wall(material([0.5; 3], 0.5, 0.3));
    for (index, vertex) in builder.vertices.iter_mut().enumerate() {
        vertex.normal = [[f32::NAN; 3], [0.0; 3], [f32::INFINITY; 3], [0.0, 0.0, 1.0]][index];
        (vertex.u0, vertex.tangent) = (f32::NAN, [f32::NAN; 3]);
        vertex.color = [f32::INFINITY, 1.0, f32::NAN, 1.0];
    }
    let scene = builder.finish();
    let unit = whole(8, 8, 16, 4);
    let (mut film, mut counts) = (vec![0; 192], RayCounts::default());
    render_unit(best_isa(), &scene, &unit, &mut film, &mut counts).unwrap();
    assert!(counts.non_finite > 0, "nothing was wild");
    assert!(film.iter().all(|sum| sum.abs() <= 1024 << 24), "{film:?}");
}

#[test]
fn wrong_units_are_refused() {
    let scene = Builder::default().finish();
    let good = whole(8, 8, 1, 1);
    let mut film = vec![0; 192];
    let mut ask = |unit: UnitParams, length: usize| {
        render_unit(best_isa(), &scene, &unit, &mut film[..length], &mut RayCounts::default())
    };
    assert_eq!(ask(good, 192), Ok(()));
    assert_eq!(ask(good, 191), Err(RenderError::Film { found: 191, expected: 192 }));
    for wrong in [
        UnitParams { width: 9 + BEYOND_MAX, ..good },
        UnitParams { y: 1 + BEYOND_MAX as i32, ..good },
        UnitParams { x: -1 - BEYOND_MAX as i32, ..good },
        UnitParams { x: i32::MAX, ..good },
        UnitParams { y: i32::MIN, ..good },
        UnitParams { height: 0, ..good },
        UnitParams { frame_width: 1 << 20, ..good },
        UnitParams { sample_count: 0, ..good },
        UnitParams { first_sample: u32::MAX, ..good },
        UnitParams { aovs: 64, ..good },
        UnitParams { filter: 3, ..good },
        UnitParams { depth: 1 << 30, ..good },
    ] {
        assert!(matches!(ask(wrong, 192), Err(RenderError::Unit(_))), "{wrong:?}");
    }
}

#[test]
fn broken_scenes_are_refused() {
    use std::sync::Arc;
    type Break = fn(&mut FlatScene);
    let breaks: [(&str, Break); 8] = [
        ("material", |scene| scene.triangles.make_mut()[0].material = 9),
        ("vertex", |scene| scene.triangle_vertices.make_mut()[1][2] = 4),
        ("vertices", |scene| scene.triangle_vertices.make_mut().truncate(1)),
        ("texture", |scene| scene.materials.make_mut()[0].normal_texture.texture = 0),
        ("alias", |scene| scene.light_alias.make_mut()[0].alias = 1),
        ("block", |scene| Arc::make_mut(&mut scene.bvh).blocks.make_mut()[0].triangle[0] = 2),
        ("circle", |scene| Arc::make_mut(&mut scene.bvh).nodes.make_mut()[0].child[0] = 0),
        ("empty child", |scene| {
            Arc::make_mut(&mut scene.bvh).nodes.make_mut()[0].child[0] = CHILD_EMPTY
        }),
    ];
    for (what, break_it) in breaks {
        let mut flat = wall(material([0.5; 3], 0.0, 1.0)).flat();
        assert!(CheckedScene::new(Arc::new(flat.clone())).is_ok());
        break_it(&mut flat);
        assert!(CheckedScene::new(Arc::new(flat)).is_err(), "{what}");
    }
    for cell in [3, 8] {
        let mut builder = Builder::default();
        builder.map(4, 2, |_, _| [1.0; 3]);
        let mut flat = builder.flat();
        assert!(CheckedScene::new(Arc::new(flat.clone())).is_ok());
        flat.environment_cells.make_mut()[cell].start = if cell < 8 { 4 } else { 2 };
        assert!(CheckedScene::new(Arc::new(flat)).is_err(), "cell {cell}");
    }
}
