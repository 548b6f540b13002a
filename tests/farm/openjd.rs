//! Templates of Open Job Description: what is exported gives the farm's own files when another
//! farm's runner runs it, and the farm takes it back; documents with anything else are refused.

use super::templates::json;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use tessera_support::farm::{Farm, library, pixels_sha256, skipped, tessera};

/// A film, two looks and an array that waits for them, with a folder apart for the scene.
const TEMPLATE: &str = "tessera = 1\nname = 'shot'\ndescription = 'everything once'\n\
    [[steps]]\nname = 'film'\nrender = 'set/box.gltf'\nsize = '48x48'\nspp = 4\nframes = '1-5x2'\n\
    denoise = true\nformat = ['exr', 'png16']\npriority = 20\n\
    [[steps]]\nname = 'look'\nrender = 'set/box.gltf'\nsize = '32x32'\nspp = 2\nseed = '{s}'\n\
    each = { s = '1-2' }\nexposure = -1.5\nformat = 'jpeg'\nenv = '#203040'\n\
    [[steps]]\nname = 'small'\ncompute = 'builtin:resize'\ndomain = '4x3'\nchannels = 3\n\
    input = ['image=set/image.npy']\narg = ['filter=box']\nafter = ['film', 'look']\n\
    frames = '1-2'\nformat = 'npy'\n";

/// A picture of 8 × 6 pixels with three channels.
fn image() -> Vec<u8> {
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (6, 8, 3), }";
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    let text = format!("{header:117}\n");
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes.extend((0..144_u16).flat_map(|value| f32::from(value).to_le_bytes()));
    bytes
}

/// The template and its files in the farm's folder.
fn prepare(farm: &Farm) -> PathBuf {
    let folder = farm.folder().join("shots");
    std::fs::create_dir_all(folder.join("set")).expect("a folder");
    std::fs::copy(library("cornell-box.gltf"), folder.join("set/box.gltf")).expect("a scene");
    std::fs::write(folder.join("set/image.npy"), image()).expect("an array");
    std::fs::write(folder.join("shot.toml"), TEMPLATE).expect("a template");
    folder
}

/// Runs a command of the farm in the folder of the template.
fn run_in(farm: &Farm, folder: &Path, arguments: &[&str]) -> (String, String) {
    let output = farm.command(arguments).current_dir(folder).output().expect("tessera");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, error) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{arguments:?}\n{error}");
    (out, error)
}

/// The files of a folder, by name.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let entries = entries.map(|entry| entry.expect("an entry"));
    // An EXR file says when it was made for which job; its pixels are compared, and all bytes of
    // the others.
    let file = |entry: std::fs::DirEntry| {
        let name = entry.file_name().into_string().expect("a name");
        let bytes = match name.ends_with(".exr") {
            true => pixels_sha256(&entry.path()).into_bytes(),
            false => std::fs::read(entry.path()).expect("a file"),
        };
        (name, bytes)
    };
    entries
        .filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."))
        .map(file)
        .collect()
}

/// The files of a batch's jobs, fetched into a folder.
fn fetched(farm: &Farm, sent: &Value, name: &str) -> BTreeMap<String, Vec<u8>> {
    let folder = farm.folder().join(name);
    for job in sent["jobs"].as_array().expect("jobs") {
        let id = job["job"].as_str().expect("an id");
        farm.text(&["fetch", id, "-o", folder.to_str().expect("a path")]);
    }
    files(&folder)
}

fn assert_same(here: &BTreeMap<String, Vec<u8>>, there: &BTreeMap<String, Vec<u8>>) {
    let names = |of: &BTreeMap<String, Vec<u8>>| of.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(here), names(there));
    for (name, bytes) in here {
        assert!(bytes == &there[name], "{name} has other bytes");
    }
}

