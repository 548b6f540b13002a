//! What refitting the tree of a film's frame takes beside building it, and what rendering with it
//! costs. Prints; fails on nothing.
//!
//!     cargo bench --bench refit -- [--frames N] [--fps N] [--edge N] FILE...
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::path::Path;
use std::sync::Arc;
use tessera_kernels::CheckedScene;
use tessera_kernels::host::best_isa;
use tessera_scenes::{FlattenOptions, LoadOptions};
use tessera_support::builder::{sums, whole};

fn main() {
    let (mut frames, mut fps, mut spp) = (8, 24.0, 1);
    let mut files = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || arguments.next().and_then(|text| text.parse().ok()).expect("a number");
        match argument.as_str() {
            "--frames" => frames = number() as u32,
            "--fps" => fps = number(),
            "--spp" => spp = number() as u32,
            "--bench" => {}
            _ => files.push(argument),
        }
    }
    for file in &files {
        measure(Path::new(file), frames, fps, spp);
    }
}

fn measure(file: &Path, frames: u32, fps: f64, spp: u32) {
    let (folder, name) = (file.parent().expect("a folder"), file.file_name().expect("a name"));
    let load = || {
        tessera_scenes::load(folder, name.to_str().expect("text"), &LoadOptions::default())
            .expect("a scene")
    };
    let (fits, builds) = (load(), load());
    println!("{}", file.display());
    for frame in 0..frames {
        let time_secs = f64::from(frame) / fps;
        let view = FlattenOptions { time_secs, ..FlattenOptions::still(320, 180) };
        let mut made = [(&fits, 0), (&builds, u64::MAX)].map(|(scene, samples)| {
            let before = cpu_secs();
            let flat = scene.flatten(&FlattenOptions { samples, ..view.clone() }).expect("a frame");
            let prepared = cpu_secs() - before;
            let areas = areas(&flat);
            let scene = CheckedScene::new(Arc::new(flat)).expect("a scene of ours");
            let triangles = scene.triangles.len();
            (prepared, areas, scene, triangles)
        });
        let mut seconds = [f64::INFINITY; 2];
        let mut pictures = Vec::new();
        for _ in 0..2 {
            for (index, (_, _, scene, _)) in made.iter_mut().enumerate() {
                let before = cpu_secs();
                pictures.push(sums(best_isa(), scene, &whole(320, 180, spp, 8)).0);
                seconds[index] = seconds[index].min(cpu_secs() - before);
            }
        }
        assert!(pictures.iter().all(|it| *it == pictures[0]), "other bits");
        println!(
            "  {frame}: {} triangles; prepared in {:.0} and {:.0} ms; area {:.3}; rendered in \
                {:.3} and {:.3} s, {:.3}; {:.2} us a sample",
            made[0].3,
            1e3 * made[0].0,
            1e3 * made[1].0,
            made[0].1 / made[1].1,
            seconds[0],
            seconds[1],
            seconds[0] / seconds[1],
            1e6 * seconds[1] / f64::from(320 * 180 * spp),
        );
    }
}

/// Half the areas of all boxes.
fn areas(flat: &tessera_layout::FlatScene) -> f64 {
    let of = |node: &tessera_layout::BvhNode8| -> f64 {
        (0..8)
            .filter(|slot| node.child[*slot] != u32::MAX)
            .map(|slot| {
                let [x, y, z] = [0, 1, 2]
                    .map(|axis| f64::from(node.bounds[1][axis][slot] - node.bounds[0][axis][slot]));
                x * y + y * z + z * x
            })
            .sum()
    };
    flat.bvh.nodes.iter().map(of).sum()
}

fn cpu_secs() -> f64 {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    used.tv_sec as f64 + used.tv_nsec as f64 * 1e-9
}
