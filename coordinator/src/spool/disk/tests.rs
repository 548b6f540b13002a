//! Tests of spools on the disk: the contract, and properties that only files have.

use super::*;
use crate::spool::contract::{self, entry, key};

#[test]
fn the_disk_keeps_the_contract_of_spools() {
    let root = tempfile::tempdir().unwrap();
    contract::spools_contract(|extents| {
        let (spools, problems) = DiskSpools::open(root.path(), extents, true).unwrap();
        assert!(problems.is_empty(), "{problems:?}");
        spools
    });
}

#[test]
fn a_changed_header_of_a_sealed_segment_is_found() {
    let root = tempfile::tempdir().unwrap();
    let key = key(1);
    let (mut spools, _) = DiskSpools::open(root.path(), BTreeMap::new(), true).unwrap();
    let mut extents = spools.append(&[entry(key, 0), entry(key, 1)]).unwrap();
    let extent = spools.seal(key, extents.remove(&key).unwrap()).unwrap();
    let reader = DiskSpools::reader_of(root.path());
    crate::spool::SpoolIndex::read(&*reader, key, &extent).unwrap();
    // The number of the unit. No other checksum covers it.
    let path = path_of(root.path(), key);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[4] ^= 0x40;
    std::fs::write(&path, &bytes).unwrap();
    let error = crate::spool::SpoolIndex::read(&*reader, key, &extent).unwrap_err();
    assert!(matches!(error, SpoolError::Seal { .. }), "{error}");
}
