//! `render` and `diff`: files, patterns, layers, JSON.

use crate::{library, told};
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
    let report = render(folder.path(), &["--frames", "1-5x2", "-o", "f.##.exr", "-o", "f.{frame:03}.png"]);
    let mut names: Vec<String> = std::fs::read_dir(folder.path())
        .expect("the folder")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert_eq!(names, ["f.001.png", "f.003.png", "f.005.png", "f.01.exr", "f.03.exr", "f.05.exr"]);
    assert_eq!(report["frames"].as_array().map(Vec::len), Some(3));
    assert_ne!(report["frames"][0]["pixels_sha256"], report["frames"][1]["pixels_sha256"]);
}

#[test]
fn the_report_tells_what_it_took() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let report = render(folder.path(), &["-o", "a.exr"]);
    assert_eq!(report["samples"], 24 * 16 * 2);
    for field in ["render_s", "build_s", "cpu_s", "start_s", "total_s"] {
        assert!(report[field].as_f64().is_some_and(|secs| (0.0..600.0).contains(&secs)), "{field}: {report}");
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
    let meta = exr::meta::MetaData::read_from_buffered(bytes.as_slice(), false).expect("an EXR file");
    let names: Vec<String> = meta
        .headers
        .iter()
        .flat_map(|header| header.channels.list.iter().map(|channel| channel.name.to_string()))
        .collect();
    for name in ["R", "G", "B", "A", "albedo.R", "normal.X", "depth.Z", "position.X"] {
        assert!(names.iter().any(|found| found == name), "{name} is not in {names:?}");
    }
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
    let (status, out, _) = told(folder.path(), &["diff", "a.exr", "c.exr", "--max-relmse", "1e9", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert!(status == 0 && report["identical"] == false, "{out}");
}
