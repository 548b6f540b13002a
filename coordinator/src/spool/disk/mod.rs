//! Spools as files: one append-only file per frame. A sealed segment is a range of that file which
//! is not written again.

use crate::spool::entry::{EntryHeader, HEADER_BYTES};
use crate::spool::extent::{Segment, SegmentName, SpoolExtent};
use crate::spool::key::SpoolKey;
use crate::spool::recent::Recent;
use crate::spool::store::{SpoolBody, SpoolEntry, SpoolError, SpoolRead, SpoolReader, Spools};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tessera_protocol::FrameNumber;
use tessera_transport::files;

/// Most spools that are kept open. Only few frames are in progress, and a closed file is opened
/// again when it is needed.
const OPEN_MAX: usize = 64;

/// Most parts that are written with one call of the system, which takes 1,024 on Linux.
const PARTS_MAX: usize = 1024;

/// All spools of a coordinator. Only one thread owns them.
#[derive(Debug)]
pub struct DiskSpools {
    root: PathBuf,
    extents: BTreeMap<SpoolKey, SpoolExtent>,
    open: BTreeMap<SpoolKey, File>,
    /// Names of the open parts, if they are known: for the accepted bytes, and with the bytes
    /// appended since.
    names: BTreeMap<SpoolKey, SegmentName>,
    appended: BTreeMap<SpoolKey, SegmentName>,
    recent: Arc<Recent>,
    sync: bool,
}

impl DiskSpools {
    /// Takes over the spools that the journal knows, with their extents. Cuts bytes beyond the
    /// extents and deletes unknown files. Also returns the faults that it found: a spool that is
    /// gone or cut short begins anew, and one that cannot be opened stays as it is. If `sync` is
    /// false, nothing is synced.
    pub fn open(
        root: &Path,
        mut extents: BTreeMap<SpoolKey, SpoolExtent>,
        sync: bool,
    ) -> Result<(Self, Vec<SpoolError>), SpoolError> {
        let mut problems = Vec::new();
        extents.retain(|key, SpoolExtent { length, .. }| {
            if *length == 0 {
                return true;
            }
            let path = path_of(root, *key);
            match cut(&path, *length) {
                Ok(found) if found >= *length => return true,
                Ok(found) => problems.push(SpoolError::Short { path, found, expected: *length }),
                Err(source) if source.kind() == io::ErrorKind::NotFound => {
                    problems.push(SpoolError::Io { path, source });
                }
                Err(source) => {
                    problems.push(SpoolError::Io { path, source });
                    return true;
                }
            }
            false
        });
        let on_disk = extents.iter().filter(|(_, extent)| extent.length > 0);
        let known: BTreeSet<PathBuf> = on_disk.map(|(key, _)| path_of(root, *key)).collect();
        remove_unknown(root, &known)
            .map_err(|source| SpoolError::Io { path: root.to_path_buf(), source })?;
        let spools = Self {
            root: root.to_path_buf(),
            extents,
            open: BTreeMap::new(),
            names: BTreeMap::new(),
            appended: BTreeMap::new(),
            recent: Arc::default(),
            sync,
        };
        Ok((spools, problems))
    }

    /// Keeps the newest results in memory from now on, up to so many bytes. Readers that were made
    /// before do not see them.
    pub(crate) fn keep_recent(&mut self, most: usize) {
        self.recent = Arc::new(Recent::of(most));
    }

    /// Returns a reader of the spools in a folder that any process may be writing.
    pub fn reader_of(root: &Path) -> Arc<dyn SpoolReader> {
        Arc::new(DiskReader { root: root.to_path_buf(), recent: Arc::default() })
    }

    /// Makes the file of a spool for a restore, which fills it and calls [`Self::sync_new`].
    pub(crate) fn create(root: &Path, key: SpoolKey) -> io::Result<File> {
        let path = path_of(root, key);
        std::fs::create_dir_all(root.join(key.job.to_string()))?;
        File::create(path)
    }

    /// Makes a new spool's file and its name durable.
    pub(crate) fn sync_new(root: &Path, key: SpoolKey, file: &File) -> io::Result<()> {
        file.sync_all()?;
        files::sync_folder(&root.join(key.job.to_string()))?;
        files::sync_folder(root)
    }

