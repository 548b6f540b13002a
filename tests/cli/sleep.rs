//! A machine that sleeps while it renders: its connections are lost, those to itself too, and the
//! picture is not.

use crate::cli::{command, library};
use rustix::param::clock_ticks_per_second;
use std::path::Path;
use std::process::{Child, Output, Stdio};
use std::time::{Duration, Instant};
use tessera_support::farm::{send_signal, takes_minutes};

/// Longer than any connection bears silence.
const ASLEEP: Duration = Duration::from_secs(5);
/// Time of the processor after which a render has begun.
const AWAKE: Duration = Duration::from_millis(300);
/// Longest wait for it.
const PATIENCE: Duration = Duration::from_secs(120);

fn render(folder: &Path, spp: u32, output: &str) -> Child {
    let (scene, spp) = (library("cornell-box.gltf").display().to_string(), spp.to_string());
    let arguments = [
        "render",
        &scene,
        "--size",
        "64x48",
        "--spp",
        &spp,
        "--threads",
        "1",
        "--json",
        "-o",
        output,
    ];
    command(folder, &arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs")
}

/// Time of the processor that a child has had, to 10 ms.
fn process_time(child: &Child) -> Duration {
    let told = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap_or_default();
    // After the name in parentheses; `man proc_pid_stat`.
    let fields = told.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).flat_map(str::parse::<u64>).sum();
    Duration::from_millis(1000 * ticks / clock_ticks_per_second())
}

/// What says which picture it is.
fn pixels(output: &Output) -> serde_json::Value {
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(told["pixels_sha256"].is_string(), "{told}");
    told["pixels_sha256"].clone()
}

/// More samples until the render is still under way when the machine falls asleep: then a node says
/// that it lost its coordinator.
#[test]
fn a_machine_that_slept_finishes_its_picture() {
    if !takes_minutes("a machine that slept") {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    for spp in [2048, 8192, 32768] {
        let mut process = render(folder.path(), spp, "slept.exr");
        let begun = Instant::now();
        while process_time(&process) < AWAKE && process.try_wait().expect("a child").is_none() {
            assert!(begun.elapsed() < PATIENCE, "it does not begin");
            std::thread::sleep(Duration::from_millis(10));
        }
        send_signal(process.id(), "STOP");
        std::thread::sleep(ASLEEP);
        send_signal(process.id(), "CONT");
        let output = process.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        if said.contains("session lost") {
            let undisturbed =
                render(folder.path(), spp, "undisturbed.exr").wait_with_output().expect("it ends");
            assert!(
                undisturbed.status.success(),
                "{}",
                String::from_utf8_lossy(&undisturbed.stderr)
            );
            assert_eq!(pixels(&output), pixels(&undisturbed), "sleep changed the picture");
            assert!(folder.path().join("slept.exr").is_file());
            return;
        }
    }
    panic!("no render was under way when its machine fell asleep");
}
