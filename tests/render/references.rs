//! Right pictures: ours at 4,096 samples a pixel against Mitsuba 3's at many more (references/make.py made them).

use crate::picture::{checked, file, flatten, pixels, sums, whole_frame};
use tessera_kernels::host;
use tessera_scenes::FlattenOptions;

/// relMSE at most: mean over pixels and channels of (x - r)² / (r² + 0.01).
const RELMSE_MAX: f64 = 0.002;
/// Difference of the means at most, relative.
const MEAN_MAX: f64 = 0.005;
const SAMPLES: u32 = 4096;

fn reference(name: &str) -> (usize, Vec<[f64; 3]>) {
    let path = file("tests/render/references").join(format!("{name}.exr"));
    let image = exr::prelude::read_first_rgba_layer_from_file(
        &path,
        |size, _| (size.width(), vec![[0f64; 3]; size.width() * size.height()]),
        |(width, pixels), at, (r, g, b, _): (f32, f32, f32, f32)| {
            pixels[at.y() * *width + at.x()] = [r, g, b].map(f64::from);
        },
    )
    .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    image.layer_data.channel_data.pixels
}

fn compare(name: &str, scene: &str, sky: bool) {
    let (width, want) = reference(name);
    let (width, height) = (width as u32, (want.len() / width) as u32);
    let scene = file(scene);
    let light = file("tests/render/scenes/sky.hdr");
    let flat = flatten(&scene, sky.then_some(light.as_path()), &FlattenOptions::still(width, height));
    let scene = checked(flat);
    let frame = whole_frame(width, height, SAMPLES, 5);
    let got = pixels(&sums(host::best_isa(), &scene, &frame), SAMPLES);
    let count = (3 * want.len()) as f64;
    let pairs = || got.iter().flatten().zip(want.iter().flatten());
    let relmse = pairs().map(|(x, r)| (x - r).powi(2) / (r * r + 0.01)).sum::<f64>() / count;
    let mean = |values: &[[f64; 3]]| values.iter().flatten().sum::<f64>() / count;
    let difference = mean(&got) / mean(&want) - 1.0;
    keep(name, width, &got);
    println!("{name}: relMSE {relmse:.6}, mean {:+.3} %", 100.0 * difference);
    assert!(relmse <= RELMSE_MAX, "{name}: relMSE {relmse}");
    assert!(difference.abs() <= MEAN_MAX, "{name}: mean differs by {difference}");
}

/// Leaves our picture in target/render, to be looked at beside the reference.
fn keep(name: &str, width: u32, pixels: &[[f64; 3]]) {
    let folder = file("target/render");
    std::fs::create_dir_all(&folder).expect("the build folder can be written");
    let (width, height) = (width as usize, pixels.len() / width as usize);
    exr::prelude::write_rgb_file(folder.join(format!("{name}.exr")), width, height, |x, y| {
        let [r, g, b] = pixels[y * width + x].map(|value| value as f32);
        (r, g, b)
    })
    .expect("a picture can be written");
}

#[test]
fn the_cornell_box_is_mitsubas() {
    compare("cornell-box", "scenes/library/cornell-box.gltf", false);
}

#[test]
fn the_material_row_is_mitsubas() {
    compare("material-row", "scenes/library/material-row.gltf", true);
}

#[test]
fn the_textured_knot_is_mitsubas() {
    compare("textured-knot", "tests/render/scenes/textured-knot.glb", true);
}
