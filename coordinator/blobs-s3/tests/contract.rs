//! One test of everything that a blob store must do. Each implementation runs it.

use std::collections::BTreeMap;
use std::io::{Seek, SeekFrom, Write};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tessera_coordinator::blobs::{Blobs, Listed, SinkError};
use tessera_protocol::BlobHash;

/// Runs the contract. `make` opens the same store each time; it is empty at first.
pub(crate) fn blobs_contract(make: impl Fn() -> Arc<dyn Blobs>) {
    let make = || Own(make());
    a_blob_is_absent_until_it_is_whole(&make());
    ranges_are_what_was_put(&make());
    writers_may_seek_and_leave_nothing_when_dropped(&make());
    what_is_listed_is_what_is_there(&make());
    deleted_blobs_are_gone_and_others_stay(&make());
    uploads_go_on_and_wrong_bytes_are_refused(make);
}

/// A store that one test has alone.
struct Own(Arc<dyn Blobs>);

impl std::ops::Deref for Own {
    type Target = dyn Blobs;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

fn read(blobs: &Own, hash: BlobHash, offset: u64, length: usize) -> Option<Vec<u8>> {
    let mut blob = blobs.open(hash).unwrap()?;
    let mut bytes = vec![0; length];
    let mut count = 0;
    while count < length {
        match blob.read_at(offset + count as u64, &mut bytes[count..]).unwrap() {
            0 => break,
            more => count += more,
        }
    }
    bytes.truncate(count);
    Some(bytes)
}

fn list(blobs: &Own) -> BTreeMap<BlobHash, Listed> {
    let mut listed = BTreeMap::new();
    blobs
        .list(&mut |entry| {
            let hash = entry.hash.expect("only blobs stand here");
            assert!(listed.insert(hash, entry).is_none(), "a blob is listed once");
        })
        .unwrap();
    listed
}

fn a_blob_is_absent_until_it_is_whole(blobs: &Own) {
    let hash = BlobHash::of(b"whole");
    let mut writer = blobs.writer().unwrap();
    writer.write_all(b"whole").unwrap();
    assert_eq!(blobs.length(hash).unwrap(), None);
    assert!(blobs.open(hash).unwrap().is_none());
    assert_eq!(writer.finish().unwrap(), (hash, 5));
    assert_eq!(blobs.length(hash).unwrap(), Some(5));
    assert_eq!(blobs.put(b"whole").unwrap(), hash, "again is harmless");
    let empty = blobs.put(b"").unwrap();
    assert_eq!(blobs.length(empty).unwrap(), Some(0));
    assert_eq!(read(blobs, empty, 0, 9).unwrap(), b"");
}

fn ranges_are_what_was_put(blobs: &Own) {
    let bytes: Vec<u8> = (0..3_000_001u32).map(|at| (at * 7 % 251) as u8).collect();
    let hash = blobs.put(&bytes).unwrap();
    for (offset, length) in [(0, 10), (1_234_567, 1 << 20), (2_999_999, 100), (3_000_001, 1)] {
        let end = (offset + length).min(bytes.len());
        assert_eq!(read(blobs, hash, offset as u64, length).unwrap(), bytes[offset..end]);
    }
    assert_eq!(blobs.open(hash).unwrap().unwrap().length(), bytes.len() as u64);
    assert_eq!(blobs.verify(hash, bytes.len() as u64), None);
    assert!(blobs.verify(hash, 1).is_some());
    assert!(blobs.verify(BlobHash([9; 32]), 1).is_some());
}

fn writers_may_seek_and_leave_nothing_when_dropped(blobs: &Own) {
    let mut writer = blobs.writer().unwrap();
    writer.write_all(b"?bcd").unwrap();
    writer.seek(SeekFrom::Start(0)).unwrap();
    writer.write_all(b"a").unwrap();
    assert_eq!(writer.finish().unwrap(), (BlobHash::of(b"abcd"), 4));
    let mut dropped = blobs.writer().unwrap();
    dropped.write_all(b"never finished").unwrap();
    drop(dropped);
    assert_eq!(blobs.length(BlobHash::of(b"never finished")).unwrap(), None);
}

fn uploads_go_on_and_wrong_bytes_are_refused(make: impl Fn() -> Own) {
    let (bytes, hash) = (b"uploaded in two parts", BlobHash::of(b"uploaded in two parts"));
    let mut upload = make().upload(hash, bytes.len() as u64).unwrap();
    upload.write(&bytes[..8]).unwrap();
    drop(upload);
    // A store may keep the bytes that arrived, or begin again.
    let blobs = make();
    let mut upload = blobs.upload(hash, bytes.len() as u64).unwrap();
    assert!(upload.held() == 8 || upload.held() == 0);
    let held = upload.held() as usize;
    upload.write(&bytes[held..]).unwrap();
    assert_eq!(blobs.length(hash).unwrap(), None);
    upload.finish().unwrap();
    assert_eq!(read(&blobs, hash, 0, 100).unwrap(), bytes);

    let promised = BlobHash::of(b"promised");
    let mut upload = blobs.upload(promised, 5).unwrap();
    upload.write(b"other").unwrap();
    let found = BlobHash::of(b"other");
    assert!(matches!(upload.finish(), Err(SinkError::Corrupt { found: is }) if is == found));
    drop(upload);
    assert_eq!(blobs.length(promised).unwrap(), None);
    assert_eq!(blobs.length(found).unwrap(), None);
    assert_eq!(blobs.upload(promised, 5).unwrap().held(), 0, "wrong bytes are not kept");
    let later = SystemTime::now() + Duration::from_secs(3600);
    assert!(blobs.delete_uploads(later) <= 1);
    assert_eq!(blobs.delete_uploads(later), 0);
}

fn what_is_listed_is_what_is_there(blobs: &Own) {
    let hash = blobs.put(b"listed").unwrap();
    let entry = list(blobs).remove(&hash).unwrap();
    assert_eq!(entry.length, 6);
    let written = entry.modified.expect("a store knows when it was written");
    std::thread::sleep(Duration::from_millis(20));
    blobs.refresh(hash).unwrap();
    let refreshed = list(blobs)[&hash].modified.unwrap();
    assert!(refreshed > written, "a refreshed blob is younger");
    assert!(blobs.refresh(BlobHash([8; 32])).is_err());
}

fn deleted_blobs_are_gone_and_others_stay(blobs: &Own) {
    let (gone, stays) = (blobs.put(b"gone").unwrap(), blobs.put(b"stays").unwrap());
    assert!(blobs.delete(gone).unwrap());
    assert!(!blobs.delete(gone).unwrap());
    assert_eq!(blobs.length(gone).unwrap(), None);
    let listed = list(blobs);
    assert!(!listed.contains_key(&gone) && listed.contains_key(&stays));
    assert_eq!(read(blobs, stays, 0, 9).unwrap(), b"stays");
}
