//! Tests of the sled store alone: large values are files, and damaged values are refused. What it
//! does like the store on PostgreSQL is tested there, on both.

use super::*;
use crate::store::export;
use crate::store::keys::record_key;
use tessera_core::Record;
use tessera_protocol::Epoch;

struct Farm {
    root: tempfile::TempDir,
}

impl Farm {
    fn new() -> Self {
        Self { root: tempfile::tempdir().unwrap() }
    }

    fn open(&self) -> (DataFolder, Journal) {
        let folder = DataFolder::open(self.root.path()).unwrap();
        let journal = Journal::open(&folder, true).unwrap();
        (folder, journal)
    }

    fn load(&self) -> Result<Loaded, StoreError> {
        self.open().1.load()
    }

    fn commit(&self, changes: &Changes) {
        self.open().1.commit(changes).unwrap();
    }
}

fn record(number: u64) -> (Sequence, Vec<u8>) {
    (number, Record::EpochsReserved { up_to: Epoch(number * 10) }.to_bytes().unwrap())
}

fn records(numbers: impl IntoIterator<Item = u64>) -> Changes {
    Changes { records: numbers.into_iter().map(record).collect(), ..Changes::default() }
}

#[test]
fn a_snapshot_takes_the_place_of_the_records_before_it() {
    let farm = Farm::new();
    let mut changes = records(1..=600);
    changes.records[3].1 = vec![3; 50_000];
    farm.commit(&changes);
    let large = vec![9; 1 << 20];
    let mut changes = records(601..=602);
    changes.snapshot = Some((601, large.clone()));
    farm.commit(&changes);

    let loaded = farm.load().unwrap();
    assert_eq!(loaded.snapshot, Some((601, large)));
    assert_eq!(loaded.records, [record(602)]);
    // The large record was removed with its journal entry. The snapshot is the only large value
    // left.
    assert_eq!(std::fs::read_dir(farm.root.path().join("records")).unwrap().count(), 1);
}

/// Changes the stored bytes of a key without the journal.
fn tamper(farm: &Farm, key: &[u8], change: impl Fn(&mut Vec<u8>)) {
    let (_folder, journal) = farm.open();
    let mut value = journal.read.db.get(key).unwrap().unwrap().to_vec();
    change(&mut value);
    journal.read.db.insert(key, value).unwrap();
    journal.read.db.flush().unwrap();
}

// promise: P1
#[test]
fn a_damaged_record_is_named_and_the_rest_can_be_exported() {
    let farm = Farm::new();
    farm.commit(&records(1..=5));
    tamper(&farm, &record_key(4), |value| *value.last_mut().unwrap() ^= 1);
    let error = farm.load().unwrap_err().to_string();
    assert!(error.contains("record 4 of the journal"), "{error}");
    assert!(error.contains("--export"), "{error}");
    assert!(error.contains(&farm.root.path().display().to_string()), "{error}");

    let mut lines = Vec::new();
    let summary = export(farm.root.path(), &mut lines).unwrap();
    assert_eq!((summary.intact, summary.damaged), (4, 1));
    let lines = String::from_utf8(lines).unwrap();
    let kinds: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(kinds.iter().filter(|line| line["kind"] == "damaged").count(), 1);
    assert_eq!(kinds[0]["sequence"], 1);
    assert_eq!(kinds[0]["record"]["EpochsReserved"]["up_to"], 10);
    // Reading the store has changed nothing.
    assert!(farm.load().is_err());
}

#[test]
fn a_missing_record_or_large_value_is_refused() {
    let farm = Farm::new();
    let mut changes = records(1..=5);
    changes.records[1].1 = vec![2; 10_000];
    farm.commit(&changes);
    let large = std::fs::read_dir(farm.root.path().join("records"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    std::fs::write(&large, vec![3; 10_000]).unwrap();
    let error = farm.load().unwrap_err().to_string();
    assert!(error.contains("record 2") && error.contains("other bytes"), "{error}");
    std::fs::write(&large, vec![2; 10_000]).unwrap();
    farm.load().unwrap();

    let (_folder, journal) = farm.open();
    journal.read.db.remove(record_key(3)).unwrap();
    journal.read.db.flush().unwrap();
    drop((_folder, journal));
    let error = farm.load().unwrap_err().to_string();
    assert!(error.contains("record 3") && error.contains("missing"), "{error}");
}

#[test]
fn a_value_of_an_unknown_version_is_refused() {
    let farm = Farm::new();
    farm.commit(&records(1..=1));
    tamper(&farm, &record_key(1), |value| value[0] = 9);
    let error = farm.load().unwrap_err().to_string();
    assert!(error.contains("value has version 9, and this build reads version 1;"), "{error}");
}

#[test]
fn settings_of_another_sled_are_refused_by_name() {
    let farm = Farm::new();
    farm.commit(&records(1..=1));
    let settings = farm.root.path().join("sled/conf");
    let mut bytes = b"segment_size: 65536\nuse_compression: false\nversion: 0.34\n".to_vec();
    let checksum = crate::store::sled::leftovers::crc32(&bytes);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    std::fs::write(&settings, bytes).unwrap();
    let folder = DataFolder::open(farm.root.path()).unwrap();
    let error = Journal::open(&folder, true).unwrap_err().to_string();
    assert!(error.contains("65536") && error.contains("sled"), "{error}");
}

// promise: P3
#[test]
fn damaged_settings_of_sled_are_made_again() {
    for content in ["", "segment_size: nonsense\n"] {
        let farm = Farm::new();
        farm.commit(&records(1..=3));
        std::fs::write(farm.root.path().join("sled/conf"), content).unwrap();
        assert_eq!(farm.load().unwrap().records.len(), 3);
        assert_eq!(farm.load().unwrap().records.len(), 3);
    }
}
