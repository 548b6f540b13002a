//! The examples: the same bytes on one node and on three, some of which are killed.

use crate::compute::fixture::{Farm, example};
use std::process::Stdio;
use std::time::Duration;
use tessera_support::farm::takes_minutes;

/// Name, arguments, and the files that each writes, with sizes that the interpreter runs in
/// seconds.
fn runs() -> Vec<(&'static str, Vec<String>, Vec<String>)> {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let mut mandelbrot = vec![example("mandelbrot.ptx")];
    mandelbrot.extend(words(
        "--domain 64x48 --element u32 --arg steps=60 --chunk 200 --out mandelbrot.npy",
    ));
    let mut pi = vec![example("monte_carlo.ptx")];
    pi.extend(words(
        "--domain 4000 --element f64 --reduce sum --seed 7 --arg points=16 --chunk 300 --out \
            pi.npy",
    ));
    let mut nbody =
        vec![example("nbody.ptx"), "--input".into(), format!("state={}", example("bodies.npy"))];
    nbody.extend(words(
        "--domain 48x2 --channels 4 --frames 1-5 --feed state --chunk 20 --out step.##.npy",
    ));
    let mut blur =
        vec![example("blur.ptx"), "--input".into(), format!("image={}", example("image.npy"))];
    blur.extend(words("--domain 32x24 --channels 3 --arg radius=1 --chunk 60 --out blurred.exr"));
    let mut lattice =
        vec![example("lattice.ptx"), "--input".into(), format!("cells={}", example("cells.npy"))];
    lattice.extend(words(
        "--domain 12x9 --channels 9 --steps 15 --frames 1-3 --feed cells --out fluid.##.npy",
    ));
    let fluid = (1..=3).map(|frame| format!("fluid.{frame:02}.npy")).collect();
    let mut flow =
        vec![example("fluid.ptx"), "--input".into(), format!("cells={}", example("cells.npy"))];
    flow.extend(words(
        "--domain 12x9 --output next=f64x9 --output density=f32 --output speed=f32x2 --output \
            mass=f64:sum --frames 1-3 --feed cells=next --chunk 40 --out flow.{output}.##.npy",
    ));
    let flows = ["next", "density", "speed", "mass"].map(|output| format!("flow.{output}.03.npy"));
    let steps = (1..=5).map(|frame| format!("step.{frame:02}.npy")).collect();
    vec![
        ("mandelbrot", mandelbrot, vec!["mandelbrot.npy".into()]),
        ("pi", pi, vec!["pi.npy".into()]),
        ("nbody", nbody, steps),
        ("blur", blur, vec!["blurred.exr".into()]),
        ("lattice", lattice, fluid),
        ("fluid", flow, flows.to_vec()),
    ]
}

fn arguments(run: &[String]) -> Vec<&str> {
    ["compute"].into_iter().chain(run.iter().map(String::as_str)).collect()
}

/// Pictures name the job that made them; their pixels are compared.
fn content(farm: &Farm, file: &str) -> Vec<u8> {
    if !file.ends_with(".exr") {
        return farm.read(file);
    }
    let image = exr::prelude::read_first_flat_layer_from_file(farm.path(file)).unwrap();
    let channels = image.layer_data.channel_data.list.iter();
    channels
        .flat_map(|channel| channel.sample_data.values_as_f32().flat_map(f32::to_le_bytes))
        .collect()
}

#[test]
fn the_same_bytes_come_from_one_node_and_from_three_with_kills() {
    if !takes_minutes("the examples under kills") {
        return;
    }
    let alone = Farm::start(1);
    let mut expected = Vec::new();
    for (name, run, files) in runs() {
        let printed = alone.text(&arguments(&run));
        if name == "pi" {
            let pi: f64 = printed.parse().unwrap();
            assert!((pi - std::f64::consts::PI).abs() < 0.02, "{printed}");
        }
        expected.push(files.iter().map(|file| content(&alone, file)).collect::<Vec<_>>());
    }
    drop(alone);

    let mut farm = Farm::start(3);
    farm.wait_until_ready();
    for ((name, run, files), expected) in runs().into_iter().zip(expected) {
        let mut command = farm.command(&arguments(&run));
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        for victim in 0..2 {
            std::thread::sleep(Duration::from_millis(250));
            farm.kill_node(victim);
            farm.start_node(victim);
        }
        assert!(child.wait().unwrap().success(), "{name}\n{}", farm.logs());
        for (file, expected) in files.iter().zip(&expected) {
            assert!(content(&farm, file) == *expected, "{name}: {file} differs");
        }
    }
}
