//! What only a store elsewhere has: entries of the audit log and the farm's files; and folders that
//! come to a store which another one led.

use crate::support::{Farm, records};
use tessera_coordinator::folder::DataFolder;
use tessera_coordinator::store::{AUDIT_ENTRIES_MAX, AuditLine, Changes, Purpose, StoreError};
use tessera_protocol::access::LogEntry;
use tessera_support::postgres::Postgres;

/// Entries 1 to `last` of a chain, and the head after them.
fn chain(last: u64) -> Changes {
    let mut before = "0".repeat(64);
    let mut changes = Changes::default();
    for n in 1..=last {
        let (who, what, about) = ("admin ada".into(), "denied".into(), format!("user:{n}"));
        let mut entry = LogEntry { n, at: 7, who, what, about, hash: String::new() };
        entry.hash = entry.chained_to(&before);
        let line = serde_json::to_string(&entry).unwrap();
        changes.audit.push((n, AuditLine { before, line }.to_bytes()));
        before = entry.hash;
        changes.audit_head = Some(format!(r#"{{"after":{n},"hash":"{before}"}}"#).into_bytes());
    }
    changes
}

#[test]
fn entries_of_the_audit_log_are_read_apart_and_checked() {
    let what = "entries_of_the_audit_log_are_read_apart_and_checked";
    let Some(postgres) = Postgres::start(what) else { return };
    let farm = Farm::on(&postgres);
    let mut store = farm.open();
    assert_eq!(store.audit_after(0, 9).unwrap(), Some(vec![]));
    let changes = chain(2500);
    store.commit(&changes).unwrap();
    let read = |after, most| store.audit_after(after, most).unwrap().unwrap();
    assert_eq!(read(0, 3), changes.audit[..3]);
    assert_eq!(read(2498, 9), changes.audit[2498..]);
    assert!(read(2500, 9).is_empty());
    assert!(store.load().unwrap().records.is_empty());
    store.close().unwrap();
    drop(store);
    let survey = || {
        let folder = DataFolder::open(farm.root.path()).unwrap();
        farm.place.survey(&folder).unwrap()
    };
    let newest: LogEntry =
        serde_json::from_str(&AuditLine::from_bytes(&changes.audit[2499].1).unwrap().line).unwrap();
    let problems = || survey().audit.conclude(Some((2500, newest.hash.as_str())));
    assert_eq!(problems(), Vec::<String>::new());
    postgres.sql("DELETE FROM tessera.value WHERE key = '\\x6c0000000000000007'");
    assert_eq!(problems(), ["before entry 8, entries are gone or were changed"]);
    let damage = "UPDATE tessera.value SET bytes = set_byte(bytes, 80, get_byte(bytes, 80) # 1) \
                  WHERE key = '\\x6c0000000000000009'";
    postgres.sql(damage);
    assert_eq!(survey().damaged[0].0, "entry 9 of the audit log");
}

#[test]
fn the_oldest_entries_of_the_audit_log_are_removed() {
    let Some(postgres) = Postgres::start("the_oldest_entries_of_the_audit_log_are_removed") else {
        return;
    };
    let farm = Farm::on(&postgres);
    let mut store = farm.open();
    let mut changes = chain(3);
    store.commit(&changes).unwrap();
    changes.audit = vec![(AUDIT_ENTRIES_MAX + 2, changes.audit[2].1.clone())];
    store.commit(&changes).unwrap();
    let left = store.audit_after(0, 9).unwrap().unwrap();
    let numbers: Vec<u64> = left.into_iter().map(|(number, _)| number).collect();
    assert_eq!(numbers, [1, 3, AUDIT_ENTRIES_MAX + 2]);
}

#[test]
fn the_farms_files_are_replaced_one_by_one() {
    let Some(postgres) = Postgres::start("the_farms_files_are_replaced_one_by_one") else { return };
    let farm = Farm::on(&postgres);
    let file = |name: &str, bytes: u8| Changes {
        files: [(name.to_owned(), vec![bytes; 9])].into(),
        ..Changes::default()
    };
    farm.commit(&file("authority", 1));
    farm.commit(&file("secret", 2));
    farm.commit(&file("authority", 3));
    let loaded = farm.load().unwrap();
    let want = [("authority".to_owned(), vec![3; 9]), ("secret".to_owned(), vec![2; 9])];
    assert_eq!(loaded.files, want.into());
    assert!(!loaded.is_empty(), "no other farm is copied to it");
}

#[test]
fn a_folder_knows_whether_another_one_led() {
    let Some(postgres) = Postgres::start("a_folder_knows_whether_another_one_led") else { return };
    let (one, two) = (Farm::on(&postgres), Farm::on(&postgres));
    one.commit(&records(1..=3));
    let refused = two.try_open().err().expect("its farm's authority is elsewhere");
    assert!(matches!(refused, StoreError::OtherFarm { .. }), "{refused}");
    assert!(refused.to_string().contains("--farm-key"), "{refused}");
    let files = [("authority".to_owned(), vec![1])].into();
    one.commit(&Changes { files, ..Changes::default() });
    let led = |farm: &Farm| {
        let mut store = farm.open();
        let continues = store.continues();
        store.close().unwrap();
        continues
    };
    assert!(led(&one) && led(&one));
    assert!(!led(&two) && led(&two), "it has nothing of what the other one had");
    let copy = |farm: &Farm| {
        let folder = DataFolder::open(farm.root.path()).unwrap();
        farm.place.open(&folder, Purpose::CopyFrom).map(|mut store| store.close().unwrap())
    };
    let refused = copy(&one).expect_err("the other one led last");
    assert!(refused.to_string().contains("led it last"), "{refused}");
    copy(&two).unwrap();
    assert!(!led(&one) && led(&one) && !led(&two));
    // A folder of another farm is none of this one.
    let foreign = Farm::on(&postgres);
    std::fs::create_dir(foreign.root.path().join("authority")).unwrap();
    std::fs::write(foreign.root.path().join("format"), "1\n").unwrap();
    let refused = foreign.try_open().err().expect("it has an authority");
    assert!(refused.to_string().contains("of another farm"), "{refused}");
}
