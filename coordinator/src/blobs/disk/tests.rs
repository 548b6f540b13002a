//! Tests of blobs on the disk: properties that only files have. The contract of every place of
//! blobs is tested in `coordinator/blobs-s3/tests`.

use super::*;

fn blobs(reserve_bytes: u64) -> (tempfile::TempDir, DiskBlobs) {
    let root = tempfile::tempdir().unwrap();
    let folder = DataFolder::open(root.path()).unwrap();
    let blobs = DiskBlobs::open(&folder, reserve_bytes);
    (root, blobs)
}

// promise: P3
#[test]
fn a_finished_file_is_adopted_and_damage_to_it_is_seen() {
    let (root, blobs) = blobs(0);
    let hash = blobs.put(b"frame").unwrap();
    assert_eq!(hash, BlobHash::of(b"frame"));
    assert_eq!(blobs.length(hash).unwrap(), Some(5));
    assert_eq!(blobs.verify(hash, 5), None);
    assert!(blobs.verify(hash, 6).unwrap().contains("recorded"));
    std::fs::write(blobs.path(hash), b"frams").unwrap();
    assert!(blobs.verify(hash, 5).unwrap().contains("hash"));
    drop(blobs.writer().unwrap());
    assert_eq!(std::fs::read_dir(root.path().join("tmp")).unwrap().count(), 0);
}

#[test]
fn an_upload_gets_its_place_by_its_hash() {
    let (root, blobs) = blobs(0);
    let hash = BlobHash::of(b"bytes");
    assert_eq!(blobs.length(hash).unwrap(), None);
    let mut upload = blobs.upload(hash, 5).unwrap();
    upload.write(b"bytes").unwrap();
    upload.finish().unwrap();
    assert_eq!(std::fs::read_dir(root.path().join("partial")).unwrap().count(), 0);
    assert_eq!(std::fs::read(blobs.path(hash)).unwrap(), b"bytes");
}

#[test]
fn an_upload_that_would_fill_the_disk_is_refused() {
    let (_root, full) = blobs(u64::MAX);
    let refused = full.upload(BlobHash::of(b"x"), 1).err().unwrap();
    assert!(refused.to_string().contains("no room"), "{refused}");
}
