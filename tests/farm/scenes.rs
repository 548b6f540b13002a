//! Real scenes, submitted, waited for and fetched; films fetched while later frames still render.

use std::path::Path;
use tessera_support::farm::{Farm, library, shared_scenes};

#[test]
fn every_library_scene_is_rendered_by_a_farm() {
    let farm = Farm::start(2, 1);
    for entry in std::fs::read_dir(library("")).expect("the library") {
        let path = entry.expect("a folder entry").path();
        if path.extension().is_some_and(|extension| extension == "gltf" || extension == "glb") {
            let job = farm.submit(&path, &["--size", "48x32", "--spp", "4"]);
            farm.hashes(&job);
        }
    }
}

#[test]
fn every_shared_scene_is_rendered_by_a_farm() {
    let Some(folder) = shared_scenes() else { return };
    let farm = Farm::start(2, 1);
    let sky = folder.join("env/studio_small_05_1k.hdr").display().to_string();
    let mut jobs = Vec::new();
    for path in gltf_files(&folder) {
        let name = path.strip_prefix(&folder).expect("a file of the folder").display().to_string();
        let options = ["--size", "48x48", "--spp", "4", "--env", &sky];
        jobs.push((name, farm.submit(&path, &options)));
    }
    assert!(jobs.len() > 30, "only {} scenes were found", jobs.len());
    for (name, job) in jobs {
        println!("{name}: {}", farm.hashes(&job)[0]);
    }
}

#[test]
fn a_film_is_fetched_while_later_frames_render() {
    let farm = Farm::start(1, 1);
    let job = farm.submit(
        &library("spinning-cube.gltf"),
        &["--size", "96x64", "--spp", "64", "--frames", "1-24", "--format", "exr,png"],
    );
    let folder = farm.folder().join("early");
    let early = folder.to_str().expect("a UTF-8 path");
    farm.wait_for("a finished frame", |farm| {
        let job: serde_json::Value =
            serde_json::from_str(&farm.text(&["job", &job, "--json"])).expect("the job is JSON");
        job["summary"]["frames_done"].as_u64().is_some_and(|done| done >= 1)
    });
    farm.text(&["fetch", &job, "-o", early]);
    let count = std::fs::read_dir(&folder).expect("fetched frames").count();
    // A frame has two files, and the folder a record of its job.
    assert!(count >= 3, "a frame was done and not fetched");
    let hashes = farm.hashes(&job);
    assert_eq!(hashes.len(), 24);
    let distinct: std::collections::BTreeSet<&String> = hashes.iter().collect();
    assert!(distinct.len() > 12, "an animation whose frames are alike");
}

fn gltf_files(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).expect("a readable folder") {
            let path = entry.expect("a folder entry").path();
            if path.is_dir() {
                open.push(path);
            } else if path
                .extension()
                .is_some_and(|extension| extension == "gltf" || extension == "glb")
            {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}
