//! The proof with a GPU, proven itself: `tests/gpu/run.sh` on the fake driver, as it runs on a
//! machine without cargo.

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tessera_fake_cuda::{Config, Device, Fault, FaultKind, Rack};

/// A folder as `tests/gpu/pack.sh` makes it, with these scenes of the library, and a rack.
struct Packed {
    folder: TempDir,
    rack: Rack,
}

impl Packed {
    fn new(config: &Config, scenes: &[&str]) -> Packed {
        let folder = tempfile::tempdir().expect("a temporary folder");
        put_programs(folder.path());
        put_examples(folder.path());
        std::fs::create_dir(folder.path().join("scenes")).expect("a folder");
        for scene in scenes {
            let to = folder.path().join("scenes").join(scene);
            std::fs::copy(root().join("scenes/library").join(scene), to).expect("a copy");
        }
        Packed { folder, rack: Rack::new(config).expect("a rack") }
    }

    /// The script over the folder at a tiny size.
    fn command(&self) -> Command {
        let mut command = Command::new("bash");
        command
            .arg(root().join("tests/gpu/run.sh"))
            .arg(self.folder.path())
            .envs(self.rack.environment())
            .env("OUT", self.folder.path().join("out"))
            .env("XDG_CACHE_HOME", self.folder.path().join("cache"))
            .env("TESSERA_GPU_CHECK", "24x16:2")
            .env("TESSERA_GPU_TIME", "24x16:2")
            .env("TESSERA_GPU_COMPUTE", "none")
            .env("TESSERA_GPU_STEPS", "none")
            .env("TESSERA_GPU_UNITS", "21");
        command
    }

    /// The report as it is now; None before the first one.
    fn report(&self) -> Option<Value> {
        let text = std::fs::read(self.folder.path().join("out/report.json")).ok()?;
        Some(serde_json::from_slice(&text).expect("a report is whole whenever it is read"))
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Copies the program and this one, which has the test of single functions, into a folder.
fn put_programs(folder: &Path) {
    let units = std::env::current_exe().expect("this program");
    std::fs::copy(env!("CARGO_BIN_EXE_tessera"), folder.join("tessera")).expect("a copy");
    std::fs::copy(units, folder.join("units")).expect("a copy");
}

/// Copies what compute jobs take into a folder, as `pack.sh` does.
fn put_examples(folder: &Path) {
    std::fs::create_dir(folder.join("compute")).expect("a folder");
    for file in std::fs::read_dir(root().join("examples/compute")).expect("the examples") {
        let file = file.expect("a file");
        let to = folder.join("compute").join(file.file_name());
        std::fs::copy(file.path(), to).expect("a copy");
    }
}

/// A process group that is killed when its owner goes, also where a test fails.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(group) = Pid::from_raw(self.0.id().cast_signed()) {
            // One that has ended is not killed.
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.0.wait();
    }
}