// promise: P4
#[test]
fn what_is_exported_makes_the_farms_files_elsewhere() {
    let named = std::env::var_os("TESSERA_OPENJD").map(PathBuf::from);
    let Some(runner) = named.filter(|program| program.is_file()) else {
        skipped("exported templates: openjd-cli is not installed (TESSERA_OPENJD)");
        return;
    };
    let farm = Farm::start(2, 1);
    let folder = prepare(&farm);
    let (sent, _) = run_in(&farm, &folder, &["submit", "shot.toml", "--json", "--wait"]);
    let sent: Value = serde_json::from_str(&sent).expect("JSON");
    let own = fetched(&farm, &sent, "own");
    assert_eq!(own.len(), 3 * 2 + 2 + 2, "{:?}", own.keys());

    let (text, notes) = run_in(&farm, &folder, &["submit", "shot.toml", "--export", "openjd"]);
    assert!(notes.contains("left out") && notes.contains("--priority"), "{notes}");
    let document = folder.join("shot.json");
    std::fs::write(&document, text).expect("the document");
    let made = farm.folder().join("made");
    std::fs::create_dir(&made).expect("a folder");
    let ran = Command::new(runner)
        .args(["run", "shot.json", "--step", "small", "--run-dependencies", "-p"])
        .arg(format!("Tessera={}", tessera()))
        .arg("-p")
        .arg(format!("Out={}", made.display()))
        .current_dir(&folder)
        .output()
        .expect("the runner");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stdout));
    assert_same(&own, &files(&made));

    // The farm takes it back, and makes the same files again: names begin with the steps' own.
    let (back, _) = run_in(&farm, &folder, &["submit", "shot.json", "--json", "--wait"]);
    let back: Value = serde_json::from_str(&back).expect("JSON");
    assert_eq!(back["jobs"].as_array().map(Vec::len), Some(4));
    let mut again = fetched(&farm, &back, "again");
    assert_eq!(again.len(), own.len(), "{:?}", again.keys());
    for (name, bytes) in &own {
        assert!(again.remove(name).as_ref() == Some(bytes), "{name}");
    }
}

#[test]
fn single_jobs_are_exported_with_their_frames_as_a_parameter() {
    let farm = Farm::prepare();
    let folder = prepare(&farm);
    let film = ["submit", "set/box.gltf", "--frames", "1-9x4", "--spp", "2", "--export", "openjd"];
    let (text, notes) = run_in(&farm, &folder, &film);
    assert!(notes.is_empty(), "{notes}");
    let value: Value = serde_json::from_str(&text).expect("JSON");
    let default = |name: &str| {
        let all = value["parameterDefinitions"].as_array().expect("parameters");
        let one = all.iter().find(|one| one["name"] == name).expect("a parameter");
        one["default"].clone()
    };
    assert_eq!((default("Frames"), default("Folder")), ("1-9:4".into(), "set".into()));
    std::fs::write(folder.join("one.json"), text).expect("the document");
    let dry = ["submit", "one.json", "--set", "Frames=7", "--dry-run", "--json"];
    let (specs, _) = run_in(&farm, &folder, &dry);
    let specs: Value = serde_json::from_str(&specs).expect("JSON");
    assert_eq!(specs[0]["kind"]["Render"]["frames"], "7");

    // Frames that depend on each other are one task; files elsewhere have to be named.
    let (text, notes) = run_in(
        &farm,
        &folder.join("set"),
        &[
            "submit",
            "../set/box.gltf",
            "--frames",
            "1-4",
            "--exposure",
            "auto",
            "--export",
            "openjd",
        ],
    );
    assert!(text.contains("--frames=1-4") && notes.contains("is one task"), "{text}{notes}");
    for (wrong, told) in [
        (&["--after", "0190a6b2-7c2e-7f34-8a55-2f1a9c5e1d10"][..], "for which other farms cannot"),
        (&["--wait"], "cannot be used with"),
        (&["--name", "a{{b"], "no way to write"),
    ] {
        let mut arguments = vec!["submit", "set/box.gltf", "--export", "openjd"];
        arguments.extend(wrong);
        let output = farm.command(&arguments).current_dir(&folder).output().expect("tessera");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(told), "{wrong:?}\n{said}");
    }
}

#[test]
fn documents_that_run_anything_else_send_nothing() {
    let farm = Farm::start(0, 1);
    let folder = prepare(&farm);
    let head = "specificationVersion: jobtemplate-2023-09\nname: x\nsteps:\n- name: a\n  script:\n";
    let good =
        "    actions: {onRun: {command: tessera, args: [render, set/box.gltf, -o, a.exr]}}\n";
    for (rest, told) in [
        ("    actions: {onRun: {command: bash, args: [-c, id]}}\n".to_owned(), "command `bash`"),
        (
            format!("{good}    embeddedFiles: [{{name: f, type: TEXT, data: x}}]\n"),
            "step `a`: it has files in the template",
        ),
        (
            format!("{good}  stepEnvironments: [{{name: e, variables: {{A: b}}}}]\n"),
            "step `a`: it has environments",
        ),
        (good.replace("-o", "--identity, x, -o"), "--identity"),
        (good.replace("box.gltf", "none.gltf"), "none.gltf"),
    ] {
        std::fs::write(folder.join("bad.yaml"), format!("{head}{rest}")).expect("a document");
        let arguments = ["submit", "bad.yaml"];
        let output = farm.command(&arguments).current_dir(&folder).output().expect("tessera");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && output.stdout.is_empty(), "{rest}");
        assert!(said.contains(told) && said.contains("bad.yaml"), "{rest}\n{said}");
    }
    assert_eq!(json(&farm, &["jobs", "--json"]).as_array().map(Vec::len), Some(0));
}
