//! The proof with a GPU, proven itself: `tests/gpu/run.sh` on the fake driver, as it runs on a
//! machine without cargo.

use std::path::Path;
use std::process::{Command, Output};
use tessera_fake_cuda::{Config, Device, Fault, FaultKind, Rack};

/// Runs the script over one scene at a tiny size; what it printed, and its report.
fn run(config: &Config) -> (Output, serde_json::Value) {
    let rack = Rack::new(config).expect("a rack");
    let packed = tempfile::tempdir().expect("a temporary folder");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    std::fs::create_dir(packed.path().join("scenes")).expect("a folder");
    std::fs::copy(env!("CARGO_BIN_EXE_tessera"), packed.path().join("tessera")).expect("a copy");
    let units = std::env::current_exe().expect("this program");
    std::fs::copy(units, packed.path().join("units")).expect("a copy");
    let scene = "cornell-box.gltf";
    let to = packed.path().join("scenes").join(scene);
    std::fs::copy(root.join("scenes/library").join(scene), to).expect("a copy");
    let out = packed.path().join("out");
    let output = Command::new("bash")
        .arg(root.join("tests/gpu/run.sh"))
        .arg(packed.path())
        .envs(rack.environment())
        .env("OUT", &out)
        .env("XDG_CACHE_HOME", packed.path().join("cache"))
        .env("TESSERA_GPU_CHECK", "24x16:2")
        .env("TESSERA_GPU_TIME", "24x16:2")
        .env("TESSERA_GPU_UNITS", "21")
        .output()
        .expect("bash runs");
    let report = std::fs::read(out.join("report.json")).expect("a report");
    assert!(
        std::fs::read_to_string(out.join("report.md"))
            .expect("a table")
            .contains("| cornell-box |")
    );
    (output, serde_json::from_slice(&report).expect("JSON"))
}

#[test]
fn the_script_finds_equal_hashes_and_times() {
    let (output, report) = run(&Config::of(1, Device::default()));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!((&report["equal"], &report["different"]), (&1.into(), &0.into()), "{said}");
    assert!(
        report["timings"][0]["mrays_per_device_s"].as_f64().is_some_and(|rate| rate > 0.0),
        "{report}"
    );
    let units = &report["units"];
    assert_eq!((&units["inputs"], &units["different"]), (&21.into(), &0.into()), "{report}");
    assert!(units["functions"].as_u64() > Some(50), "{report}");
    let notes = report["notes"].as_array().expect("notes");
    assert!(
        notes.iter().any(|note| note.as_str().is_some_and(|note| note.contains("mitsuba"))),
        "{report}"
    );
}

#[test]
fn the_script_fails_where_the_device_cannot_be_used() {
    let mut config = Config::of(1, Device::default());
    config.devices[0].faults.push(Fault::new(FaultKind::WrongResult).times(0));
    let (output, report) = run(&config);
    assert!(!output.status.success());
    assert_eq!(report["different"], 1, "{report}");
    assert!(report["units"]["different"].as_u64() > Some(0), "{report}");
    assert!(
        report["hashes"][0]["gpu"].as_str().is_some_and(|gpu| gpu.contains("failed")),
        "{report}"
    );
}
