//! Rays a second beside Embree 4, single rays, one thread: closest and any hits, coherent and not;
//! and the time to build a hierarchy.
//!
//!     cargo bench --bench rays -- [--embree LIBRARY] [--isa avx2|avx512] [--rounds N] \
//!         [--size WxH] [--eye X,Y,Z --target X,Y,Z] SCENE...
//!
//! The ceiling is Embree itself, whose single-ray queries no renderer on a CPU is far above.
//! LIBRARY is its shared library (in Python's package `embreex`, for example); without one, ours
//! stand alone. Rays are those of a path tracer (see `sets`), made once a scene with our own hits,
//! so that both trace the same. Rounds alternate, and each figure is of the fastest round; a ratio
//! counts, not a rate, since machines are noisy. Both answers are compared: ours are bits by
//! definition, and Embree may differ at edges.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

mod embree;
mod sets;

use embree::Embree;
use sets::{RaySet, ray_sets};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use tessera_kernels::CheckedScene;
use tessera_kernels::host::best_isa;
use tessera_kernels::rays::{OPTICAL_DEPTH_OPAQUE, trace_closest, trace_shadow};
use tessera_layout::NONE;
use tessera_scenes::bvh::{self, BuilderKind};
use tessera_scenes::{CameraChoice, FlattenOptions, LoadOptions};

struct Options {
    embree: Option<PathBuf>,
    isa: String,
    rounds: usize,
    size: (u32, u32),
    eye: Option<[f32; 3]>,
    target: [f32; 3],
    scenes: Vec<PathBuf>,
}

fn numbers<T: std::str::FromStr, const N: usize>(text: &str, between: char) -> [T; N] {
    let numbers: Vec<T> = text.split(between).filter_map(|part| part.parse().ok()).collect();
    numbers
        .try_into()
        .unwrap_or_else(|_| panic!("`{text}` should be {N} numbers with `{between}` between them"))
}

fn options() -> Options {
    let mut options = Options {
        embree: None,
        isa: "avx2".to_owned(),
        rounds: 5,
        size: (640, 480),
        eye: None,
        target: [0.0; 3],
        scenes: Vec::new(),
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().unwrap_or_else(|| panic!("{argument} takes a value"));
        match argument.as_str() {
            "--embree" => options.embree = Some(value().into()),
            "--isa" => options.isa = value(),
            "--rounds" => options.rounds = value().parse().expect("--rounds takes a number"),
            "--size" => options.size = numbers::<u32, 2>(&value(), 'x').into(),
            "--eye" => options.eye = Some(numbers(&value(), ',')),
            "--target" => options.target = numbers(&value(), ','),
            "--bench" => {}
            _ => options.scenes.push(argument.into()),
        }
    }
    if options.scenes.is_empty() {
        let library = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenes/library");
        options
            .scenes
            .extend(["material-row.gltf", "cornell-box.gltf"].map(|name| library.join(name)));
    }
    options
}

fn main() {
    let options = options();
    println!(
        "one thread; ours on {:?}; M rays a second, the fastest of {} rounds",
        best_isa(),
        options.rounds
    );
    for scene in &options.scenes {
        measure(scene, &options);
    }
}

fn load(path: &Path, options: &Options) -> CheckedScene {
    let folder = path.parent().expect("a scene lies in a folder");
    let name = path.file_name().and_then(|name| name.to_str()).expect("a UTF-8 name");
    let loaded = tessera_scenes::load(folder, name, &LoadOptions::default()).expect("a scene");
    let mut view = FlattenOptions::still(options.size.0, options.size.1);
    if let Some(eye) = options.eye {
        let (eye, target) = (eye.map(f64::from), options.target.map(f64::from));
        let up = [0.0, 1.0, 0.0];
        view.camera = CameraChoice::LookAt { eye, target, up, vfov_degrees: 60.0 };
    }
    let flat = loaded.flatten(&view).expect("a frame");
    CheckedScene::new(Arc::new(flat)).expect("flattened scenes are right")
}

