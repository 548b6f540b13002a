//! Built-in compute kernels on the device's image, executed: bit for bit what every host build
//! gives, over values of every kind.

use std::sync::Arc;
use tessera_kernels::compute::{
    ArrayParams, Builtin, ChunkParams, HostArray, InputShape, builtin, ptx, run,
};
use tessera_kernels::denoise;
use tessera_kernels::host::{available_isas, best_isa};
use tessera_ptx::{Limits, Machine, Module, Settings};

/// Values at which arithmetic changes its ways: both zeros, subnormal, least and largest, infinite,
/// edges of the curves.
const SPECIAL: [f32; 20] = [
    0.0,
    -0.0,
    f32::from_bits(1),
    -1e-40,
    f32::MIN_POSITIVE,
    -f32::MIN_POSITIVE,
    1e-6,
    0.04,
    0.08,
    0.18,
    0.76,
    0.8,
    1.0 - f32::EPSILON / 2.0,
    1.0,
    16.29,
    -3.5,
    65504.0,
    1e30,
    f32::MAX,
    f32::INFINITY,
];

/// So many values: ordinary ones of every magnitude, and in between special ones, also as
/// neighbours; and NaN of both signs.
fn values(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
        (state >> 9) as f32 / 8_388_608.0
    };
    let kind = |index: usize, draw: f32, scale: f32| match index % 5 {
        0 => SPECIAL[(draw * SPECIAL.len() as f32) as usize],
        1 if draw < 0.05 => f32::NAN.copysign(scale - 0.5),
        1 => SPECIAL[index / 5 % SPECIAL.len()],
        _ => (draw - 0.25) * (scale * 40.0 - 20.0).exp2(),
    };
    (0..count).map(|index| kind(index, next(), next())).collect()
}

/// A kernel over a whole domain, in chunks, on the interpreter.
fn on_device(
    kernel: &Builtin,
    (chunks, channels): (&[ChunkParams], u32),
    arrays: &[HostArray<'_>],
    bits: &[u32],
) -> Vec<u32> {
    let module = Arc::new(Module::parse(ptx()).unwrap());
    let threads = module.kernel(kernel.name).unwrap().threads_max;
    let mut machine = Machine::new(Settings::default());
    let loaded = machine.load(&module).unwrap();
    let mut addresses = Vec::new();
    for (name, array) in kernel.arrays().zip(arrays) {
        let bytes: Vec<u8> = array.values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let address = machine.allocate(bytes.len() as u64).unwrap();
        machine.write(address, &bytes).unwrap();
        let (variable, size) = loaded.variable(name).unwrap();
        let params = ArrayParams::new(address, 0, array.shape).to_bytes();
        assert_eq!(size, params.len() as u64);
        machine.write(variable, &params).unwrap();
        addresses.push(address);
    }
    for (variable, value) in kernel.variables.iter().skip(arrays.len()).zip(bits) {
        let (address, size) = loaded.variable(variable.name).unwrap();
        assert_eq!(size, 4);
        machine.write(address, &value.to_le_bytes()).unwrap();
    }
    let mut words = Vec::new();
    for chunk in chunks {
        let mut bytes = vec![0; (chunk.count * channels * 4) as usize];
        let out = machine.allocate(bytes.len() as u64).unwrap();
        machine.fill(out, 0, bytes.len() as u64).unwrap();
        let params = ChunkParams { out, ..*chunk }.to_bytes();
        let grid = [chunk.count.div_ceil(threads), 1, 1];
        machine
            .launch(&loaded, kernel.name, grid, [threads, 1, 1], 0, &params, &Limits::default())
            .unwrap();
        machine.read(out, &mut bytes).unwrap();
        machine.free(out).unwrap();
        words
            .extend(bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())));
    }
    words
}