    fn sync(&mut self, touched: &BTreeMap<SpoolKey, SpoolExtent>) -> Result<(), SpoolError> {
        for key in touched.keys() {
            let path = path_of(&self.root, *key);
            let failed = |source| SpoolError::Io { path: path.clone(), source };
            file(&mut self.open, &self.root, *key)
                .and_then(|file| file.sync_data())
                .map_err(failed)?;
            if self.extents.get(key).is_none_or(|extent| extent.length == 0) {
                // A new file: its name and its folder's name must be durable too.
                let folder = self.root.join(key.job.to_string());
                files::sync_folder(&folder).map_err(failed)?;
                files::sync_folder(&self.root).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Returns the name of a spool's open part so far. After a start it is computed once from the
    /// headers.
    fn name(&self, key: SpoolKey, extent: &SpoolExtent) -> Result<SegmentName, SpoolError> {
        if let Some(name) = self.appended.get(&key).or_else(|| self.names.get(&key)) {
            return Ok(name.clone());
        }
        let mut name = SegmentName::default();
        let mut offset = extent.sealed_length();
        if offset == extent.length {
            return Ok(name);
        }
        let path = path_of(&self.root, key);
        let failed = |source| SpoolError::Io { path: path.clone(), source };
        let file = File::open(&path).map_err(failed)?;
        while offset < extent.length {
            let mut bytes = [0; HEADER_BYTES];
            file.read_exact_at(&mut bytes, offset).map_err(failed)?;
            let header = EntryHeader::from_bytes(&bytes)
                .map_err(|_| SpoolError::Damaged { path: path.clone(), offset })?;
            name.add(&header);
            offset += HEADER_BYTES as u64 + u64::from(header.length);
        }
        Ok(name)
    }
}

impl Spools for DiskSpools {
    fn append(
        &mut self,
        group: &[SpoolEntry],
    ) -> Result<BTreeMap<SpoolKey, SpoolExtent>, SpoolError> {
        let mut extents: BTreeMap<SpoolKey, SpoolExtent> = BTreeMap::new();
        // Where the new entries of each spool begin, and they.
        let mut tails: BTreeMap<SpoolKey, (u64, Vec<_>)> = BTreeMap::new();
        self.appended.clear();
        for entry in group {
            // What is stored elsewhere is not for the disk.
            let SpoolBody::Bytes(bytes) = &entry.body else { continue };
            debug_assert_eq!(entry.header.length as usize, bytes.len());
            let key = entry.key;
            let mut extent = match extents.remove(&key) {
                Some(extent) => extent,
                None => self.extents.get(&key).cloned().unwrap_or_default(),
            };
            let mut name = self.name(key, &extent)?;
            name.add(&entry.header);
            self.appended.insert(key, name);
            let tail = tails.entry(key).or_insert((extent.length, Vec::new()));
            tail.1.push((entry.header.to_bytes(), bytes));
            extent.length += HEADER_BYTES as u64 + u64::from(entry.header.length);
            extents.insert(key, extent);
        }
        for (key, (start, entries)) in &tails {
            let failed = |source| SpoolError::Io { path: path_of(&self.root, *key), source };
            let file = file(&mut self.open, &self.root, *key).map_err(failed)?;
            let parts = entries.iter().flat_map(|(header, bytes)| [&header[..], bytes]);
            write_at(file, parts.collect(), *start).map_err(failed)?;
        }
        if self.sync {
            self.sync(&extents)?;
        }
        self.recent.keep(group);
        Ok(extents)
    }

    fn seal(&mut self, key: SpoolKey, mut extent: SpoolExtent) -> Result<SpoolExtent, SpoolError> {
        let length = extent.open_length();
        if length > 0 {
            let hash = self.name(key, &extent)?.hash();
            extent.sealed.push(Segment { hash, length });
            self.appended.insert(key, SegmentName::default());
        }
        Ok(extent)
    }

    fn accept(&mut self, extents: BTreeMap<SpoolKey, SpoolExtent>) {
        self.extents.extend(extents);
        self.names.append(&mut self.appended);
        while self.open.len() > OPEN_MAX {
            self.open.pop_first();
        }
    }

    fn forget(&mut self, keys: &[SpoolKey]) {
        self.recent.forget(keys);
        for key in keys {
            self.open.remove(key);
            self.names.remove(key);
            self.extents.remove(key);
        }
    }

    fn delete(&mut self, keys: &[SpoolKey]) {
        for key in keys {
            let path = path_of(&self.root, *key);
            if let Err(error) = std::fs::remove_file(&path)
                && error.kind() != io::ErrorKind::NotFound
            {
                // The next start deletes the file, because the journal does not know it.
                tracing::warn!(path = %path.display(), %error, "a finished spool cannot be \
                    deleted");
            }
            // This fails while other frames of the job are open, which is fine.
            drop(std::fs::remove_dir(self.root.join(key.job.to_string())));
        }
    }

    fn extents(&self) -> &BTreeMap<SpoolKey, SpoolExtent> {
        &self.extents
    }

    fn reader(&self) -> Arc<dyn SpoolReader> {
        Arc::new(DiskReader { root: self.root.clone(), recent: self.recent.clone() })
    }
}

/// Reads the spools in a folder.
#[derive(Clone, Debug)]
struct DiskReader {
    root: PathBuf,
    recent: Arc<Recent>,
}

impl SpoolReader for DiskReader {
    fn open(&self, key: SpoolKey, extent: &SpoolExtent) -> Result<Box<dyn SpoolRead>, SpoolError> {
        let path = path_of(&self.root, key);
        let failed = |source| SpoolError::Io { path: path.clone(), source };
        let file = File::open(&path).map_err(failed)?;
        let found = file.metadata().map_err(failed)?.len();
        if found < extent.length {
            return Err(SpoolError::Short { path, found, expected: extent.length });
        }
        Ok(Box::new(SpoolFile { path, file, key, recent: self.recent.clone() }))
    }

    fn list(&self) -> Result<Vec<(String, Option<SpoolKey>)>, SpoolError> {
        let failed = |source| SpoolError::Io { path: self.root.clone(), source };
        let mut listed = Vec::new();
        for job in std::fs::read_dir(&self.root).map_err(failed)? {
            let job = job.map_err(failed)?;
            for file in std::fs::read_dir(job.path()).into_iter().flatten().flatten() {
                let key = key_of(&job.file_name().to_string_lossy(), &file.path());
                let key = key.filter(|key| path_of(&self.root, *key) == file.path());
                listed.push((file.path().display().to_string(), key));
            }
        }
        Ok(listed)
    }
}

#[derive(Debug)]
struct SpoolFile {
    path: PathBuf,
    file: File,
    key: SpoolKey,
    recent: Arc<Recent>,
}

impl SpoolRead for SpoolFile {
    fn place(&self) -> PathBuf {
        self.path.clone()
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset)
    }

    fn recent(&self, header: &EntryHeader) -> Option<Bytes> {
        self.recent.get(self.key, header)
    }
}

/// Returns the path of a spool in the spool folder.
pub(crate) fn path_of(root: &Path, key: SpoolKey) -> PathBuf {
    root.join(key.job.to_string()).join(format!("{:07}.sums", key.frame.0))
}

fn key_of(job: &str, file: &Path) -> Option<SpoolKey> {
    let frame = file.file_stem()?.to_str()?.parse().ok()?;
    Some(SpoolKey { job: job.parse().ok()?, frame: FrameNumber(frame) })
}

fn file<'a>(
    open: &'a mut BTreeMap<SpoolKey, File>,
    root: &Path,
    key: SpoolKey,
) -> io::Result<&'a mut File> {
    use std::collections::btree_map::Entry;
    match open.entry(key) {
        Entry::Occupied(entry) => Ok(entry.into_mut()),
        Entry::Vacant(entry) => {
            let path = path_of(root, key);
            std::fs::create_dir_all(root.join(key.job.to_string()))?;
            let file = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
            Ok(entry.insert(file))
        }
    }
}