/// The least seconds of some rounds.
fn least(rounds: usize, mut work: impl FnMut()) -> f64 {
    let seconds = (0..rounds).map(|_| {
        let start = Instant::now();
        work();
        start.elapsed().as_secs_f64()
    });
    seconds.fold(f64::INFINITY, f64::min)
}

fn measure(path: &Path, options: &Options) {
    let scene = load(path, options);
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    println!("\n{name}: {} triangles", scene.triangles.len());
    let build = least(options.rounds, || {
        drop(bvh::build(&scene.triangles, BuilderKind::SurfaceArea, 10.0))
    });
    let peer = options
        .embree
        .as_deref()
        .map(|library| Embree::new(library, &options.isa, &scene.triangles));
    match &peer {
        None => println!("build: {:.1} ms", build * 1e3),
        Some(peer) => {
            let theirs = least(options.rounds, || peer.build_again());
            println!(
                "build: ours {:.1} ms, Embree {:.1} ms, ratio {:.2}",
                build * 1e3,
                theirs * 1e3,
                theirs / build
            );
        }
    }
    for set in ray_sets(&scene, options.size) {
        println!(
            "{:>10} closest {}",
            set.name,
            closest(&scene, &set, peer.as_ref(), options.rounds)
        );
        println!("{:>10} any     {}", "", any(&scene, &set, peer.as_ref(), options.rounds));
    }
}

/// Both rates and their ratio; rounds of both alternate.
fn compared(
    rays: usize,
    rounds: usize,
    mut ours: impl FnMut(),
    theirs: Option<impl FnMut()>,
) -> String {
    let rate = |seconds: f64| rays as f64 / seconds * 1e-6;
    let Some(mut theirs) = theirs else { return format!("ours {:6.2}", rate(least(rounds, ours))) };
    let mut best = (f64::INFINITY, f64::INFINITY);
    for _ in 0..rounds {
        best = (best.0.min(least(1, &mut ours)), best.1.min(least(1, &mut theirs)));
    }
    format!("ours {:6.2}, Embree {:6.2}, ratio {:.2}", rate(best.0), rate(best.1), best.1 / best.0)
}

fn closest(scene: &CheckedScene, set: &RaySet, peer: Option<&Embree>, rounds: usize) -> String {
    let isa = best_isa();
    let trace = || trace_closest(isa, scene, &set.rays).expect("this processor's own instructions");
    let text = compared(
        set.rays.len(),
        rounds,
        || drop(trace()),
        peer.map(|peer| || drop(peer.closest(&set.rays))),
    );
    let Some(peer) = peer else { return text };
    let alike = trace().into_iter().zip(peer.closest(&set.rays)).filter(|(ours, theirs)| {
        (ours.triangle == NONE) == (theirs.is_infinite())
            && (ours.triangle == NONE || (ours.t - theirs).abs() <= 1e-3 * theirs.max(1e-3))
    });
    format!("{text}; {:.4} of the hits alike", alike.count() as f64 / set.rays.len() as f64)
}

fn any(scene: &CheckedScene, set: &RaySet, peer: Option<&Embree>, rounds: usize) -> String {
    let isa = best_isa();
    let trace = || trace_shadow(isa, scene, &set.rays).expect("this processor's own instructions");
    let text = compared(
        set.rays.len(),
        rounds,
        || drop(trace()),
        peer.map(|peer| || drop(peer.any(&set.rays))),
    );
    let Some(peer) = peer else { return text };
    let alike = trace()
        .into_iter()
        .zip(peer.any(&set.rays))
        .filter(|(ours, theirs)| (*ours == OPTICAL_DEPTH_OPAQUE) == *theirs);
    format!("{text}; {:.4} of the answers alike", alike.count() as f64 / set.rays.len() as f64)
}
