//! Kernels that come as source: offered to nodes with NVRTC alone, also where a node loses it.

use crate::compute::fixture::{Farm, example, kernel, not_run};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Submits the Mandelbrot set as source; the job's id.
fn submit(farm: &Farm) -> String {
    let kernel = example("mandelbrot.cu");
    let job = [
        "compute",
        &kernel,
        "--domain",
        "8x8",
        "--element",
        "u32",
        "--compile-on-node",
        "--detach",
    ];
    farm.text(&job)
}

/// The job waits, says for what, and nobody has tried it.
fn waits_for_nvrtc(farm: &Farm, job: &str) {
    let detail = || serde_json::from_str::<Value>(&farm.text(&["job", job, "--json"])).unwrap();
    let says = |detail: &Value| detail["note"].as_str().is_some_and(|note| note.contains("NVRTC"));
    farm.wait_for("the job to say what it waits for", |_| {
        says(&detail()["summary"]) || says(&detail())
    });
    let failures = detail()["failures"].as_array().map(Vec::len);
    assert_eq!(failures, Some(0), "{}", detail());
}

#[test]
fn a_kernel_that_no_node_can_compile_waits_with_a_reason() {
    let mut farm = Farm::start(0);
    farm.add_gpu_node_with("bare", "/nowhere/libnvrtc.so.13".into());
    farm.wait_until_ready();
    waits_for_nvrtc(&farm, &submit(&farm));
    farm.assert_in_service();
}

/// A copy of NVRTC with what lies beside it, in a folder of its own.
fn copy_of(library: &Path, folder: &Path) -> PathBuf {
    let beside = library.parent().unwrap();
    std::fs::create_dir(folder).unwrap();
    for entry in std::fs::read_dir(beside).unwrap().flatten() {
        if entry.file_name().to_string_lossy().starts_with("libnvrtc") {
            std::fs::copy(entry.path(), folder.join(entry.file_name())).unwrap();
        }
    }
    folder.join(library.file_name().unwrap())
}

#[test]
fn a_node_without_compiler_hands_kernels_on_at_no_cost() {
    let Some(library) =
        std::env::var_os("TESSERA_NVRTC").map(PathBuf::from).filter(|path| path.is_file())
    else {
        return not_run("a node that loses NVRTC: TESSERA_NVRTC does not say where one is");
    };
    let mut farm = Farm::start(0);
    let folder = PathBuf::from(farm.path("nvrtc"));
    let copy = copy_of(&library, &folder);
    farm.add_gpu_node_with("loser", copy);
    farm.wait_until_ready();
    std::fs::remove_dir_all(&folder).unwrap();
    let job = submit(&farm);
    waits_for_nvrtc(&farm, &job);
    farm.wait_until_ready();
    farm.assert_in_service();
    farm.add_gpu_node_with("keeper", library);
    farm.text(&["wait", &job]);
}

#[test]
fn a_node_that_compiles_looks_at_chunks_too() {
    if std::env::var_os("TESSERA_NVRTC").is_none() && tessera_nvrtc::Nvrtc::find().is_err() {
        return not_run("chunks of a kernel that a node compiles: no NVRTC is found");
    }
    let farm = Farm::start(1);
    let reverse = kernel("reverse.cu");
    let job = ["compute", &reverse, "--compile-on-node", "--element", "u32", "--domain", "2048"];
    let refused = [&job[..], &["--chunk", "1000", "--out", "never.npy"]].concat();
    let (status, told) = farm.failure(&refused);
    let says = told.contains("nothing says where a chunk may begin")
        && told.contains("3 chunks begin every 1000 indices");
    assert!(status == 3 && says, "{status}: {told}");
    let said = ["--chunk", "1024", "--chunk-align", "1024", "--out", "reversed.npy"];
    farm.text(&[&job[..], &said].concat());
    farm.assert_in_service();
}
