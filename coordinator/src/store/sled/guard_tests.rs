//! Tests of the guarded opening: what sled left half made, damaged snapshots, and a damaged log.

use super::super::sled_open;
use super::*;
use crate::fsck::{Depth, FarmAt, fsck};
use crate::store::{JournalReader, export};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tessera_core::Record;
use tessera_protocol::Epoch;

fn changes(numbers: impl IntoIterator<Item = u64>) -> Changes {
    let record = |number| {
        let record = Record::EpochsReserved { up_to: Epoch(number * 10) };
        (number, record.to_bytes().unwrap())
    };
    Changes { records: numbers.into_iter().map(record).collect(), ..Changes::default() }
}

fn open(root: &Path) -> Result<Loaded, StoreError> {
    let folder = DataFolder::open(root).unwrap();
    Journal::open(&folder, true)?.load()
}

/// A journal of 300 records that was opened once more, so that sled has made a snapshot.
fn farm() -> (tempfile::TempDir, PathBuf) {
    let root = tempfile::tempdir().unwrap();
    let folder = DataFolder::open(root.path()).unwrap();
    Journal::open(&folder, true).unwrap().commit(&changes(1..=200)).unwrap();
    drop(folder);
    let folder = DataFolder::open(root.path()).unwrap();
    Journal::open(&folder, true).unwrap().commit(&changes(201..=300)).unwrap();
    drop(folder);
    assert_eq!(snapshots(root.path()).len(), 1, "sled has made a snapshot");
    std::fs::create_dir(root.path().join("authority")).unwrap();
    std::fs::write(root.path().join("authority/authority.key"), "x").unwrap();
    let sled = root.path().join("sled");
    (root, sled)
}

fn snapshots(root: &Path) -> Vec<PathBuf> {
    let names = std::fs::read_dir(root.join("sled")).unwrap().map(|entry| entry.unwrap().path());
    names.filter(|path| path.to_string_lossy().contains("/snap.")).collect()
}

/// Every file of a folder, with its bytes.
fn bytes_of(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(bytes_of(&path));
            all.insert(path, Vec::new());
        } else {
            all.insert(path.clone(), std::fs::read(path).unwrap());
        }
    }
    all
}

// promise: P1, P3
#[test]
fn a_half_made_snapshot_of_sled_is_set_aside() {
    for content in [&b""[..], b"half"] {
        let (root, sled) = farm();
        let left = sled.join("snap.FFFFFFFF.generating");
        std::fs::write(&left, content).unwrap();
        assert!(fsck(FarmAt::plain(root.path()), Depth::Whole).unwrap().is_clean());
        assert!(left.exists(), "fsck changes nothing");
        assert_eq!(open(root.path()).unwrap().records.len(), 300);
        assert!(!left.exists());
        let kept = root.path().join("aside/0001-snap.FFFFFFFF.generating");
        assert_eq!(std::fs::read(kept).unwrap(), content);
    }
}

// promise: P1, P3
#[test]
fn a_damaged_snapshot_of_sled_is_rebuilt_from_the_log() {
    type Damage = fn(&mut Vec<u8>);
    let damages: [Damage; 6] = [
        |bytes| bytes.clear(),
        |bytes| bytes.truncate(bytes.len() / 2),
        |bytes| bytes[0] ^= 1,
        |bytes| {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 0x80;
        },
        |bytes| *bytes.last_mut().unwrap() ^= 1,
        |bytes| bytes.extend_from_slice(&[0; 7]),
    ];
    for (index, damage) in damages.into_iter().enumerate() {
        let (root, _) = farm();
        let snapshot = snapshots(root.path()).pop().unwrap();
        let mut bytes = std::fs::read(&snapshot).unwrap();
        damage(&mut bytes);
        std::fs::write(&snapshot, bytes).unwrap();
        assert!(
            fsck(FarmAt::plain(root.path()), Depth::Whole).unwrap().is_clean(),
            "damage {index}"
        );
        let mut lines = Vec::new();
        assert_eq!(export(root.path(), &mut lines).unwrap().intact, 300, "damage {index}");
        assert_eq!(open(root.path()).unwrap().records.len(), 300, "damage {index}");
        assert_eq!(std::fs::read_dir(root.path().join("aside")).unwrap().count(), 1);
    }
}

