//! Kernels that come as PTX: given to nodes whose driver and device take it, and to no others.

use crate::compute::fixture::{Farm, example};
use crate::compute::local;
use serde_json::Value;
use tessera_fake_cuda::{Config, Device, Fault, FaultKind, Rack};

/// CUDA 12.8, which takes PTX up to 8.7, with a device of compute capability 8.6.
fn old() -> Config {
    Config::of(1, Device::default())
}

/// CUDA 13.0, which takes PTX up to 9.0, with a device of compute capability 9.0.
fn new(faults: Vec<Fault>) -> Config {
    let device = Device { capability: [9, 0], faults, ..Device::default() };
    Config { driver: 13_000, ..Config::of(1, device) }
}

/// The Mandelbrot set as PTX of another version for another device; the file's name.
fn ptx(folder: &str, version: &str, target: &str) -> String {
    let text = std::fs::read_to_string(example("mandelbrot.ptx")).unwrap();
    let text = text.replace(".version 7.0", version).replace(".target sm_75", target);
    let name = format!("{folder}/{}.ptx", target.replace([' ', '.'], ""));
    std::fs::write(&name, text).unwrap();
    name
}

const SIZE: [&str; 5] = ["--domain", "8x8", "--arg", "steps=9", "--out"];

fn detail(farm: &Farm, job: &str) -> Value {
    serde_json::from_str(&farm.text(&["job", job, "--json"])).unwrap()
}

/// The job waits, says for what, and no attempt has failed.
fn waits(farm: &Farm, job: &str, parts: &[&str]) {
    farm.wait_for("the job to say what it waits for", |farm| {
        let detail = detail(farm, job);
        let note = detail["summary"]["note"].as_str().unwrap_or_default().to_owned();
        parts.iter().all(|part| note.contains(part))
    });
    assert_eq!(detail(farm, job)["failures"].as_array().map(Vec::len), Some(0));
}

#[test]
fn new_ptx_is_for_the_node_with_the_new_driver() {
    let mut farm = Farm::start(0);
    farm.add_gpu_node_of("old", &old());
    farm.wait_until_ready();
    let folder = farm.path("");
    let newer = ptx(&folder, ".version 9.0", ".target sm_75");
    let device = ptx(&folder, ".version 7.0", ".target sm_90");
    let first = farm.text(&["compute", &newer, "--domain", "8x8", "--detach"]);
    waits(&farm, &first, &["PTX 9.0", "`old` takes PTX 8.7 on 8.6"]);
    let second = farm.text(&["compute", &device, "--domain", "8x8", "--detach"]);
    waits(&farm, &second, &["compute capability 9.0", "`old` takes PTX 8.7 on 8.6"]);

    farm.add_gpu_node_of("new", &new(vec![]));
    farm.wait_until_ready();
    farm.text(&["wait", &first]);
    farm.text(&["wait", &second]);
    for index in 0..5 {
        let out = format!("{index}.npy");
        let kernel = if index % 2 == 0 { &newer } else { &device };
        farm.text(&[&["compute", kernel.as_str()], &SIZE[..], &[&out]].concat());
        assert_eq!(farm.read(&out), farm.read("0.npy"));
    }
    let nodes: Value = serde_json::from_str(&farm.text(&["nodes", "--json"])).unwrap();
    for node in nodes.as_array().unwrap() {
        let committed = node["units_committed"].as_u64().unwrap();
        assert_eq!(committed > 0, node["name"] == "new", "{node}");
    }
    // Both nodes take what is for all.
    let all = example("mandelbrot.ptx");
    farm.text(&[&["compute", all.as_str()], &SIZE[..], &["all.npy"]].concat());
    assert_eq!(farm.read("all.npy"), farm.read("0.npy"));
    farm.assert_in_service();
}

#[test]
fn a_node_wrong_about_its_driver_costs_no_attempt() {
    let mut farm = Farm::start(0);
    // The kernels that render are taken; every other PTX is not.
    let refuses = Fault::new(FaultKind::UnsupportedPtx).after(1).times(0);
    farm.add_gpu_node_of("wrong", &new(vec![refuses]));
    farm.wait_until_ready();
    let kernel = ptx(&farm.path(""), ".version 9.0", ".target sm_90");
    let job = farm.text(&["compute", &kernel, "--domain", "8x8", "--detach"]);
    waits(&farm, &job, &["can run it", "`wrong`: kernel `targetsm_90.ptx` does not run here"]);
    farm.add_gpu_node_of("right", &new(vec![]));
    farm.text(&["wait", &job]);
    assert_eq!(detail(&farm, &job)["failures"].as_array().map(Vec::len), Some(0));
    farm.assert_in_service();
}

#[test]
fn a_local_job_is_refused_with_what_the_driver_takes() {
    let folder = tempfile::tempdir().unwrap();
    let rack = Rack::new(&old()).unwrap();
    let kernel = ptx(folder.path().to_str().unwrap(), ".version 9.0", ".target sm_90");
    let arguments = [&[kernel.as_str()], &SIZE[..], &["never.npy", "--device", "cuda"]].concat();
    let output = local::compute(folder.path(), Some(&rack), &arguments);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{told}");
    let says = told.contains("PTX 9.0 for compute capability 9.0 or newer")
        && told.contains("takes PTX 8.7, on compute capability 8.6")
        && told.contains("hint: ");
    assert!(says, "{told}");
}
