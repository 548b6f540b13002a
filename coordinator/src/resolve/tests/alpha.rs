//! Tests of alpha in files: premultiplied in EXR, straight in PNG, as a layer of denoised frames.

use super::tests::{Bench, expected, read_exr, read_png, spec};
use tessera_protocol::job::{AovSpec, FormatSpec, RenderSpec};

fn transparent() -> RenderSpec {
    RenderSpec { transparent: true, aovs: vec![AovSpec::Depth], ..spec(37, 29, 16, 8, 3) }
}

/// The film channel of the coverage, after beauty and depth.
const COVERAGE: usize = 4;

#[test]
fn coverage_is_the_alpha_of_an_exr() {
    let spec = transparent();
    assert_eq!((spec.channels(), spec.coverage_channel()), (5, Some(4)));
    let bench = Bench::new(&spec);
    let files = bench.resolve(&spec).unwrap();
    let (_, channels) = read_exr(bench.open(&files[0]));
    let names: Vec<&str> = channels.keys().map(String::as_str).collect();
    assert_eq!(names, ["A", "B", "G", "R", "depth.Z"]);
    for (index, (alpha, red)) in channels["A"].iter().zip(&channels["R"]).enumerate() {
        let (x, y) = (index as u32 % spec.width, index as u32 / spec.width);
        assert_eq!(*alpha, expected(&spec, COVERAGE, x, y).clamp(0.0, 1.0));
        assert_eq!(*red, expected(&spec, 0, x, y), "colours stay premultiplied");
    }
}

#[test]
fn a_png_with_alpha_has_straight_colours() {
    let spec = RenderSpec {
        formats: vec![FormatSpec::Png16],
        exposure: -4.0,
        aovs: Vec::new(),
        ..transparent()
    };
    let bench = Bench::new(&spec);
    let files = bench.resolve(&spec).unwrap();
    let (info, bytes) = read_png(bench.open(&files[0]));
    assert_eq!(info.color_type, png::ColorType::Rgba);
    for (index, pixel) in bytes.chunks_exact(8).enumerate() {
        let [x, y] = [index as u32 % spec.width, index as u32 / spec.width];
        let alpha = expected(&spec, 3, x, y).clamp(0.0, 1.0);
        let value = |at: usize| f64::from(u16::from_be_bytes([pixel[at], pixel[at + 1]])) / 65535.0;
        assert!((value(6) - f64::from(alpha)).abs() <= 0.5001 / 65535.0);
        let linear = f64::from(expected(&spec, 0, x, y) / alpha) / 16.0;
        let shown = super::tests::srgb(linear);
        assert!((value(0) - shown).abs() <= 1.0 / 65535.0, "{} is not {shown}", value(0));
    }
}

#[test]
fn an_opaque_frame_has_no_coverage() {
    let spec = spec(8, 8, 8, 1, 1);
    assert_eq!((spec.channels(), spec.coverage_channel()), (3, None));
    let bench = Bench::new(&spec);
    let files = bench.resolve(&spec).unwrap();
    let (info, _) = read_png(bench.open(&files[1]));
    assert_eq!(info.color_type, png::ColorType::Rgb);
    let (_, channels) = read_exr(bench.open(&files[0]));
    assert!(channels["A"].iter().all(|alpha| *alpha == 1.0));
}
