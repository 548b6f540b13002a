//! Kernels of users whose results differ: who is told what, and that no node pays for it.

use crate::compute::fixture::{Farm, example, kernel};
use crate::compute::local::{compute, text};
use tessera_fake_cuda::{Config, Device, Fault, FaultKind, Rack};

/// A device that runs the blocks of each launch in another order, as a GPU is free to.
fn device() -> Device {
    Device { memory: 512 << 20, varies_block_order: true, ..Device::default() }
}

/// A farm with a node for each device.
fn farm_of(devices: Vec<Device>) -> Farm {
    let mut farm = Farm::start(0);
    for (index, device) in devices.into_iter().enumerate() {
        farm.add_node_of(&format!("gpu-{index}"), device);
    }
    farm.wait_until_ready();
    farm
}

/// Every node with its number of results.
fn nodes(farm: &Farm) -> Vec<serde_json::Value> {
    let rows: serde_json::Value = serde_json::from_str(&farm.text(&["nodes", "--json"])).unwrap();
    rows.as_array().unwrap().clone()
}

/// Every node is ready, and nothing is said of any.
fn assert_trusted(farm: &Farm) {
    for row in nodes(farm) {
        assert!(row["state"] == "ready" && row["note"] == "", "{row}\n{}", farm.logs());
    }
}

/// Size of a job of four chunks.
const COUNTED: [&str; 4] = ["--domain", "16384", "--chunk", "4096"];
/// A deterministic job of 16 chunks.
const MANDELBROT: [&str; 6] = ["--domain", "64x64", "--chunk", "256", "--arg", "steps=30"];

// promise: P7
#[test]
fn a_kernel_that_counts_ends_its_job_and_no_node() {
    let farm = farm_of(vec![device(), device()]);
    let counter = kernel("counter.ptx");
    // So many chunks that neither node does all of them before the other comes: one that only
    // checks, and in the same order, counts as the other has.
    let many = ["--domain", "65536", "--chunk", "512"];
    let base = [&["compute", counter.as_str()][..], &many].concat();
    let (status, error) = farm.failure(&[&base[..], &["--out", "never.npy"]].concat());
    assert_eq!(status, 3, "{error}");
    let told = error.contains("not deterministic: chunk ")
        && error.contains("differs between `gpu-")
        && error.contains("--nondeterministic");
    assert!(told, "{error}\n{}", farm.logs());
    assert_trusted(&farm);

    // The next job, of somebody else, is served by both.
    let token = farm.path("ada.token");
    std::fs::write(&token, farm.text(&["token", "create", "--role", "artist"])).unwrap();
    farm.text(&["enrol", "--name", "ada", "--token-file", &token, "--identity", "ada"]);
    let before: Vec<u64> =
        nodes(&farm).iter().map(|row| row["units_committed"].as_u64().unwrap()).collect();
    let mandelbrot = example("mandelbrot.ptx");
    let own = [&["compute", mandelbrot.as_str()][..], &MANDELBROT].concat();
    farm.text(&[&own[..], &["--out", "ada.npy", "--identity", "ada"]].concat());
    for (row, before) in nodes(&farm).iter().zip(before) {
        assert!(row["units_committed"].as_u64().unwrap() > before, "{row}");
    }

    // What is meant to differ is not compared, and that is said.
    let meant = ["--out", "counted.npy", "--nondeterministic", "--json"];
    let done: serde_json::Value =
        serde_json::from_str(&farm.text(&[&base[..], &meant].concat())).unwrap();
    let job = done["job"].as_str().unwrap();
    assert!(farm.text(&["job", job]).contains("--nondeterministic"));
    assert!(farm.text(&["job", job, "--json"]).contains("\"nondeterministic\":true"));
    assert_eq!(farm.read("counted.npy").len(), 128 + 4 * 65_536);
    assert_trusted(&farm);
}