/// Writes parts one after the other, many with one call of the system.
fn write_at(file: &File, parts: Vec<&[u8]>, mut offset: u64) -> io::Result<()> {
    let mut slices: Vec<IoSlice<'_>> = parts.into_iter().map(IoSlice::new).collect();
    let mut left = &mut slices[..];
    while !left.is_empty() {
        let most = left.len().min(PARTS_MAX);
        match rustix::io::pwritev(file, &left[..most], offset) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => {
                offset += count as u64;
                IoSlice::advance_slices(&mut left, count);
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Cuts the file to `length` if it is longer. Returns its former length.
fn cut(path: &Path, length: u64) -> io::Result<u64> {
    let file = OpenOptions::new().write(true).open(path)?;
    let found = file.metadata()?.len();
    if found > length {
        file.set_len(length)?;
        file.sync_all()?;
    }
    Ok(found)
}

fn remove_unknown(root: &Path, known: &BTreeSet<PathBuf>) -> io::Result<()> {
    for job in std::fs::read_dir(root)? {
        let job = job?.path();
        if !job.is_dir() {
            continue;
        }
        for spool in std::fs::read_dir(&job)? {
            let path = spool?.path();
            if !known.contains(&path) {
                std::fs::remove_file(path)?;
            }
        }
        drop(std::fs::remove_dir(&job));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
