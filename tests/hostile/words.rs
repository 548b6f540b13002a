//! Command lines, settings and token files with values that make no sense: each is told as such,
//! and none is obeyed.

use crate::hostile::runner::Lab;
use std::path::Path;

/// Options and values that `render` has to refuse.
const NONSENSE: &[&[&str]] = &[
    &["--size", "1000000x1000000"],
    &["--size", "0x0"],
    &["--size", "-1x5"],
    &["--size", "99999999999999999999x1"],
    &["--size", "32768x32768"],
    &["--size", "640"],
    &["--spp", "4294967296"],
    &["--spp", "4294967295"],
    &["--spp", "0"],
    &["--spp", "-1"],
    &["--spp", "1e9"],
    &["--depth", "4294967295"],
    &["--tile", "0"],
    &["--tile", "4294967295"],
    &["--tile", "7"],
    &["--unit-samples", "4294967295"],
    &["--frames", "1-99999999999"],
    &["--frames", "0-4294967295"],
    &["--frames", "5-1"],
    &["--frames", "1-10x0"],
    &["--frames", "1-10x99999999999"],
    &["--frames", ","],
    &["--frames", "1,,2"],
    &["--frames", "-"],
    &["--frames", ""],
    &["--frames", "0-999999,0-999999"],
    &["--frame", "4294967295"],
    &["--fps", "0"],
    &["--fps", "-1"],
    &["--fps", "NaN"],
    &["--fps", "inf"],
    &["--env", "NaN,0,0"],
    &["--env", "-1,0,0"],
    &["--env", "#gggggg"],
    &["--env", "/dev/zero"],
    &["--env", "/dev/null/x.exr"],
    &["--env-intensity", "NaN"],
    &["--env-intensity", "-1"],
    &["--env-rotate", "inf"],
    &["--camera", "99999999999999"],
    &["--camera", "no such camera"],
    &["--variant", ""],
    &["--variant", "no such variant"],
    &["--eye", "nan,0,0", "--target", "0,0,0"],
    &["--eye", "0,0,0", "--target", "0,0,0"],
    &["--eye", "0,0,1", "--target", "0,0,0", "--vfov", "180"],
    &["--lens-radius", "-1", "--focus-distance", "1"],
    &["--lens-radius", "NaN", "--focus-distance", "0"],
    &["--f-stop", "2", "--focus-distance", "1", "--blades", "2"],
    &["--f-stop", "2", "--focus-distance", "1", "--blades", "-1"],
    &["--f-stop", "2", "--focus-distance", "1", "--blades", "99999999999"],
    &["--f-stop", "2", "--focus-distance", "1", "--blades", "5", "--blade-rotation", "NaN"],
    &["--exposure", "NaN"],
    &["--threads", "0"],
    &["--threads", "99999"],
    &["--nodes", "0"],
    &["--nodes", "65"],
    &["--device", "cuda:99999999999"],
    &["--device", ""],
    &["--device", "cpu,cpu"],
    &["--isa", "x86-64-v9"],
    &["--aov", "secrets"],
    &["--scene-memory", "0"],
    &["--scene-memory", "99999999999999"],
    &["--scene-time", "0"],
    &["-o", ""],
    &["-o", "%999999d.exr"],
    &["-o", "{frame:99999999999}.exr"],
    &["-o", "%s.exr"],
    &["-o", "{0}.exr"],
    &["-o", "x.gif"],
    &["-o", "/dev/null/x.exr"],
];

fn scene() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("scenes/library/cornell-box.gltf")
        .display()
        .to_string()
}

// promise: P8
#[test]
fn options_that_make_no_sense_are_refused_by_name() {
    let (lab, scene) = (Lab::new(), scene());
    let mut findings = Vec::new();
    for options in NONSENSE {
        // Small, should it be rendered after all.
        let mut arguments = vec!["render", &scene, "-q", "--device", "cpu", "--frame", "0"];
        let given = |name: &str| options.contains(&name);
        if given("--device") {
            arguments.drain(3..5);
        }
        if given("--frames") || given("--frame") {
            arguments.truncate(arguments.len() - 2);
        }
        for (name, value) in [("--size", "4x4"), ("--spp", "1"), ("--depth", "1"), ("-o", "x.exr")]
        {
            if !given(name) {
                arguments.extend([name, value]);
            }
        }
        arguments.extend_from_slice(options);
        match lab.say(&arguments) {
            Ok((1..=8, _)) => {}
            Ok((status, words)) => findings.push(format!("{options:?}: status {status}: {words}")),
            Err(finding) => findings.push(format!("{options:?}: {finding}")),
        }
    }
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}

// promise: P8
#[test]
fn settings_files_that_make_no_sense_are_refused() {
    let lab = Lab::new();
    let file = lab.folder().join("tessera.toml");
    let texts: [&[u8]; 8] = [
        b"spp = ",
        b"[render\n",
        b"[no-such-command]\nx = 1\n",
        b"no-such-option = 1\n",
        b"\xff\xfe\x00",
        &[b'['; 100_000],
        &[b'#'; (1 << 20) + 1],
        b"x = [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
    ];
    for text in texts {
        std::fs::write(&file, text).expect("a settings file");
        let (status, words) = lab.say(&["inspect", &scene()]).expect("it ends well");
        assert!(
            status == 1 || status == 2,
            "{}: {words}",
            String::from_utf8_lossy(&text[..text.len().min(40)])
        );
    }
    for target in ["/dev/zero", "/dev/stdin", "."] {
        std::fs::remove_file(&file).expect("the last one");
        std::os::unix::fs::symlink(target, &file).expect("a link");
        let (status, words) = lab.say(&["inspect", &scene()]).expect("it ends well");
        assert!(status != 0, "{target}: {words}");
    }
}

// promise: P8
#[test]
fn token_files_that_make_no_sense_are_refused() {
    let lab = Lab::new();
    let file = lab.folder().join("token").display().to_string();
    let tokens: [&[u8]; 6] =
        [b"", b"\0\0\0", b"\xff\xfe", &[b'a'; 5000], b"a.b.c.d.e", &[b'A'; 4000]];
    for token in tokens {
        std::fs::write(&file, token).expect("a token file");
        let arguments =
            ["enrol", "--token-file", &file, "--coordinator", "127.0.0.1:9", "--identity", "here"];
        let (status, words) = lab.say(&arguments).expect("it ends well");
        assert!(status != 0, "{words}");
    }
    for path in ["/dev/zero", ".", "/nowhere/at/all"] {
        let arguments =
            ["enrol", "--token-file", path, "--coordinator", "127.0.0.1:9", "--identity", "here"];
        assert!(lab.say(&arguments).expect("it ends well").0 != 0, "{path}");
    }
}
