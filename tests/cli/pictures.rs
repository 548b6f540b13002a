//! `render` and `diff`: files, patterns, layers, JSON.

use crate::cli::{library, told};
use std::path::Path;

fn render(folder: &Path, more: &[&str]) -> serde_json::Value {
    let scene = library("spinning-cube.gltf").display().to_string();
    let fixed = ["render", &scene, "--size", "24x16", "--spp", "2", "--depth", "2", "-q", "--json"];
    let (status, out, error) = told(folder, &[&fixed, more].concat());
    assert_eq!(status, 0, "{error}");
    serde_json::from_str(out.lines().last().expect("a line of JSON")).expect("JSON")
}

#[test]
fn a_film_gets_a_file_for_each_frame() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let report =
        render(folder.path(), &["--frames", "1-5x2", "-o", "f.##.exr", "-o", "f.{frame:03}.png"]);
    let mut names: Vec<String> = std::fs::read_dir(folder.path())
        .expect("the folder")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert_eq!(names, ["f.001.png", "f.003.png", "f.005.png", "f.01.exr", "f.03.exr", "f.05.exr"]);
    assert_eq!(report["frames"].as_array().map(Vec::len), Some(3));
    assert_ne!(report["frames"][0]["pixels_sha256"], report["frames"][1]["pixels_sha256"]);
}

/// Frames are prepared ahead, so that most of a film's preparation follows its first unit.
#[test]
fn a_film_starts_before_most_of_its_frames_are_prepared() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let report = render(folder.path(), &["--frames", "0-7", "-o", "f.##.png"]);
    let seconds = |value: &serde_json::Value| value.as_f64().expect("seconds");
    let frames = report["frames"].as_array().expect("frames");
    let prepared: Vec<f64> = frames.iter().map(|frame| seconds(&frame["prepare_s"])).collect();
    assert_eq!(prepared.len(), 8);
    assert!(prepared.iter().all(|secs| *secs > 0.0), "{report}");
    // A processor is sent nothing.
    assert!(frames.iter().all(|frame| frame["uploaded_bytes"] == 0), "{report}");
    let (all, start) = (seconds(&report["build_s"]), seconds(&report["start_s"]));
    assert!(prepared.iter().sum::<f64>() <= all, "{report}");
    // The preparation of one frame is taken out, and not that of all.
    let until_first_unit = seconds(&report["total_s"]) - seconds(&report["render_s"]);
    assert!(start > 0.0 && start < until_first_unit, "{report}");
    assert!(start > until_first_unit - all, "{report}");
}

#[test]
fn the_report_tells_what_it_took() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let report = render(folder.path(), &["-o", "a.exr"]);
    assert_eq!(report["samples"], 24 * 16 * 2);
    for field in ["render_s", "build_s", "cpu_s", "start_s", "total_s"] {
        assert!(
            report[field].as_f64().is_some_and(|secs| (0.0..600.0).contains(&secs)),
            "{field}: {report}"
        );
    }
    assert!(report["rays"].as_u64() >= report["samples"].as_u64(), "{report}");
    assert!(report["peak_bytes"].as_u64().is_some_and(|bytes| bytes > 1 << 20), "{report}");
    assert_eq!(report["pixels_sha256"].as_str().map(str::len), Some(64));
}

#[test]
fn layers_are_named_in_the_file() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    render(folder.path(), &["-o", "a.exr", "--aov", "depth,albedo,normal,position"]);
    let bytes = std::fs::read(folder.path().join("a.exr")).expect("the frame");
    let meta =
        exr::meta::MetaData::read_from_buffered(bytes.as_slice(), false).expect("an EXR file");
    let names: Vec<String> = meta
        .headers
        .iter()
        .flat_map(|header| header.channels.list.iter().map(|channel| channel.name.to_string()))
        .collect();
    for name in ["R", "G", "B", "A", "albedo.R", "normal.X", "depth.Z", "position.X"] {
        assert!(names.iter().any(|found| found == name), "{name} is not in {names:?}");
    }
}

/// The channels of a frame, by name.
pub(crate) fn channels(folder: &Path, file: &str) -> std::collections::BTreeMap<String, Vec<f32>> {
    use exr::prelude::{FlatSamples, ReadChannels, ReadLayers};
    let reader = exr::prelude::read().no_deep_data().largest_resolution_level().all_channels();
    let image = reader
        .first_valid_layer()
        .all_attributes()
        .from_file(folder.join(file))
        .expect("an EXR file");
    let channels = image.layer_data.channel_data.list.into_iter().map(|channel| {
        let FlatSamples::F32(values) = channel.sample_data else {
            panic!("32-bit floats are written")
        };
        (channel.name.to_string(), values)
    });
    channels.collect()
}

