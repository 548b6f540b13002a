//! Same bits from every build: instruction sets, compilers and optimisation levels, on whole
//! scenes.

use crate::render::picture::{
    Sky, checked, file, flatten, hash, shared, skipped, sums, whole_frame,
};
use std::path::{Path, PathBuf};
use std::process::Command;
use tessera_kernels::host::{self, RayCounts};
use tessera_layout::{FlatScene, SceneView, UnitParams};
use tessera_scenes::{CameraChoice, FlattenOptions};

type RenderUnit =
    unsafe extern "C" fn(*const SceneView, *const UnitParams, *mut i64, *mut RayCounts);

/// Compiler and its flags beyond those that exactness needs. The first two are for every push, the
/// others for `TESSERA_IMAGES=all`.
const BUILDS: &[(&str, &[&str])] = &[
    ("g++", &["-O1", "-march=x86-64-v2"]),
    ("clang++", &["-O3", "-march=x86-64-v3"]),
    ("g++", &["-O2", "-march=x86-64-v3"]),
    ("clang++", &["-O3", "-march=x86-64-v2"]),
];

/// The scenes of the issue of same bits, small: the Cornell box, and two real models where they are
/// at hand.
pub(crate) fn scenes(width: u32, height: u32) -> Vec<(&'static str, FlatScene)> {
    let still = FlattenOptions::still(width, height);
    let mut found =
        vec![("cornell-box", flatten(&file("scenes/library/cornell-box.gltf"), None, &still))];
    let sky = file("tests/render/scenes/sky.hdr");
    let sky: Sky<'_> = Some(&sky);
    found.push((
        "textured-knot",
        flatten(&file("tests/render/scenes/textured-knot.glb"), sky, &still),
    ));
    if let Some(helmet) = shared("DamagedHelmet.glb") {
        found.push(("DamagedHelmet", flatten(&helmet, sky, &still)));
    }
    if let Some(sponza) = shared("Sponza.glb") {
        let (eye, target, up) = ([-5.0, 2.0, 0.0], [5.0, 2.5, 0.0], [0.0, 1.0, 0.0]);
        let camera = CameraChoice::LookAt { eye, target, up, vfov_degrees: 60.0 };
        found.push(("Sponza", flatten(&sponza, sky, &FlattenOptions { camera, ..still })));
    }
    found
}

// promise: P5
#[test]
fn instruction_sets_give_the_same_bits() {
    let frame = whole_frame(64, 48, 16, 6);
    for (name, scene) in scenes(64, 48) {
        let scene = checked(scene);
        let hashes: Vec<String> = host::available_isas()
            .into_iter()
            .map(|isa| hash(&sums(isa, &scene, &frame)))
            .collect();
        println!("{name}: {} builds, {}", hashes.len(), hashes[0]);
        assert!(hashes.windows(2).all(|pair| pair[0] == pair[1]), "{name}: {hashes:?}");
    }
}

// promise: P5
#[test]
#[cfg(target_arch = "x86_64")]
fn compilers_and_levels_give_the_same_bits() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let frame = whole_frame(64, 48, 16, 6);
    let scenes = scenes(64, 48);
    let ours: Vec<Vec<[i64; 3]>> = scenes
        .iter()
        .map(|(_, scene)| sums(host::best_isa(), &checked(scene.clone()), &frame))
        .collect();
    let is_all = std::env::var("TESSERA_IMAGES").is_ok_and(|value| value == "all");
    let builds = if is_all { BUILDS } else { &BUILDS[..2] };
    for (index, (compiler, flags)) in builds.iter().enumerate() {
        if Command::new(compiler).arg("--version").output().is_err() {
            skipped(&format!("{compiler} is not installed"));
            continue;
        }
        let library = compile(compiler, flags, &folder.path().join(format!("kernels{index}.so")));
        // SAFETY: the library holds nothing but the kernels, which run no initialiser.
        let library =
            unsafe { libloading::Library::new(&library) }.expect("the compiled kernels load");
        // SAFETY: the symbol is the kernels' entry, of this signature.
        let render = unsafe { library.get::<RenderUnit>(b"tessera_render_unit_other\0") }
            .expect("the entry");
        for ((name, scene), want) in scenes.iter().zip(&ours) {
            assert!(
                film(&frame, *render, scene) == *want,
                "{name}: {compiler} {flags:?} gives other bits"
            );
        }
        println!("{compiler} {flags:?}: {} scenes agree", scenes.len());
    }
}

/// Compiles the kernels as a library of their own, warnings as errors.
fn compile(compiler: &str, flags: &[&str], out: &Path) -> PathBuf {
    let exact = [
        "-std=c++17",
        "-ffp-contract=off",
        "-fno-math-errno",
        "-fno-trapping-math",
        "-fno-exceptions",
        "-fno-rtti",
    ];
    let output = Command::new(compiler)
        .args(exact)
        .args(flags)
        .args([
            "-Wall",
            "-Wextra",
            "-Wno-psabi",
            "-Werror",
            "-shared",
            "-fPIC",
            "-DTESSERA_ISA=other",
            "-o",
        ])
        .arg(out)
        .arg("-I")
        .arg(file("kernels/source"))
        .arg(file("kernels/source/entry/host.cpp"))
        .output()
        .expect("the compiler runs");
    assert!(output.status.success(), "{compiler}: {}", String::from_utf8_lossy(&output.stderr));
    out.to_path_buf()
}

/// The frame's sums by another build, `[R, G, B]` a pixel.
fn film(frame: &UnitParams, render: RenderUnit, scene: &FlatScene) -> Vec<[i64; 3]> {
    let count = (frame.width * frame.height) as usize;
    let mut film = vec![0i64; 3 * count];
    let mut counts = RayCounts::default();
    // SAFETY: the view borrows `scene` for the call, and the film has the unit's length.
    unsafe { render(&scene.view(), frame, film.as_mut_ptr(), &mut counts) };
    (0..count).map(|pixel| [film[pixel], film[count + pixel], film[2 * count + pixel]]).collect()
}
