//! One frame without a farm: a scene, its options and the kernels.

use rayon::prelude::*;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tessera_kernels::CheckedScene;
use tessera_kernels::host::{self, Isa, RayCounts};
use tessera_layout::{FlatScene, UnitParams};
use tessera_scenes::{EnvironmentSource, FlattenOptions, LoadOptions};
use tessera_support::farm::shared_scenes;

/// Fixed-point unit of the film.
const FILM_UNIT: f64 = 1.0 / (1u64 << tessera_layout::FILM_FRACTION_BITS) as f64;

/// A file of the repository.
pub(crate) fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Says what is left out, and why: straight to standard error, since a passing test's own output is
/// not shown.
pub(crate) fn skipped(what: &str) {
    // Where standard error is closed, nobody listens.
    let _ = writeln!(std::io::stderr(), "SKIPPED: {what}");
}

/// A file of the shared scenes, or None (said by name) where the checkout has none beside it.
pub(crate) fn shared(path: &str) -> Option<PathBuf> {
    let file = shared_scenes()?.join(path);
    if file.exists() {
        return Some(file);
    }
    skipped(&format!("{} is not there", file.display()));
    None
}

/// Light at infinity for a test: none, or an environment map.
pub(crate) type Sky<'a> = Option<&'a Path>;

/// Loads a scene and flattens one frame of it. The scene's files and its sky are gathered in one
/// folder first, since an importer reads nothing outside a scene's own.
pub(crate) fn flatten(scene: &Path, sky: Sky<'_>, view: &FlattenOptions) -> FlatScene {
    flatten_with(scene, sky, LoadOptions::default(), view)
}

/// The same with other options. A sky counts more than their environment.
pub(crate) fn flatten_with(
    scene: &Path,
    sky: Sky<'_>,
    mut options: LoadOptions,
    view: &FlattenOptions,
) -> FlatScene {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let files = tessera_scenes::files_of(scene)
        .unwrap_or_else(|error| panic!("{}: {error}", scene.display()));
    for (name, source) in files {
        let target = folder.path().join(&name);
        std::fs::create_dir_all(target.parent().expect("a file stands in a folder"))
            .expect("a folder");
        std::fs::copy(source, target).expect("a scene's file can be copied");
    }
    if let Some(sky) = sky {
        std::fs::copy(sky, folder.path().join("sky.hdr")).expect("the sky can be copied");
        options.environment = EnvironmentSource::Map { path: "sky.hdr".into() };
    }
    let name = scene.file_name().and_then(|name| name.to_str()).expect("a UTF-8 name");
    let loaded = tessera_scenes::load(folder.path(), name, &options)
        .unwrap_or_else(|error| panic!("{}: {error}", scene.display()));
    loaded.flatten(view).unwrap_or_else(|error| panic!("{}: {error}", scene.display()))
}

/// A flattened scene that kernels accept.
pub(crate) fn checked(scene: FlatScene) -> CheckedScene {
    CheckedScene::new(Arc::new(scene)).expect("a valid scene")
}

/// A whole frame as one unit.
pub(crate) fn whole_frame(width: u32, height: u32, samples: u32, depth: u32) -> UnitParams {
    UnitParams {
        frame_width: width,
        frame_height: height,
        width,
        height,
        sample_count: samples,
        depth,
        filter: tessera_layout::PixelFilter::Box as u32,
        frame: 1,
        ..UnitParams::default()
    }
}

/// Film sums of a frame's beauty, `[R, G, B]` a pixel, row by row; rows in parallel.
pub(crate) fn sums(isa: Isa, scene: &CheckedScene, frame: &UnitParams) -> Vec<[i64; 3]> {
    let width = frame.width as usize;
    let rows: Vec<Vec<[i64; 3]>> = (0..frame.height)
        .into_par_iter()
        .map(|y| {
            let row = UnitParams { y: y as i32, height: 1, ..*frame };
            let mut film = vec![0i64; 3 * width];
            let mut counts = RayCounts::default();
            host::render_unit(isa, scene, &row, &mut film, &mut counts).expect("a valid unit");
            assert_eq!(counts.non_finite, 0, "a sample was not finite");
            (0..width).map(|x| [film[x], film[width + x], film[2 * width + x]]).collect()
        })
        .collect();
    rows.concat()
}

/// Linear pixels of film sums, rounded as in a frame file.
pub(crate) fn pixels(sums: &[[i64; 3]], samples: u32) -> Vec<[f32; 3]> {
    sums.iter()
        .map(|sum| sum.map(|value| (value as f64 * FILM_UNIT / f64::from(samples)) as f32))
        .collect()
}

/// SHA-256 of film sums, little endian.
pub(crate) fn hash(sums: &[[i64; 3]]) -> String {
    use sha2::Digest;
    let mut hasher = sha2::Sha256::new();
    for value in sums.iter().flatten() {
        hasher.update(value.to_le_bytes());
    }
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
