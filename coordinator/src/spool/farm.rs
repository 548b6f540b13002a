//! The spools of a farm: on the disk of the data folder, and in a store elsewhere, if it has one.

use super::disk::DiskSpools;
use super::extent::SpoolExtent;
use super::key::SpoolKey;
use super::reading::FarmReader;
use super::store::{SpoolBody, SpoolEntry, SpoolError, SpoolReader, Spools};
use super::stored::{ResultObject, ResultStore, StoredResults};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// All spools of a coordinator. Only one thread owns them.
#[derive(Debug)]
pub struct FarmSpools {
    /// Knows the extents, also of what is elsewhere.
    disk: DiskSpools,
    elsewhere: Arc<dyn ResultStore>,
    /// Objects of spools that were forgotten, until they are deleted.
    leaving: Vec<FrameObject>,
}

impl FarmSpools {
    /// Takes over the spools that the journal knows, with their extents, as [`DiskSpools::open`].
    /// Objects that it does not know are deleted, unless their frame is in work. The newest
    /// `recent` bytes of results on the disk are in memory too.
    pub fn open(
        (root, recent): (&Path, usize),
        extents: BTreeMap<SpoolKey, SpoolExtent>,
        elsewhere: Arc<dyn ResultStore>,
        in_work: impl Fn(SpoolKey) -> bool,
    ) -> Result<(Self, Vec<SpoolError>), SpoolError> {
        let (mut disk, problems) = DiskSpools::open(root, extents, true)?;
        disk.keep_recent(recent);
        let this = Self { disk, elsewhere, leaving: Vec::new() };
        this.forget_unknown(in_work);
        Ok((this, problems))
    }

    /// Returns a reader of the spools in a folder, and of those in a store elsewhere.
    pub fn reader_of(root: &Path, elsewhere: Arc<dyn ResultStore>) -> Arc<dyn SpoolReader> {
        Arc::new(FarmReader::new(DiskSpools::reader_of(root), elsewhere))
    }

    fn forget_unknown(&self, in_work: impl Fn(SpoolKey) -> bool) {
        match self.elsewhere.objects() {
            Ok(objects) => {
                self.elsewhere.forget(&unknown_objects(objects, self.disk.extents(), in_work));
            }
            // They are found at the next start.
            Err(error) => tracing::warn!(
                error = &error as &dyn std::error::Error,
                "results that nobody needs may be left in the store of files"
            ),
        }
    }
}

impl Spools for FarmSpools {
    fn append(
        &mut self,
        group: &[SpoolEntry],
    ) -> Result<BTreeMap<SpoolKey, SpoolExtent>, SpoolError> {
        let mut extents = self.disk.append(group)?;
        add_objects(&mut extents, self.disk.extents(), group);
        Ok(extents)
    }

    fn seal(&mut self, key: SpoolKey, extent: SpoolExtent) -> Result<SpoolExtent, SpoolError> {
        self.disk.seal(key, extent)
    }

    fn accept(&mut self, extents: BTreeMap<SpoolKey, SpoolExtent>) {
        self.disk.accept(extents);
    }

    fn forget(&mut self, keys: &[SpoolKey]) {
        self.leaving.extend(objects_in(keys, self.disk.extents()));
        self.disk.forget(keys);
    }

    fn delete(&mut self, keys: &[SpoolKey]) {
        self.disk.delete(keys);
        let is_of = |(key, _): &mut FrameObject| keys.contains(key);
        let gone: Vec<FrameObject> = self.leaving.extract_if(.., is_of).collect();
        self.elsewhere.forget(&gone);
    }

    fn extents(&self) -> &BTreeMap<SpoolKey, SpoolExtent> {
        self.disk.extents()
    }

    fn reader(&self) -> Arc<dyn SpoolReader> {
        Arc::new(FarmReader::new(self.disk.reader(), self.elsewhere.clone()))
    }
}

/// An object of a frame.
pub type FrameObject = (SpoolKey, ResultObject);

/// Returns the objects that the journal knows of frames.
pub fn objects_in(keys: &[SpoolKey], known: &BTreeMap<SpoolKey, SpoolExtent>) -> Vec<FrameObject> {
    let of_frame = |key: &SpoolKey| {
        let stored = known.get(key).map_or(&[][..], |extent| &extent.stored);
        stored.iter().map(|stored| (*key, stored.object)).collect::<Vec<_>>()
    };
    keys.iter().flat_map(of_frame).collect()
}

/// Returns the objects that the journal does not know, of frames that are not in work. Of one in
/// work, a node may be saying this moment that the object is there.
pub fn unknown_objects(
    mut objects: Vec<FrameObject>,
    known: &BTreeMap<SpoolKey, SpoolExtent>,
    in_work: impl Fn(SpoolKey) -> bool,
) -> Vec<FrameObject> {
    let is_known = |(key, object): &FrameObject| {
        let names = |extent: &SpoolExtent| {
            let same = |of: &ResultObject| (of.node, of.name) == (object.node, object.name);
            extent.stored.iter().any(|stored| same(&stored.object))
        };
        known.get(key).is_some_and(names)
    };
    objects.retain(|of| !in_work(of.0) && !is_known(of));
    objects
}

/// Adds the objects of a group to the extents that it changes. `known`: the extents before it.
pub fn add_objects(
    extents: &mut BTreeMap<SpoolKey, SpoolExtent>,
    known: &BTreeMap<SpoolKey, SpoolExtent>,
    group: &[SpoolEntry],
) {
    for (key, (object, entries)) in objects_of(group) {
        let before = || known.get(&key).cloned().unwrap_or_default();
        let extent = extents.entry(key).or_insert_with(before);
        let number = extent.next_number();
        extent.stored.push(Arc::new(StoredResults { number, object, entries }));
    }
}

type Entries = Vec<(super::entry::EntryHeader, u32)>;

/// Returns the objects of a group, and which of their results are in it. Results of one object
/// follow each other.
fn objects_of(group: &[SpoolEntry]) -> Vec<(SpoolKey, (ResultObject, Entries))> {
    let mut found: Vec<(SpoolKey, (ResultObject, Entries))> = Vec::new();
    for entry in group {
        let SpoolBody::Stored(object, offset) = entry.body else { continue };
        match found.last_mut() {
            Some((key, (last, entries))) if (*key, *last) == (entry.key, object) => {
                entries.push((entry.header, offset));
            }
            _ => found.push((entry.key, (object, vec![(entry.header, offset)]))),
        }
    }
    found
}

#[cfg(test)]
#[path = "farm_tests.rs"]
mod tests;
