//! The units of systemd and the settings they bring: systemd's own tools find nothing wrong, and
//! the services are shut in.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Exposure at most, as `systemd-analyze security` counts it from 0 to 10.
const EXPOSURE_MAX: f64 = 2.0;

fn deploy(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy").join(path)
}

/// False, said by name, where systemd's tools are not installed.
fn analyzes() -> bool {
    let found = Command::new("systemd-analyze").arg("--version").output().is_ok();
    if !found {
        // Straight to standard error, since a passing test's own output is not shown. Where it is
        // closed, nobody listens.
        let _ = writeln!(
            std::io::stderr(),
            "NOT RUN: systemd-analyze is not installed, the units are not checked"
        );
    }
    found
}

/// The units in a folder, with the binary under test where the package's would be.
fn units() -> (tempfile::TempDir, Vec<PathBuf>) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(deploy("systemd")).expect("the units") {
        let path = entry.expect("a folder entry").path();
        let text = std::fs::read_to_string(&path).expect("a unit");
        let here = text
            .replace("/usr/bin/tessera ", &format!("{} ", env!("CARGO_BIN_EXE_tessera")))
            .replace("ExecStart=-/usr/bin/nvidia-modprobe", "ExecStart=-/bin/true");
        let target = folder.path().join(path.file_name().expect("a name"));
        std::fs::write(&target, here).expect("a copy of the unit");
        paths.push(target);
    }
    paths.sort();
    assert_eq!(paths.len(), 3);
    (folder, paths)
}

#[test]
fn systemd_accepts_the_units_without_a_warning() {
    if !analyzes() {
        return;
    }
    let (_folder, units) = units();
    let output = Command::new("systemd-analyze").args(["verify", "--man=no"]).args(&units).output();
    let output = output.expect("systemd-analyze runs");
    let said = String::from_utf8_lossy(&output.stderr);
    // The machine's own units are loaded too, and may be worth a word to it.
    let ours: Vec<&str> = said.lines().filter(|line| line.contains("tessera")).collect();
    assert!(output.status.success() && ours.is_empty(), "{said}");
}

#[test]
fn the_services_are_sandboxed() {
    if !analyzes() {
        return;
    }
    let (_folder, units) = units();
    for unit in units.iter().filter(|unit| !unit.ends_with("tessera-gpu.service")) {
        let output =
            Command::new("systemd-analyze").args(["security", "--offline=true"]).arg(unit).output();
        let output = output.expect("systemd-analyze runs");
        let text = String::from_utf8_lossy(&output.stdout);
        let last = text.lines().last().unwrap_or_default();
        let exposure =
            last.split(": ").nth(1).and_then(|rest| rest.split(' ').next()?.parse::<f64>().ok());
        let exposure = exposure.unwrap_or_else(|| panic!("no exposure in {last:?}"));
        println!("{}: exposure {exposure}", unit.file_name().unwrap_or_default().display());
        assert!(exposure <= EXPOSURE_MAX, "{last}");
    }
}

#[test]
fn the_settings_of_the_services_are_understood() {
    for service in ["coordinator", "node"] {
        let text =
            std::fs::read_to_string(deploy(&format!("etc/{service}.toml"))).expect("settings");
        let uncommented: String = text
            .lines()
            .filter(|line| !line.starts_with("# "))
            .map(|line| format!("{}\n", line.trim_start_matches('#')))
            .collect();
        assert!(
            uncommented.lines().filter(|line| line.contains(" = ")).count() >= 2,
            "{uncommented}"
        );
        for (name, text) in [("as-shipped.toml", &text), ("all-set.toml", &uncommented)] {
            let folder = tempfile::tempdir().expect("a folder");
            let file = folder.path().join(name);
            std::fs::write(&file, text).expect("settings");
            let mut command = Command::new(env!("CARGO_BIN_EXE_tessera"));
            let output = command.args([service, "--help"]).env("TESSERA_CONFIG", &file).output();
            let output = output.expect("the binary runs");
            assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        }
    }
}

#[test]
fn a_named_settings_file_is_the_only_one_and_has_to_be_there() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("tessera.toml"), "nonsense = 1\n").expect("settings");
    let run = |named: &Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tessera"));
        command.args(["inspect", "--help"]).current_dir(folder.path()).env("TESSERA_CONFIG", named);
        let output = command.output().expect("the binary runs");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (status, error) = run(&folder.path().join("absent.toml"));
    assert_eq!(status, Some(2));
    assert!(error.contains("does not exist") && error.contains("hint: "), "{error}");
    let there = folder.path().join("there.toml");
    std::fs::write(&there, "").expect("settings");
    assert_eq!(run(&there), (Some(0), String::new()));
}
