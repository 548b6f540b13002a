//! Blobs on a real S3 server: what every place of blobs must do, whose a bucket is, a service that
//! is away or lies, and copies of a farm's files. Without SeaweedFS each test says that it was left
//! out.
#![expect(clippy::unwrap_used, reason = "a test")]

mod contract;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};
use tessera_blobs_s3::{BlobAddress, Credentials, S3Place};
use tessera_coordinator::blobs::{
    BlobMark, BlobMigrationError, BlobPlace, BlobPlaceError, Blobs, DiskPlace, migrate,
};
use tessera_coordinator::folder::DataFolder;
use tessera_coordinator::store::Purpose;
use tessera_protocol::BlobHash;
use tessera_support::seaweed::{BUCKET, KEY, SECRET, Seaweed};

/// A data folder, locked.
fn folder() -> (tempfile::TempDir, DataFolder) {
    let root = tempfile::tempdir().unwrap();
    let folder = DataFolder::open(root.path()).unwrap();
    (root, folder)
}

fn key(secret: &str) -> Credentials {
    Credentials::Key { id: KEY.into(), secret: secret.into(), token: None }
}

fn place(address: &str) -> S3Place {
    S3Place::new(BlobAddress::parse(address).unwrap(), key(SECRET))
}

fn run(place: &S3Place, folder: &DataFolder) -> Result<Arc<dyn Blobs>, BlobPlaceError> {
    place.open(folder, Purpose::Run, 0)
}

fn read(blobs: &dyn Blobs, hash: BlobHash) -> Vec<u8> {
    let mut blob = blobs.open(hash).unwrap().unwrap();
    let mut bytes = vec![0; blob.length() as usize];
    let mut at = 0;
    while at < bytes.len() {
        let count = blob.read_at(at as u64, &mut bytes[at..]).unwrap();
        assert!(count > 0);
        at += count;
    }
    bytes
}

