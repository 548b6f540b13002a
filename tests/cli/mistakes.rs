//! What is wrong with a command line is told before the work, and with what to write instead.

use crate::cli::{library, told};
use std::path::Path;

/// Commands that fail, with their status and words of the error.
fn fail(folder: &Path, cases: &[(&[&str], i32, &str)]) {
    for (arguments, status, words) in cases {
        let (found, _, error) = told(folder, arguments);
        let line = arguments.join(" ");
        assert_eq!(found, *status, "tessera {line}: {error}");
        assert!(error.contains(words), "tessera {line}: {error}");
    }
}

#[test]
fn wrong_numbers_are_answered_with_their_range() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let scene = library("cornell-box.gltf").display().to_string();
    let range = |number: &str| format!("`{number}` is not a whole number in 1 to 1048576");
    for number in ["0", "-1", "99999999999", "many"] {
        let arguments = ["render", &scene, "-o", "a.exr", "--spp", number];
        fail(folder.path(), &[(&arguments, 2, &range(number))]);
    }
    let resize = ["compute", "builtin:resize", "--domain", "4x4", "--out", "a.npy", "--arg"];
    let filter = [&resize[..], &["filter=foo"]].concat();
    let clamp = [&resize[..], &["clamp=foo"]].concat();
    let noise = ["render", &scene, "-o", "a.exr", "--noise", "-1"];
    fail(
        folder.path(),
        &[
            (&noise, 2, "--noise: -1 is not in 0.0001 to 1"),
            (&["submit", &scene, "--priority", "-1"], 2, "-1 is not in 0..=255"),
            (&["coordinator", "--data", "none", "--listen", "7420"], 2, "write 0.0.0.0:7420"),
            (&filter, 2, "`foo` is not one of: box, triangle, mitchell, lanczos"),
            (&clamp, 2, "`foo` is not a number"),
        ],
    );
}

#[test]
fn cameras_that_the_scene_lacks_are_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let scene = library("cornell-box.gltf").display().to_string();
    let empty = r#"{"asset":{"version":"2.0"},"nodes":[{}],"scene":0,"scenes":[{"nodes":[0]}]}"#;
    std::fs::write(folder.path().join("empty.gltf"), empty).expect("a scene file");
    let none = "there is no camera 0; the scene shows none";
    let words = "--camera: there is no camera named \"nix\"; the scene shows 1: 0 \"camera\"";
    let number = "--camera: there is no camera 7; the scene shows 1: 0 \"camera\"";
    fail(
        folder.path(),
        &[
            (&["render", &scene, "-o", "a.exr", "--camera", "nix"], 2, words),
            (&["submit", &scene, "--camera", "nix"], 2, words),
            (&["submit", &scene, "--camera", "7", "--dry-run"], 2, number),
            (&["render", &scene, "-o", "a.exr", "--vfov", "80"], 2, "--eye"),
            (&["submit", &scene, "--dry-run", "--up", "0,0,1"], 2, "--eye"),
            (&["render", "empty.gltf", "-o", "a.exr", "--camera", "0"], 2, none),
        ],
    );
    let (status, _, error) =
        told(folder.path(), &["submit", &scene, "--camera", "camera", "--dry-run"]);
    assert_eq!(status, 0, "{error}");
}

#[test]
fn files_and_folders_that_cannot_be_used_are_named() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let scene = library("cornell-box.gltf").display().to_string();
    std::fs::create_dir(folder.path().join("folder.exr")).expect("a folder");
    let merge = ["compute", "builtin:merge", "--domain", "4", "--out", "none/a.npy"];
    fail(
        folder.path(),
        &[
            (&["render", &scene, "-o", "folder.exr"], 2, "`folder.exr` is a folder"),
            (&merge, 4, "there is no folder `none`"),
            (&["restore", "x.backup", "--data", "back"], 4, "read the backup `x.backup`: No such"),
            (&["restore", &scene, "--data", "back"], 1, "cornell-box.gltf`: it is not a backup"),
            (&["backup", "-o", "none/x", "--data", "back"], 4, "write the backup `none/x`: No"),
            (&["render", "./", "-o", "a.exr"], 1, "it is a folder"),
            (&["inspect", "./"], 2, "`./` is a folder"),
            (&["submit", "folder.exr"], 1, "it is a folder"),
        ],
    );
}

#[test]
fn a_dry_run_shows_what_would_be_submitted() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let scene = library("cornell-box.gltf").display().to_string();
    let lens = ["--f-stop", "2.8", "--focus-distance", "3", "--camera", "0"];
    let picture = ["submit", &scene, "--dry-run", "--depth", "24", "--format", "png16,exr"];
    let (status, out, error) = told(folder.path(), &[&picture[..], &lens].concat());
    assert_eq!(status, 0, "{error}");
    for words in ["64 spp, depth 24\n", "formats exr, png16\n"] {
        assert!(out.contains(words), "{out}");
    }
    assert!(out.contains("options camera 0, f-stop 2.8, focus-distance 3\n"), "{out}");
}

#[test]
fn options_that_no_file_shows_are_warned_of() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let scene = library("cornell-box.gltf").display().to_string();
    let warnings = |more: &[&str]| {
        let (status, _, error) =
            told(folder.path(), &[&["submit", &scene, "--dry-run"], more].concat());
        assert_eq!(status, 0, "{error}");
        error
    };
    let exr = warnings(&["--exposure", "1", "--tone-map", "agx", "--aov", "depth"]);
    for option in ["--exposure", "--tone-map"] {
        let warning = format!("warning: {option} is ignored: it is for PNG and JPEG files\n");
        assert!(exr.contains(&warning), "{exr}");
    }
    assert!(!exr.contains("--aov"), "{exr}");
    let look = ["submit", &scene, "--dry-run", "--format", "png", "--look", "punchy"];
    let (status, _, error) = told(folder.path(), &look);
    assert!(status == 2 && error.contains("--look: looks are only for AgX"), "{error}");
    let png = warnings(&["--format", "png", "--aov", "depth", "--exposure", "1"]);
    assert_eq!(png, "warning: --aov is ignored: it is for EXR files\n");
    let picture = ["render", &scene, "-o", "a.exr", "--png16", "--size", "8x8", "--spp", "1"];
    let (status, _, error) = told(folder.path(), &picture);
    assert!(status == 0 && error.contains("warning: --png16 is ignored"), "{error}");
}

// promise: P4
#[test]
fn too_few_open_files_are_refused_and_do_not_hang() {
    let scene = library("cornell-box.gltf").display().to_string();
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "ulimit -n 24 && exec \"$0\" \"$@\"", tessera_support::farm::tessera()]);
    command.args(["render", &scene, "--size", "16x16", "--spp", "1", "-o", "/dev/null/a.exr"]);
    let output = command.output().expect("a shell");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("may have 24 files open") && error.contains("ulimit -n"), "{error}");
}
