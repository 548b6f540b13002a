//! Several steps in a frame: the same bytes as a frame for each, with kills between, and what a
//! step costs the farm.

use crate::compute::arrays::{file, values};
use crate::compute::fixture::{Farm, example, kernel};
use crate::compute::references::heat;
use std::io::Write as _;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tessera_fake_cuda::{Config, Device, Fault, FaultKind};
use tessera_support::farm::takes_minutes;

fn plate(width: u64, height: u64) -> Vec<f64> {
    (0..width * height).map(|at| 100.0 * (at as f64 * 0.618_033_988_749_894_9).fract()).collect()
}

/// Writes a plate, and returns the arguments of a job over it.
fn heat_job(farm: &Farm, (width, height): (u64, u64), options: &str) -> Vec<String> {
    let bytes = file(&[height, width], &plate(width, height));
    std::fs::write(farm.path("plate.npy"), bytes).unwrap();
    let domain = format!("{width}x{height}");
    let program = example("heat.ptx");
    let job = ["compute", &program, "--domain", &domain, "--feed", "plate"];
    let input = ["--input", "plate=plate.npy"];
    job.into_iter().chain(input).chain(options.split_whitespace()).map(str::to_owned).collect()
}

fn words(job: &[String]) -> Vec<&str> {
    job.iter().map(String::as_str).collect()
}

#[test]
fn steps_give_the_same_bytes_as_frames() {
    let farm = Farm::start(1);
    let run = |options: &str| farm.text(&words(&heat_job(&farm, (20, 16), options)));
    run("--frames 1-12 --chunk 100 --out single.##.npy");
    run("--frames 1-4 --steps 3 --out odd.##.npy");
    run("--frames 1-3 --steps 4 --out even.##.npy");
    run("--steps 12 --out all.npy");
    for frame in 1..=4 {
        let (odd, single) = (format!("odd.{frame:02}.npy"), format!("single.{:02}.npy", frame * 3));
        assert!(farm.read(&odd) == farm.read(&single), "{odd}");
    }
    for frame in 1..=3 {
        let (even, single) =
            (format!("even.{frame:02}.npy"), format!("single.{:02}.npy", frame * 4));
        assert!(farm.read(&even) == farm.read(&single), "{even}");
    }
    assert!(farm.read("all.npy") == farm.read("single.12.npy"));
    let found: Vec<f64> = values(&farm.read("all.npy"), &[16, 20]);
    assert_eq!(found, heat(20, plate(20, 16), 12));
}

/// What a step does not write is zero, as in a frame; a kernel sees its number.
#[test]
fn a_kernel_sees_its_step() {
    let farm = Farm::start(1);
    std::fs::write(farm.path("ones.npy"), file(&[10], &[1u32; 10])).unwrap();
    let turns = kernel("turns.ptx");
    let job = ["compute", &turns, "--domain", "10", "--feed", "before", "--steps", "3"];
    let files = ["--input", "before=ones.npy", "--frames", "1-2", "--out", "turns.##.npy"];
    farm.text(&[&job[..], &files].concat());
    for (frame, value) in [(1, 1345), (2, 1_345_345)] {
        let expected: Vec<u32> = (0..10).map(|x| if x % 3 == 2 { 0 } else { value }).collect();
        let found: Vec<u32> = values(&farm.read(&format!("turns.{frame:02}.npy")), &[10]);
        assert_eq!(found, expected, "frame {frame}");
    }
}

#[test]
fn steps_survive_kills_of_nodes_and_workers() {
    if !takes_minutes("steps under kills") {
        return;
    }
    let mut farm = Farm::start(2);
    farm.wait_until_ready();
    let job = heat_job(&farm, (20, 16), "--frames 1-4 --steps 40 --out killed.##.npy");
    let mut command = farm.command(&words(&job));
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    for victim in 0..2 {
        // A frame takes 0.8 s: the fixture's devices pause after each launch.
        std::thread::sleep(Duration::from_millis(600));
        farm.kill_node(victim);
        farm.start_node(victim);
    }
    assert!(child.wait().unwrap().success(), "{}", farm.logs());
    let expected = |steps| file(&[16, 20], &heat(20, plate(20, 16), steps));
    for frame in 1..=4 {
        let name = format!("killed.{frame:02}.npy");
        assert!(farm.read(&name) == expected(40 * frame), "{name}");
    }
    drop(farm);

    let mut farm = Farm::start(0);
    let crash = Fault::new(FaultKind::Crash).at_kernel("compute").after(50);
    let device = Device { memory: 512 << 20, faults: vec![crash], ..Device::default() };
    farm.add_gpu_node_of("crashing", &Config::of(1, device));
    farm.text(&words(&heat_job(&farm, (20, 16), "--frames 1-2 --steps 40 --out crashed.##.npy")));
    for frame in 1..=2 {
        let name = format!("crashed.{frame:02}.npy");
        assert!(farm.read(&name) == expected(40 * frame), "{name}");
    }
}

