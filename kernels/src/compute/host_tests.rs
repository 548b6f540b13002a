//! Built-in kernels compared with plain arithmetic.

use super::super::builtin::{InputShape, builtin};
use super::*;
use crate::host::best_isa;

fn chunk(first: u64, count: u32, [width, height]: [u32; 2], channels: u32) -> ChunkParams {
    ChunkParams {
        first,
        count,
        width,
        height,
        depth: 1,
        channels,
        frame: 0,
        step: 0,
        steps: 1,
        seed: 0,
        out: 0,
    }
}

/// Runs a kernel over its whole domain in chunks of `step` indices.
fn whole(
    name: &str,
    size: [u32; 2],
    channels: u32,
    step: u32,
    input: &[HostArray<'_>],
    numbers: &[f64],
) -> Vec<f32> {
    let kernel = builtin(name).unwrap();
    let names: Vec<&str> =
        kernel.variables.iter().map(|variable| variable.name).skip(input.len()).collect();
    let given = |name: &str| {
        names.iter().position(|known| *known == name).and_then(|at| numbers.get(at)).copied()
    };
    let bits = kernel.numbers(given).unwrap();
    let mut values = Vec::new();
    for first in (0..size[0] * size[1]).step_by(step as usize) {
        let count = step.min(size[0] * size[1] - first);
        let mut out = vec![0.0; (count * channels) as usize];
        run(
            best_isa(),
            kernel,
            &chunk(first.into(), count, size, channels),
            input,
            &bits,
            &mut out,
        )
        .unwrap();
        values.extend(out);
    }
    values
}

fn ramp(count: usize) -> Vec<f32> {
    (0..count).map(|index| index as f32 * 0.37 - 2.0).collect()
}

#[test]
fn arrays_are_merged_by_their_weights() {
    let (a, b) = (ramp(30), ramp(60)[30..].to_vec());
    let shape = [5, 3, 2];
    let arrays = [HostArray { values: &a, shape: &shape }, HostArray { values: &b, shape: &shape }];
    let merged = whole("merge", [3, 5], 2, 4, &arrays, &[0.25, -2.0]);
    let expected: Vec<f32> = a.iter().zip(&b).map(|(a, b)| 0.25 * a + -2.0 * b).collect();
    assert_eq!(merged, expected);
}

#[test]
fn a_picture_keeps_its_mean_and_its_size() {
    let image: Vec<f32> = (0..8 * 6 * 3).map(|index| (index % 7) as f32 / 8.0).collect();
    let array = [HostArray { values: &image, shape: &[6, 8, 3] }];
    // The same size through a box or a triangle is the picture itself.
    for filter in [0.0, 1.0] {
        assert_eq!(whole("resize", [8, 6], 3, 5, &array, &[filter]), image);
    }
    let half = whole("resize", [4, 3], 3, 100, &array, &[0.0]);
    let at = |x: usize, y: usize| image[(y * 8 + x) * 3];
    assert_eq!(half[0], (at(0, 0) + at(1, 0) + at(0, 1) + at(1, 1)) / 4.0);
    // A flat picture stays flat through every filter, larger or smaller.
    let flat = vec![0.7f32; 48];
    let array = [HostArray { values: &flat, shape: &[6, 8] }];
    for filter in 0..4 {
        for size in [[3, 2], [8, 6], [21, 17]] {
            for value in whole("resize", size, 1, 64, &array, &[f64::from(filter)]) {
                assert!((value - 0.7).abs() < 1e-5, "{value} through filter {filter} at {size:?}");
            }
        }
    }
}

#[test]
fn curves_end_where_they_should() {
    let image: Vec<f32> = (0..60).map(|index| (index as f32 * 0.4 - 12.0).exp2()).collect();
    let grey: Vec<f32> = image.iter().flat_map(|value| [*value; 3]).collect();
    let array = [HostArray { values: &grey, shape: &[60, 3] }];
    for curve in 0..4 {
        let mapped = whole("tonemap", [60, 1], 3, 7, &array, &[0.0, f64::from(curve)]);
        assert!(mapped.iter().all(|value| (0.0..=1.0).contains(value)));
        assert!(mapped.chunks(3).is_sorted_by(|a, b| a[1] <= b[1] + 1e-4), "curve {curve}");
        assert!(mapped[179] > 0.97, "curve {curve} ends at {}", mapped[179]);
    }
    let standard = whole("tonemap", [60, 1], 3, 60, &array, &[1.0]);
    assert_eq!(standard[90], (2.0 * grey[90]).min(1.0));
    let middle = [0.18f32; 4];
    let array = [HostArray { values: &middle, shape: &[1, 4] }];
    let agx = whole("tonemap", [1, 1], 4, 1, &array, &[0.0, 2.0]);
    assert_eq!(agx[3], 0.18);
}

#[test]
fn agx_and_filmic_are_those_of_blender() {
    let colors = [
        [0.18; 3],
        [1.0; 3],
        [8.0, 0.0, 0.0],
        [0.05, 0.1, 0.6],
        [0.02, 0.5, 0.03],
        [30.0, 2.0, 40.0],
        [0.002, 0.004, 0.001],
        [-0.2, 0.3, 0.1],
    ];
    // In steps of 8 bits, from Blender's configuration (4.5).
    let agx = [
        [117.646, 117.635, 117.633],
        [196.601, 196.594, 196.593],
        [255.0, 180.873, 171.115],
        [64.499, 104.814, 184.803],
        [74.065, 167.802, 54.506],
        [255.0, 245.720, 255.0],
        [2.834, 5.926, 0.634],
        [0.0, 138.114, 109.213],
    ];
    let filmic = [
        [127.554, 127.554, 127.554],
        [205.845, 205.845, 205.845],
        [250.706, 0.004, 0.004],
        [69.635, 99.013, 185.331],
        [40.600, 177.213, 52.029],
        [255.0, 229.027, 255.0],
        [7.726, 13.373, 4.141],
        [0.004, 152.896, 99.013],
    ];
    let array = [HostArray { values: colors.as_flattened(), shape: &[8, 3] }];
    for (curve, expected) in [(2.0, agx), (3.0, filmic)] {
        let light = whole("tonemap", [8, 1], 3, 5, &array, &[0.0, curve]);
        for (light, expected) in light.iter().zip(expected.as_flattened()) {
            let light = f64::from(*light);
            let low = light <= 0.003_130_8;
            let shown = if low { 12.92 * light } else { 1.055 * light.powf(1.0 / 2.4) - 0.055 };
            let shown = shown * 255.0;
            assert!((shown - expected).abs() < 0.06, "curve {curve}: {shown} is not {expected}");
        }
    }
}

#[test]
fn logarithms_are_as_exact_as_they_say() {
    // Only a kernel gives access to 2^exposure of one, and to AgX's logarithm.
    let one = [1e-6f32];
    let array = [HostArray { values: &one, shape: &[1] }];
    for step in -200..200 {
        let stops = f64::from(step) / 17.0;
        let gain = whole("tonemap", [1, 1], 1, 1, &array, &[stops])[0];
        let expected = f64::from(1e-6f32) * f64::from(stops as f32).exp2();
        assert!(
            (f64::from(gain) / expected - 1.0).abs() < 5e-7,
            "{stops}: {gain:e} is not {expected:e}"
        );
    }
}

#[test]
fn inputs_that_do_not_fit_are_refused() {
    let kernel = builtin("merge").unwrap();
    let input = |name, shape| InputShape { name, is_f32: true, shape };
    let fits = |inputs: &[InputShape<'_>]| kernel.check([3, 5, 1], (2, true), inputs);
    assert_eq!(fits(&[input("a", &[5, 3, 2]), input("b", &[30])]), Ok(()));
    assert!(fits(&[input("a", &[5, 3, 2])]).unwrap_err().contains("--input b="));
    assert!(fits(&[input("a", &[5, 3]), input("b", &[30])]).unwrap_err().contains("30 values"));
    let double = InputShape { is_f32: false, ..input("a", &[30]) };
    assert!(fits(&[double, input("b", &[30])]).is_err());
    assert!(kernel.check([3, 5, 1], (2, false), &[]).is_err());
    let resize = builtin("resize").unwrap();
    assert_eq!(resize.check([9, 9, 1], (3, true), &[input("image", &[4, 5, 3])]), Ok(()));
    for shape in [&[4, 5][..], &[4, 5, 4], &[60], &[0, 5, 3]] {
        assert!(resize.check([9, 9, 1], (3, true), &[input("image", shape)]).is_err(), "{shape:?}");
    }
    assert!(kernel.numbers(|_| None).is_ok());
    assert!(resize.numbers(|_| Some(9.0)).unwrap_err().contains("lanczos"));
    let values = [0.0; 6];
    let array = HostArray { values: &values, shape: &[2, 3] };
    let called = run(best_isa(), kernel, &chunk(0, 6, [6, 1], 1), &[array], &[0, 0], &mut [0.0; 6]);
    assert_eq!(called, Err(HostError::Call("merge")));
}
