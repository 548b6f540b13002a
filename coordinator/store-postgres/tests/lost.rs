//! Commits whose answers are lost, and a database that is killed: nothing is lost or doubled.

use crate::cutter::{Cut, Cutter};
use crate::support::{Farm, place_at, record, records};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tessera_support::postgres::Postgres;

/// A sequence that looks random, from a seed.
fn random(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    *seed >> 33
}

/// Cuts on which the test insists, of each kind in turn.
const CUTS: u32 = 51;

// promise: P1
#[test]
fn a_commit_whose_answer_is_lost_counts_once() {
    let Some(postgres) = Postgres::start("a_commit_whose_answer_is_lost_counts_once") else {
        return;
    };
    let cutter = Cutter::before(postgres.port());
    let farm = Farm::new(place_at(&postgres.address_at(cutter.port), "cut"));
    let mut store = farm.open();
    let (mut seed, mut next, mut commits) = (20_261_128, 1, 0);
    let mut made = 0;
    while made < CUTS {
        if random(&mut seed).is_multiple_of(3) {
            cutter.cut([Cut::Before, Cut::After, Cut::Late][made as usize % 3]);
            made += 1;
        }
        let count = random(&mut seed) % 4;
        let mut changes = records(next..next + count);
        if count == 0 {
            changes.audit_head = Some(next.to_le_bytes().to_vec());
        }
        store.commit(&changes).unwrap();
        next += count;
        commits += 1;
    }
    assert_eq!(cutter.cuts.load(Ordering::SeqCst), CUTS, "each one hit a commit");
    let loaded = store.load().unwrap();
    assert_eq!(loaded.records, (1..next).map(record).collect::<Vec<_>>());
    assert_eq!(
        postgres.sql("SELECT head, commits FROM tessera.leader"),
        format!("{}|{commits}", next - 1)
    );
    store.close().unwrap();
}

// promise: P1
#[test]
fn a_killed_database_loses_nothing_that_was_taken() {
    let Some(mut postgres) = Postgres::start("a_killed_database_loses_nothing_that_was_taken")
    else {
        return;
    };
    let address = format!("{}?term=60", postgres.address());
    let address = tessera_store_postgres::StoreAddress::parse(&address).unwrap();
    let place = tessera_store_postgres::PostgresPlace::new(address, "killed".into(), false);
    let farm = Farm::new(place);
    let mut store = farm.open();
    let (taken, ended) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut next = 1;
            while !ended.load(Ordering::SeqCst) {
                store.commit(&records(next..next + 3)).unwrap();
                next += 3;
                taken.store(next - 1, Ordering::SeqCst);
            }
        });
        for _ in 0..5 {
            let (before, since) = (taken.load(Ordering::SeqCst), Instant::now());
            while taken.load(Ordering::SeqCst) < before + 30 {
                assert!(since.elapsed() < Duration::from_secs(60), "commits go on");
                std::thread::sleep(Duration::from_millis(5));
            }
            postgres.crash_and_restart();
            let kept: u64 =
                postgres.sql("SELECT head FROM tessera.leader").parse().expect("a number");
            assert!(kept >= before, "{kept} of {before}");
        }
        ended.store(true, Ordering::SeqCst);
        writer.join().unwrap();
    });
    let last = taken.load(Ordering::SeqCst);
    let loaded = store.load().unwrap();
    assert_eq!(loaded.records, (1..=last).map(record).collect::<Vec<_>>());
    store.close().unwrap();
}
