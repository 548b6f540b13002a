//! Tests of `fsck` on a farm whose coordinator was killed: no findings at first, and then one named
//! finding for each kind of damage.

use super::*;
use crate::stopped_farm::{self, member};
use crate::store::Journal;
use std::fs;
use std::path::PathBuf;

struct Farm(tempfile::TempDir);

impl Farm {
    fn stopped() -> Self {
        let farm = Self(tempfile::tempdir().unwrap());
        stopped_farm::make(farm.path());
        fs::create_dir(farm.path().join("authority")).unwrap();
        fs::write(farm.path().join("authority/authority.key"), "x").unwrap();
        farm
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn spool(&self) -> PathBuf {
        let (job, frame) = (stopped_farm::open_job(), stopped_farm::OPEN_FRAME);
        crate::spool::path_of(&self.path().join("spool"), SpoolKey { job, frame })
    }

    /// Returns the largest blob, which is the EXR of the finished frame.
    fn largest_blob(&self) -> PathBuf {
        let folders = fs::read_dir(self.path().join("blobs")).unwrap();
        let files = folders.flat_map(|folder| fs::read_dir(folder.unwrap().path()).unwrap());
        let files = files.map(|file| file.unwrap().path());
        files.max_by_key(|path| fs::metadata(path).unwrap().len()).unwrap()
    }

    fn check(&self) -> FsckReport {
        fsck(FarmAt::plain(self.path()), Depth::Whole).unwrap()
    }

    fn kinds(&self) -> Vec<FindingKind> {
        self.check().findings.iter().map(|finding| finding.kind).collect()
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (from, to) =
            (entry.as_ref().unwrap().path(), to.join(entry.as_ref().unwrap().file_name()));
        match from.is_dir() {
            true => copy(&from, &to),
            false => drop(fs::copy(&from, &to).unwrap()),
        }
    }
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 0x10;
    fs::write(path, bytes).unwrap();
}

// promise: P1
#[test]
fn a_farm_that_was_killed_is_clean_and_counted() {
    let report = Farm::stopped().check();
    assert_eq!(report.findings, []);
    assert!(report.is_clean());
    assert_eq!((report.jobs, report.jobs_open, report.frames), (3, 1, 1));
    assert_eq!((report.units_committed, report.units_committed_twice), (11, 0));
    assert_eq!((report.units_open, report.spools, report.results), (25, 1, 7));
    assert_eq!((report.tokens, report.members, report.blobs), (2, 2, 3));
}

#[test]
fn lost_and_damaged_blobs_are_reported_with_their_jobs() {
    let farm = Farm::stopped();
    flip(&farm.largest_blob(), 100);
    let report = farm.check();
    assert_eq!(report.findings[0].kind, FindingKind::DamagedBlob);
    assert!(report.findings[0].problem.contains("/f0000 needs it"), "{report:?}");
    assert!(!report.is_clean());
    // A quick check sees only names and lengths.
    assert!(fsck(FarmAt::plain(farm.path()), Depth::Quick).unwrap().is_clean());
    fs::remove_file(farm.largest_blob()).unwrap();
    assert_eq!(farm.kinds(), [FindingKind::LostBlob]);
}

#[test]
fn unneeded_files_are_noted_and_checked() {
    let farm = Farm::stopped();
    let hash = tessera_protocol::BlobHash::of(b"unnamed").to_string();
    let folder = farm.path().join("blobs").join(&hash[..2]);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(&hash), "unnamed").unwrap();
    fs::write(folder.join("thesis.tex"), "x").unwrap();
    let report = farm.check();
    assert!(report.is_clean());
    let kinds: Vec<_> = report.findings.iter().map(|finding| finding.kind).collect();
    assert_eq!(kinds, [FindingKind::ForeignFile, FindingKind::UnnamedBlobs]);
    flip(&folder.join(&hash), 0);
    assert!(!farm.check().is_clean());
}

// promise: P2
#[test]
fn a_spool_is_compared_with_the_journal_unit_by_unit() {
    let farm = Farm::stopped();
    let whole = fs::read(farm.spool()).unwrap();
    // Change the bytes of a result.
    flip(&farm.spool(), whole.len() - 1);
    assert_eq!(farm.kinds(), [FindingKind::DamagedSpool]);
    // Change the unit in a header. The other unit then has its result twice, or the frame does not
    // know it. This unit has none.
    fs::write(farm.spool(), &whole).unwrap();
    flip(&farm.spool(), 4);
    assert!(
        farm.kinds().iter().all(|kind| *kind == FindingKind::SpoolDiffers),
        "{:?}",
        farm.check()
    );
    assert!(!farm.check().is_clean());
    // Change the epoch in a header.
    fs::write(farm.spool(), &whole).unwrap();
    flip(&farm.spool(), 8);
    assert_eq!(farm.kinds(), [FindingKind::SpoolDiffers]);
    fs::write(farm.spool(), &whole[..whole.len() - 1]).unwrap();
    assert_eq!(farm.kinds(), [FindingKind::LostSpool]);
    fs::remove_file(farm.spool()).unwrap();
    assert_eq!(farm.kinds(), [FindingKind::LostSpool]);
}

