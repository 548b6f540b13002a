//! Tests of spools with results on the disk and in objects.

use super::*;
use crate::spool::contract::{entry, key, spools_contract};
use crate::spool::{EntryHeader, FolderResults, SpoolIndex};
use bytes::Bytes;
use tessera_protocol::stored::name_of;
use tessera_protocol::{BlobHash, Lease, NodeId, UnitIndex, UnitKey};

/// A folder for spools and one for objects.
struct Folders(tempfile::TempDir);

impl Folders {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn objects(&self) -> FolderResults {
        FolderResults::new(self.0.path().join("results"))
    }

    fn open(&self, extents: BTreeMap<SpoolKey, SpoolExtent>) -> (FarmSpools, Vec<SpoolError>) {
        self.open_with(0, extents)
    }

    /// The same, with so many bytes of the newest results in memory.
    fn open_with(
        &self,
        recent: usize,
        extents: BTreeMap<SpoolKey, SpoolExtent>,
    ) -> (FarmSpools, Vec<SpoolError>) {
        let spools = self.0.path().join("spool");
        std::fs::create_dir_all(&spools).unwrap();
        let in_work = |of: SpoolKey| of.frame.0 == 7;
        FarmSpools::open((&spools, recent), extents, Arc::new(self.objects()), in_work).unwrap()
    }

    /// The files of all objects, in order.
    fn files(&self) -> Vec<std::path::PathBuf> {
        let objects = self.objects().objects().unwrap();
        let path = |(key, object): (SpoolKey, ResultObject)| {
            let folder = self.0.path().join("results").join(key.job.to_string());
            folder.join(key.frame.0.to_string()).join(object.to_string())
        };
        objects.into_iter().map(path).collect()
    }
}

/// Puts results of units into one object, and returns their entries.
fn stored(store: &FolderResults, key: SpoolKey, units: &[u32]) -> Vec<SpoolEntry> {
    let results: Vec<(EntryHeader, Bytes)> = units
        .iter()
        .map(|unit| match entry(key, *unit) {
            SpoolEntry { header, body: SpoolBody::Bytes(bytes), .. } => (header, bytes),
            other => panic!("{other:?}"),
        })
        .collect();
    let length = results.iter().map(|(header, _)| header.length).sum();
    let about = |(header, _): &(EntryHeader, Bytes)| {
        let unit = UnitKey { job: key.job, frame: key.frame, unit: header.unit };
        (Lease { unit, epoch: header.epoch }, header.hash, header.length)
    };
    let name = name_of(results.iter().map(about));
    let object = ResultObject { node: NodeId(uuid::Uuid::from_u128(4)), name, length };
    store.put(key, object, results.iter().map(|(_, bytes)| bytes.clone()).collect()).unwrap();
    let mut offset = 0;
    let place = |(header, bytes): (EntryHeader, Bytes)| {
        let body = SpoolBody::Stored(object, offset);
        offset += bytes.len() as u32;
        SpoolEntry { key, header, body }
    };
    results.into_iter().map(place).collect()
}

fn units(spools: &FarmSpools, key: SpoolKey) -> Vec<u32> {
    let index = SpoolIndex::read(&*spools.reader(), key, &spools.extents()[&key]).unwrap();
    assert_eq!(index.check_bytes().count(), 0);
    index.headers().map(|header| header.unit.0).collect()
}

fn commit(spools: &mut FarmSpools, group: &[SpoolEntry]) {
    let extents = spools.append(group).unwrap();
    spools.accept(extents);
}

#[test]
fn without_objects_it_is_the_disk() {
    let folders = Folders::new();
    spools_contract(|extents| folders.open(extents).0);
    let folders = Folders::new();
    spools_contract(|extents| folders.open_with(1 << 20, extents).0);
}

#[test]
fn results_in_memory_are_read_there() {
    let folders = Folders::new();
    let mut spools = folders.open_with(1 << 20, BTreeMap::new()).0;
    let key = key(1);
    let long = |unit: u32| {
        let bytes = Bytes::from(vec![unit as u8; 5000]);
        let entry = entry(key, unit);
        let (length, hash) = (bytes.len() as u32, BlobHash::of(&bytes));
        let header = EntryHeader { length, hash, ..entry.header };
        SpoolEntry { header, body: bytes.into(), ..entry }
    };
    let entries = [long(0), long(1)];
    commit(&mut spools, &entries);
    commit(&mut spools, &stored(&folders.objects(), key, &[2]));
    let path = crate::spool::path_of(&folders.0.path().join("spool"), key);
    let mut bytes = std::fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let index = SpoolIndex::read(&*spools.reader(), key, &spools.extents()[&key]).unwrap();
    let SpoolBody::Bytes(whole) = &entries[1].body else { panic!("it has bytes") };
    assert_eq!(&index.bytes(UnitIndex(1)).unwrap(), whole);
    assert!(index.bytes(UnitIndex(2)).is_ok());
    let problems: Vec<_> = index.check_bytes().collect();
    assert!(matches!(problems[..], [SpoolError::Hash { .. }]), "a check reads: {problems:?}");
    // A start has nothing in memory, and a reader of the folder neither.
    let extents = spools.extents().clone();
    drop(spools);
    let spools = folders.open_with(1 << 20, extents).0;
    let index = SpoolIndex::read(&*spools.reader(), key, &spools.extents()[&key]).unwrap();
    assert!(matches!(index.bytes(UnitIndex(1)), Err(SpoolError::Hash { .. })));
}

