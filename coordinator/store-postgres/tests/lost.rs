//! Commits whose answers are lost, and a database that is killed: nothing is lost or doubled.

use crate::cutter::{Cut, Cutter};
use crate::support::{Farm, place_at, record, records};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tessera_coordinator::folder::DataFolder;
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

/// Keeps the text of errors that are logged by this thread.
#[derive(Clone, Default)]
struct Errors(Arc<Mutex<Vec<String>>>);

impl tracing::Subscriber for Errors {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() == tracing::Level::ERROR
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut text = String::new();
        event.record(&mut |field: &tracing::field::Field, value: &dyn std::fmt::Debug| {
            text += &format!("{field}={value:?} ");
        });
        self.0.lock().unwrap().push(text);
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

/// What a start of this farm's coordinator says of a lost end.
fn said_at_start(farm: &Farm) -> Vec<String> {
    let errors = Errors::default();
    let guard = tracing::subscriber::set_default(errors.clone());
    farm.open().close().unwrap();
    drop(guard);
    let said = errors.0.lock().unwrap().clone();
    said.into_iter().filter(|text| text.contains("has lost its end")).collect()
}

// promise: P1
#[test]
fn a_lost_end_is_named_by_whoever_had_its_answers() {
    let what = "a_lost_end_is_named_by_whoever_had_its_answers";
    let Some(postgres) = Postgres::start(what) else { return };
    let (first, second) = (Farm::on(&postgres), Farm::on(&postgres));
    let mark = |farm: &Farm| {
        let folder = DataFolder::open(farm.root.path()).unwrap();
        farm.place.adopt(&folder).unwrap();
    };
    first.commit(&records(1..=3));
    mark(&second);
    // Leads that follow each other lose nothing.
    assert_eq!((said_at_start(&first), said_at_start(&second)), (vec![], vec![]));
    let kept = "head, commits, epoch";
    postgres.sql(&format!("CREATE TABLE kept AS SELECT {kept} FROM tessera.leader"));
    postgres.sql("CREATE TABLE leads AS SELECT * FROM tessera.lead");
    first.commit(&records(4..=6));
    // A standby without the last lead takes over while nobody leads.
    let lose = || {
        postgres.sql(&format!("UPDATE tessera.leader SET ({kept}) = (SELECT {kept} FROM kept)"));
        postgres.sql("DELETE FROM tessera.journal WHERE first_seq > 3");
        postgres.sql("TRUNCATE tessera.lead");
        postgres.sql("INSERT INTO tessera.lead SELECT * FROM leads");
    };
    lose();
    // Another one leads, and cannot know; the folder that had the answers does, and says it once.
    assert_eq!(said_at_start(&second), Vec::<String>::new());
    let said = said_at_start(&first);
    assert!(said.len() == 1 && said[0].contains("acknowledged=2 kept=1 "), "{said:?}");
    assert_eq!(said_at_start(&first), Vec::<String>::new());
    // Where the leads in between are lost as well, it knows less.
    first.commit(&records(4..=5));
    lose();
    let said = said_at_start(&first);
    assert!(said.len() == 1 && said[0].contains("acknowledged=2 "), "{said:?}");
}
