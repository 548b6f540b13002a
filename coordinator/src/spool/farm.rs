//! The spools of a farm: on the disk of the data folder, and in a store elsewhere, if it has one.

use super::disk::DiskSpools;
use super::extent::SpoolExtent;
use super::key::SpoolKey;
use super::reading::FarmReader;
use super::store::{SpoolBody, SpoolEntry, SpoolError, SpoolReader, Spools};
use super::stored::{ResultObject, ResultStore, StoredResults};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// All spools of a coordinator. Only one thread owns them.
#[derive(Debug)]
pub struct FarmSpools {
    /// Knows the extents, also of what is elsewhere.
    disk: DiskSpools,
    root: PathBuf,
    elsewhere: Arc<dyn ResultStore>,
}

impl FarmSpools {
    /// Takes over the spools that the journal knows, with their extents, as [`DiskSpools::open`].
    /// The objects of frames that it does not know are deleted.
    pub fn open(
        root: &Path,
        extents: BTreeMap<SpoolKey, SpoolExtent>,
        elsewhere: Arc<dyn ResultStore>,
    ) -> Result<(Self, Vec<SpoolError>), SpoolError> {
        let (disk, problems) = DiskSpools::open(root, extents, true)?;
        let this = Self { disk, root: root.to_path_buf(), elsewhere };
        this.forget_unknown();
        Ok((this, problems))
    }

    /// Returns a reader of the spools in a folder, and of those in a store elsewhere.
    pub fn reader_of(root: &Path, elsewhere: Arc<dyn ResultStore>) -> Arc<dyn SpoolReader> {
        Arc::new(FarmReader::new(DiskSpools::reader_of(root), elsewhere))
    }

    fn forget_unknown(&self) {
        match self.elsewhere.objects() {
            Ok(objects) => {
                let frames = objects.into_iter().map(|(key, _)| key);
                self.elsewhere.forget(&unknown_frames(frames, self.disk.extents()));
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
        self.disk.forget(keys);
    }

    fn delete(&mut self, keys: &[SpoolKey]) {
        self.disk.delete(keys);
        self.elsewhere.forget(keys);
    }

    fn extents(&self) -> &BTreeMap<SpoolKey, SpoolExtent> {
        self.disk.extents()
    }

    fn reader(&self) -> Arc<dyn SpoolReader> {
        Self::reader_of(&self.root, self.elsewhere.clone())
    }
}

/// Returns the frames of objects, in order, of which the journal knows none.
pub fn unknown_frames(
    of_objects: impl IntoIterator<Item = SpoolKey>,
    known: &BTreeMap<SpoolKey, SpoolExtent>,
) -> Vec<SpoolKey> {
    let mut frames: Vec<SpoolKey> = of_objects.into_iter().collect();
    frames.dedup();
    frames.retain(|key| known.get(key).is_none_or(|one| one.stored.is_empty()));
    frames
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