#[test]
fn a_denoised_frame_keeps_the_noisy_one() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let plain = render(folder.path(), &["-o", "a.exr", "--aov", "depth"]);
    let denoised =
        render(folder.path(), &["-o", "b.exr", "-o", "b.png", "--aov", "depth", "--denoise"]);
    let again =
        render(folder.path(), &["-o", "c.exr", "--tile", "8", "--denoise", "--threads", "1"]);
    let (a, b) = (channels(folder.path(), "a.exr"), channels(folder.path(), "b.exr"));
    for (noisy, name) in
        [("noisy.R", "R"), ("noisy.G", "G"), ("noisy.B", "B"), ("depth.Z", "depth.Z"), ("A", "A")]
    {
        assert!(b[noisy] == a[name], "{noisy} is not {name} of the plain frame");
    }
    // Guides are in the film, and in the file only if they were asked for.
    assert_eq!(b.len(), a.len() + 3, "{:?}", b.keys());
    assert_eq!(denoised["pixels_sha256"], again["pixels_sha256"]);
    assert_ne!(denoised["pixels_sha256"], plain["pixels_sha256"]);
}

#[test]
fn a_denoised_frame_is_closer_to_its_reference() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let scene = library("cornell-box.gltf").display().to_string();
    let fixed = ["render", &scene, "--size", "96x72", "--depth", "4", "-q"];
    for more in [
        &["--spp", "1024", "--seed", "9", "-o", "reference.exr"][..],
        &["--spp", "32", "-o", "noisy.exr"],
        &["--spp", "32", "-o", "denoised.exr", "--denoise"],
    ] {
        let (status, _, error) = told(folder.path(), &[&fixed, more].concat());
        assert_eq!(status, 0, "{error}");
    }
    let apart = |file: &str| {
        let (_, out, _) = told(folder.path(), &["diff", file, "reference.exr", "--json"]);
        let report: serde_json::Value = serde_json::from_str(&out).expect("JSON");
        let number = |value: &serde_json::Value| value.as_f64().expect("a number");
        (number(&report["rel_mse"]), number(&report["flip"]["mean"]), number(&report["mean_ratio"]))
    };
    let (noisy, denoised) = (apart("noisy.exr"), apart("denoised.exr"));
    // The rim of the lamp has most of what is left; reference and noise have a share.
    assert!(denoised.0 < noisy.0 / 2.0, "relMSE from {} to {}", noisy.0, denoised.0);
    assert!(denoised.1 < noisy.1 * 0.9, "FLIP from {} to {}", noisy.1, denoised.1);
    assert!((denoised.2 - noisy.2).abs() < 0.0045, "energy from {} to {}", noisy.2, denoised.2);
}

/// What indirect light may add is bounded: the picture is darker, and its files and the command say
/// why.
#[test]
fn a_clamped_picture_says_that_it_is_one() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let free = render(folder.path(), &["-o", "free.exr", "-o", "free.png"]);
    let bounded = render(folder.path(), &["-o", "a.exr", "-o", "a.png", "--clamp", "0.05"]);
    let again =
        render(folder.path(), &["-o", "b.exr", "--clamp", "0.05", "--tile", "8", "--threads", "1"]);
    assert_eq!(bounded["pixels_sha256"], again["pixels_sha256"]);
    assert_eq!((&free["clamp"], &bounded["clamp"]), (&serde_json::Value::Null, &0.05.into()));
    let sum = |file: &str| channels(folder.path(), file)["G"].iter().sum::<f32>();
    assert!(sum("a.exr") < 0.99 * sum("free.exr"), "{} of {}", sum("a.exr"), sum("free.exr"));
    let bytes = |file: &str| std::fs::read(folder.path().join(file)).expect("a file");
    let says = |file: &str, what: &str| {
        bytes(file).windows(what.len()).any(|found| found == what.as_bytes())
    };
    assert!(says("a.exr", "\"clamp\":0.05") && !says("free.exr", "clamp"));
    let comment = "indirect light clamped at 0.05: darker than the scene";
    assert!(says("a.png", comment) && !says("free.png", "clamped"));

    let scene = library("cornell-box.gltf").display().to_string();
    let of_it = ["render", &scene, "--size", "8x8", "--spp", "1", "-o", "c.png", "--clamp"];
    let (status, _, error) = told(folder.path(), &[&of_it[..], &["2"]].concat());
    assert_eq!(status, 0, "{error}");
    assert!(
        error.contains("indirect light is clamped at 2: the picture is darker than the scene"),
        "{error}"
    );
    let (status, _, error) = told(folder.path(), &[&of_it[..], &["0"]].concat());
    assert_eq!(status, 2, "{error}");
    assert!(error.contains("--clamp: 0 is not in 0.000001 to 262144"), "{error}");
}

