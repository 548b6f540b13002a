//! Coverage: a picture without a background, laid over one by its alpha, is the picture in front of
//! it.

use tessera_kernels::CheckedScene;
use tessera_layout::*;
use tessera_support::builder::*;
use tessera_support::panes::{pane, square};

/// Balls with silhouettes, a veil, a mask's edge and panes of clear glass before a sky that lights
/// them all.
fn shop_window(sky: impl Fn(&mut Builder)) -> CheckedScene {
    let mut builder = Builder::default();
    let body = builder.add_material(material([0.8, 0.3, 0.2], 0.0, 0.6));
    for x in [-0.6, 0.5] {
        let first = builder.triangles.len();
        builder.sphere(12, body);
        builder.shrink(first, 0.4, [x, 0.2 * x, 0.0]);
    }
    let mut veil = material([0.2, 0.5, 0.9], 0.0, 0.8);
    (veil.alpha_mode, veil.base_color[3]) = (AlphaMode::Blend as u32, 0.35);
    let veil = builder.add_material(veil);
    let clear = pane(&mut builder, [1.0; 3], 0.0, true);
    for (z, x, material) in [(0.8, -0.9, veil), (1.0, 0.9, clear), (1.3, 1.2, clear)] {
        let first = builder.triangles.len();
        square(&mut builder, 0.0, material);
        builder.shrink(first, 0.09, [x, 0.0, z]);
    }
    sky(&mut builder);
    builder.camera = camera_at([0.0, 0.0, 4.0], CameraKind::Perspective, 0.5);
    builder.finish()
}

/// What is left where nothing stands before the sky.
fn sky_alone(sky: impl Fn(&mut Builder)) -> CheckedScene {
    let mut builder = Builder::default();
    sky(&mut builder);
    builder.camera = camera_at([0.0, 0.0, 4.0], CameraKind::Perspective, 0.5);
    builder.finish()
}

/// Largest and mean difference between a picture and the same without its sky, laid over the sky.
fn apart(sky: impl Fn(&mut Builder), samples: u32) -> (f64, f64) {
    let unit = whole(48, 48, samples, 6);
    let covered = UnitParams { aovs: Aov::Coverage as u32, ..unit };
    let scene = shop_window(&sky);
    let (whole, cut, behind) =
        (means(&scene, &unit), means(&scene, &covered), means(&sky_alone(&sky), &unit));
    let plane = 48 * 48;
    let differences: Vec<f64> = (0..3 * plane)
        .map(|at| {
            let alpha = cut[3 * plane + at % plane];
            (cut[at] + (1.0 - alpha) * behind[at] - whole[at]).abs()
        })
        .collect();
    let largest = differences.iter().copied().fold(0.0, f64::max);
    (largest, differences.iter().sum::<f64>() / differences.len() as f64)
}

#[test]
fn a_picture_over_a_plain_sky_is_the_picture_before_it() {
    // The same samples miss in both, so that only rounding is left; panes and edges too.
    let (largest, _) = apart(|builder| builder.constant([0.5, 0.75, 1.0]), 32);
    assert!(largest < 1e-5, "{largest}");
}

#[test]
fn a_picture_over_a_chequered_sky_has_no_fringe() {
    let chequers = |builder: &mut Builder| {
        builder.map(32, 16, |column, row| if (column + row) % 2 == 0 { [1.0; 3] } else { [0.1; 3] })
    };
    let (largest, mean) = apart(chequers, 256);
    // A pixel on the border of a chequer and of a ball takes its sky from where the ball is not.
    assert!(largest < 0.25 && mean < 0.005, "{largest}, {mean}");
}

#[test]
fn coverage_is_what_surfaces_stop() {
    let scene = shop_window(|builder| builder.constant([1.0; 3]));
    let unit = UnitParams { aovs: Aov::Coverage as u32, ..whole(48, 48, 256, 4) };
    let means = means(&scene, &unit);
    let at = |x: usize, y: usize| means[3 * 48 * 48 + y * 48 + x];
    assert_eq!(at(24, 2), 0.0, "nothing");
    assert_eq!(at(31, 23), 1.0, "a ball behind two panes");
    assert!((at(8, 16) - 0.35).abs() < 0.02, "a veil: {}", at(8, 16));
    // Two clear panes straight on let 0.96 squared through.
    assert!((at(40, 15) - 0.0784).abs() < 0.02, "two panes: {}", at(40, 15));
}
