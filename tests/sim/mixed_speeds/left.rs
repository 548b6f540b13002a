//! The time that is said to be left when a fifth of a job is done, against the time that it then
//! took, on farms of unequal nodes. The constants of the estimate were chosen on the seeds below
//! `FIRST`; the test counts others.

use crate::mixed_speeds::farm::{Farm, Guess, Machine};
use crate::mixed_speeds::{SLOW, render};
use tessera_core::Settings;
use tessera_protocol::job::RenderSpec;

/// First seed that counts.
const FIRST: u64 = 1000;
/// Farms that count.
const SEEDS: u64 = 60;
/// Most that the median error may be.
const MEDIAN_MAX: f64 = 0.15;
/// Most that one estimate of ten may be wrong by.
const NINE_OF_TEN_MAX: f64 = 0.5;

/// A number below another, from a seed.
fn pick(seed: u64, which: u64, below: u64) -> u64 {
    let mixed = (seed << 8 | which).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed ^ mixed >> 31).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33) % below
}

/// Two to nine nodes, of which the fastest is up to twenty times as fast as the slowest.
fn machines(seed: u64) -> Vec<Machine> {
    let nodes = 2 + pick(seed, 0, 8);
    let node = |number| Machine {
        devices: 1 + pick(seed, 2 * number + 1, 3) as usize,
        ..Machine::of(SLOW / 10.0 * (1.0 + pick(seed, 2 * number + 2, 20) as f64))
    };
    (0..nodes).map(node).collect()
}

/// What a farm renders.
struct Work {
    render: RenderSpec,
    /// How many of it at once.
    jobs: u64,
    /// Samples that finishing a pixel costs; 0 if nodes finish no frames.
    per_pixel: f64,
    /// By how much the lower tiles of a frame cost more than its upper ones.
    slope: f64,
    /// Whether the nodes are new, so that their results are checked.
    checked: bool,
}

/// A still, a short film, a denoised film, or three films side by side.
fn work(seed: u64) -> Work {
    let slope = [0.0, 0.0, 0.2, 0.4][pick(seed, 101, 4) as usize];
    let (render, jobs, per_pixel) = match pick(seed, 100, 5) {
        0 => (render(1280, 720, 256, 1), 1, 0.0),
        1 => (render(1920, 1080, 256, 1), 1, 0.0),
        2 => (render(640, 360, 64, 40), 1, 0.0),
        3 => (RenderSpec { denoise: true, ..render(960, 540, 64, 30) }, 1, 15.0),
        _ => (render(640, 360, 64, 20), 3, 0.0),
    };
    Work { render, jobs, per_pixel, slope, checked: pick(seed, 102, 2) == 0 }
}

/// What was said on the farm of a seed, and whether it renders a still.
fn guesses(seed: u64) -> (Vec<Guess>, bool) {
    let Work { render, jobs, per_pixel, slope, checked } = work(seed);
    let settings = if checked { Settings::default() } else { Settings::default().without_checks() };
    let run = Farm::run_by(settings, &machines(seed), (&render, jobs), (per_pixel, seed, slope));
    assert!(run.ended_well, "seed {seed}: not all units were committed");
    (run.guesses, render.frames.len() == 1)
}

/// The error of an estimate, as a share of the time that was left; None if nothing was said.
fn error(guess: &Guess) -> Option<f64> {
    Some((guess.said? as f64 - guess.was).abs() / guess.was.max(1.0))
}

/// The value below which this share of all is.
fn below(errors: &mut [f64], share: f64) -> f64 {
    errors.sort_by(f64::total_cmp);
    errors[(errors.len() as f64 * share) as usize]
}

// promise: P4
#[test]
fn the_time_left_is_right_at_a_fifth_of_a_job() {
    let (mut errors, mut of_stills, mut silent) = (Vec::new(), Vec::new(), 0);
    for (guesses, is_still) in (FIRST..FIRST + SEEDS).map(guesses) {
        let said: Vec<f64> = guesses.iter().filter_map(error).collect();
        silent += guesses.len() - said.len();
        of_stills.extend(said.iter().copied().filter(|_| is_still));
        errors.extend(said);
    }
    let (median, most) = (below(&mut errors, 0.5), below(&mut errors, 0.9));
    let stills = below(&mut of_stills, 0.5);
    eprintln!(
        "{} estimates of {SEEDS} farms, {silent} times none: median error {median:.3}, of {} \
            stills {stills:.3}, nine of ten below {most:.3}",
        errors.len(),
        of_stills.len()
    );
    assert!(silent * 10 < errors.len(), "{silent} times nothing was said");
    assert!(median <= MEDIAN_MAX, "the median error is {median:.3}");
    assert!(most <= NINE_OF_TEN_MAX, "one of ten is wrong by {most:.3}");
}