#[test]
fn diff_tells_identical_from_close_from_different() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    render(folder.path(), &["-o", "a.exr"]);
    render(folder.path(), &["-o", "b.exr", "--threads", "1", "--tile", "8"]);
    render(folder.path(), &["-o", "c.exr", "--seed", "1"]);
    let (status, out, _) = told(folder.path(), &["diff", "a.exr", "b.exr"]);
    assert!(status == 0 && out.contains("identical"), "{out}");
    let (status, out, _) = told(folder.path(), &["diff", "a.exr", "c.exr"]);
    assert!(status == 1 && out.contains("relMSE") && out.contains("FLIP"), "{out}");
    let (status, out, _) =
        told(folder.path(), &["diff", "a.exr", "c.exr", "--max-relmse", "1e9", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert!(status == 0 && report["identical"] == false, "{out}");
}

/// How many samples a time allows depends on the machine; that the picture is the one of so many
/// does not.
// promise: P5
#[test]
fn a_time_limited_frame_reports_how_to_make_it_again() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let scene = library("spinning-cube.gltf").display().to_string();
    let fixed = ["render", &scene, "--size", "40x24", "--depth", "2", "--frames", "3-4", "--json"];
    let run = |more: &[&str]| {
        let (status, out, error) = told(folder.path(), &[&fixed, more].concat());
        assert_eq!(status, 0, "{error}");
        let report: serde_json::Value =
            serde_json::from_str(out.lines().last().expect("a line of JSON")).expect("JSON");
        report["frames"].as_array().expect("frames").clone()
    };
    for option in [&[][..], &["--denoise", "--aov", "depth"], &["--noise", "0.02"]] {
        let timed =
            run(&[option, &["-q", "--time", "1s", "--spp", "512", "-o", "timed.##.exr"]].concat());
        for (frame, place) in timed.iter().zip(["03", "04"]) {
            let spp = frame["spp"].as_u64().expect("it says how many").to_string();
            assert!(["32", "64", "128", "256", "512"].contains(&spp.as_str()), "{frame}");
            let again = run(&[option, &["-q", "--spp", &spp, "-o", "again.##.exr"]].concat());
            let same =
                again.iter().find(|other| other["frame"] == frame["frame"]).expect("the frame");
            assert_eq!(same["pixels_sha256"], frame["pixels_sha256"], "{option:?} {spp}");
            assert!(same["spp"].is_null(), "{same}");
            let files = ["timed", "again"]
                .map(|name| channels(folder.path(), &format!("{name}.{place}.exr")));
            assert_eq!(files[0], files[1], "{option:?} {spp}");
            let bytes =
                std::fs::read(folder.path().join(format!("timed.{place}.exr"))).expect("the frame");
            let said = format!("\"samples\":{spp},");
            assert!(bytes.windows(said.len()).any(|window| window == said.as_bytes()), "{said}");
        }
    }
    let (status, _, error) = told(
        folder.path(),
        &[&fixed[..8], &["--time", "1s", "--spp", "32", "-o", "one.##.exr"]].concat(),
    );
    assert!(status == 0 && error.contains("which --spp 32 reproduces"), "{error}");
}

/// A triangle that is grey, and blue by the variant "night"; `own` is the material that it names
/// itself.
fn two_looks(own: u32) -> String {
    let bytes = "AAAAAAAAAAAAAAAAAACAPwAAAAAAAAAAAAAAAAAAgD8AAAAA";
    serde_json::json!({
        "asset": { "version": "2.0" }, "scene": 0, "scenes": [{ "nodes": [0] }],
            "nodes": [{ "mesh": 0 }],
        "extensionsUsed": ["KHR_materials_variants"],
        "extensions": { "KHR_materials_variants": { "variants": [{ "name": "day" },
        { "name": "night" }] } },
        "meshes": [{ "primitives": [{ "attributes": { "POSITION": 0 }, "material": own,
        "extensions": {
            "KHR_materials_variants": { "mappings": [{ "material": 1, "variants": [1] }] } } }] }],
        "materials": [
            { "pbrMetallicRoughness": { "baseColorFactor": [0.5, 0.5, 0.5, 1] } },
            { "pbrMetallicRoughness": { "baseColorFactor": [0, 0, 1, 1] } }
        ],
        "accessors": [{ "bufferView": 0, "componentType": 5126, "count": 3, "type": "VEC3" }],
        "bufferViews": [{ "buffer": 0, "byteLength": 36 }],
        "buffers": [{ "byteLength": 36, "uri": format!("data:;base64,{bytes}") }]
    })
    .to_string()
}