/// Compares all builds over a domain, cut into chunks of `step`; how many different values there
/// were.
fn compare(
    name: &str,
    size: [u32; 3],
    channels: u32,
    step: u32,
    arrays: &[HostArray<'_>],
    given: &[f64],
) -> usize {
    let kernel = builtin(name).unwrap();
    let numbers: Vec<&str> =
        kernel.variables.iter().map(|variable| variable.name).skip(arrays.len()).collect();
    let number = |name: &str| numbers.iter().position(|known| *known == name).map(|at| given[at]);
    let bits = kernel.numbers(number).unwrap();
    let [width, height, depth] = size;
    let all = width * height * depth;
    let chunk = |first: u32| ChunkParams {
        first: first.into(),
        count: step.min(all - first),
        width,
        height,
        depth,
        channels,
        frame: 0,
        step: 0,
        steps: 1,
        seed: 0,
        out: 0,
    };
    let chunks: Vec<ChunkParams> = (0..all).step_by(step as usize).map(chunk).collect();
    let got = on_device(kernel, (&chunks, channels), arrays, &bits);
    for isa in available_isas() {
        let mut want = Vec::new();
        for chunk in &chunks {
            let mut out = vec![0.0f32; (chunk.count * channels) as usize];
            run(isa, kernel, chunk, arrays, &bits, &mut out).unwrap();
            want.extend(out.iter().map(|value| value.to_bits()));
        }
        let differs = (0..got.len().max(want.len())).find(|at| got.get(*at) != want.get(*at));
        if let Some(at) = differs {
            panic!(
                "{name} {given:?}: value {at} is {:x?}, of {isa} {:x?}",
                got.get(at),
                want.get(at)
            );
        }
    }
    got.into_iter().collect::<std::collections::BTreeSet<u32>>().len()
}

#[test]
fn merges_match_the_host() {
    let (a, b) = (values(23 * 31 * 3, 1), values(23 * 31 * 3, 2));
    let shape = [31, 23, 3];
    let arrays = [HostArray { values: &a, shape: &shape }, HostArray { values: &b, shape: &shape }];
    for weights in [[0.5, 0.5], [0.1, -7.25], [0.0, 1.0], [1e-30, 3e38]] {
        assert!(compare("merge", [23, 31, 1], 3, 200, &arrays, &weights) > 50, "{weights:?}");
    }
}

#[test]
fn pictures_are_resized_as_on_the_host() {
    let image = values(19 * 14 * 4, 3);
    for (channels, filters) in [(1u32, 0..4), (3, 1..4), (4, 3..4)] {
        let shape = [14, 19, u64::from(channels)];
        let array = [HostArray { values: &image[..19 * 14 * channels as usize], shape: &shape }];
        for filter in filters {
            for size in [[19, 14], [7, 5], [33, 21], [1, 1]] {
                compare(
                    "resize",
                    [size[0], size[1], 1],
                    channels,
                    37,
                    &array,
                    &[f64::from(filter)],
                );
            }
        }
    }
}

#[test]
fn curves_match_the_host() {
    let image = values(41 * 29 * 4, 4);
    for channels in [1u32, 3, 4] {
        let shape = [29, 41, u64::from(channels)];
        let array = [HostArray { values: &image[..41 * 29 * channels as usize], shape: &shape }];
        for curve in 0..4 {
            for exposure in [0.0, 1.5, -9.25, 126.0, -149.0] {
                compare(
                    "tonemap",
                    [41, 29, 1],
                    channels,
                    300,
                    &array,
                    &[exposure, f64::from(curve)],
                );
            }
        }
    }
}

/// A noisy frame of two walls: picture and its second half, albedo, normal, depth.
fn noisy(width: usize, height: usize) -> [Vec<f32>; 4] {
    let noise = values(width * height * 12, 9);
    let noise =
        |at: usize| if noise[at].is_finite() { (noise[at] * 37.0).fract().abs() } else { 0.5 };
    let [mut picture, mut halves, mut albedo, mut normal, mut depth] =
        std::array::from_fn::<Vec<f32>, 5, _>(|_| Vec::new());
    for pixel in 0..width * height {
        let (x, y) = (pixel % width, pixel / width);
        let left = 2 * x < width;
        for channel in 0..3 {
            let colour = if left { [0.9, 0.2, 0.3] } else { [0.1, 0.6, 0.4] }[channel];
            let half = |which: usize| {
                colour * (0.4 + noise(12 * pixel + 2 * channel + which)) * (1.0 + y as f32 * 0.1)
            };
            picture.push(0.5 * (half(0) + half(1)));
            halves.push(0.5 * half(1));
            albedo.push(colour);
            normal.push(if (channel == 2) == left { 1.0 } else { 0.0 });
        }
        depth.push(2.0 + 0.1 * x as f32);
    }
    picture.extend(halves);
    [picture, albedo, normal, depth]
}

/// Compares all builds of the denoiser over a noisy frame, in chunks of so many indices, with these
/// samples and pass; how many different values there were.
fn compare_denoised(size: [u32; 3], step: u32, given: &[f64]) -> usize {
    let [columns, rows] = [size[0], size[1]].map(u64::from);
    let frame = noisy(size[0] as usize, size[1] as usize);
    assert!(frame[0].iter().any(|value| value.is_nan()), "what is no number is among them");
    let shapes: [&[u64]; 4] =
        [&[2, rows, columns, 3], &[rows, columns, 3], &[rows, columns, 3], &[rows, columns]];
    let arrays: Vec<HostArray<'_>> =
        frame.iter().zip(shapes).map(|(values, shape)| HostArray { values, shape }).collect();
    compare("denoise", size, 3, step, &arrays, given)
}

#[test]
fn denoised_pictures_match_the_host() {
    // Chunks that end within a row, and one that has the end of the picture and the beginning of
    // its half.
    assert!(compare_denoised([21, 9, 2], 101, &[7.0, 0.0]) > 500);
    assert!(compare_denoised([21, 9, 1], 64, &[2.0, 1.0]) > 300);
    // Discs reach into other tiles on every side, and windows turn more than once.
    assert!(compare_denoised([43, 45, 2], 3000, &[64.0, 0.0]) > 5000);
}

#[test]
fn a_denoised_picture_is_what_tiles_make_of_a_frame() {
    let (width, height) = (70, 40);
    // Here numbers alone: tiles take what they are given.
    let number = |value: f32| if value.is_nan() { 0.25 } else { value };
    let frame =
        noisy(width, height).map(|values| values.into_iter().map(number).collect::<Vec<_>>());
    let shapes: [&[u64]; 4] = [&[2, 40, 70, 3], &[40, 70, 3], &[40, 70, 3], &[40, 70]];
    let arrays: Vec<HostArray<'_>> =
        frame.iter().zip(shapes).map(|(values, shape)| HostArray { values, shape }).collect();
    let chunk = ChunkParams {
        first: 0,
        count: (2 * width * height) as u32,
        width: width as u32,
        height: height as u32,
        depth: 2,
        channels: 3,
        frame: 0,
        step: 0,
        steps: 1,
        seed: 0,
        out: 0,
    };
    let mut found = vec![0.0; 6 * width * height];
    let kernel = builtin("denoise").unwrap();
    run(best_isa(), kernel, &chunk, &arrays, &[64, 0], &mut found).unwrap();
    let [picture, albedo, normal, depth] = &frame;
    let planar = |from: &[f32], channel: usize| {
        from.iter().skip(channel).step_by(3).copied().collect::<Vec<_>>()
    };
    let (colors, halves) = picture.split_at(3 * width * height);
    let three = [colors, halves, albedo, normal].into_iter();
    let mut channels: Vec<Vec<f32>> =
        three.flat_map(|from| (0..3).map(move |channel| planar(from, channel))).collect();
    channels.push(depth.clone());
    let rows = denoise::Rows {
        pass: denoise::Pass::First,
        fitted: denoise::Fitted::WithHalf,
        width,
        height,
        first_row: 0,
        samples: 64,
        channels: std::array::from_fn(|channel| channels[channel].as_slice()),
    };
    let mut scratch = denoise::Scratch::default();
    for (x, y) in [(0, 0), (64, 0), (3, 21), (6, 24)] {
        let tile = denoise::tile(best_isa(), &rows, (x, y), &mut scratch).unwrap();
        let across = denoise::TILE_WIDTH.min(width - x);
        for (channel, values) in tile.iter().enumerate() {
            for (at, value) in values.iter().enumerate() {
                let pixel = (y + at / across) * width + x + at % across;
                let place = channel / 3 * 3 * width * height + 3 * pixel + channel % 3;
                assert_eq!(
                    found[place].to_bits(),
                    value.to_bits(),
                    "({x}, {y}), channel {channel}, value {at}"
                );
            }
        }
    }
}

#[test]
fn mismatched_arrays_and_numbers_are_refused() {
    let kernel = builtin("denoise").unwrap();
    let shapes: [&[u64]; 4] = [&[2, 40, 70, 3], &[40, 70, 3], &[40, 70, 3], &[40, 70]];
    let shape = |name, shape| InputShape { name, is_f32: true, shape };
    let inputs = [
        shape("picture", shapes[1]),
        shape("albedo", shapes[1]),
        shape("normal", shapes[2]),
        shape("depth", shapes[3]),
    ];
    let error = kernel.check([70, 40, 1], (3, true), &inputs).unwrap_err();
    assert!(
        error.contains("`picture` of `denoise`") && error.contains("[2, 40, 70, 3]"),
        "{error}"
    );
    let inputs = [shape("picture", shapes[0]), inputs[1], inputs[2], inputs[3]];
    assert_eq!(kernel.check([70, 40, 2], (3, true), &inputs), Ok(()));
    assert!(
        kernel.check([70, 40, 3], (3, true), &inputs).is_err()
            && kernel.check([40, 70, 1], (3, true), &inputs).is_err()
    );
    for samples in [1.0, 2.5, 1e9, f64::NAN] {
        let error = kernel.numbers(|name| (name == "samples").then_some(samples)).unwrap_err();
        assert!(error.contains("whole number from 2 to 1048576"), "{error}");
    }
}
