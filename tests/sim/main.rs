//! The simulator: a farm of 40 nodes in virtual time, with everything that can go wrong, driving the coordinator's core and nothing else
//! of the product. After every step it checks what must always hold; a failure is a seed.
//!
//! ```text
//! TESSERA_SIM_SEEDS=10000 cargo test --release --test sim -- --nocapture    # many seeds
//! TESSERA_SIM_SEED=0x5eed cargo test --release --test sim -- --nocapture    # one seed again
//! ```

mod agenda;
mod books;
mod client;
mod crash;
mod disk;
mod faults;
mod film;
mod ledger;
mod liar;
mod markers;
mod mixed;
mod mixed_farm;
mod network;
mod node;
mod node_work;
mod plan;
mod planted;
mod questions;
mod random;
mod reactions;
mod runs;
mod shell;
mod trouble;
mod watch;
mod weather;
mod world;

use planted::Bug;
use runs::{Outcome, run_seeds};

/// Seeds of a run without `TESSERA_SIM_SEEDS`.
const SEEDS: u64 = 300;
/// Seeds within which a planted bug must be caught.
const PLANTED_SEEDS: u64 = 40;

/// A number of the environment, decimal or hexadecimal with `0x`.
fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    Some(
        parsed.unwrap_or_else(|_| panic!("{name} is `{text}`; write a number, or 0x and hexadecimal digits")),
    )
}

#[test]
fn no_seed_breaks_an_invariant() {
    let seeds = match number("TESSERA_SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("TESSERA_SIM_SEEDS").unwrap_or(SEEDS),
    };
    let count = seeds.end - seeds.start;
    let Outcome { report, failure } = run_seeds(seeds, None);
    println!("{}", report.summary());
    if let Some(failure) = failure {
        panic!("{}", failure.explain());
    }
    if count >= SEEDS {
        let missing = report.tally.missing();
        assert!(missing.is_empty(), "these faults were never met: {missing:?}");
        let missing = report.met.missing();
        assert!(missing.is_empty(), "these situations were never met: {missing:?}");
    }
}

fn assert_caught(bug: Bug) {
    let Outcome { report, failure } = run_seeds(0..PLANTED_SEEDS, Some(bug));
    match failure {
        Some(failure) => eprintln!("{bug:?}: seed {:#x}: {}", failure.seed, failure.violation.0),
        None => panic!("{bug:?} was not caught in {} seeds", report.runs),
    }
}

#[test]
fn a_planted_lease_bug_is_caught() {
    assert_caught(Bug::LeaseOutlivesNode);
    assert_caught(Bug::LeaseGivenTwice);
    assert_caught(Bug::LeaseNotFreed);
    assert_caught(Bug::LeaseNotRevoked);
}

#[test]
fn a_planted_epoch_bug_is_caught() {
    assert_caught(Bug::EpochNotCompared);
    assert_caught(Bug::EpochReused);
}

#[test]
fn a_planted_replay_bug_is_caught() {
    assert_caught(Bug::ReplayDropsRecord);
    assert_caught(Bug::ReplayDoublesRecord);
}