// promise: P1
#[test]
fn a_damaged_log_is_refused_by_name_and_not_changed() {
    let (root, sled) = farm();
    let log = sled.join("db");
    let whole = std::fs::read(&log).unwrap();
    let used = whole.iter().rposition(|byte| *byte != 0).unwrap();
    for eighth in 1..8 {
        let mut bytes = whole.clone();
        bytes[used * eighth / 8] ^= 0x04;
        std::fs::write(&log, &bytes).unwrap();
        let before = bytes_of(&sled);
        let Err(error) = open(root.path()) else { continue };
        let error = error.to_string();
        assert!(error.contains(&sled.display().to_string()), "{eighth}: {error}");
        assert!(error.contains("fsck") && error.contains("restore"), "{eighth}: {error}");
        assert_eq!(bytes_of(&sled), before, "{eighth}: it was changed");
        let report = fsck(FarmAt::plain(root.path()), Depth::Whole).unwrap();
        assert!(!report.is_clean(), "{eighth}");
        let mut lines = Vec::new();
        export(root.path(), &mut lines).unwrap();
        std::fs::write(&log, &whole).unwrap();
    }
    assert_eq!(open(root.path()).unwrap().records.len(), 300);
}

// promise: P1
#[test]
fn fsck_backup_and_export_write_nothing_to_the_folder() {
    let (root, _) = farm();
    let before = bytes_of(root.path());
    assert!(fsck(FarmAt::plain(root.path()), Depth::Whole).unwrap().is_clean());
    export(root.path(), &mut Vec::new()).unwrap();
    crate::backup::backup_stopped(root.path(), &mut Vec::new()).unwrap();
    assert_eq!(bytes_of(root.path()), before);
}

#[test]
fn a_lost_log_is_refused_and_no_new_one_is_made() {
    let (root, sled) = farm();
    std::fs::remove_dir_all(&sled).unwrap();
    let error = open(root.path()).unwrap_err().to_string();
    assert!(error.contains("has 0 commits, but 2 were made durable"), "{error}");
    assert_eq!(std::fs::read_dir(&sled).unwrap().count(), 0);
}

/// sled's snapshots are only a shorter way to what is in the log, also after many starts, many
/// records that were removed, and reused segments.
#[test]
fn the_log_has_everything_that_snapshots_of_sled_have() {
    let root = tempfile::tempdir().unwrap();
    let mut next = 1;
    for round in 0..12 {
        let folder = DataFolder::open(root.path()).unwrap();
        let mut journal = Journal::open(&folder, false).unwrap();
        for _ in 0..6 {
            let mut more = changes(next..next + 300);
            for (sequence, bytes) in &mut more.records {
                bytes.extend(std::iter::repeat_n(*sequence as u8, 700));
            }
            next += 300;
            more.snapshot = Some((next - 50, vec![round; 9000]));
            journal.commit(&more).unwrap();
        }
        let all = |reader: &JournalReader| -> Vec<_> {
            reader.entries().map(|entry| entry.unwrap()).collect()
        };
        let want = all(&journal.read);
        drop(journal);
        for snapshot in [true, false] {
            let copy = root.path().join("copy");
            std::fs::create_dir_all(&copy).unwrap();
            for path in bytes_of(&folder.sled()).keys().filter(|path| path.is_file()) {
                let name = path.file_name().unwrap().to_owned();
                if snapshot || !name.to_string_lossy().starts_with("snap.") {
                    std::fs::copy(path, copy.join(name)).unwrap();
                }
            }
            let db = sled_open::open(&copy).unwrap();
            let found = all(&JournalReader::new(db, &folder, 0));
            assert!(found == want, "round {round}, with a snapshot: {snapshot}");
            std::fs::remove_dir_all(&copy).unwrap();
        }
    }
}