/// Hash of the pixels of a small picture.
fn pixels(folder: &Path, scene: &str, more: &[&str]) -> String {
    let fixed = ["render", scene, "-o", "a.exr", "--size", "24x16", "--spp", "2", "-q", "--json"];
    let (status, out, error) = told(folder, &[&fixed, more].concat());
    assert_eq!(status, 0, "{error}");
    let report: serde_json::Value =
        serde_json::from_str(out.lines().last().expect("a line of JSON")).expect("JSON");
    report["frames"][0]["pixels_sha256"].as_str().map_or_else(|| panic!("{report}"), str::to_owned)
}

#[test]
fn a_lens_has_the_blades_that_were_asked_for() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("a.gltf"), two_looks(0)).expect("a scene file");
    let view = ["--eye", "0.25,0.25,2", "--target", "0.25,0.25,0", "--lens-radius", "0.5"];
    let through = |more: &[&str]| {
        pixels(folder.path(), "a.gltf", &[&view[..], &["--focus-distance", "1"], more].concat())
    };
    let round = through(&[]);
    assert_eq!(through(&["--blades", "0"]), round);
    let five = through(&["--blades", "5"]);
    assert_ne!(five, round);
    assert_eq!(
        through(&["--blades", "5", "--blade-rotation", "-360"]),
        five,
        "whole turns change nothing"
    );
    assert_ne!(through(&["--blades", "5", "--blade-rotation", "30"]), five);
    assert_ne!(through(&["--blades", "6"]), five);
}

#[test]
fn a_shifted_view_is_another_picture_and_is_bounded() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("a.gltf"), two_looks(0)).expect("a scene file");
    let through = |more: &[&str]| pixels(folder.path(), "a.gltf", more);
    let plain = through(&[]);
    assert_eq!(through(&["--shift", "0,0"]), plain);
    assert_eq!(through(&["--shift", "-0,-0"]), plain);
    let right = through(&["--shift", "0.25,0"]);
    assert_ne!(right, plain);
    assert_ne!(through(&["--shift", "-0.25,0"]), right);
    assert_ne!(through(&["--shift", "0,0.25"]), right);
    let comments = std::fs::read(folder.path().join("a.exr")).expect("a picture");
    let about = String::from_utf8_lossy(&comments);
    assert!(about.contains("\"shift\":[0.0,0.25]"), "the file tells it");

    let refused = |shift: &str| {
        let fixed = ["render", "a.gltf", "-o", "b.exr", "--shift", shift];
        let (status, _, error) = told(folder.path(), &fixed);
        assert_eq!(status, 2, "{shift}: {error}");
        error
    };
    assert!(refused("8.5,0").contains("--shift: 8.5,0 are not both in -8 to 8"));
    assert!(refused("0,NaN").contains("--shift: 0,NaN are not both in -8 to 8"));
    assert!(refused("0.5").contains("`0.5` is not two numbers; write them as X,Y"));
    assert!(refused("1,2,3").contains("`1,2,3` is not two numbers"));
}

