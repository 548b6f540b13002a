//! A film whose frames nodes finish: how much longer it takes than all devices at work until the
//! end, and how many frames wait for their files meanwhile.

use crate::mixed_speeds::farm::{Farm, Machine};
use crate::mixed_speeds::{SLOW, render};
use tessera_protocol::job::RenderSpec;

/// Makespan over the lower bound.
const RATIO_MAX: f64 = 1.1;
/// Samples of a slow node that denoising a pixel takes: 21 CPU seconds a 1080p frame, measured on
/// 2026-11-25.
const PER_PIXEL: f64 = 15.0;
const FRAMES: u32 = 100;
/// Frames that have begun and are not done, on any of the farms.
const OPEN_MAX: usize = 16;

/// 100 frames of 1080p with 64 samples, denoised: a fifth of the work is finishing.
fn film() -> RenderSpec {
    RenderSpec { denoise: true, ..render(1920, 1080, 64, FRAMES) }
}

fn stays_within(nodes: usize) {
    let machines = vec![Machine::of(SLOW); nodes];
    let run = Farm::run_film(&machines, &film(), (PER_PIXEL, 1));
    let ratio = run.makespan / run.bound;
    eprintln!(
        "{nodes:>3} nodes: bound {:.1} s, makespan {:.1} s, ratio {ratio:.3}, first frame after \
            {:.1} s, {} frames open at most",
        run.bound, run.makespan, run.first_frame, run.frames_open
    );
    assert!(run.ended_well, "{nodes} nodes: not all units were committed");
    assert!(ratio <= RATIO_MAX, "{nodes} nodes: {ratio:.3} times the bound");
    assert!(run.frames_open <= OPEN_MAX, "{nodes} nodes: {} frames wait", run.frames_open);
    // The first frame does not wait for the others: its own work, and a few units of each node.
    let own = run.bound / f64::from(FRAMES) * 2.0 + 20.0;
    assert!(
        run.first_frame <= own,
        "{nodes} nodes: the first frame is there after {:.1} s",
        run.first_frame
    );
}

// promise: P4
#[test]
fn a_denoised_film_ends_within_the_bound() {
    [1, 10, 100].into_iter().for_each(stays_within);
}
