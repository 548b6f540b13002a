//! Built-in kernels: the same bytes from the CPU and from a (fake) GPU.

use crate::stand::{Farm, example};

const RUNS: &[(&str, &str)] = &[
    ("merge", "--domain 32x24 --channels 3 --arg weight_a=0.25 --arg weight_b=1.5 --chunk 100"),
    ("resize", "--domain 20x9 --channels 3 --arg filter=lanczos --chunk 50"),
    ("resize", "--domain 40x31 --channels 3 --arg filter=mitchell --chunk 500"),
    ("tonemap", "--domain 32x24 --channels 3 --arg curve=agx --arg exposure=1.5 --chunk 100"),
    ("tonemap", "--domain 32x24 --channels 3 --arg curve=pbr-neutral --chunk 200"),
];

fn results(farm: &Farm) -> Vec<Vec<u8>> {
    let image = example("image.npy");
    let run = |(index, (name, options)): (usize, &(&str, &str))| {
        let (kernel, out) = (format!("builtin:{name}"), format!("{index}.npy"));
        let inputs: Vec<String> = match *name {
            "merge" => vec![format!("a={image}"), format!("b={image}")],
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
    assert!(wrong.0 == 2 && wrong.1.contains("merge, resize, tonemap"), "{wrong:?}");
    drop(cpu);
    let gpu = Farm::start(1);
    for (index, (found, expected)) in results(&gpu).iter().zip(&expected).enumerate() {
        assert!(found == expected, "{:?} differs", RUNS[index]);
    }
}
