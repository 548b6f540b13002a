//! Built-in kernels: the same bytes from the CPU and from a (fake) GPU.

use crate::compute::fixture::{Farm, example};

const RUNS: &[(&str, &str)] = &[
    ("merge", "--domain 32x24 --channels 3 --arg weight_a=0.25 --arg weight_b=1.5 --chunk 100"),
    ("resize", "--domain 20x9 --channels 3 --arg filter=lanczos --chunk 50"),
    ("resize", "--domain 40x31 --channels 3 --arg filter=mitchell --chunk 500"),
    ("tonemap", "--domain 32x24 --channels 3 --arg curve=agx --arg exposure=1.5 --chunk 100"),
    ("tonemap", "--domain 32x24 --channels 3 --arg curve=pbr-neutral --chunk 200"),
    // Both passes: the second is over what the first has left in `5.npy`.
    (
        "denoise",
        "--domain 16x10x2 --channels 3 --input picture=noisy.npy --arg samples=6 --chunk 70",
    ),
    (
        "denoise",
        "--domain 16x10 --channels 3 --input picture=5.npy --arg samples=6 --arg pass=second \
            --chunk 70",
    ),
    ("tonemap", "--domain 32x24 --channels 3 --arg curve=filmic --chunk 300"),
];

/// Arrays of a frame of 16 × 10 pixels, as `denoise` reads them: noise on a slope, before one wall.
fn write_frame(farm: &Farm) {
    let arrays = [
        ("noisy", "(2, 10, 16, 3)", 960),
        ("albedo", "(10, 16, 3)", 480),
        ("normal", "(10, 16, 3)", 480),
        ("depth", "(10, 16)", 160),
    ];
    for (name, shape, count) in arrays {
        let value = |at: usize| match name {
            "noisy" => {
                (at as f32 * 0.618_034).fract() * if at < 480 { 1.0 } else { 0.5 }
                    + at as f32 * 1e-4
            }
            "normal" => f32::from(at % 3 == 2),
            "albedo" => 0.5,
            _ => 3.0,
        };
        let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}");
        let header = format!("{header:<117}\n");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend((0..count).flat_map(|at| value(at).to_le_bytes()));
        std::fs::write(farm.path(&format!("{name}.npy")), bytes)
            .expect("the farm's folder takes files");
    }
}

fn results(farm: &Farm) -> Vec<Vec<u8>> {
    let image = example("image.npy");
    write_frame(farm);
    let run = |(index, (name, options)): (usize, &(&str, &str))| {
        let (kernel, out) = (format!("builtin:{name}"), format!("{index}.npy"));
        let inputs: Vec<String> = match *name {
            "merge" => vec![format!("a={image}"), format!("b={image}")],
            "denoise" => {
                ["albedo", "normal", "depth"].map(|name| format!("{name}={name}.npy")).into()
            }
            _ => vec![format!("image={image}")],
        };
        let mut arguments = vec!["compute", &kernel, "--out", &out];
        arguments.extend(inputs.iter().flat_map(|input| ["--input", input]));
        arguments.extend(options.split_whitespace());
        farm.text(&arguments);
        farm.read(&out)
    };
    RUNS.iter().enumerate().map(run).collect()
}

#[test]
fn the_cpu_and_a_gpu_give_the_same_bytes() {
    let mut cpu = Farm::start(0);
    cpu.add_cpu_node("cpu");
    let expected = results(&cpu);
    let wrong = cpu.failure(&["compute", "builtin:blend", "--domain", "4", "--out", "x.npy"]);
    assert!(wrong.0 == 2 && wrong.1.contains("denoise, merge, resize, tonemap"), "{wrong:?}");
    drop(cpu);
    let gpu = Farm::start(1);
    for (index, (found, expected)) in results(&gpu).iter().zip(&expected).enumerate() {
        assert!(found == expected, "{:?} differs", RUNS[index]);
    }
}
