//! Right pictures: ours at 1,024 samples a pixel against Mitsuba 3's at many more
//! (references/make.py made them). The bounds are the same for any number of samples.

use crate::render::picture::{checked, file, flatten, pixels, sums, whole_frame};
use tessera_cli::picture::Picture;
use tessera_kernels::host;
use tessera_scenes::FlattenOptions;

/// relMSE at most; see `tessera_cli::picture::relative_mse`.
const RELMSE_MAX: f64 = 0.002;
/// Difference of the means at most, relative.
const MEAN_MAX: f64 = 0.005;

/// Samples a pixel: `TESSERA_REFERENCE_SPP`.
fn samples() -> u32 {
    let given = std::env::var("TESSERA_REFERENCE_SPP").ok();
    given.map_or(1024, |spp| spp.parse().expect("TESSERA_REFERENCE_SPP is a number"))
}

fn reference(name: &str) -> Picture {
    let path = file("tests/render/references").join(format!("{name}.exr"));
    tessera_cli::picture::read(&path).unwrap_or_else(|error| panic!("{error}"))
}

fn compare(name: &str, scene: &str, sky: bool) {
    let want = reference(name);
    let (width, height) = (want.width, want.height);
    let scene = file(scene);
    let light = file("tests/render/scenes/sky.hdr");
    let flat =
        flatten(&scene, sky.then_some(light.as_path()), &FlattenOptions::still(width, height));
    let scene = checked(flat);
    let samples = samples();
    let frame = whole_frame(width, height, samples, 5);
    let got = pixels(&sums(host::best_isa(), &scene, &frame), samples);
    let got = Picture { pixels: got, alpha: None, ..want.clone() };
    let found = tessera_cli::picture::compare(&got, &want)
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    let relmse = found.rel_mse;
    let difference = found.mean_ratio.expect("a reference is not black") - 1.0;
    assert_eq!(found.excluded_pixels, 0, "{name}: a pixel is not finite");
    keep(name, &got);
    println!("{name}: relMSE {relmse:.6}, mean {:+.3} %", 100.0 * difference);
    assert!(relmse <= RELMSE_MAX, "{name}: relMSE {relmse}");
    assert!(difference.abs() <= MEAN_MAX, "{name}: mean differs by {difference}");
}

/// Leaves our picture in target/render, to be looked at beside the reference.
fn keep(name: &str, picture: &Picture) {
    let folder = file("target/render");
    std::fs::create_dir_all(&folder).expect("the build folder can be written");
    let (width, height) = (picture.width as usize, picture.height as usize);
    exr::prelude::write_rgb_file(folder.join(format!("{name}.exr")), width, height, |x, y| {
        let [r, g, b] = picture.pixels[y * width + x];
        (r, g, b)
    })
    .expect("a picture can be written");
}

#[test]
fn the_cornell_box_matches_mitsuba() {
    compare("cornell-box", "scenes/library/cornell-box.gltf", false);
}

#[test]
fn the_material_row_matches_mitsuba() {
    compare("material-row", "scenes/library/material-row.gltf", true);
}

#[test]
fn the_textured_knot_matches_mitsuba() {
    compare("textured-knot", "tests/render/scenes/textured-knot.glb", true);
}
