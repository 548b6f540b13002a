//! Frames on nodes of different speeds: how much longer they take than all devices at work until
//! the end, in virtual time.

pub(crate) mod farm;
mod film;
mod left;

use crate::mixed_speeds::farm::{Farm, Machine, Run};
use tessera_protocol::frames::FrameSet;
use tessera_protocol::ids::FrameNumber;
use tessera_protocol::job::RenderSpec;
use tessera_support::inputs;

/// What the end of a frame may cost: makespan over the lower bound.
const RATIO_MAX: f64 = 1.15;
/// Seconds that a frame costs beyond that, however short it is: messages, and units that were given
/// before speeds were known. A part of the ratio where the bound is above two seconds.
const FIXED: f64 = 0.25;
/// Bounds below this are allowed the fixed costs as well.
const SHORT: f64 = 2.0;
/// Distributions of cost over the tiles that each case is tried with.
const SEEDS: u64 = 5;
/// Camera samples per second of a slow node: a CPU of today with many threads.
const SLOW: f64 = 1.5e6;

pub(crate) fn render(width: u32, height: u32, spp: u32, frames: u32) -> RenderSpec {
    let frames =
        FrameSet::from_frames((0..frames).map(FrameNumber)).expect("a few frames are a set");
    RenderSpec { width, height, spp, frames, tile: 64, unit_samples: 0, ..inputs::render() }
}

/// Jobs as people submit them: a still of middling quality, a good one, a large one, a short film.
fn jobs() -> Vec<(&'static str, RenderSpec)> {
    vec![
        ("1280x720x128", render(1280, 720, 128, 1)),
        ("1920x1080x256", render(1920, 1080, 256, 1)),
        ("3840x2160x256", render(3840, 2160, 256, 1)),
        ("8 of 640x360x64", render(640, 360, 64, 8)),
    ]
}

/// Runs a farm over all jobs and seeds, prints the worst of each job, and gives all runs.
fn runs(name: &str, machines: &[Machine]) -> Vec<Run> {
    let mut all = Vec::new();
    for (job, render) in jobs() {
        let of_job: Vec<Run> = (0..SEEDS).map(|seed| Farm::run(machines, &render, seed)).collect();
        let worst = of_job.iter().max_by(|a, b| ratio(a).total_cmp(&ratio(b))).expect("some seeds");
        eprintln!(
            "{name:<28} {job:<16} {:>5} units  bound {:>8.2} s  makespan {:>8.2} s  ratio {:.3}  \
                stopped {:>3}  by node {:?}",
            worst.units,
            worst.bound,
            worst.makespan,
            ratio(worst),
            worst.revoked,
            worst.by_node
        );
        for run in &of_job {
            assert!(run.ended_well, "{name}, {job}: not all units were committed");
        }
        all.extend(of_job);
    }
    all
}

fn ratio(run: &Run) -> f64 {
    run.makespan / run.bound
}

fn stays_within(name: &str, machines: &[Machine]) {
    for run in runs(name, machines) {
        let fixed = if run.bound < SHORT { FIXED } else { 0.0 };
        let most = run.bound * RATIO_MAX + fixed;
        assert!(run.makespan <= most, "{name}: {:.3} times the bound: {run:?}", ratio(&run));
    }
}

fn nodes(counts: &[(usize, f64)]) -> Vec<Machine> {
    counts.iter().flat_map(|(count, factor)| vec![Machine::of(SLOW * factor); *count]).collect()
}

#[test]
fn ten_to_one_ends_within_the_bound() {
    stays_within("10:1", &nodes(&[(1, 10.0), (1, 1.0)]));
}

#[test]
fn eight_fast_and_three_slow_end_within_the_bound() {
    stays_within("8 fast, 3 slow", &nodes(&[(8, 10.0), (3, 1.0)]));
}

#[test]
fn a_rack_and_three_slow_end_within_the_bound() {
    let rack = Machine { devices: 8, ..Machine::of(SLOW * 10.0) };
    let mut machines = nodes(&[(3, 1.0)]);
    machines.push(rack);
    stays_within("node of 8 fast, 3 slow", &machines);
}

#[test]
fn a_hundred_to_one_ends_within_the_bound() {
    stays_within("100:1", &nodes(&[(1, 100.0), (1, 1.0)]));
    stays_within("4 at 100, 4 at 1", &nodes(&[(4, 100.0), (4, 1.0)]));
}

#[test]
fn a_single_slow_node_ends_within_the_bound() {
    stays_within("one slow", &nodes(&[(1, 1.0)]));
}

#[test]
fn equals_and_near_equals_end_within_the_bound() {
    stays_within("4 equal", &nodes(&[(4, 1.0)]));
    stays_within("1, 1.2, 1.5, 2", &nodes(&[(1, 1.0), (1, 1.2), (1, 1.5), (1, 2.0)]));
}

#[test]
fn a_node_that_becomes_slow_does_not_hold_the_others_up() {
    let (fast, slow) = (SLOW * 10.0, SLOW);
    let failing = Machine { change: Some((2.0, slow / 10.0)), ..Machine::of(fast) };
    let machines = [Machine::of(fast), failing, Machine::of(slow)];
    stays_within("10, 10 that becomes 0.1, 1", &machines);
}

// promise: P4
#[test]
fn a_node_that_stands_still_is_worked_around() {
    // Its heart beats, and its unit would last for weeks.
    let machines = [Machine::of(SLOW), Machine { change: Some((1.0, 1.0)), ..Machine::of(SLOW) }];
    stays_within("1, 1 that stands still", &machines);
}