// promise: P1
#[test]
fn results_on_the_disk_and_elsewhere_are_read_as_one() {
    let folders = Folders::new();
    let store = folders.objects();
    let mut spools = folders.open(BTreeMap::new()).0;
    let (a, b) = (key(1), key(2));
    commit(&mut spools, &stored(&store, a, &[3, 1]));
    commit(&mut spools, &[vec![entry(b, 0), entry(a, 0)], stored(&store, b, &[1])].concat());
    commit(&mut spools, &stored(&store, a, &[2]));
    assert_eq!((units(&spools, a), units(&spools, b)), (vec![0, 1, 2, 3], vec![0, 1]));
    let extents = spools.extents().clone();
    let numbers = |key| extents[&key].stored.iter().map(|one| one.number).collect::<Vec<_>>();
    assert_eq!((numbers(a), numbers(b)), (vec![0, 1], vec![0]));
    drop(spools);
    stored(&store, key(3), &[0]);
    let in_work = key(7);
    stored(&store, in_work, &[0]);
    let mut spools = folders.open(extents.clone()).0;
    assert_eq!(folders.files().len(), 4, "what no frame has is deleted, unless it is in work");
    assert_eq!(units(&spools, a), [0, 1, 2, 3]);
    spools.forget(&[a]);
    // It is opened again before its old objects are deleted.
    stored(&store, a, &[8]);
    spools.delete(&[a]);
    let left = store.objects().unwrap();
    let of = |key| left.iter().filter(|(of, _)| *of == key).count();
    assert_eq!((of(a), of(b), of(in_work)), (1, 1, 1));
    drop(spools);
    // A frame that has lost a part of its results begins anew.
    std::fs::remove_dir_all(folders.0.path().join("spool")).unwrap();
    let (spools, problems) = folders.open(extents);
    assert_eq!((spools.extents().len(), problems.len()), (0, 2));
}

// promise: P1, P3
#[test]
fn an_object_that_is_gone_or_changed_costs_its_units() {
    let folders = Folders::new();
    let store = folders.objects();
    let (mut spools, _) = folders.open(BTreeMap::new());
    let key = key(1);
    for units in [&[0][..], &[1, 2], &[3]] {
        commit(&mut spools, &stored(&store, key, units));
    }
    let index = SpoolIndex::read(&*spools.reader(), key, &spools.extents()[&key]).unwrap();
    let lost = || {
        let errors = index.check_bytes();
        errors.map(|error| error.lost_unit().expect("a unit").0).collect::<Vec<_>>()
    };
    let path = |number: usize| {
        let object = spools.extents()[&key].stored[number].object.to_string();
        let files = folders.files();
        files.into_iter().find(|path| path.ends_with(&object)).expect("a file")
    };
    std::fs::remove_file(path(0)).unwrap();
    assert_eq!(lost(), [0]);
    let mut bytes = std::fs::read(path(1)).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(path(1), &bytes).unwrap();
    assert_eq!(lost(), [0, 2]);
    std::fs::write(path(2), &bytes[..9]).unwrap();
    assert_eq!(lost(), [0, 2, 3]);
}

#[test]
fn each_object_is_written_once_and_removed_with_its_frame() {
    use crate::store::{Changes, spool_changes};
    let folders = Folders::new();
    let store = folders.objects();
    let (mut spools, _) = folders.open(BTreeMap::new());
    let key = key(1);
    for (units, numbers) in [(vec![0, 1], vec![0]), (vec![2], vec![1])] {
        let extents = spools.append(&stored(&store, key, &units)).unwrap();
        let mut changes = Changes::default();
        spool_changes::add(&mut changes, spools.extents(), (&extents, &[]));
        let found: Vec<u32> = changes.stored.keys().map(|(_, number)| *number).collect();
        assert_eq!((found, changes.spools.len()), (numbers, 0));
        spools.accept(extents);
    }
    let mut changes = Changes::default();
    spool_changes::add(&mut changes, spools.extents(), (&BTreeMap::new(), &[key]));
    assert_eq!(changes.stored.values().filter(|value| value.is_none()).count(), 2);
    assert_eq!(changes.spools.get(&key), Some(&None));
}