/// Runs the script over one scene; what it printed, and its report.
fn run(config: &Config) -> (Output, Value) {
    let packed = Packed::new(config, &["cornell-box.gltf"]);
    let output = packed.command().output().expect("bash runs");
    let table = std::fs::read_to_string(packed.folder.path().join("out/report.md"));
    assert!(table.expect("a table").contains("| cornell-box |"));
    (output, packed.report().expect("a report"))
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
    assert_eq!(report["complete"], true, "{report}");
    assert_eq!(report["left_out"], Value::Array(Vec::new()), "{report}");
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
fn every_compute_job_gives_the_bytes_of_the_table() {
    let packed = Packed::new(&Config::of(1, Device::default()), &["cornell-box.gltf"]);
    let mut command = packed.command();
    command.env("TESSERA_GPU_COMPUTE", "").env("TESSERA_GPU_UNITS", "none");
    let output = command.env("TESSERA_GPU_TIME", "none").output().expect("bash runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    let report = packed.report().expect("a report");
    let jobs = report["compute"].as_array().expect("jobs");
    assert!(jobs.len() >= 9 && jobs.iter().all(|job| job["equal"] == true), "{report}");
}

#[test]
fn every_step_of_the_script_is_right_on_a_device_that_is() {
    let packed = Packed::new(&Config::of(1, Device::default()), &["cornell-box.gltf"]);
    let mut command = packed.command();
    command.env("TESSERA_GPU_STEPS", "").env("TESSERA_GPU_UNITS", "none");
    let output = command.env("TESSERA_GPU_TIME", "none").output().expect("bash runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    let report = packed.report().expect("a report");
    let steps = report["steps"].as_array().expect("steps");
    let right = |name: &str| steps.iter().any(|step| step["step"] == name && step["right"] == true);
    let names =
        ["frame by noise", "denoise", "two programs at once", "killed worker", "start", "farm"];
    for name in names {
        assert!(right(name), "{name}: {report}");
    }
}

#[test]
fn a_compute_job_with_other_bytes_fails_the_script() {
    let packed = Packed::new(&Config::of(1, Device::default()), &["cornell-box.gltf"]);
    let image = packed.folder.path().join("compute/image.npy");
    let mut bytes = std::fs::read(&image).expect("the picture");
    *bytes.last_mut().expect("bytes") ^= 1;
    std::fs::write(image, bytes).expect("the picture");
    let mut command = packed.command();
    command.env("TESSERA_GPU_COMPUTE", "convolve").env("TESSERA_GPU_UNITS", "none");
    let output = command.env("TESSERA_GPU_TIME", "none").output().expect("bash runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("DIFFERENT: compute job convolve"), "{said}");
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

#[test]
fn a_run_that_is_killed_leaves_the_report_of_what_it_did() {
    let scenes = ["cornell-box.gltf", "material-row.gltf", "spinning-cube.gltf"];
    let packed = Packed::new(&Config::of(1, Device::default()), &scenes);
    let mut command = packed.command();
    command.process_group(0).stdout(Stdio::null());
    let mut running = Running(command.spawn().expect("bash runs"));
    let deadline = Instant::now() + Duration::from_secs(300);
    while packed.report().is_none_or(|report| report["equal"].as_u64() < Some(1)) {
        assert!(Instant::now() < deadline, "no report of a first scene: {:?}", packed.report());
        assert!(running.0.try_wait().expect("a child").is_none(), "it ended before it was killed");
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(running);
    let report = packed.report().expect("a report");
    assert_eq!(report["complete"], false, "{report}");
    assert!(report["hashes"][0]["equal"] == true, "{report}");
}

#[test]
fn a_budget_that_is_too_small_says_what_was_left_out() {
    let packed = Packed::new(&Config::of(1, Device::default()), &["cornell-box.gltf"]);
    let output = packed.command().env("TESSERA_GPU_BUDGET", "0").output().expect("bash runs");
    let (said, report) =
        (String::from_utf8_lossy(&output.stdout), packed.report().expect("a report"));
    assert_eq!(output.status.code(), Some(1), "nothing was compared: {said}");
    for step in [
        "comparison of cornell-box",
        "calls of workers",
        "timing of cornell-box",
        "functions of the kernels",
    ] {
        assert!(said.contains(&format!("LEFT OUT: {step}: ")), "{said}");
        let named = report["left_out"].as_array().expect("a list");
        assert!(named.iter().any(|left| left.as_str().is_some_and(|left| left.contains(step))));
    }
    assert!(said.contains("NOT COMPLETE: 4 steps left out"), "{said}");
    assert_eq!(report["complete"], false, "{report}");
}

/// Makes a pack of this program with scenes of these sizes, in KiB; its bytes, and what it says.
fn pack(scenes: &[(&str, u64)], max_mib: Option<&str>) -> (u64, Output) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (made, built) = (folder.path().join("pack"), folder.path().join("built"));
    let large = folder.path().join("large");
    for folder in [&built, &large] {
        std::fs::create_dir(folder).expect("a folder");
    }
    put_programs(&built);
    for (name, kib) in scenes {
        let file = std::fs::File::create(large.join(name)).expect("a file");
        file.set_len(kib << 10).expect("a length");
    }
    let output = Command::new("bash")
        .arg(root().join("tests/gpu/pack.sh"))
        .arg(&made)
        .args(max_mib)
        .env("TESSERA_GPU_BUILT", &built)
        .env("TESSERA_SCENES", &large)
        .output()
        .expect("bash runs");
    let entries = [made.clone(), made.join("scenes")].into_iter();
    let files = entries.flat_map(|folder| std::fs::read_dir(folder).expect("the pack"));
    let known = files.map(|file| file.expect("a file").metadata().expect("its size"));
    (known.filter(std::fs::Metadata::is_file).map(|file| file.len()).sum(), output)
}

#[test]
fn a_pack_is_at_most_60_mib_and_names_what_it_leaves_out() {
    let (bytes, output) = pack(&[("a.glb", 64), ("b.glb", 50 << 10), ("c.glb", 61 << 10)], None);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(bytes <= 60 << 20, "{bytes} bytes");
    assert!(said.contains("left out: c.glb") && !said.contains("left out: a.glb"), "{said}");
    let (_, output) = pack(&[], Some("1"));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("the programs take"), "{said}");
}