/// Bytes that are nowhere the same.
fn many(length: u32) -> Vec<u8> {
    (0..length).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

#[test]
fn the_disk_keeps_the_contract_of_blobs() {
    let (_root, folder) = folder();
    contract::blobs_contract(|| DiskPlace.open(&folder, Purpose::Run, 0).unwrap());
}

#[test]
fn a_bucket_keeps_the_contract_of_blobs() {
    let Some(server) = Seaweed::start("a_bucket_keeps_the_contract_of_blobs") else { return };
    let (_root, folder) = folder();
    contract::blobs_contract(|| run(&place(&server.address("a/b")), &folder).unwrap());
    // Without a prefix, beside that.
    let (_root, folder) = self::folder();
    let address = server.address("").replace("/?", "?");
    contract::blobs_contract(|| run(&place(&address), &folder).unwrap());
}

// promise: P3
#[test]
fn large_blobs_go_in_parts_and_are_read_in_any_order() {
    let Some(server) = Seaweed::start("large_blobs_go_in_parts_and_are_read_in_any_order") else {
        return;
    };
    let (_root, folder) = folder();
    let blobs = run(&place(&server.address("x")), &folder).unwrap();
    let bytes = many(80_000_001);
    let hash = blobs.put(&bytes).unwrap();
    assert!(read(&*blobs, hash) == bytes, "they are what was put");
    assert_eq!(blobs.put(&bytes).unwrap(), hash, "again is harmless");
    let mut blob = blobs.open(hash).unwrap().unwrap();
    let mut piece = vec![0; 100_000];
    for at in [79_950_000, 0, 67_108_000, 16_000_000] {
        let count = blob.read_at(at as u64, &mut piece).unwrap();
        assert!(piece[..count] == bytes[at..at + count] && count > 0, "at {at}");
    }
    drop(blob);
    let other = run(&place(&server.address("x")), &folder).unwrap();
    assert_eq!(other.verify(hash, bytes.len() as u64), None);
}

// promise: P3
#[test]
fn a_bucket_belongs_to_one_farm_and_a_farm_to_one_place() {
    let Some(server) = Seaweed::start("a_bucket_belongs_to_one_farm_and_a_farm_to_one_place")
    else {
        return;
    };
    let (_root, first) = folder();
    let here = place(&server.address("here"));
    let hash = run(&here, &first).unwrap().put(b"frame").unwrap();
    assert_eq!(read(&*run(&here, &first).unwrap(), hash), b"frame");
    let told = |result: Result<Arc<dyn Blobs>, BlobPlaceError>| result.err().unwrap().to_string();
    // Another farm, another place, and the farm's own disk.
    let (_other_root, other) = folder();
    assert!(told(run(&here, &other)).contains("of another farm"));
    assert!(BlobMark::read(&other).unwrap().is_none());
    assert!(told(run(&place(&server.address("there")), &first)).contains("not there any more"));
    let disk = DiskPlace.open(&first, Purpose::Run, 0);
    assert!(matches!(disk, Err(BlobPlaceError::Elsewhere { .. })));
    assert!(DiskPlace.inspect(&first).is_err());
    // A folder with files of its own.
    let (_full_root, full) = folder();
    DiskPlace.open(&full, Purpose::Run, 0).unwrap().put(b"mine").unwrap();
    assert!(told(run(&place(&server.address("there")), &full)).contains("store migrate"));
    // To look changes nothing, and finds nothing where nothing is.
    assert!(here.inspect(&first).unwrap().length(hash).unwrap().is_some());
    assert!(told(place(&server.address("there")).inspect(&first)).contains("no files of a farm"));
    assert!(told(here.inspect(&other)).contains("on its own disk"));
}

#[test]
fn wrong_keys_and_buckets_are_told_with_what_to_do() {
    let Some(server) = Seaweed::start("wrong_keys_and_buckets_are_told_with_what_to_do") else {
        return;
    };
    let (_root, folder) = folder();
    let said = |address: &str, secret: &str| {
        let place = S3Place::new(BlobAddress::parse(address).unwrap(), key(secret));
        let error = run(&place, &folder).err().expect(address);
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        (format!("{error}: {}", cause.unwrap_or_default()), error.hint().unwrap_or_default())
    };
    let (text, hint) = said(&server.address("x"), "wrong-wrong");
    assert!(text.contains("SignatureDoesNotMatch") && hint.contains("credentials"), "{text}");
    assert!(!text.contains("wrong-wrong"), "{text}");
    let (text, hint) = said(&server.address("x").replace(BUCKET, "nowhere"), SECRET);
    assert!(text.contains("AccessDenied") && hint.contains("in the bucket"), "{text}; {hint}");
    assert!(BlobMark::read(&folder).unwrap().is_none(), "nothing was changed");
}

// promise: P3
#[test]
fn puts_and_reads_wait_for_a_service_that_comes_back() {
    let Some(mut server) = Seaweed::start("puts_and_reads_wait_for_a_service_that_comes_back")
    else {
        return;
    };
    let (_root, folder) = folder();
    let blobs = run(&place(&server.address("x")), &folder).unwrap();
    let bytes = many(20_000_000);
    let hash = blobs.put(&bytes).unwrap();
    server.kill();
    std::thread::scope(|scope| {
        let putting = scope.spawn(|| blobs.put(b"while it was away").unwrap());
        let reading = scope.spawn(|| read(&*blobs, hash));
        std::thread::sleep(Duration::from_secs(2));
        server.restart();
        assert_eq!(putting.join().unwrap(), BlobHash::of(b"while it was away"));
        assert!(reading.join().unwrap() == bytes);
    });
    let other = run(&place(&server.address("x")), &folder).unwrap();
    assert_eq!(read(&*other, BlobHash::of(b"while it was away")), b"while it was away");
}

// promise: P3
#[test]
fn an_upload_that_failed_is_stored_by_the_next_attempt() {
    let what = "an_upload_that_failed_is_stored_by_the_next_attempt";
    let Some(mut server) = Seaweed::start(what) else { return };
    let (_root, folder) = folder();
    let address = format!("{}&patience=1", server.address("x"));
    let blobs = run(&place(&address), &folder).unwrap();
    let bytes = many(300_000);
    let hash = BlobHash::of(&bytes);
    let mut upload = blobs.upload(hash, bytes.len() as u64).unwrap();
    upload.write(&bytes).unwrap();
    server.kill();
    let error = upload.finish().unwrap_err().to_string();
    assert!(error.contains("refused"), "{error}");
    drop(upload);
    server.restart();
    let mut upload = blobs.upload(hash, bytes.len() as u64).unwrap();
    assert_eq!(upload.held(), bytes.len() as u64, "what arrived is kept");
    upload.finish().unwrap();
    assert!(read(&*blobs, hash) == bytes);
    assert!(!blobs.delete_upload(hash), "nothing of it is left on the disk");
}

// promise: P3
#[test]
fn bytes_that_the_service_changed_are_found() {
    let what = "bytes_that_the_service_changed_are_found";
    let Some(mut server) = Seaweed::start(what) else { return };
    let (_root, folder) = folder();
    let blobs = run(&place(&server.address("x")), &folder).unwrap();
    let hash = blobs.put(b"scene").unwrap();
    server.replace(&format!("x/blobs/{hash}"), b"scrne");
    let problem = blobs.verify(hash, 5).unwrap();
    assert!(problem.contains(&BlobHash::of(b"scrne").to_string()), "{problem}");
    // Shorter than it was.
    server.replace(&format!("x/blobs/{hash}"), b"sc");
    assert!(blobs.verify(hash, 5).is_some());
    // Taken away by somebody: told once by who reads, known from then on.
    server.shell(&format!("fs.rm /buckets/{BUCKET}/x/blobs/{hash}"));
    assert!(blobs.verify(hash, 5).is_some());
    assert_eq!(blobs.length(hash).unwrap(), None);
}

// promise: P3
#[test]
fn a_farms_files_are_copied_there_and_back() {
    let Some(server) = Seaweed::start("a_farms_files_are_copied_there_and_back") else { return };
    let (root, folder) = folder();
    let disk = DiskPlace.open(&folder, Purpose::Run, 0).unwrap();
    let texts: Vec<Vec<u8>> = (0..40).map(|length| many(length * 1000)).collect();
    let hashes: Vec<BlobHash> = texts.iter().map(|text| disk.put(text).unwrap()).collect();
    drop((disk, folder));
    let (here, there) = (DiskPlace, place(&server.address("farm")));
    let told = AtomicU64::new(0);
    let moved = migrate(root.path(), (&here, &there), &|done, all| {
        assert!(done <= all);
        told.fetch_max(done, SeqCst);
    });
    let moved = moved.unwrap();
    assert_eq!((moved.blobs, told.into_inner()), (40, moved.bytes));
    let have = |place: &dyn BlobPlace| {
        let folder = DataFolder::open(root.path()).unwrap();
        let blobs = place.open(&folder, Purpose::Run, 0).unwrap();
        for (hash, text) in hashes.iter().zip(&texts) {
            assert!(read(&*blobs, *hash) == *text);
        }
    };
    have(&there);
    assert!(root.path().join("former").exists(), "the old files are kept aside");
    migrate(root.path(), (&there, &here), &|_, _| {}).unwrap();
    have(&here);
    // What another farm has is not mixed with it.
    let again = migrate(root.path(), (&here, &there), &|_, _| {});
    assert!(again.unwrap_err().to_string().contains("another prefix"));
    have(&here);
}

// promise: P3
#[test]
fn a_copy_that_ends_early_goes_on_and_damage_stops_it() {
    let what = "a_copy_that_ends_early_goes_on_and_damage_stops_it";
    let Some(server) = Seaweed::start(what) else { return };
    let (root, folder) = folder();
    let disk = DiskPlace.open(&folder, Purpose::Run, 0).unwrap();
    let (good, bad) = (disk.put(b"good").unwrap(), disk.put(b"bad").unwrap());
    let name = bad.to_string();
    let path = |root: &Path| root.join("blobs").join(&name[..2]).join(&name);
    std::fs::write(path(root.path()), b"dab").unwrap();
    drop((disk, folder));
    let there = place(&server.address("farm"));
    let copied = migrate(root.path(), (&DiskPlace, &there), &|_, _| {});
    let Err(BlobMigrationError::Damaged { hash, found }) = copied else { panic!("{copied:?}") };
    assert_eq!((hash, found), (bad, BlobHash::of(b"dab")));
    let folder = DataFolder::open(root.path()).unwrap();
    assert!(DiskPlace.open(&folder, Purpose::Run, 0).is_ok(), "the farm is where it was");
    drop(folder);
    std::fs::write(path(root.path()), b"bad").unwrap();
    assert_eq!(migrate(root.path(), (&DiskPlace, &there), &|_, _| {}).unwrap().blobs, 2);
    let folder = DataFolder::open(root.path()).unwrap();
    assert_eq!(read(&*run(&there, &folder).unwrap(), good), b"good");
}

#[test]
fn a_service_that_stops_answering_is_given_up_in_time() {
    let Some(server) = Seaweed::start("a_service_that_stops_answering_is_given_up_in_time") else {
        return;
    };
    let (_root, folder) = folder();
    let blobs = run(&place(&server.address("x")), &folder).unwrap();
    let hash = blobs.put(&many(30_000_000)).unwrap();
    let mut blob = blobs.open(hash).unwrap().unwrap();
    let mut piece = vec![0; 1000];
    blob.read_at(0, &mut piece).unwrap();
    server.pause();
    let begun = Instant::now();
    let going_on = std::thread::scope(|scope| {
        let reading = scope.spawn(|| blob.read_at(29_000_000, &mut piece).is_ok());
        std::thread::sleep(Duration::from_secs(5));
        server.go_on();
        reading.join().unwrap()
    });
    assert!(going_on, "a pause of a few seconds is waited for");
    assert!(begun.elapsed() < Duration::from_secs(60));
}