#[test]
fn half_precision_is_for_exr_files() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("a.gltf"), two_looks(0)).expect("a scene file");
    let plain = pixels(folder.path(), "a.gltf", &[]);
    let bytes = |path: &str| std::fs::metadata(folder.path().join(path)).expect("a file").len();
    let float = bytes("a.exr");
    assert_eq!(pixels(folder.path(), "a.gltf", &["--exr-depth", "half"]), plain);
    assert!(bytes("a.exr") < float, "{} and {float} bytes", bytes("a.exr"));
    let fixed = ["render", "a.gltf", "-o", "b.png", "--exr-depth", "half"];
    let (status, _, error) = told(folder.path(), &fixed);
    assert_eq!(status, 2, "{error}");
    assert!(error.contains("--exr-depth: half is for EXR files"), "{error}");
    let png = ["render", "a.gltf", "-o", "b.png", "--exr-compression", "piz"];
    let (status, _, error) = told(folder.path(), &png);
    assert!(status == 2 && error.contains("--exr-compression: it is for EXR files"), "{error}");
    assert!(!folder.path().join("b.png").exists());

    for compression in ["none", "rle", "zips", "piz"] {
        let options = ["--exr-compression", compression, "--aov", "depth"];
        assert_eq!(pixels(folder.path(), "a.gltf", &options), plain, "{compression}");
    }
    let refused = |more: &[&str]| {
        let (status, _, error) =
            told(folder.path(), &[&["render", "a.gltf", "-o", "c.exr"], more].concat());
        assert_eq!(status, 2, "{error}");
        error
    };
    let layer = refused(&["--exr-depth", "half,depth=half"]);
    assert!(layer.contains("--exr-depth: the files of this job have no layer depth: add --aov"));
    assert!(refused(&["--exr-compression", "dwaa"]).contains("`dwaa` is not one of: none, rle"));
}

#[test]
fn displayed_pictures_have_the_exposure_that_was_asked_for() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("a.gltf"), two_looks(0)).expect("a scene file");
    let fixed = ["render", "a.gltf", "--size", "24x16", "--spp", "2", "--frames", "1-3", "-o"];
    let render = |more: &[&str]| {
        let (status, out, error) = told(folder.path(), &[&fixed, more].concat());
        assert_eq!(status, 0, "{error}");
        (out, error)
    };
    let file = |name: &str| std::fs::read(folder.path().join(name)).expect("a file");
    let (_, words) = render(&["a.##.jpg", "-o", "a.##.png", "--exposure", "auto"]);
    assert!(words.contains(" stops, metered in frame 1\n"), "{words}");
    let stops = words.split("exposure: ").nth(1).and_then(|rest| rest.split(' ').next());
    let stops = stops.expect("a number").to_owned();
    let (out, _) = render(&["b.##.png", "--exposure", &stops, "-q", "--json"]);
    assert!(!out.contains("\"exposure\""), "{out}");
    // The comment with the exposure is the only difference.
    let shown = |name: &str| image::load_from_memory(&file(name)).expect("a picture").to_rgb8();
    for frame in 1..=3 {
        assert_eq!(shown(&format!("a.0{frame}.png")), shown(&format!("b.0{frame}.png")));
        assert_eq!(file(&format!("a.0{frame}.jpg"))[..3], [0xff, 0xd8, 0xff]);
    }
    render(&["c.##.png", "--exposure", &stops, "--tone-map", "agx", "-q"]);
    render(&["d.##.png", "--exposure", &stops, "--tone-map", "agx", "--look", "punchy", "-q"]);
    render(&["e.##.png", "--exposure", &stops, "--tone-map", "filmic", "-q"]);
    let names = ["b.01.png", "c.01.png", "d.01.png", "e.01.png"];
    let pictures: std::collections::BTreeSet<_> = names.map(file).into_iter().collect();
    assert_eq!(pictures.len(), names.len(), "each is another picture");
}

#[test]
fn focus_is_set_by_a_distance_or_a_point() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("a.gltf"), two_looks(0)).expect("a scene file");
    let view = ["--eye", "0.25,0.25,2", "--target", "0.25,0.25,0", "--lens-radius", "0.5"];
    let sharp = |more: &[&str]| pixels(folder.path(), "a.gltf", &[&view, more].concat());
    let at_2 = sharp(&["--focus-distance", "2"]);
    assert_eq!(sharp(&["--focus-point", "-3,1,0"]), at_2);
    assert_ne!(sharp(&["--focus-point", "0,0,1"]), at_2);

    let refused = |more: &[&str]| {
        let (status, _, error) =
            told(folder.path(), &[&["render", "a.gltf", "-o", "b.exr"], more].concat());
        assert_ne!(status, 0, "{more:?}");
        error
    };
    assert!(refused(&["--f-stop", "2.8"]).contains("--focus-distance <M>|--focus-point <X,Y,Z>"));
    assert!(refused(&["--focus-distance", "2"]).contains("--lens-radius <M>|--f-stop <N>"));
    assert!(refused(&["--f-stop", "0", "--focus-distance", "2"]).contains("--f-stop: 0 is not"));
    let lens = ["--f-stop", "2", "--focus-distance", "2"];
    let blades = refused(&[&lens[..], &["--blades", "17"]].concat());
    assert!(blades.contains("--blades: 17 is not 0, for a round lens, or 3 to 16"), "{blades}");
    assert!(
        refused(&[&lens[..], &["--blades", "5", "--blade-rotation", "inf"]].concat())
            .contains("--blade-rotation")
    );
    assert!(refused(&["--blades", "5"]).contains("--lens-radius <M>|--f-stop <N>"));
    assert!(refused(&[&lens[..], &["--blade-rotation", "5"]].concat()).contains("--blades <N>"));
    let behind = refused(&[
        "--eye",
        "0,0,2",
        "--target",
        "0,0,0",
        "--f-stop",
        "2",
        "--focus-point",
        "0,0,3",
    ]);
    assert_eq!(behind.matches("(0, 0, 3) is not in front of it").count(), 1, "{behind}");
    assert!(!behind.contains("tessera retry"), "no farm is left that could: {behind}");
}

