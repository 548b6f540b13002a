//! The Python client: its own tests, its examples and its types, with a farm of real processes.
//! Needs Python; NumPy and mypy, where they are not there, are missed by name.

use std::path::PathBuf;
use std::process::Command;
use tessera_support::farm::{Farm, skipped};

/// The folder of the client.
fn client() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("python")
}

/// The Python of `.ci/python`, else the machine's; None where there is none, which is told.
fn python() -> Option<String> {
    let named = std::env::var("TESSERA_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let least = "import sys; sys.exit(sys.version_info < (3, 9))";
    let found = Command::new(&named).args(["-c", least]).status().is_ok_and(|s| s.success());
    if !found {
        skipped("the Python client: no python3 of 3.9 or newer is there");
    }
    found.then_some(named)
}

/// Whether this Python has a module; told where it has not.
fn has(python: &str, module: &str, for_what: &str) -> bool {
    let import = format!("import {module}");
    let status = Command::new(python).args(["-c", &import]).output().map(|output| output.status);
    let is_there = status.is_ok_and(|status| status.success());
    if !is_there {
        skipped(&format!("{for_what}: {module} is not there"));
    }
    is_there
}

/// A farm with HTTP, one node, the address and an admin's token in files.
fn farm(more: &[&str]) -> (Farm, String) {
    let mut farm = Farm::prepare();
    let mut command = farm.coordinator_command();
    command.args(["--http", "127.0.0.1:0"]).args(more);
    farm.run_coordinator(command);
    farm.add_node("rig", 2);
    farm.wait_for("the node", |farm| farm.text(&["nodes"]).contains("ready"));
    let token = farm.text(&["token", "create", "--api"]);
    std::fs::write(farm.folder().join("api.token"), token).expect("a file");
    let link: serde_json::Value =
        serde_json::from_str(&farm.text(&["web", "--json"])).expect("JSON");
    let link = link["link"].as_str().expect("a link");
    let ends = link.match_indices('/').nth(2).map_or(link.len(), |(at, _)| at);
    let base = link[..ends].to_owned();
    (farm, base)
}

/// Runs tests of the client in the farm's folder; what they said.
fn run(python: &str, (farm, base): (&Farm, &str), tests: &[&str]) -> String {
    let output = Command::new(python)
        .args(["-B", "-m", "unittest", "-v"])
        .args(tests)
        .current_dir(farm.folder())
        .env("PYTHONPATH", client())
        .env("TESSERA_URL", base)
        .env("TESSERA_API_TOKEN_FILE", farm.folder().join("api.token"))
        .env("TESSERA_CA_FILE", farm.data().join("authority/authority.pem"))
        .output()
        .expect("Python starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}\n{}", farm.logs());
    said
}

#[test]
fn the_python_client_works_on_a_real_farm() {
    let Some(python) = python() else { return };
    let has_numpy = has(&python, "numpy", "compute jobs of the Python client");
    let (farm, base) = farm(&[]);
    let modules = [
        "tests.test_answers",
        "tests.test_blake3",
        "tests.test_compute",
        "tests.test_examples",
        "tests.test_farm",
        "tests.test_gltf",
        "tests.test_templates",
        "tests.test_transfers",
    ];
    let said = run(&python, (&farm, &base), &modules);
    // Blender's example runs in Blender's own Python alone.
    let blender = has(&python, "bpy", "the example in Blender");
    let may_miss = |line: &str| line.starts_with("test_blender ") && !blender;
    let missed = said.lines().find(|line| line.contains(" ... skipped ") && !may_miss(line));
    assert!(missed.is_none() || !has_numpy, "with a farm and NumPy nothing is left out:\n{said}");

    // The command line sends the same files of the same scene, and the same picture comes of it.
    let jobs: serde_json::Value = serde_json::from_str(&farm.text(&["jobs", "--json"])).unwrap();
    let jobs = jobs.as_array().or(jobs["jobs"].as_array()).unwrap();
    let theirs = jobs.iter().find(|job| job["name"] == "external").expect("the client's job");
    let theirs = theirs["job"].as_str().unwrap();
    let scene = farm.folder().join("external/box.gltf");
    let ours = farm.submit(&scene, &["--size", "48x32", "--spp", "2", "--name", "ours"]);
    let files = |job: &str| {
        let detail = farm.text(&["job", job, "--json"]);
        let detail: serde_json::Value = serde_json::from_str(&detail).unwrap();
        detail["spec"]["kind"]["Render"]["files"].clone()
    };
    assert_eq!(files(theirs), files(&ours));
    assert!(files(theirs).as_array().is_some_and(|files| files.len() == 2));
    assert_eq!(farm.hashes(theirs), farm.hashes(&ours));
}

#[test]
fn the_python_client_checks_certificates() {
    let Some(python) = python() else { return };
    let (farm, base) = farm(&["--http-tls", "farm"]);
    assert!(base.starts_with("https://"), "{base}");
    run(&python, (&farm, &base), &["tests.test_tls"]);
}

#[test]
fn types_of_the_python_client_check() {
    let Some(python) = python() else { return };
    if !has(&python, "mypy", "types of the Python client")
        || !has(&python, "numpy", "types of the Python client")
    {
        return;
    }
    let cache = tempfile::tempdir().unwrap();
    let output = Command::new(&python)
        .args(["-m", "mypy", "--cache-dir"])
        .arg(cache.path())
        .current_dir(client())
        .output()
        .expect("mypy starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("no issues found"), "{said}");
}