#[test]
fn steps_that_cannot_be_are_refused_with_numbers() {
    let farm = Farm::start(0);
    let refused = |size, options: &str, expected: &str| {
        let job = heat_job(&farm, size, &format!("{options} --out never.npy"));
        let (status, error) = farm.failure(&words(&job));
        assert!(status == 2 && error.contains(expected), "{options}: {status}: {error}");
    };
    refused((20, 16), "--steps 0", "--steps: 0 is not in 1 to 1048576");
    refused((20, 16), "--steps 2 --chunk 100", "one chunk of all its 320 indices");
    let heat = example("heat.ptx");
    let job = ["compute", &heat, "--domain", "20x16", "--element", "f64", "--steps", "2"];
    let files = ["--input", "plate=plate.npy", "--out", "never.npy"];
    let (status, error) = farm.failure(&[&job[..], &files].concat());
    assert!(status == 2 && error.contains("need --feed NAME"), "{status}: {error}");
}

/// A built-in kernel takes steps too, on a CPU.
#[test]
fn steps_of_a_builtin_kernel_give_the_bytes_of_frames() {
    let mut farm = Farm::start(0);
    farm.add_cpu_node("cpu");
    let image = format!("b={}", example("image.npy"));
    let first = format!("a={}", example("image.npy"));
    let job = ["compute", "builtin:merge", "--domain", "32x24", "--channels", "3", "--feed", "a"];
    let options = ["--input", &first, "--input", &image, "--arg", "weight_a=0.75"];
    let job = [&job[..], &options].concat();
    farm.text(&[&job[..], &["--frames", "1-3", "--out", "frame.##.npy"]].concat());
    farm.text(&[&job[..], &["--steps", "3", "--out", "steps.npy"]].concat());
    assert!(farm.read("frame.03.npy") == farm.read("steps.npy"));
    assert!(farm.read("frame.02.npy") != farm.read("steps.npy"));
}

/// Prints what a step costs the farm with a frame for each and with a hundred in a frame. The
/// kernel has 16 threads at work, so that its own time hardly counts.
#[test]
fn what_a_step_costs_is_measured() {
    if !takes_minutes("what a step costs") {
        return;
    }
    let mut farm = Farm::start(0);
    for name in ["first", "second"] {
        farm.add_gpu_node_of(
            name,
            &Config::of(1, Device { memory: 512 << 20, ..Device::default() }),
        );
    }
    farm.wait_until_ready();
    let run = |options: &str| {
        let begun = Instant::now();
        let options = format!("{options} --block 32 --out cost.###.npy");
        farm.text(&words(&heat_job(&farm, (4, 4), &options)));
        begun.elapsed().as_secs_f64()
    };
    // The difference of two lengths leaves out what every job costs.
    let (short, long) = (run("--frames 1-10"), run("--frames 1-50"));
    let single = (long - short) / 40.0;
    let (short, long) = (run("--frames 1-10 --steps 100"), run("--frames 1-50 --steps 100"));
    let stepped = (long - short) / 4000.0;
    let (single, stepped) = (single * 1e3, stepped * 1e3);
    // Where standard error is closed, nobody listens.
    let _ = writeln!(
        std::io::stderr(),
        "MEASURED: a step costs {single:.2} ms as a frame, {stepped:.4} ms in a frame of 100: \
            1/{:.0}",
        single / stepped
    );
    let found: Vec<f64> = values(&farm.read("cost.050.npy"), &[4, 4]);
    assert_eq!(found, heat(4, plate(4, 4), 5000));
}
