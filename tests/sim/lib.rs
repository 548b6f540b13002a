//! The simulator: a farm of 200 nodes or more in virtual time, with everything that can go wrong,
//! driving the coordinator's core and nothing else of the product. What a step touches is checked
//! after it, and everything now and then; a failure is a seed.
//!
//! ```text
//! cargo test --release -p tessera-sim no_seed -- --nocapture
//! with TESSERA_SIM_SEEDS=100000                           many seeds
//!      TESSERA_SIM_FIRST=5000 TESSERA_SIM_SEEDS=5000     a piece of them
//!      TESSERA_SIM_SEED=0x5eed                           one seed again
//! cargo test --release -p tessera-sim caught -- --nocapture
//! with TESSERA_SIM_PLANTED=2000                           the seed that finds each planted bug
//! ```
#![cfg(test)]

mod bad_node;
mod checks;
mod client;
mod coordinator;
mod fair;
mod faults;
mod forger;
mod leaders;
mod lies_in_rounds;
mod mixed_speeds;
mod model;
mod node;
mod runs;
mod scale;
mod situations;
mod world;

use faults::planted::Bug;
use runs::{Outcome, run_seeds};

/// Seeds of a run without `TESSERA_SIM_SEEDS`. `.ci/nightly` runs many more.
const SEEDS: u64 = 50;
/// So many seeds meet every kind of fault, and every situation that is not rare.
const SEEDS_THAT_MEET_ALL: u64 = 400;
/// Seeds within which a planted bug must be caught, where `TESSERA_SIM_PLANTED` does not say
/// otherwise.
const PLANTED_SEEDS: u64 = 2000;

/// A number of the environment, decimal or hexadecimal with `0x`.
fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    Some(parsed.unwrap_or_else(|_| {
        panic!("{name} is `{text}`; write a number, or 0x and hexadecimal digits")
    }))
}

// promise: P1, P2, P3, P4, P5, P6, P7
#[test]
fn no_seed_breaks_an_invariant() {
    let seeds = match number("TESSERA_SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => {
            let first = number("TESSERA_SIM_FIRST").unwrap_or(0);
            first..first + number("TESSERA_SIM_SEEDS").unwrap_or(SEEDS)
        }
    };
    let count = seeds.end - seeds.start;
    let Outcome { report, failure } = run_seeds(seeds, None);
    println!("{}", report.summary());
    if let Some(failure) = failure {
        panic!("{}", failure.explain());
    }
    if count >= SEEDS_THAT_MEET_ALL {
        let missing = report.tally.missing();
        assert!(missing.is_empty(), "these faults were never met: {missing:?}");
        let missing = report.met.missing(count);
        assert!(missing.is_empty(), "these situations were never met: {missing:?}");
    }
}

/// The bug is found; says by which seed.
fn assert_caught(bug: Bug) {
    assert_caught_from(0, bug);
}

/// The bug is found by one of as many seeds from another on: near one that has found it, for time.
fn assert_caught_from(first: u64, bug: Bug) {
    let seeds = number("TESSERA_SIM_PLANTED").unwrap_or(PLANTED_SEEDS);
    let Outcome { report, failure } = run_seeds(first..first + seeds, Some(bug));
    match failure {
        Some(failure) => {
            eprintln!("{bug:?}: found by seed {} of {seeds}: {}", failure.seed, failure.violation.0)
        }
        None => panic!("{bug:?} was not caught in {} seeds", report.runs),
    }
}

// promise: P2
#[test]
fn a_planted_lease_bug_is_caught() {
    assert_caught(Bug::LeaseOutlivesNode);
    assert_caught(Bug::LeaseGivenTwice);
    assert_caught(Bug::LeaseNotFreed);
    assert_caught(Bug::LeaseNotRevoked);
}

// promise: P2
#[test]
fn a_planted_epoch_bug_is_caught() {
    assert_caught(Bug::EpochNotCompared);
    assert_caught(Bug::EpochReused);
}

// promise: P1
#[test]
fn a_planted_replay_bug_is_caught() {
    assert_caught(Bug::ReplayDropsRecord);
    assert_caught(Bug::ReplayDoublesRecord);
}

// promise: P1
#[test]
fn an_early_acknowledgement_is_caught() {
    assert_caught(Bug::EarlyAcknowledgement);
}

// promise: P4
#[test]
fn a_lost_retry_is_caught() {
    assert_caught(Bug::RetryLost);
}

// promise: P2
#[test]
fn a_result_that_counts_twice_is_caught() {
    assert_caught(Bug::CountedTwice);
    assert_caught(Bug::PartCountedTwice);
}

// promise: P4
#[test]
fn a_starved_job_is_caught() {
    assert_caught_from(290, Bug::JobStarved);
}

// promise: P4
#[test]
fn a_quarantined_last_node_is_caught() {
    assert_caught_from(264, Bug::LastNodeQuarantined);
}

// promise: P7
#[test]
fn an_unverified_liar_is_caught() {
    assert_caught_from(151, Bug::LiarNotVerified);
}

// promise: P3
#[test]
fn a_sweep_of_a_live_blob_is_caught() {
    assert_caught(Bug::LiveBlobCollected);
}

// promise: P8
#[test]
fn a_clone_that_is_served_is_caught() {
    assert_caught(Bug::CloneServed);
}

// promise: P1
#[test]
fn a_roster_that_forgets_is_caught() {
    assert_caught(Bug::RosterForgets);
}

// promise: P2
#[test]
fn a_band_that_counts_twice_is_caught() {
    assert_caught(Bug::BandCountedTwice);
}

// promise: P2
#[test]
fn a_frame_without_one_of_its_bands_is_caught() {
    assert_caught(Bug::BandMissing);
}

// promise: P1
#[test]
fn a_commit_that_compares_too_little_is_caught() {
    assert_caught_from(18, Bug::TermNotCompared);
    assert_caught(Bug::HeadNotCompared);
}

// promise: P1
#[test]
fn a_standby_that_answers_is_caught() {
    assert_caught(Bug::StandbyAnswers);
}

// promise: P1
#[test]
fn an_end_lost_in_silence_is_caught() {
    assert_caught(Bug::LostEndHidden);
}

// promise: P1
#[test]
fn an_acknowledgement_before_the_put_is_caught() {
    assert_caught(Bug::AcknowledgedBeforeStored);
}

// promise: P4
#[test]
fn a_lease_of_a_job_that_waits_is_caught() {
    assert_caught(Bug::LeasedBeforeWaitEnds);
}

// promise: P1
#[test]
fn a_wait_whose_end_is_forgotten_is_caught() {
    assert_caught(Bug::WaitEndForgotten);
}

// promise: P4
#[test]
fn a_lease_before_the_time_of_a_job_is_caught() {
    assert_caught(Bug::BegunTooEarly);
}

// promise: P3
#[test]
fn a_wrong_frame_of_another_job_is_caught() {
    assert_caught(Bug::WrongFrameRead);
}

// promise: P7
#[test]
fn an_unverified_liar_in_a_band_is_caught() {
    assert_caught(Bug::LiarInBandNotVerified);
}
