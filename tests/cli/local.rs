//! Commands that need no farm, and what the others say without one.

use crate::cli::{library, told};

#[test]
fn every_command_has_help() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for command in tessera_cli::command().get_subcommands() {
        let (status, out, _) = told(folder.path(), &[command.get_name(), "--help"]);
        assert!(status == 0 && out.contains("Usage:"), "{}", command.get_name());
        let undocumented: Vec<_> =
            command.get_arguments().filter(|argument| argument.get_help().is_none()).collect();
        assert!(undocumented.is_empty(), "{}: {undocumented:?}", command.get_name());
    }
}

#[test]
fn statuses_tell_failures_apart() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let scene = library("cornell-box.gltf").display().to_string();
    let cases: &[(&[&str], i32, &str)] = &[
        (&["paint"], 2, "unrecognized subcommand"),
        (&["render", &scene], 2, "--output"),
        (&["render", &scene, "-o", "a.bmp"], 2, "neither .exr, .png nor .jpg"),
        (&["render", &scene, "-o", "a.exr", "--size", "0x4"], 2, "frame size"),
        (&["render", &scene, "-o", "a.exr", "--size", "32768x32768"], 2, "more than"),
        (&["render", &scene, "-o", "a.exr", "--spp", "0"], 2, "--spp"),
        (&["render", &scene, "-o", "a.exr", "--tile", "1"], 2, "--tile"),
        (
            &["render", &scene, "-o", "a.exr", "--denoise", "--spp", "1"],
            2,
            "--spp has to be 2 or more",
        ),
        (&["render", &scene, "-o", "a.exr", "--noise", "2"], 2, "--noise: 2 is not in 0.0001 to 1"),
        (
            &["render", &scene, "-o", "a.exr", "--noise", "0.1", "--spp", "31"],
            2,
            "--spp: 31 is below 32",
        ),
        (
            &["render", &scene, "-o", "a.exr", "--noise", "0.1", "--tile", "64"],
            2,
            "leave --tile out",
        ),
        (
            &["render", &scene, "-o", "a.exr", "--noise", "0.1", "--unit-samples", "8"],
            2,
            "leave --unit-samples out",
        ),
        (&["render", &scene, "-o", "a.exr", "--time", "soon"], 2, "write 90s, 30m, 24h or 7d"),
        (
            &["render", &scene, "-o", "a.exr", "--time", "8d"],
            2,
            "--time: 691200 s are not in 1 to 604800",
        ),
        (
            &["render", &scene, "-o", "a.exr", "--time", "9s", "--spp", "96"],
            2,
            "--spp: 96 is not 32 doubled",
        ),
        (&["render", &scene, "-o", "a.exr", "--time", "9s", "--tile", "64"], 2, "leave --tile out"),
        (&["render", &scene, "-o", "a.exr", "--frames", "9-1"], 2, "ends before it begins"),
        (&["render", &scene, "-o", "a.exr", "--frames", "1-2"], 2, "####"),
        (&["render", &scene, "-o", "a.exr", "--eye", "1,2,3"], 2, "--target"),
        (&["render", &scene, "-o", "a.exr", "--env", "sky.jpg"], 2, "environment"),
        (&["render", &scene, "-o", "a.exr", "--env", "sky.hdr"], 4, "sky.hdr"),
        (&["render", &scene, "-o", "a.exr", "--device", "cuda"], 1, "cuda"),
        (&["render", &scene, "-o", "none/a.exr"], 4, "no folder"),
        (&["render", &scene, "-o", "a.exr", "--camera", "nobody"], 2, "nobody"),
        (&["render", "none.glb", "-o", "a.exr"], 4, "none.glb"),
        (&["submit", "none.glb"], 4, "none.glb"),
        (&["jobs"], 5, "no identity"),
        (&["node", "--data", "node"], 5, "token"),
        (&["coordinator", "--data", "none", "--audit"], 1, "no data folder"),
        (&["diff", "a.exr", "b.exr"], 4, "a.exr"),
        (&["inspect", "none.gltf"], 4, "none.gltf"),
    ];
    for (arguments, status, words) in cases {
        let (found, _, error) = told(folder.path(), arguments);
        assert_eq!(found, *status, "tessera {}: {error}", arguments.join(" "));
        assert!(error.contains(words), "tessera {}: {error}", arguments.join(" "));
        assert!(error.contains("error: "), "tessera {}: {error}", arguments.join(" "));
    }
    assert!(!folder.path().join("a.exr").exists(), "a failed render left a file");
}

