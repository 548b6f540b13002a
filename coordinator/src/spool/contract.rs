//! One test of everything that a spool store must do. Each implementation runs it.

use super::{EntryHeader, SpoolEntry, SpoolError, SpoolExtent, SpoolIndex, SpoolKey, Spools};
use bytes::Bytes;
use std::collections::BTreeMap;
use tessera_protocol::{BlobHash, Epoch, FrameNumber, JobId, TileSums, UnitIndex};

type Extents = BTreeMap<SpoolKey, SpoolExtent>;

/// Returns a result of a unit.
pub(crate) fn entry(key: SpoolKey, unit: u32) -> SpoolEntry {
    let mut film = TileSums::empty(4, 4, 3);
    film.samples = unit + 1;
    let bytes = Bytes::from(film.to_bytes());
    let header = EntryHeader {
        unit: UnitIndex(unit),
        epoch: Epoch(100 + u64::from(unit)),
        first: 0,
        samples: unit + 1,
        length: bytes.len() as u32,
        hash: BlobHash::of(&bytes),
    };
    SpoolEntry { key, header, body: bytes.into() }
}

/// Returns the key of a frame of a new job.
pub(crate) fn key(frame: u32) -> SpoolKey {
    SpoolKey { job: JobId::new(), frame: FrameNumber(frame) }
}

/// Runs the contract. `open` opens the same store each time, like a start that finds these extents
/// in its journal.
pub(crate) fn spools_contract<S: Spools>(open: impl Fn(Extents) -> S) {
    groups_are_read_back_after_a_restart(&open);
    what_was_not_accepted_is_written_again(&open);
    a_sealed_segment_never_changes(&open);
    seals_are_the_same_after_a_restart(&open);
    forgotten_spools_are_listed_until_they_are_deleted(&open);
}

fn commit(spools: &mut impl Spools, group: &[SpoolEntry]) -> Extents {
    let extents = spools.append(group).unwrap();
    spools.accept(extents.clone());
    extents
}

fn units(spools: &impl Spools, key: SpoolKey, extent: &SpoolExtent) -> Vec<u32> {
    let index = SpoolIndex::read(&*spools.reader(), key, extent).unwrap();
    assert_eq!(index.check_bytes().count(), 0);
    index.headers().map(|header| header.unit.0).collect()
}

fn groups_are_read_back_after_a_restart<S: Spools>(open: impl Fn(Extents) -> S) {
    let mut spools = open(Extents::new());
    let (a, b) = (key(1), key(2));
    commit(&mut spools, &[entry(a, 2), entry(b, 0), entry(a, 0)]);
    commit(&mut spools, &[entry(a, 1)]);
    let extents = spools.extents().clone();
    assert_eq!(extents.len(), 2);
    drop(spools);
    let spools = open(extents.clone());
    assert_eq!(spools.extents(), &extents);
    assert_eq!(units(&spools, a, &extents[&a]), [0, 1, 2]);
    assert_eq!(units(&spools, b, &extents[&b]), [0]);
    let longer = SpoolExtent::open(extents[&a].length + 1);
    let short = spools.reader().open(a, &longer).err().unwrap();
    assert!(matches!(short, SpoolError::Short { .. }), "{short}");
}

fn what_was_not_accepted_is_written_again<S: Spools>(open: impl Fn(Extents) -> S) {
    let mut spools = open(Extents::new());
    let key = key(3);
    let first = commit(&mut spools, &[entry(key, 0)]);
    let refused = spools.append(&[entry(key, 7)]).unwrap();
    let again = spools.append(&[entry(key, 1)]).unwrap();
    assert_eq!(refused[&key].length, again[&key].length);
    let sealed = spools.seal(key, again[&key].clone()).unwrap();
    assert_eq!(units(&spools, key, &sealed), [0, 1], "the seal is of what was written last");
    drop(spools);
    // A crash before the journal knew the second group: only the first group counts.
    let mut spools = open(first.clone());
    assert_eq!(units(&spools, key, &first[&key]), [0]);
    let after = commit(&mut spools, &[entry(key, 4)]);
    assert_eq!(units(&spools, key, &after[&key]), [0, 4]);
}

fn a_sealed_segment_never_changes<S: Spools>(open: impl Fn(Extents) -> S) {
    let mut spools = open(Extents::new());
    let key = key(4);
    let extents = spools.append(&[entry(key, 0), entry(key, 1)]).unwrap();
    let sealed = spools.seal(key, extents[&key].clone()).unwrap();
    assert_eq!((sealed.sealed.len(), sealed.open_length()), (1, 0));
    assert_eq!(spools.seal(key, sealed.clone()).unwrap(), sealed, "again is harmless");
    spools.accept([(key, sealed.clone())].into());
    let more = commit(&mut spools, &[entry(key, 2)]);
    assert_eq!(more[&key].sealed, sealed.sealed);
    assert!(more[&key].open_length() > 0);
    let both = spools.seal(key, more[&key].clone()).unwrap();
    assert_eq!((both.sealed.len(), both.sealed[0]), (2, sealed.sealed[0]));
    assert_ne!(both.sealed[0].hash, both.sealed[1].hash);
    spools.accept([(key, both.clone())].into());
    assert_eq!(units(&spools, key, &sealed), [0, 1]);
    assert_eq!(units(&spools, key, &both), [0, 1, 2]);
    let mut wrong = both.clone();
    wrong.sealed[1].hash = BlobHash([0; 32]);
    let error = SpoolIndex::read(&*spools.reader(), key, &wrong).unwrap_err();
    assert!(matches!(error, SpoolError::Seal { .. }), "{error}");
}

fn seals_are_the_same_after_a_restart<S: Spools>(open: impl Fn(Extents) -> S) {
    let mut spools = open(Extents::new());
    let key = key(5);
    let extents = commit(&mut spools, &[entry(key, 0), entry(key, 1)]);
    let before = spools.seal(key, extents[&key].clone()).unwrap();
    drop(spools);
    let mut spools = open(extents.clone());
    assert_eq!(spools.seal(key, extents[&key].clone()).unwrap(), before);
    drop(spools);
    // The same when results are appended before the seal.
    let mut spools = open(extents.clone());
    let more = commit(&mut spools, &[entry(key, 2)]);
    let sealed = spools.seal(key, more[&key].clone()).unwrap();
    assert_eq!(units(&spools, key, &sealed), [0, 1, 2]);
}

fn forgotten_spools_are_listed_until_they_are_deleted<S: Spools>(open: impl Fn(Extents) -> S) {
    let mut spools = open(Extents::new());
    let (gone, stays) = (key(6), key(7));
    commit(&mut spools, &[entry(gone, 0), entry(stays, 0)]);
    let listed = |spools: &S| -> Vec<SpoolKey> {
        spools.reader().list().unwrap().into_iter().filter_map(|(_, key)| key).collect()
    };
    assert!(listed(&spools).contains(&gone) && listed(&spools).contains(&stays));
    spools.forget(&[gone]);
    assert!(!spools.extents().contains_key(&gone));
    spools.delete(&[gone]);
    spools.delete(&[gone]);
    assert!(!listed(&spools).contains(&gone) && listed(&spools).contains(&stays));
    drop(spools);
    // A start deletes spools that the journal does not know.
    assert!(listed(&open(Extents::new())).is_empty());
}
