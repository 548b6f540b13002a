//! What a film costs beside one in which only the camera moves. Prints ratios; fails on nothing.
//!
//!     cargo bench --bench films [-- --edge N --frames N --rounds R]
//!
//! A ground of 2 N² triangles (N = 708: a million) and one small triangle above it, 320 × 180 with
//! 4 samples. In the first film the camera moves, in the second the small triangle, in the third
//! the ground itself. Each is rendered by `tessera render`, in turns; medians of wall time and
//! memory are printed, and their ratios to the first film's. The ceiling is that first film: its
//! scene is prepared once, whatever a frame shows.
//!
//! In two more, a hundred figures bend, over the ground and alone; printed is what preparing a
//! frame takes. The ceiling is the figures alone.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

mod scenes;

use scenes::Moves;
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use tessera_support::farm::tessera;

/// Films, and the most time of processors and memory beside the first film.
const FILMS: [(Moves, f64, f64); 3] =
    [(Moves::Camera, 1.0, 1.0), (Moves::Triangle, 1.15, 1.3), (Moves::Ground, 1.6, 1.3)];
/// Ticks of the kernel's clock for processes (`USER_HZ`).
const TICKS_PER_SEC: f64 = 100.0;

/// Most times that preparing a frame of a crowd may take over a ground.
const CROWD_MAX: f64 = 3.0;

/// What a film took.
struct Taken {
    /// From the first unit to the last file, and all, in seconds.
    render_secs: f64,
    total_secs: f64,
    /// Of processors, with those of child processes.
    cpu_secs: f64,
    /// Median of the frames' preparation in seconds, but the first's.
    prepare_secs: f64,
    /// Most memory of the process, in MB.
    megabytes: f64,
}

fn main() {
    let (mut edge, mut frames, mut rounds) = (708, 8, 3);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || arguments.next().and_then(|text| text.parse().ok()).expect("a number");
        match argument.as_str() {
            "--edge" => edge = number(),
            "--frames" => frames = number(),
            "--rounds" => rounds = number(),
            _ => {}
        }
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let films = FILMS.map(|(moves, ..)| moves);
    let films = [&films[..], &[Moves::Crowd, Moves::CrowdAlone]].concat();
    let files = scenes::write(folder.path(), edge, &films);
    let mut taken: Vec<Vec<Taken>> = films.iter().map(|_| Vec::new()).collect();
    for _ in 0..rounds {
        for (file, taken) in files.iter().zip(&mut taken) {
            taken.push(render(file, frames));
        }
    }
    let of =
        |film: usize, figure: fn(&Taken) -> f64| median(taken[film].iter().map(figure).collect());
    println!("{} triangles that could stand still, {frames} frames", 2 * edge * edge);
    for (index, (moves, time_max, memory_max)) in FILMS.into_iter().enumerate() {
        let beside =
            |figure: fn(&Taken) -> f64| (of(index, figure), of(index, figure) / of(0, figure));
        let (cpu, total) = (beside(|it| it.cpu_secs), beside(|it| it.total_secs));
        let (rendered, memory) = (beside(|it| it.render_secs), beside(|it| it.megabytes));
        println!(
            "{moves:?} moves: {:.2} s of processors, {:.2} times the first's (at most {time_max}); \
                {:.2} s, {:.2} times; {:.2} s from the first unit, {:.2} times; {:.0} MB, {:.2} \
                times (at most {memory_max})",
            cpu.0, cpu.1, total.0, total.1, rendered.0, rendered.1, memory.0, memory.1,
        );
    }
    let [over, alone] = [3, 4].map(|film| of(film, |it| it.prepare_secs));
    println!(
        "a crowd: {:.0} ms to prepare a frame over the ground, {:.2} times as alone (at most \
            {CROWD_MAX})",
        1e3 * over,
        over / alone
    );
    let later = |film: usize| {
        let few = median((0..rounds).map(|_| render(&files[film], 2).cpu_secs).collect());
        1e3 * (of(film, |it| it.cpu_secs) - few) / (frames.max(3) - 2) as f64
    };
    let [over, alone] = [3, 4].map(later);
    println!(
        "  all of a frame but the first two: {over:.0} ms of processors, {:.2} times as alone",
        over / alone
    );
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Renders a film.
fn render(film: &Path, frames: usize) -> Taken {
    let cpu_before = children_cpu_secs();
    let output = Command::new(tessera())
        .arg("render")
        .arg(film)
        .args(["--size", "320x180", "--spp", "4", "--device", "cpu", "-q", "--json"])
        .args(["--frames", &format!("0-{}", frames.max(2) - 1), "-o"])
        .arg(film.with_file_name("frame.####.exr"))
        .output()
        .expect("the binary runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let seconds = |value: &Value| value.as_f64().expect("a number");
    let prepared = report["frames"].as_array().expect("frames").iter().skip(1);
    Taken {
        render_secs: seconds(&report["render_s"]),
        total_secs: seconds(&report["total_s"]),
        cpu_secs: children_cpu_secs() - cpu_before,
        prepare_secs: median(prepared.map(|frame| seconds(&frame["prepare_s"])).collect()),
        megabytes: seconds(&report["peak_bytes"]) / 1e6,
    }
}

/// What processors did for child processes that have ended, and for theirs, in seconds.
fn children_cpu_secs() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux has it");
    // The name, in brackets, may contain anything.
    let after_name = stat.rsplit(')').next().expect("a name");
    let ticks = after_name.split_whitespace().skip(13).take(2);
    ticks.map(|ticks| ticks.parse::<f64>().expect("ticks")).sum::<f64>() / TICKS_PER_SEC
}
