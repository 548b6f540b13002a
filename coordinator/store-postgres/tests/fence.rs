//! One leader at a time: who does not lead writes nothing and says so.

use crate::support::{Farm, place_at, record, records};
use std::time::{Duration, Instant};
use tessera_coordinator::folder::DataFolder;
use tessera_coordinator::store::{Purpose, StoreError, StorePlace};
use tessera_store_postgres::{PostgresPlace, StoreAddress};
use tessera_support::postgres::Postgres;

fn copied(farm: &Farm) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    let mark = std::fs::read(farm.root.path().join("store")).unwrap();
    drop(DataFolder::open(copy.path()).unwrap());
    tessera_transport::files::write_atomically(
        &copy.path().join("store"),
        &mark,
        tessera_transport::files::Access::Secret,
    )
    .unwrap();
    copy
}

#[test]
fn a_second_coordinator_is_refused_while_one_leads() {
    let Some(postgres) = Postgres::start("a_second_coordinator_is_refused_while_one_leads") else {
        return;
    };
    let farm = Farm::on(&postgres);
    let mut store = farm.open();
    store.commit(&records(1..=1)).unwrap();
    let copy = copied(&farm);
    let folder = DataFolder::open(copy.path()).unwrap();
    let address = StoreAddress::parse(&format!("{}?term=2", postgres.address())).unwrap();
    let second = PostgresPlace::new(address, "two".into(), false);
    // Longer than a term: it is renewed.
    let until = Instant::now() + Duration::from_secs(5);
    while Instant::now() < until {
        match second.open(&folder, Purpose::Run) {
            Err(error @ StoreError::Led { .. }) => {
                let text = error.to_string();
                assert!(text.contains("one") && text.contains("--stand-by"), "{text}");
            }
            Err(error) => panic!("{error}"),
            Ok(_) => panic!("two lead"),
        }
        let survey = second.survey(&folder).unwrap_err().to_string();
        assert!(survey.contains("has a leader: one"), "{survey}");
        std::thread::sleep(Duration::from_millis(300));
    }
    store.commit(&records(2..=2)).unwrap();
    store.close().unwrap();
    // Given back: at once.
    let begun = Instant::now();
    let mut next = second.open(&folder, Purpose::Run).unwrap();
    assert!(begun.elapsed() < Duration::from_millis(1500), "{:?}", begun.elapsed());
    assert_eq!(next.load().unwrap().records, [record(1), record(2)]);
    next.close().unwrap();
}

// promise: P1
#[test]
fn an_old_leader_writes_nothing_and_says_who_leads() {
    let Some(postgres) = Postgres::start("an_old_leader_writes_nothing_and_says_who_leads") else {
        return;
    };
    // It does not renew within this test.
    let address = StoreAddress::parse(&format!("{}?term=600", postgres.address())).unwrap();
    let farm = Farm::new(PostgresPlace::new(address, "one".into(), false));
    let mut store = farm.open();
    store.commit(&records(1..=1)).unwrap();
    let copy = copied(&farm);
    let folder = DataFolder::open(copy.path()).unwrap();
    let second = place_at(&postgres.address(), "two");
    // As if the first one's clock had stopped: its term ends in the database only.
    postgres.sql("UPDATE tessera.leader SET expires_at = now()");
    let mut next = second.open(&folder, Purpose::Run).unwrap();
    let error = store.commit(&records(2..=2)).unwrap_err();
    assert!(matches!(error, StoreError::NotLeader { .. }), "{error}");
    assert!(error.to_string().contains("two leads now, with epoch "), "{error}");
    next.commit(&records(2..=3)).unwrap();
    assert!(store.commit(&records(4..=4)).is_err(), "it has ended for good");
    assert!(store.check().is_err() && store.close().is_err());
    assert_eq!(next.load().unwrap().records, [record(1), record(2), record(3)]);
    assert_eq!(
        postgres.sql(
            "SELECT (SELECT count(*) FROM tessera.lead l WHERE l.epoch <= j.epoch), n \
        FROM tessera.journal j ORDER BY 1"
        ),
        "1|1\n2|2"
    );
    next.close().unwrap();
}

#[test]
fn a_leader_without_a_database_ends_with_its_term() {
    let Some(postgres) = Postgres::start("a_leader_without_a_database_ends_with_its_term") else {
        return;
    };
    let farm = Farm::on(&postgres);
    let mut store = farm.open();
    store.commit(&records(1..=1)).unwrap();
    let lead = store.leading().expect("others can lead it");
    lead.check().unwrap();
    postgres.pause(true);
    let begun = Instant::now();
    let error = store.commit(&records(2..=2)).unwrap_err();
    let took = begun.elapsed();
    postgres.pause(false);
    assert!(took < Duration::from_secs(4), "a term is two seconds: {took:?}");
    assert!(error.to_string().contains("did not renew its term"), "{error}");
    let error = lead.check().unwrap_err();
    assert!(matches!(error, StoreError::NotLeader { .. }), "{error}");
    assert!(store.commit(&records(3..=3)).is_err());
    drop(store);
    // What was sent when the database stopped may have happened or not; nothing came after it.
    let records = farm.load().unwrap().records;
    assert!(records == [record(1)] || records == [record(1), record(2)], "{}", records.len());
}

#[test]
fn a_database_that_lost_its_end_is_named() {
    let Some(postgres) = Postgres::start("a_database_that_lost_its_end_is_named") else { return };
    let farm = Farm::on(&postgres);
    let mut store = farm.open();
    store.commit(&records(1..=2)).unwrap();
    store.commit(&records(3..=4)).unwrap();
    store.close().unwrap();
    // What another process has committed, nobody can send again.
    let mut store = farm.open();
    postgres.sql(
        "WITH d AS (DELETE FROM tessera.journal WHERE first_seq = 3) \
         UPDATE tessera.leader SET head = 2, commits = 1",
    );
    let error = store.commit(&records(5..=5)).unwrap_err().to_string();
    assert!(error.contains("lost its end") && error.contains("record 2"), "{error}");
}

#[test]
fn a_database_that_keeps_no_promise_is_refused() {
    let Some(postgres) = Postgres::start("a_database_that_keeps_no_promise_is_refused") else {
        return;
    };
    postgres.sql("ALTER ROLE tessera SET synchronous_commit = off");
    let farm = Farm::on(&postgres);
    let error = farm.try_open().err().unwrap();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains("`synchronous_commit` is off"), "{error}: {cause}");
    postgres.sql("ALTER ROLE tessera RESET synchronous_commit");
    farm.commit(&records(1..=1));
    postgres.sql("INSERT INTO tessera.version (number) VALUES (99)");
    let error = farm.try_open().err().unwrap();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains("version 99"), "{error}: {cause}");
}
