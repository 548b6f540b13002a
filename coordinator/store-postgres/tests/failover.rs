//! A standby takes over: a synchronous one has every commit; one that was not synchronous lacks the
//! newest, and the leader sends them again.

use crate::relay::Relay;
use crate::support::{Farm, everything, record, records};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tessera_coordinator::store::{Changes, Store};
use tessera_store_postgres::{PostgresPlace, StoreAddress};
use tessera_support::farm::takes_minutes;
use tessera_support::postgres::Postgres;

/// Takeovers of a short test, and of a long one.
const ROUNDS: (u32, u32) = (4, 100);
/// A term whose renewals come every 1.3 s.
const SHORT_TERM_SECS: u32 = 6;
/// A term that lasts while a standby is promoted, also on a machine that does much else.
const LONG_TERM_SECS: u32 = 60;

/// A farm whose database is reached by a relay.
fn behind_a_relay(primary: &Postgres, term_secs: u32) -> (Relay, Farm) {
    let database = Relay::to(primary.port());
    let address = format!("{}?term={term_secs}", primary.address_at(database.port));
    let address = StoreAddress::parse(&address).unwrap();
    (database, Farm::new(PostgresPlace::new(address, "takeovers".into(), false)))
}

/// The head and the commits that a database has.
fn place(postgres: &Postgres) -> String {
    postgres.sql("SELECT head, commits FROM tessera.leader")
}

fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < until, "{what} does not happen");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Commits groups of some records each.
fn commit(store: &mut dyn Store, next: &mut u64, groups: u32) {
    for _ in 0..groups {
        store.commit(&records(*next..*next + 2)).unwrap();
        *next += 2;
    }
}

// promise: P1
#[test]
fn a_lost_end_is_sent_again_by_the_leader() {
    let what = "a_lost_end_is_sent_again_by_the_leader";
    let Some(mut primary) = Postgres::start(what) else { return };
    let rounds = if takes_minutes("a hundred takeovers") { ROUNDS.1 } else { ROUNDS.0 };
    let (database, farm) = behind_a_relay(&primary, SHORT_TERM_SECS);
    let mut store = farm.open();
    let mut next = 1;
    for round in 0..rounds {
        let feed = Relay::to(primary.port());
        let standby = primary.standby(feed.port);
        commit(&mut *store, &mut next, 1 + round % 3);
        wait_for("the standby's copy", || {
            let caught_up = "SELECT count(*) FROM pg_stat_replication \
                WHERE replay_lsn >= pg_current_wal_lsn()";
            primary.sql(caught_up) == "1"
        });
        feed.aim(None);
        commit(&mut *store, &mut next, 1 + round % 5);
        if round % 3 == 1 {
            // Other values and a snapshot are among what is lost.
            let snapshot = Some((next - 1, vec![round as u8; 20_000]));
            store.commit(&Changes { records: vec![], snapshot, ..everything() }).unwrap();
        }
        let taken = place(&primary);
        primary.kill();
        standby.promote();
        assert_ne!(place(&standby), taken, "the standby has lost nothing, which shows nothing");
        database.aim(Some(standby.port()));
        match round % 2 {
            0 => commit(&mut *store, &mut next, 1),
            // Nobody commits: a renewal of the term finds it.
            _ => wait_for("the lost end", || {
                store.check().unwrap();
                place(&standby) == taken
            }),
        }
        primary = standby;
    }
    let loaded = store.load().unwrap();
    let (at, _) = loaded.snapshot.unwrap();
    assert_eq!(loaded.records, (at + 1..next).map(record).collect::<Vec<_>>());
    assert_eq!((loaded.members.len(), loaded.tokens.len()), (2, 2));
    store.close().unwrap();
}

// promise: P1
#[test]
fn a_synchronous_standby_has_every_commit() {
    let what = "a_synchronous_standby_has_every_commit";
    let Some(mut primary) = Postgres::start(what) else { return };
    let (database, farm) = behind_a_relay(&primary, LONG_TERM_SECS);
    let mut store = farm.open();
    let (taken, ended) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            while !ended.load(Ordering::SeqCst) {
                let next = taken.load(Ordering::SeqCst) + 1;
                store.commit(&records(next..=next)).unwrap();
                taken.store(next, Ordering::SeqCst);
            }
        });
        for round in 0..ROUNDS.0 {
            let standby = primary.standby(primary.port());
            primary.wait_for_standbys();
            let before = taken.load(Ordering::SeqCst);
            wait_for("commits", || taken.load(Ordering::SeqCst) >= before + 20);
            primary.kill();
            let taken_before = taken.load(Ordering::SeqCst);
            standby.promote();
            let head: u64 = standby.sql("SELECT head FROM tessera.leader").parse().unwrap();
            assert!(head >= taken_before, "round {round}: {head} of {taken_before}");
            database.aim(Some(standby.port()));
            primary = standby;
        }
        ended.store(true, Ordering::SeqCst);
        writer.join().unwrap();
    });
    let last = taken.load(Ordering::SeqCst);
    assert_eq!(store.load().unwrap().records, (1..=last).map(record).collect::<Vec<_>>());
    store.close().unwrap();
}
