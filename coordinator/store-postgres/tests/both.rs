//! What sled and PostgreSQL must do alike; and the migration from one to the other and back.

use crate::support::{Farm, everything, member, place_at, record, records, spool, token};
use tessera_coordinator::spool::SpoolExtent;
use tessera_coordinator::store::{MigrationError, SledPlace, StoreError, migrate};
use tessera_support::postgres::Postgres;

/// Runs a test on a new store of each kind.
fn on_both(what: &str, test: impl Fn(&Farm)) {
    test(&Farm::new(SledPlace));
    if let Some(postgres) = Postgres::start(what) {
        test(&Farm::on(&postgres));
    }
}

#[test]
fn committed_values_survive_a_reopen() {
    on_both("committed_values_survive_a_reopen", |farm| {
        assert!(farm.load().unwrap().is_empty());
        let changes = everything();
        farm.commit(&changes);
        let mut more = records(301..=301);
        more.spools = [(spool(1), None), (spool(2), Some(SpoolExtent::open(77)))].into();
        more.tokens = [([2; 32], None)].into();
        more.members = [(3, None)].into();
        farm.commit(&more);
        let loaded = farm.load().unwrap();
        assert_eq!(loaded.records, [changes.records, more.records].concat());
        assert_eq!(loaded.spools, [(spool(2), SpoolExtent::open(77))].into());
        assert_eq!(loaded.tokens, [([1; 32], token(1))].into());
        assert_eq!(loaded.members, [(4, member(4))].into());
        assert_eq!(loaded.audit_head.as_deref(), Some(&b"head"[..]));
        assert_eq!(loaded.snapshot, None);
    });
}

#[test]
fn a_snapshot_replaces_the_records_before_it() {
    on_both("a_snapshot_replaces_the_records_before_it", |farm| {
        let mut store = farm.open();
        store.commit(&records(1..=600)).unwrap();
        // More than one part, and in the middle of a group.
        let large = vec![9; 9 << 20];
        let mut changes = records(601..=602);
        changes.snapshot = Some((601, large.clone()));
        store.commit(&changes).unwrap();
        let loaded = store.load().unwrap();
        assert_eq!(loaded.records, [record(602)]);
        assert!(loaded.snapshot == Some((601, large)));
        // A second snapshot of the same state, and one of nothing more.
        let mut changes = records([]);
        changes.snapshot = Some((602, vec![]));
        store.commit(&changes).unwrap();
        store.commit(&changes).unwrap();
        store.commit(&records(603..=604)).unwrap();
        store.tidy().unwrap();
        let loaded = store.load().unwrap();
        assert_eq!(loaded.snapshot, Some((602, vec![])));
        assert_eq!(loaded.records, [record(603), record(604)]);
        store.close().unwrap();
        drop(store);
        assert_eq!(farm.load().unwrap().records, [record(603), record(604)]);
    });
}

#[test]
fn damaged_and_missing_values_are_named() {
    let Some(postgres) = Postgres::start("damaged_and_missing_values_are_named") else { return };
    let farm = Farm::on(&postgres);
    farm.commit(&records(1..=3));
    farm.commit(&everything_after(3));
    let folder = || tessera_coordinator::folder::DataFolder::open(farm.root.path()).unwrap();
    assert!(farm.place.survey(&folder()).unwrap().damaged.is_empty());
    for (damage, repair, name) in [
        (
            "UPDATE tessera.journal SET bytes = set_byte(bytes, 30, get_byte(bytes, 30) # 1) \
             WHERE first_seq = 1",
            "",
            "records 1 to 3 of the journal",
        ),
        (
            "UPDATE tessera.value SET bytes = set_byte(bytes, 20, get_byte(bytes, 20) # 1) \
             WHERE get_byte(key, 0) = 105",
            "",
            "member 3",
        ),
        (
            "UPDATE tessera.journal SET n = n + 1 WHERE first_seq = 1",
            "UPDATE tessera.journal SET n = n - 1 WHERE first_seq = 1",
            "records 1 to 4 of the journal",
        ),
        (
            "UPDATE tessera.leader SET head = head + 1",
            "UPDATE tessera.leader SET head = head - 1",
            "the journal",
        ),
    ] {
        postgres.sql(damage);
        let error = farm.load().unwrap_err();
        assert!(matches!(error, StoreError::DamagedElsewhere { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains(name) && text.contains("fsck --store"), "{name}: {text}");
        let survey = farm.place.survey(&folder()).unwrap();
        assert!(survey.lost_end.is_some() || survey.damaged.iter().any(|(what, _)| what == name));
        // The same again is the original.
        postgres.sql(if repair.is_empty() { damage } else { repair });
        farm.load().unwrap();
    }
    postgres.sql("DELETE FROM tessera.journal WHERE first_seq = 1");
    let text = farm.load().unwrap_err().to_string();
    assert!(text.contains("records 1 to 3 of the journal") && text.contains("missing"), "{text}");
}

fn everything_after(last: u64) -> tessera_coordinator::store::Changes {
    let mut changes = everything();
    changes.members.remove(&4);
    for (sequence, _) in &mut changes.records {
        *sequence += last;
    }
    changes
}

#[test]
fn state_is_migrated_there_and_back() {
    let Some(postgres) = Postgres::start("state_is_migrated_there_and_back") else { return };
    let farm = Farm::new(SledPlace);
    let mut changes = everything();
    changes.snapshot = Some((250, vec![5; 20_000]));
    farm.commit(&changes);
    let before = farm.load().unwrap();
    let there = place_at(&postgres.address(), "migration");
    let data = farm.root.path();
    let copied = migrate(data, &SledPlace, &there).unwrap();
    assert_eq!((copied.records, copied.values), (50, 58));
    // The folder's own journal is not used any more, and says so.
    let refused = farm.try_open().err().unwrap().to_string();
    assert!(refused.contains("--store") && !refused.contains("term="), "{refused}");
    let farm = Farm { root: farm.root, place: std::sync::Arc::new(there) };
    let moved = farm.load().unwrap();
    assert_eq!((&moved.records, &moved.snapshot), (&before.records, &before.snapshot));
    assert_eq!((&moved.members, &moved.tokens), (&before.members, &before.tokens));
    farm.commit(&records(301..=310));
    let there = place_at(&postgres.address(), "migration");
    let data = farm.root.path();
    assert!(migrate(data, &SledPlace, &there).is_err(), "its journal is elsewhere");
    let back = migrate(data, &there, &SledPlace).unwrap();
    assert_eq!((back.records, back.values), (60, 68));
    // The database is not the folder's any more, and is not empty.
    let refused = farm.try_open().err().unwrap().to_string();
    assert!(refused.contains("journal of its own"), "{refused}");
    let again = migrate(data, &SledPlace, &there).unwrap_err();
    assert!(matches!(again, MigrationError::Store(StoreError::NotEmpty { .. })), "{again}");
    let farm = Farm { root: farm.root, place: std::sync::Arc::new(SledPlace) };
    assert_eq!(farm.load().unwrap().records.len(), 60);
    // Another folder cannot take the store's state for its own.
    let stranger = Farm::on(&postgres);
    let refused = stranger.try_open().err().unwrap().to_string();
    assert!(refused.contains("do not belong together"), "{refused}");
}
