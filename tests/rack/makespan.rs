//! How long one frame takes on a CPU node and a node of GPUs together, beside what it would take if
//! every device worked until the end. Minutes of waiting, so only where `TESSERA_MIXED` is set, to
//! how many times as fast as a GPU the CPU node is; `mixed` compares the bits in every run.

use crate::rack::fixture::{Stand, rendered_on_cpu, scene};
use crate::rack::throttle::Throttle;
use std::io::Write;
use std::time::Instant;
use tessera_fake_cuda::{Config, Device, Rack};
use tessera_support::farm::Farm;

/// The frame: 192 units of 2,048 samples.
const FRAME: [&str; 10] =
    ["--size", "128x96", "--spp", "32", "--depth", "3", "--tile", "16", "--unit-samples", "8"];
/// What all devices at work until the end would need, times this, is the longest that the frame may
/// take.
const RATIO_MAX: f64 = 1.15;
/// Fake GPUs of the one node. An interpreter is a slow GPU: here the CPU is the fast device.
const GPUS: usize = 2;
/// Seconds that the CPU node should need for the whole frame. A GPU needs many times as long: so
/// long that the interpreter needs a small part of it, whatever else this machine does.
const CPU_SECS: f64 = 30.0;

/// What the devices have to be told so that they are as slow as they should be.
struct Paces {
    nanos_per_step: f64,
    /// Of a processor, for the CPU node.
    share: f64,
    /// Seconds that a GPU needs for the whole frame.
    gpu_secs: f64,
}

/// Measures the frame on both kinds of device at full speed. The CPU node shall be so many times as
/// fast as a GPU.
fn paces(faster: f64) -> Paces {
    let stand = Stand::start(&Config::of(1, Device::default()));
    stand.wait_until(0, "ready");
    // The work of a pixel hardly differs from sample to sample: a quarter of the samples tells.
    let before = stand.rack.counts(0).steps;
    let quarter = FRAME.map(|option| if option == "32" { "8" } else { option });
    stand.render(&quarter);
    let steps = (stand.rack.counts(0).steps - before) as f64 * 4.0;
    let gpu_secs = CPU_SECS * faster;
    Paces { nanos_per_step: gpu_secs * 1e9 / steps, share: cpu_secs() / CPU_SECS, gpu_secs }
}

/// Processor seconds of the frame on one thread.
fn cpu_secs() -> f64 {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("picture.exr");
    let mut command = std::process::Command::new(tessera_support::farm::tessera());
    command.arg("render").arg(scene()).args(FRAME).args([
        "--device",
        "cpu",
        "--threads",
        "1",
        "-q",
        "--json",
    ]);
    let output = command.arg("-o").arg(&out).output().expect("the binary runs");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a line of JSON");
    report["cpu_s"].as_f64().filter(|secs| *secs > 0.0).expect("seconds")
}

/// A stand whose coordinator checks nothing: new nodes' results would be rendered twice, and the
/// dealing is what is measured.
fn unchecked(config: &Config) -> Stand {
    let rack = Rack::new(config).expect("a rack");
    let mut farm = Farm::prepare();
    let mut command = farm.coordinator_command();
    command.args(["--check", "0", "--check-first", "0"]);
    farm.run_coordinator(command);
    Stand { farm, rack, watchdog_secs: 60, environment: Vec::new() }
}

/// Seconds of the frame on the CPU node, or on it and the node of GPUs, and the CPU node's part of
/// it; the bits must be right.
fn makespan(paces: &Paces, gpus: bool) -> (f64, f64) {
    let device = Device { nanos_per_step: paces.nanos_per_step, ..Device::default() };
    let mut stand = unchecked(&Config::of(GPUS, device));
    stand.farm.invite("cpus", 1);
    let process = stand.farm.spawn(stand.farm.node_command(0), "cpus");
    stand.farm.wait_for("the CPU node", |_| stand.node("cpus")["state"] == "ready");
    let throttle = Throttle::hold(process.id(), paces.share);
    if gpus {
        stand.add_node("rack", "cuda");
        (0..GPUS).for_each(|index| stand.wait_until(index, "ready"));
    }
    let start = Instant::now();
    let job = stand.farm.submit(&scene(), &FRAME);
    stand.farm.text(&["wait", &job, "--timeout", "30m"]);
    let secs = start.elapsed().as_secs_f64();
    let committed = |name: &str| stand.node(name)["units_committed"].as_f64().unwrap_or(0.0);
    let [by_cpu, by_gpus] = ["cpus", "rack"].map(committed);
    say(&format!("{secs:.2} s: {by_cpu} units by the CPU, {by_gpus} by GPUs"));
    drop(throttle);
    assert_eq!(stand.farm.hashes(&job), [rendered_on_cpu(&FRAME)], "{}", stand.farm.logs());
    (secs, by_cpu / (by_cpu + by_gpus))
}

/// Straight to standard error: what a passing test says is not shown, and minutes of silence are
/// not wanted.
fn say(text: &str) {
    // Where standard error is closed, nobody listens.
    let _ = writeln!(std::io::stderr(), "mixed frame: {text}");
}

#[test]
fn one_frame_by_processors_and_gpus_ends_within_its_bound() {
    let Some(faster) = std::env::var("TESSERA_MIXED").ok() else {
        return say("NOT RUN: its makespan (minutes); set TESSERA_MIXED=10");
    };
    let faster: f64 = faster.parse().expect("TESSERA_MIXED is a ratio, such as 10");
    let paces = paces(faster);
    say(&format!("the CPU node gets {:.2} % of a processor", 100.0 * paces.share));
    let (cpu, _) = makespan(&paces, false);
    let (together, part) = makespan(&paces, true);
    // Rates add up. Processor time is worth more or less as this machine is busy: the CPU's rate is
    // that of the better of its two runs, the second as if it had worked until the end. The GPUs'
    // is their pace and nothing else, not even the tests behind their work.
    let rate = f64::max(1.0 / cpu, part / together);
    let gpu_secs = paces.gpu_secs;
    let bound = 1.0 / (rate + GPUS as f64 / gpu_secs);
    let (speeds, ratio) = (gpu_secs * rate, together / bound);
    say(&format!(
        "the CPU alone {cpu:.2} s, one of {GPUS} GPUs alone {gpu_secs} s ({speeds:.1} : 1); \
            together {together:.2} s, bound {bound:.2} s, ratio {ratio:.3}"
    ));
    // Not so where the CPU node was held to another pace.
    assert!((0.6..1.7).contains(&(speeds / faster)), "{speeds:.1} : 1 is not what was asked for");
    assert!(faster > 20.0 || part < 1.0, "the GPUs did nothing");
    assert!(ratio <= RATIO_MAX, "{ratio:.3} times the bound");
}
