//! Lenses with blades: points lie evenly over the polygon and nowhere else, and what is out of
//! focus shows its shape.

use crate::math::sampling::{Random, check_flat};
use tessera_kernels::test_hooks::{Shape, draw, lens, shape};
use tessera_layout::*;
use tessera_support::builder::*;

/// A lens of so many blades, its first corner so many turns from +x.
fn bladed(blades: u32, turn: f32, camera: Camera) -> Camera {
    let half = std::f64::consts::PI / f64::from(blades.max(1));
    Camera {
        blades,
        blade_turn: turn,
        blade_apothem: half.cos() as f32,
        blade_half_side: half.sin() as f32,
        ..camera
    }
}

/// How far a point is outside the polygon, negative within.
fn outside(camera: &Camera, x: f64, y: f64) -> f64 {
    let sides = (0..camera.blades).map(|side| {
        let turns =
            f64::from(camera.blade_turn) + (f64::from(side) + 0.5) / f64::from(camera.blades);
        let (sine, cosine) = (turns * std::f64::consts::TAU).sin_cos();
        x * cosine + y * sine - (std::f64::consts::PI / f64::from(camera.blades)).cos()
    });
    sides.fold(f64::NEG_INFINITY, f64::max)
}

fn area(camera: &Camera) -> f64 {
    let corners = f64::from(camera.blades);
    0.5 * corners * (std::f64::consts::TAU / corners).sin()
}

fn anywhere() -> Camera {
    camera_at([0.0; 3], CameraKind::Perspective, 0.5)
}

#[test]
fn lenses_with_blades_are_drawn_evenly() {
    let mut random = Random(31);
    for (blades, turn) in
        [(3, 0.25), (4, 0.1), (5, 0.25), (6, 0.0), (7, 0.9), (11, 0.3), (16, 0.77)]
    {
        let camera = bladed(blades, turn, anywhere());
        let pdf = 1.0 / area(&camera);
        check_flat(
            &format!("{blades} blades"),
            || lens(&camera, [random.unit(), random.unit()]),
            |x, y| if outside(&camera, x, y) <= 0.0 { pdf } else { 0.0 },
        );
    }
}

#[test]
fn no_point_of_a_lens_lies_outside_its_blades() {
    const LAST: f32 = 1.0 - f32::EPSILON / 2.0;
    let mut random = Random(32);
    for blades in BLADES_MIN..=BLADES_MAX {
        for turn in [0.0, 0.25, random.unit()] {
            let camera = bladed(blades, turn, anywhere());
            let edges = [0.0, 0.25, 0.5, 0.5 - f32::EPSILON / 4.0, 0.75, LAST];
            let edges = edges.into_iter().flat_map(|x| edges.map(|y| [x, y]));
            let points = edges
                .chain((0..20_000).map(|_| [random.unit(), random.unit()]))
                .collect::<Vec<_>>();
            let mut farthest = f64::NEG_INFINITY;
            for point in points {
                let [x, y] = lens(&camera, point).map(f64::from);
                farthest = farthest.max(outside(&camera, x, y));
            }
            assert!((-1e-3..1e-6).contains(&farthest), "{blades} blades, turn {turn}: {farthest}");
        }
    }
}

/// Random numbers next to each other are points next to each other: over all seams of the map.
#[test]
fn the_map_to_a_lens_is_continuous() {
    const STEP: f32 = 1.0 / 512.0;
    for blades in [3, 5, 16] {
        let camera = bladed(blades, 0.25, anywhere());
        for index in 0..511 * 511 {
            let here = [(index % 511) as f32 * STEP, (index / 511) as f32 * STEP];
            let [x, y] = lens(&camera, here);
            for next in [[here[0] + STEP, here[1]], [here[0], here[1] + STEP]] {
                let [next_x, next_y] = lens(&camera, next);
                assert!((next_x - x).hypot(next_y - y) < 4.0 * STEP, "{blades} blades at {here:?}");
            }
        }
    }
}

#[test]
fn a_lens_without_blades_is_the_disk() {
    let mut random = Random(33);
    for _ in 0..10_000 {
        let point = [random.unit(), random.unit()];
        assert_eq!(lens(&anywhere(), point), shape(Shape::Disk, point)[..2]);
    }
}

