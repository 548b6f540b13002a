//! Pictures of attributes beyond the usual ones: colours of instances, morphed colours, a third UV
//! set.

use crate::cli::pictures::channels;
use crate::cli::told;
use std::path::Path;

const RED: [f32; 3] = [1.0, 0.0, 0.0];
const GREEN: [f32; 3] = [0.0, 1.0, 0.0];

/// Two pixels left and right of the middle of a scene's picture.
fn pixels(scene: &str) -> [[f32; 3]; 2] {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/scenes").join(scene);
    let path = path.display().to_string();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let options = ["--size", "64x32", "--spp", "4", "-q", "-o", "a.exr"];
    let command = [&["render", &path], &options[..]].concat();
    let (status, _, error) = told(folder.path(), &command);
    assert_eq!(status, 0, "{error}");
    let channels = channels(folder.path(), "a.exr");
    [24, 40].map(|x| ["R", "G", "B"].map(|name| channels[name][16 * 64 + x]))
}

#[test]
fn further_attributes_are_seen() {
    for (scene, wanted) in [
        ("instance-color.gltf", [RED, GREEN]),
        ("morph-color.gltf", [GREEN, GREEN]),
        ("third-uv-set.gltf", [RED, GREEN]),
    ] {
        let found = pixels(scene);
        let near = |a: &f32, b: &f32| (a - b).abs() < 1e-3;
        let pairs = found.as_flattened().iter().zip(wanted.as_flattened());
        assert!(pairs.into_iter().all(|(a, b)| near(a, b)), "{scene}: {found:?}");
    }
}
