//! The bound on light that was scattered more than once: what it leaves alone, and what it takes.

use tessera_layout::*;
use tessera_support::builder::*;

fn seen(scene: &tessera_kernels::CheckedScene, depth: u32, clamp: f32) -> [f64; 3] {
    let unit = UnitParams { clamp, ..whole(8, 8, 256, depth) };
    let means = means(scene, &unit);
    [0, 1, 2].map(|channel| channel_mean(&means, &unit, channel))
}

#[track_caller]
fn assert_near(got: [f64; 3], want: [f64; 3], margin: f64) {
    let far = got.iter().zip(want).any(|(got, want)| (got - want).abs() > margin);
    assert!(!far, "{got:?}, not {want:?}");
}

/// A floor under a lamp, a point and a sky, all far brighter than any bound here, and the lamp in
/// sight.
fn floor() -> tessera_kernels::CheckedScene {
    let mut builder = Builder::default();
    let diffuse = builder.add_material(material([0.8, 0.6, 0.4], 0.0, 1.0));
    let lamp = Material { emission: [90.0, 70.0, 50.0], ..material([0.0; 3], 0.0, 1.0) };
    let lamp = builder.add_material(Material { flags: material_flags::DOUBLE_SIDED, ..lamp });
    builder.quad(
        [[-4.0, -1.0, 4.0], [4.0, -1.0, 4.0], [4.0, -1.0, -4.0], [-4.0, -1.0, -4.0]],
        diffuse,
    );
    let lit =
        builder.quad([[-0.4, 0.3, 0.0], [0.4, 0.3, 0.0], [0.4, 0.8, 0.0], [-0.4, 0.8, 0.0]], lamp);
    builder.emit(lit, 1.0);
    builder.emit(lit + 1, 1.0);
    let mut point = light(LightKind::Point, [40.0; 3]);
    point.position = [1.0, 1.0, 1.0];
    builder.lights.push((point, 1.0));
    builder.constant([5.0, 6.0, 7.0]);
    builder.finish()
}

#[test]
fn emission_and_direct_light_are_not_clamped() {
    let scene = floor();
    let free = seen(&scene, 1, 0.0);
    assert!(free.iter().all(|value| *value > 5.0), "{free:?}");
    // The same light, added in another way: equal but for rounding.
    assert_near(seen(&scene, 1, 0.01), free, 1e-4 * free[0]);
}

#[test]
fn indirect_light_is_bounded_and_nothing_else_changes() {
    let scene = floor();
    let [direct, free] = [1, 6].map(|depth| seen(&scene, depth, 0.0));
    assert_near(seen(&scene, 6, 1e5), free, 1e-4 * free[0]);
    let bounded = seen(&scene, 6, 1e-4);
    // At each of five scatterings a path finds light twice at most: met by it, and sampled.
    assert_near(bounded, direct, 2.0 * 5.0 * 1e-4 + 1e-4 * direct[0]);
}

/// Light through clear glass has been scattered twice: its largest component is the bound, and its
/// colour stays. What the glass mirrors has been scattered once.
#[test]
fn a_bound_keeps_the_colour() {
    let mut builder = Builder::default();
    let clear = Layers { transmission: 1.0, ..Layers::NONE };
    let glass = builder.add_closed(material([1.0; 3], 0.0, 0.0), clear, Medium::GLASS);
    builder.sphere(64, glass);
    builder.constant([8.0, 4.0, 2.0]);
    builder.camera = camera_at([0.0, 0.0, 4.0], CameraKind::Orthographic, 0.02);
    let scene = builder.finish();
    let mirrored = 0.04 * 8.0;
    let through = 0.96;
    let want = mirrored + through;
    assert_near(seen(&scene, 8, 1.0), [want, want / 2.0, want / 4.0], 0.05);
    assert_near(seen(&scene, 8, 0.0), [8.0, 4.0, 2.0], 0.1);
}