/// Points that are spread evenly are points of the lens that are: 64 of them tell how much of it
/// lies beyond a line far better than chance.
#[test]
fn even_points_are_spread_evenly_over_the_lens() {
    for blades in [3, 5, 6, 9] {
        let camera = bladed(blades, 0.25, anywhere());
        let beyond = |bits: [u32; 2]| {
            let [x, y] = lens(&camera, bits.map(|bits| (bits >> 8) as f32 / (1 << 24) as f32));
            f64::from(u8::from(0.6 * x + 0.8 * y > 0.1))
        };
        let mean = |points: &mut dyn FnMut(u32) -> [u32; 2]| {
            (0..64).map(|i| beyond(points(i))).sum::<f64>() / 64.0
        };
        let spread = |means: Vec<f64>| {
            let middle = means.iter().sum::<f64>() / means.len() as f64;
            means.iter().map(|mean| (mean - middle).powi(2)).sum::<f64>() / means.len() as f64
        };
        let mut random = Random(34);
        let even = spread((0..256).map(|key| mean(&mut |index| draw(key, index, 1))).collect());
        let chance =
            spread((0..256).map(|_| mean(&mut |_| [random.bits(), random.bits()])).collect());
        assert!(even < 0.15 * chance, "{blades} blades: {even} {chance}");
    }
}

const SIZE: u32 = 64;

/// The picture of a small lamp so far away, through a lens with its focus at 2 m, beyond which
/// nothing is.
fn lamp_at(distance: f32, camera: Camera) -> Vec<f64> {
    let mut builder = Builder::default();
    let lamp = Material { emission: [1.0; 3], ..material([0.0; 3], 0.0, 1.0) };
    let lamp = builder.add_material(lamp);
    let half = 0.02 * distance;
    let corners = [[-half, -half], [half, -half], [half, half], [-half, half]];
    builder.quad(corners.map(|[x, y]| [x, y, -distance]), lamp);
    builder.camera = camera;
    let unit = UnitParams { filter: PixelFilter::Box as u32, ..whole(SIZE, SIZE, 1024, 0) };
    let scene = builder.finish();
    means(&scene, &unit)[..(SIZE * SIZE) as usize].to_vec()
}

/// What is out of focus shows the lens: upright behind the focus, upside down before it, and as
/// bright as by a round one.
#[test]
fn a_lamp_out_of_focus_shows_the_blades() {
    let round = Camera { lens_radius: 0.5, focus_distance: 2.0, ..anywhere() };
    let total = |picture: &[f64]| picture.iter().sum::<f64>();
    // A point of the lens is seen at 1 - 2 / distance of its place, over half the picture's width
    // in the focus, 1 m.
    for (distance, scale) in [(20.0, 0.45), (1.0, -0.5)] {
        let of_round = lamp_at(distance, round);
        for (blades, turn) in [(3, 0.25), (5, 0.25), (6, 0.25), (6, 0.0)] {
            let camera = bladed(blades, turn, round);
            let picture = lamp_at(distance, camera);
            // A pixel and half the lamp's own image, in radii of the lens.
            let blur = (1.5 / f64::from(SIZE) * 2.0 + 0.04) / f64::abs(scale);
            let (mut lit, mut within, mut dark, mut of_round_lit) = (0, 0, 0, 0);
            for (index, (value, of_round)) in picture.iter().zip(&of_round).enumerate() {
                let at = |place: u32| (f64::from(place) + 0.5) / f64::from(SIZE) * 2.0 - 1.0;
                let (x, y) = (at(index as u32 % SIZE) / scale, -at(index as u32 / SIZE) / scale);
                let far = outside(&camera, x, y);
                if far < -blur {
                    within += 1;
                    lit += u32::from(*value > 0.0);
                } else if far > blur {
                    dark += u32::from(*value == 0.0);
                    of_round_lit += u32::from(*of_round > 0.0);
                    assert_eq!(*value, 0.0, "{blades} blades at {distance} m: pixel {index}");
                }
            }
            let what =
                format!("{blades} blades, turn {turn}, {distance} m: {lit} of {within}, {dark}");
            assert!(within > 60 && f64::from(lit) > 0.98 * f64::from(within), "{what}");
            assert!(dark > 1000 && (blades == 6 || of_round_lit > 50), "{what}, {of_round_lit}");
            let ratio = total(&picture) / total(&of_round);
            assert!((ratio - 1.0).abs() < 0.02, "{what}: {ratio} times the light");
        }
    }
}