// promise: P7
#[test]
fn a_liar_in_a_users_kernel_is_found_and_stays_in_the_farm() {
    let lie = Fault::new(FaultKind::WrongResult).times(0).at_kernel("compute");
    let liar = Device { faults: vec![lie], ..device() };
    let farm = farm_of(vec![liar, device(), device()]);
    let mandelbrot = example("mandelbrot.ptx");
    let own = [&["compute", mandelbrot.as_str()][..], &MANDELBROT].concat();
    let lied: serde_json::Value =
        serde_json::from_str(&farm.text(&[&own[..], &["--out", "lied.npy", "--json"]].concat()))
            .unwrap();
    let told = farm.text(&["job", lied["job"].as_str().unwrap()]);
    assert!(told.contains("on gpu-0: its result is not what the others have"), "{told}");
    assert_trusted(&farm);

    let folder = tempfile::tempdir().unwrap();
    let rack = Rack::new(&Config::of(1, device())).unwrap();
    let alone = [&own[1..], &["--out", "right.npy", "--device", "cuda"]].concat();
    let output = compute(folder.path(), Some(&rack), &alone);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(farm.read("lied.npy") == std::fs::read(folder.path().join("right.npy")).unwrap());
}

// promise: P7
#[test]
fn devices_of_this_machine_are_compared_too() {
    let folder = tempfile::tempdir().unwrap();
    let counter = kernel("counter.ptx");
    let base = [&[counter.as_str()][..], &COUNTED, &["--device", "cuda"]].concat();
    let run = |devices: usize, more: &[&str]| {
        let rack = Rack::new(&Config::of(devices, device())).unwrap();
        compute(folder.path(), Some(&rack), &[&base[..], more].concat())
    };
    let two = run(2, &["--out", "two.npy"]);
    let told = text(&two.stderr);
    assert_eq!(two.status.code(), Some(3), "{told}");
    assert!(told.contains("not deterministic: chunk "), "{told}");
    assert!(told.contains("`cuda-0`") && told.contains("`cuda-1`"), "{told}");
    let one = run(1, &["--out", "one.npy"]);
    let told = text(&one.stderr);
    assert_eq!(one.status.code(), Some(3), "{told}");
    assert!(told.contains("differs between two runs on `node-0`"), "{told}");
    let meant = run(2, &["--out", "meant.npy", "--nondeterministic"]);
    assert!(meant.status.success(), "{}", text(&meant.stderr));
}

#[test]
fn of_the_devices_of_this_machine_the_unfit_are_left_out() {
    let lie = Fault::new(FaultKind::WrongResult).times(0);
    let liar = Device { faults: vec![lie], ..device() };
    let mandelbrot = example("mandelbrot.ptx");
    let base = [&[mandelbrot.as_str()][..], &MANDELBROT].concat();
    let run = |devices: &[Device], more: &[&str]| {
        let config = Config { devices: devices.to_vec(), ..Config::default() };
        let rack = Rack::new(&config).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let job = [&base[..], &["--out", "m.npy"], more].concat();
        let output = compute(folder.path(), Some(&rack), &job);
        let file = std::fs::read(folder.path().join("m.npy")).unwrap_or_default();
        (output.status.code(), text(&output.stderr), file)
    };
    let (status, told, right) = run(&[device()], &["--device", "cuda"]);
    assert_eq!(status, Some(0), "{told}");
    let (status, told, file) = run(&[device(), liar.clone()], &["--device", "cuda"]);
    assert_eq!(status, Some(0), "{told}");
    assert!(told.contains("device left out") && told.contains("cuda:1"), "{told}");
    assert!(file == right);
    // What is named has to work, and so does one of all.
    let named = ["--device", "cuda:0,cuda:1"];
    let (status, told, _) = run(&[device(), liar.clone()], &named);
    assert!(status == Some(1) && told.contains("cuda:1"), "{status:?}: {told}");
    let (status, told, _) = run(&[liar.clone(), liar], &["--device", "cuda"]);
    assert!(status == Some(1) && told.contains("cuda:0"), "{status:?}: {told}");
}