#[test]
fn a_variant_is_shown_by_its_name() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, own) in [("grey.gltf", 0), ("blue.gltf", 1)] {
        std::fs::write(folder.path().join(name), two_looks(own)).expect("a scene file");
    }
    let pixels = |scene: &str, more: &[&str]| pixels(folder.path(), scene, more);
    let (grey, blue) = (pixels("grey.gltf", &[]), pixels("blue.gltf", &[]));
    assert_ne!(grey, blue);
    assert_eq!(pixels("grey.gltf", &["--variant", "day"]), grey);
    assert_eq!(pixels("grey.gltf", &["--variant", "night"]), blue);

    let (_, out, _) = told(folder.path(), &["inspect", "grey.gltf"]);
    assert!(out.contains("variant     day\nvariant     night\n"), "{out}");
    let (_, out, _) = told(folder.path(), &["inspect", "grey.gltf", "--json"]);
    assert!(out.contains("\"variants\""), "{out}");
    for (command, status) in [
        (&["render", "grey.gltf", "-o", "b.exr"][..], 3),
        (&["submit", "grey.gltf", "--dry-run"], 1),
    ] {
        let (found, _, error) = told(folder.path(), &[command, &["--variant", "noon"]].concat());
        assert!(
            found == status && error.contains("\"day\", \"night\""),
            "{command:?}: {found} {error}"
        );
    }
}

#[test]
fn a_crop_has_the_pixels_of_the_frame_and_is_bounded() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("a.gltf"), two_looks(0)).expect("a scene file");
    let with = |more: &[&str]| pixels(folder.path(), "a.gltf", more);
    let whole = with(&[]);
    assert_eq!(with(&["--crop", "0,0,24x16"]), whole, "a crop of everything");
    assert_ne!(with(&["--crop", "0,0,24x15"]), whole);
    let about = std::fs::read(folder.path().join("a.exr")).expect("a picture");
    let about = String::from_utf8_lossy(&about);
    assert!(about.contains("\"crop\":{\"height\":15,\"width\":24,\"x\":0,\"y\":0}"));

    let fixed = ["render", "a.gltf", "-o", "b.exr", "--size", "24x16"];
    let refused = |more: &[&str]| {
        let (status, _, error) = told(folder.path(), &[&fixed[..], more].concat());
        assert_eq!(status, 2, "{more:?}: {error}");
        assert!(!folder.path().join("b.exr").exists());
        error
    };
    let outside = refused(&["--crop", "20,0,5x5"]);
    assert!(outside.contains("--crop: 20,0,5x5 is not within the frame, which has 24x16 pixels"));
    let empty = refused(&["--crop", "3,3,0x5"]);
    assert!(empty.contains("--crop: 3,3,0x5 has no pixel of the 24x16 frame"), "{empty}");
    for text in ["1,2,3,4", "1,2", "-1,0,4x4", "1,2,3x+4", "a,2,3x4", "1,2,3x4x5"] {
        assert!(refused(&["--crop", text]).contains("write it as X,Y,WxH"), "{text}");
    }
    assert!(refused(&["--overscan", "5000"]).contains("--overscan: 5000 is above 4096 pixels"));
    let noise = refused(&["--crop", "0,0,8x8", "--noise", "0.1"]);
    assert!(noise.contains("--crop: does not go with --noise, which decides"), "{noise}");
    let time = refused(&["--overscan", "8", "--time", "3s"]);
    assert!(time.contains("--overscan: does not go with --time, which decides"), "{time}");
}
