//! What a finished frame costs the coordinator, and how busy nodes are while frames are finished.
//! Prints figures; fails on nothing.
//!
//!     cargo bench --bench finishing [-- --frames N --rounds R]
//!
//! A coordinator (durable) and two known nodes of one thread as processes on loopback; frames of
//! 1920 × 1080 with two samples, of which each tile is one unit. Bytes are what crosses the
//! loopback device, and all of them pass the coordinator: the ceiling is what QUIC takes for them.
//! Each row also has the farm's wall time, and how much of it the nodes' processors were at work.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::time::Instant;
use tessera_support::farm::{Farm, library};

const NODES: usize = 2;
const FRAME: [&str; 10] =
    ["--size", "1920x1080", "--spp", "2", "--unit-samples", "2", "--depth", "2", "--format", "exr"];

/// Rows: what is finished, and the most CPU seconds of the coordinator a frame.
const ROWS: [(&str, &[&str], Option<f64>); 3] = [
    ("plain", &[], Some(0.2)),
    (
        "layers and PNG",
        &["--format", "exr,png", "--aov", "albedo,normal,depth,position"],
        Some(0.35),
    ),
    ("denoised", &["--denoise"], None),
];

fn main() {
    let (mut frames, mut rounds) = (4, 3);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || arguments.next().and_then(|text| text.parse().ok()).expect("a number");
        match argument.as_str() {
            "--frames" => frames = number(),
            "--rounds" => rounds = number(),
            _ => {}
        }
    }
    let farm = Farm::start(NODES, 1);
    // From here on the nodes are known, and the scene is prepared.
    measure(&farm, &[&FRAME[..], &["--frames", "1-2"]].concat());
    for (what, more, most) in ROWS {
        let last = format!("1-{frames}");
        let kept = if more.contains(&"--format") { &FRAME[..8] } else { &FRAME[..] };
        let options = [kept, more, &["--frames", &last]].concat();
        let mut taken: Vec<Taken> = (0..rounds).map(|_| measure(&farm, &options)).collect();
        taken.sort_by(|a, b| a.coordinator_secs.total_cmp(&b.coordinator_secs));
        let of = &taken[taken.len() / 2];
        let (cpu, gigabytes) =
            (of.coordinator_secs / frames as f64, of.bytes / frames as f64 / 1e9);
        let most = most.unwrap_or(0.05 + 1.2 * gigabytes);
        println!(
            "{what}: {cpu:.3} CPU s of the coordinator a frame (at most {most:.3}), {:.0} MB on \
                the line, {:.2} s a frame, nodes at work {:.2} of the time, {:.2} CPU s of theirs",
            gigabytes * 1e3,
            of.wall_secs / frames as f64,
            of.node_secs / (NODES as f64 * of.wall_secs),
            of.node_secs / frames as f64
        );
    }
}

/// What a job took.
struct Taken {
    coordinator_secs: f64,
    node_secs: f64,
    wall_secs: f64,
    bytes: f64,
}

fn measure(farm: &Farm, options: &[&str]) -> Taken {
    let nodes = || (0..NODES).map(|index| cpu_secs(farm.node_process(index))).sum::<f64>();
    let coordinator = farm.coordinator_process();
    let (before, of_nodes, sent) = (cpu_secs(coordinator), nodes(), loopback_bytes());
    let begun = Instant::now();
    let job = farm.submit(&library("cornell-box.gltf"), options);
    farm.text(&["wait", &job]);
    Taken {
        coordinator_secs: cpu_secs(coordinator) - before,
        node_secs: nodes() - of_nodes,
        wall_secs: begun.elapsed().as_secs_f64(),
        bytes: loopback_bytes() - sent,
    }
}

/// CPU seconds of a process so far.
fn cpu_secs(process: u32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).expect("a process");
    // The name of the program may have spaces. User and system time are the 12th and 13th fields
    // after it, in ticks of 10 ms.
    let fields = text.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    ticks as f64 / 100.0
}

/// Bytes that were sent over the loopback device so far.
fn loopback_bytes() -> f64 {
    let text = std::fs::read_to_string("/proc/net/dev").unwrap_or_default();
    let line = text.lines().find_map(|line| line.trim().strip_prefix("lo:"));
    let sent = line.and_then(|line| line.split_whitespace().nth(8)?.parse().ok());
    sent.unwrap_or(0.0)
}