#[test]
fn scenes_that_make_no_sense_are_named_with_the_place() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let cases = [
        ("empty.gltf", "", "empty.gltf"),
        ("text.glb", "not a scene at all", "text.glb"),
        ("cut.gltf", "{\"asset\": {\"version\": \"2.0\"", "cut.gltf"),
        (
            "climb.gltf",
            r#"{"asset":{"version":"2.0"},"buffers":[{"uri":"../secret.bin","byteLength":4}]}"#,
            "../secret.bin",
        ),
        (
            "alien.gltf",
            r#"{"asset":{"version":"2.0"},"extensionsUsed":["ACME_magic"],
                "extensionsRequired":["ACME_magic"]}"#,
            "ACME_magic",
        ),
    ];
    for (name, text, words) in cases {
        std::fs::write(folder.path().join(name), text).expect("a scene file");
        for command in ["inspect", "submit"] {
            let (status, _, error) = told(folder.path(), &[command, name]);
            assert!(status == 1 && error.contains(words), "{command} {name}: {status} {error}");
            let reasons = error.matches("EOF while parsing").count();
            let (is_cut, hint) = (name == "cut.gltf", error.contains("copy or export it again"));
            assert_eq!((reasons, hint), (usize::from(is_cut), is_cut), "{command} {name}: {error}");
        }
    }
}

#[test]
fn settings_come_from_flags_then_environment_then_files() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let scene = library("cornell-box.gltf").display().to_string();
    let spp = |more: &[&str]| {
        let arguments = [&["submit", &scene, "--dry-run", "--json"], more].concat();
        let (status, out, error) = told(folder.path(), &arguments);
        assert_eq!(status, 0, "{error}");
        let spec: serde_json::Value = serde_json::from_str(&out).expect("JSON");
        spec["kind"]["Render"]["spp"].as_u64().expect("a number")
    };
    assert_eq!(spp(&[]), 64);
    std::fs::create_dir_all(folder.path().join("config/tessera")).expect("a folder");
    std::fs::write(folder.path().join("config/tessera/config.toml"), "spp = 5").expect("a file");
    assert_eq!(spp(&[]), 5);
    std::fs::write(folder.path().join("tessera.toml"), "[submit]\nspp = 6").expect("a file");
    assert_eq!(spp(&[]), 6);
    assert_eq!(spp(&["--spp", "7"]), 7);
    std::fs::write(folder.path().join("tessera.toml"), "sppp = 6").expect("a file");
    let (status, _, error) = told(folder.path(), &["submit", &scene, "--dry-run"]);
    assert!(status == 2 && error.contains("tessera.toml") && error.contains("sppp"), "{error}");
}

#[test]
fn inspect_says_what_is_in_a_scene() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let scene = library("cornell-box.gltf").display().to_string();
    let (status, out, _) = told(folder.path(), &["inspect", &scene]);
    assert!(status == 0 && out.contains("triangles") && out.contains("emissive"), "{out}");
    let (_, out, _) = told(folder.path(), &["inspect", &scene, "--json"]);
    let report: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert!(report["triangles"].as_u64().is_some_and(|count| count > 10), "{out}");
    assert!(report["motion"].is_null(), "{out}");
}

#[test]
fn inspect_says_what_a_film_places_in_every_frame() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let scene = library("spinning-cube.gltf").display().to_string();
    let (_, out, _) = told(folder.path(), &["inspect", &scene, "--json"]);
    let report: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    let moves = &report["motion"]["moves"];
    assert!(moves["triangles"].as_u64().is_some_and(|count| count >= 12), "{out}");
    let (_, out, _) = told(folder.path(), &["inspect", &scene]);
    let words = format!("triangles   {} moving as they are; ", moves["triangles"]);
    assert!(out.contains(&words) && out.contains(", placed in every frame"), "{out}");
}

#[test]
fn completions_know_the_commands() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for shell in ["bash", "zsh", "fish"] {
        let (status, out, _) = told(folder.path(), &["completions", shell]);
        assert!(status == 0 && out.contains("undrain"), "{shell}");
    }
}
