//! Built-in compute kernels on the device's image, executed: bit for bit what every host build gives, over values of every kind.

use std::sync::Arc;
use tessera_kernels::compute::{ArrayParams, Builtin, ChunkParams, HostArray, PTX, builtin, run};
use tessera_kernels::host::available_isas;
use tessera_ptx::{Limits, Machine, Module, Settings};

/// Values at which arithmetic changes its ways: both zeros, subnormal, least and largest, infinite, edges of the curves.
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

/// So many values: ordinary ones of every magnitude, and in between special ones, also as neighbours; and NaN of both signs.
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
    let module = Arc::new(Module::parse(PTX).unwrap());
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
        let grid = [chunk.count.div_ceil(256), 1, 1];
        machine.launch(&loaded, kernel.name, grid, [256, 1, 1], 0, &params, &Limits::default()).unwrap();
        machine.read(out, &mut bytes).unwrap();
        machine.free(out).unwrap();
        words.extend(bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())));
    }
    words
}

/// Compares all builds over a domain, cut into chunks of `step`; how many different values there were.
fn compare(
    name: &str,
    size: [u32; 2],
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
    let [width, height] = size;
    let chunk = |first: u32| ChunkParams {
        first: first.into(),
        count: step.min(width * height - first),
        width,
        height,
        depth: 1,
        channels,
        frame: 0,
        seed: 0,
        out: 0,
    };
    let chunks: Vec<ChunkParams> = (0..width * height).step_by(step as usize).map(chunk).collect();
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
            panic!("{name} {given:?}: value {at} is {:x?}, of {isa} {:x?}", got.get(at), want.get(at));
        }
    }
    got.into_iter().collect::<std::collections::BTreeSet<u32>>().len()
}

#[test]
fn merges_are_the_hosts() {
    let (a, b) = (values(23 * 31 * 3, 1), values(23 * 31 * 3, 2));
    let shape = [31, 23, 3];
    let arrays = [HostArray { values: &a, shape: &shape }, HostArray { values: &b, shape: &shape }];
    for weights in [[0.5, 0.5], [0.1, -7.25], [0.0, 1.0], [1e-30, 3e38]] {
        assert!(compare("merge", [23, 31], 3, 200, &arrays, &weights) > 50, "{weights:?}");
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
                compare("resize", size, channels, 37, &array, &[f64::from(filter)]);
            }
        }
    }
}

#[test]
fn curves_are_the_hosts() {
    let image = values(41 * 29 * 4, 4);
    for channels in [1u32, 3, 4] {
        let shape = [29, 41, u64::from(channels)];
        let array = [HostArray { values: &image[..41 * 29 * channels as usize], shape: &shape }];
        for curve in 0..3 {
            for exposure in [0.0, 1.5, -9.25, 126.0, -149.0] {
                compare("tonemap", [41, 29], channels, 300, &array, &[exposure, f64::from(curve)]);
            }
        }
    }
}