/// A start checks what open jobs need, without reading what they have made.
#[test]
fn a_damaged_input_of_an_open_job_is_found_at_the_start() {
    let farm = Farm::stopped();
    let folder = DataFolder::open(farm.path()).unwrap();
    let loaded = crate::store::Store::load(&Journal::open(&folder, true).unwrap()).unwrap();
    let (parts, records) = decode(&loaded).unwrap();
    let core = Core::replay(Settings::default(), parts, records, Moment(0)).unwrap();
    let (inputs, places) = (Inputs::of(&core), Places::of(&folder, &DiskPlace).unwrap());
    assert_eq!(inputs.check(&*places.blobs), 0);
    let scene = tessera_protocol::BlobHash::of(&[b'{'; 2000]).to_string();
    let path = folder.blobs().join(&scene[..2]).join(&scene);
    let mut bytes = fs::read(&path).unwrap();
    bytes[1000] ^= 1;
    fs::write(&path, bytes).unwrap();
    assert_eq!(inputs.check(&*places.blobs), 1);
    fs::remove_file(&path).unwrap();
    assert_eq!(inputs.check(&*places.blobs), 1);
}

// promise: P1
#[test]
fn a_journal_that_lost_its_end_is_refused_by_name() {
    let farm = Farm::stopped();
    // Another commit, after the one that made the farm. The witness counts it.
    let commit = |farm: &Farm| {
        let folder = DataFolder::open(farm.path()).unwrap();
        let mut journal = Journal::open(&folder, true).unwrap();
        crate::store::Store::commit(&mut journal, &crate::store::Changes::default()).unwrap();
    };
    commit(&farm);
    let before = Farm(tempfile::tempdir().unwrap());
    copy(farm.path(), before.path());
    commit(&farm);
    assert!(farm.check().is_clean());
    // The journal is restored to its former state, as sled does after a damaged message.
    fs::remove_dir_all(farm.path().join("sled")).unwrap();
    copy(&before.path().join("sled"), &farm.path().join("sled"));
    let report = farm.check();
    assert_eq!(report.findings.len(), 1, "{report:?}");
    assert_eq!(report.findings[0].kind, FindingKind::LostEnd);
    assert!(
        report.findings[0].problem.contains("has 2 commits, but 3 were made durable"),
        "{report:?}"
    );
    let folder = DataFolder::open(farm.path()).unwrap();
    let refused = Journal::open(&folder, true).unwrap_err().to_string();
    assert!(refused.contains("--export"), "{refused}");
}

// promise: P1
#[test]
fn a_flipped_bit_in_the_journal_never_loses_data_silently() {
    let farm = Farm::stopped();
    let before = farm.check();
    let length = fs::read(farm.path().join("sled/db")).unwrap().len();
    for at in (3..length).step_by(length / 12) {
        let damaged = Farm(tempfile::tempdir().unwrap());
        copy(farm.path(), damaged.path());
        flip(&damaged.path().join("sled/db"), at);
        match fsck(FarmAt::plain(damaged.path()), Depth::Quick) {
            Err(_) => {}
            Ok(report) if !report.is_clean() => {}
            Ok(report) => assert_eq!(report.records, before.records, "byte {at}: records are gone"),
        }
    }
}

#[test]
fn a_missing_authority_is_reported() {
    let farm = Farm::stopped();
    fs::remove_dir_all(farm.path().join("authority")).unwrap();
    assert_eq!(farm.kinds(), [FindingKind::NoAuthority]);
}

/// A farm that was restored from a backup without keys.
#[test]
fn blobs_and_spools_are_checked_without_an_authority() {
    let farm = Farm::stopped();
    fs::remove_dir_all(farm.path().join("authority")).unwrap();
    let report = farm.check();
    assert_eq!((report.blobs, report.spools, report.results), (3, 1, 7));
    fs::write(farm.largest_blob(), "").unwrap();
    assert_eq!(farm.kinds(), [FindingKind::NoAuthority, FindingKind::DamagedBlob]);
}

#[test]
fn a_folder_in_use_is_refused() {
    let farm = Farm::stopped();
    let _folder = DataFolder::open(farm.path()).unwrap();
    let error = fsck(FarmAt::plain(farm.path()), Depth::Whole).unwrap_err().to_string();
    assert!(error.contains("in use"), "{error}");
}

#[test]
fn a_name_that_two_members_hold_is_a_contradiction() {
    let twice = [3, 4].map(|number| (number, MemberRecord { number, ..member(3) })).into();
    assert_eq!(names_held_twice(&twice), ["name user-3 is held by #3 and by #4"]);
    let freed = MemberRecord { removed_at: Some(9), number: 4, ..member(3) };
    assert!(names_held_twice(&[(3, member(3)), (4, freed)].into()).is_empty());
}
