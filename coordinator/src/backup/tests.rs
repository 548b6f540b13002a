//! Tests of backups: the farm of a killed coordinator comes back completely, and an incomplete
//! backup is refused before anything is written.

use super::*;
use crate::access::Log;
use crate::fsck::{Depth, FarmAt, fsck};
use crate::stopped_farm;
use std::path::PathBuf;

/// Creates a farm with an audit log of two entries, and its backup.
fn backed_up() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let root = tempfile::tempdir().unwrap();
    let (data, file) = (root.path().join("farm"), root.path().join("backup"));
    stopped_farm::make(&data);
    for (name, text) in [("authority", "authority.key"), ("admin", "identity.pem")] {
        std::fs::create_dir(data.join(name)).unwrap();
        std::fs::write(data.join(name).join(text), text).unwrap();
    }
    let log = Log::open(&data.join("audit"), None, false).unwrap();
    log.append((1, "admin ada"), "job submitted", "job 1").unwrap();
    log.append((2, "admin ada"), "job cancelled", "job 1").unwrap();
    let mut out = File::create(&file).unwrap();
    begin(Some(&data), &mut out).unwrap();
    backup_stopped(&data, &mut out).unwrap();
    (root, data, file)
}

#[test]
fn a_restored_farm_is_complete_and_its_keys_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let (root, data, file) = backed_up();
    let summary = verify(&file).unwrap();
    assert_eq!((summary.keys, summary.spools, summary.blobs, summary.log), (2, 1, 3, 2));
    let back = root.path().join("back");
    assert_eq!(restore(&file, &back).unwrap(), summary);
    let (before, after) = (
        fsck(FarmAt::plain(&data), Depth::Whole).unwrap(),
        fsck(FarmAt::plain(&back), Depth::Whole).unwrap(),
    );
    assert!(after.is_clean(), "{after:?}");
    assert_eq!(
        (after.jobs, after.units_committed, after.frames),
        (before.jobs, before.units_committed, before.frames)
    );
    assert_eq!(
        (after.results, after.tokens, after.members, after.blob_bytes),
        (before.results, before.tokens, before.members, before.blob_bytes)
    );
    // There is one more record, which skips the epochs that the farm may have used after its
    // backup.
    assert_eq!(after.records, before.records + 1);
    let key = back.join("authority/authority.key");
    assert_eq!(std::fs::metadata(key).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_restored_audit_log_continues_and_notes_the_restore() {
    use std::os::unix::fs::PermissionsExt;
    let (root, data, file) = backed_up();
    let back = root.path().join("back");
    restore(&file, &back).unwrap();
    let log = Log::open(&back.join("audit"), None, false).unwrap();
    let report = log.report(9).unwrap();
    assert_eq!((report.first, report.problems.len()), (1, 0), "{report:?}");
    let told: Vec<_> = report.newest.iter().map(|entry| entry.what.as_str()).collect();
    assert_eq!(told, ["job submitted", "job cancelled", "farm restored from a backup"]);
    for part in ["audit/head", "audit/00000001.log"] {
        assert_eq!(std::fs::metadata(back.join(part)).unwrap().permissions().mode() & 0o777, 0o600);
    }

    // Damage is copied too. The restore reports it, and so does every later reading.
    let path = data.join("audit/00000001.log");
    let text = std::fs::read_to_string(&path).unwrap().replace("job 1", "job 7");
    std::fs::write(&path, text).unwrap();
    let mut out = File::create(&file).unwrap();
    begin(None, &mut out).unwrap();
    backup_stopped(&data, &mut out).unwrap();
    let back = root.path().join("damaged");
    restore(&file, &back).unwrap();
    let report = Log::open(&back.join("audit"), None, false).unwrap().report(9).unwrap();
    assert!(report.problems[0].contains("entry 1 was changed"), "{report:?}");
}

#[test]
fn a_backup_of_an_unknown_version_is_refused_with_both_numbers() {
    let (_root, _, file) = backed_up();
    let whole = std::fs::read(&file).unwrap();
    for version in [0, 2, 255] {
        let mut bytes = whole.clone();
        bytes[7] = version;
        std::fs::write(&file, &bytes).unwrap();
        let error = verify(&file).unwrap_err().to_string();
        let expected = format!("backup has version {version}, and this build reads version 1;");
        assert!(error.starts_with(&expected), "{error}");
    }
}

// promise: P1
#[test]
fn cut_and_changed_backups_are_refused_and_write_nothing() {
    let (root, _, file) = backed_up();
    let whole = std::fs::read(&file).unwrap();
    let back = root.path().join("back");
    for length in [0, 7, 9, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&file, &whole[..length]).unwrap();
        assert!(restore(&file, &back).is_err(), "{length} bytes");
    }
    for at in (0..whole.len()).step_by(whole.len() / 60) {
        let mut changed = whole.clone();
        changed[at] ^= 0x10;
        std::fs::write(&file, &changed).unwrap();
        assert!(restore(&file, &back).is_err(), "byte {at}");
    }
    assert!(!back.exists());
    // Missing entries are noticed by the count.
    let mut short = Vec::new();
    begin(None, &mut short).unwrap();
    ArchiveWriter::go_on(&mut short).bytes(Kind::Value, "63", &[0; 8]).unwrap();
    ArchiveWriter::go_on(&mut short).end().unwrap();
    std::fs::write(&file, &short).unwrap();
    assert!(matches!(verify(&file), Err(ArchiveError::Count { found: 1, expected: 0 })));
}

#[test]
fn backup_entries_outside_the_folder_are_refused() {
    let (root, ..) = backed_up();
    let names = [
        (Kind::Key, "authority/../../etc"),
        (Kind::Key, "authority/.hidden"),
        (Kind::Key, "spool/x"),
        (Kind::Key, "authority"),
        (Kind::Spool, "../1"),
        (Kind::Blob, "../../x"),
        (Kind::Value, "zz"),
        (Kind::Log, "../head"),
        (Kind::Log, "1.log"),
        (Kind::Log, "00000001.log/x"),
    ];
    for (position, (kind, name)) in names.into_iter().enumerate() {
        let (file, back) = (root.path().join("evil"), root.path().join(format!("back-{position}")));
        let mut bytes = Vec::new();
        begin(None, &mut bytes).unwrap();
        let mut archive = ArchiveWriter::go_on(&mut bytes);
        archive.bytes(kind, name, b"x").unwrap();
        match kind {
            Kind::Key => ArchiveWriter::go_on(&mut bytes).end().unwrap(),
            _ => archive.end().unwrap(),
        }
        std::fs::write(&file, &bytes).unwrap();
        let error = restore(&file, &back).unwrap_err();
        assert!(matches!(error, RestoreError::Name(_)), "{name}: {error}");
        let refused = DataFolder::open(&back).unwrap_err().to_string();
        assert!(refused.contains("not restored to its end"), "{refused}");
    }
}

#[test]
fn a_backup_is_restored_only_into_an_empty_folder() {
    let (_root, data, file) = backed_up();
    let error = restore(&file, &data).unwrap_err().to_string();
    assert!(error.contains("not empty"), "{error}");
}

#[test]
fn a_backup_of_a_farm_without_a_blob_is_an_error() {
    let (_root, data, _) = backed_up();
    let folder = std::fs::read_dir(data.join("blobs")).unwrap().next().unwrap().unwrap().path();
    std::fs::remove_dir_all(folder).unwrap();
    let error = backup_stopped(&data, &mut io::sink()).unwrap_err().to_string();
    assert!(error.contains("it is not there") && error.contains("fsck"), "{error}");
}
