//! The reading side: where each unit's result stands in a spool, and the result itself, checked.

use super::{EntryHeader, HEADER_BYTES, SpoolError, SpoolKey};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use tessera_protocol::{BlobHash, TileSums, UnitIndex};

/// Entries of one spool by unit: 64 bytes of memory an entry, so 128 KiB for a 4K frame in 64 px tiles.
#[derive(Debug)]
pub struct SpoolIndex {
    path: PathBuf,
    file: File,
    entries: Vec<(EntryHeader, u64)>,
}

impl SpoolIndex {
    /// Reads the headers of the first `length` bytes, the durable ones.
    pub fn read(root: &Path, key: SpoolKey, length: u64) -> Result<Self, SpoolError> {
        let path = key.path(root);
        let failed = |source| SpoolError::Io { path: path.clone(), source };
        let file = File::open(&path).map_err(failed)?;
        let found = file.metadata().map_err(failed)?.len();
        if found < length {
            return Err(SpoolError::Short { path, found, expected: length });
        }
        let mut entries = Vec::new();
        let mut offset = 0;
        while offset < length {
            let mut bytes = [0; HEADER_BYTES];
            let damaged = || SpoolError::Damaged { path: path.clone(), offset };
            if length - offset < HEADER_BYTES as u64 {
                return Err(damaged());
            }
            file.read_exact_at(&mut bytes, offset).map_err(failed)?;
            let header = EntryHeader::from_bytes(&bytes).ok_or_else(damaged)?;
            let start = offset + HEADER_BYTES as u64;
            let end = start + u64::from(header.length);
            if end > length {
                return Err(damaged());
            }
            entries.push((header, start));
            offset = end;
        }
        entries.sort_by_key(|(header, _): &(EntryHeader, u64)| (header.unit, header.epoch));
        // A unit that was taken back and done again stands here twice: the newer lease's result is the one that counts.
        entries.dedup_by(|newer, older| {
            let again = newer.0.unit == older.0.unit && newer.0.epoch > older.0.epoch;
            if again {
                *older = *newer;
            }
            again
        });
        Ok(Self { path, file, entries })
    }

    /// The headers, by unit.
    pub fn headers(&self) -> impl Iterator<Item = &EntryHeader> {
        self.entries.iter().map(|(header, _)| header)
    }

    /// Fails unless every unit from 0 to `units` - 1 stands here once, and no other.
    pub fn check_complete(&self, units: u32) -> Result<(), SpoolError> {
        let mut entries = self.entries.iter().map(|(header, _)| header.unit).peekable();
        for expected in 0..units {
            let unit = UnitIndex(expected);
            let mut count = 0;
            while entries.next_if_eq(&unit).is_some() {
                count += 1;
            }
            if count != 1 {
                return Err(SpoolError::Count { path: self.path.clone(), unit, count });
            }
        }
        match entries.next() {
            None => Ok(()),
            Some(unit) => Err(SpoolError::Count { path: self.path.clone(), unit, count: 1 }),
        }
    }

    /// The bytes of a unit's result, with the hash that they were written with.
    pub fn bytes(&self, unit: UnitIndex) -> Result<Vec<u8>, SpoolError> {
        let path = || self.path.clone();
        let position = self
            .entries
            .binary_search_by_key(&unit, |(header, _)| header.unit)
            .map_err(|_| SpoolError::Count { path: path(), unit, count: 0 })?;
        let (header, start) = &self.entries[position];
        let mut bytes = vec![0; header.length as usize];
        self.file
            .read_exact_at(&mut bytes, *start)
            .map_err(|source| SpoolError::Io { path: path(), source })?;
        if BlobHash::of(&bytes) != header.hash {
            return Err(SpoolError::Hash { path: path(), unit });
        }
        Ok(bytes)
    }

    /// A unit's film.
    pub fn film(&self, unit: UnitIndex) -> Result<TileSums, SpoolError> {
        let bytes = self.bytes(unit)?;
        TileSums::from_bytes(&bytes).map_err(|source| SpoolError::Film {
            path: self.path.clone(),
            unit,
            source,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spool::{SpoolEntry, SpoolFiles};
    use bytes::Bytes;
    use std::collections::BTreeMap;
    use tessera_protocol::{Epoch, FrameNumber, JobId};

    fn entry(key: SpoolKey, unit: u32) -> SpoolEntry {
        let mut film = TileSums::empty(4, 4, 3);
        film.samples = unit + 1;
        let bytes = Bytes::from(film.to_bytes());
        let header = EntryHeader {
            unit: UnitIndex(unit),
            epoch: Epoch(100 + u64::from(unit)),
            samples: unit + 1,
            length: bytes.len() as u32,
            hash: BlobHash::of(&bytes),
        };
        SpoolEntry { key, header, bytes }
    }

    fn key(frame: u32) -> SpoolKey {
        SpoolKey { job: JobId::new(), frame: FrameNumber(frame) }
    }

    #[test]
    fn results_are_found_by_unit_whatever_their_order() {
        let root = tempfile::tempdir().unwrap();
        let key = key(7);
        let (mut files, problems) = SpoolFiles::open(root.path(), BTreeMap::new(), true).unwrap();
        assert!(problems.is_empty());
        for units in [&[2, 0][..], &[1]] {
            let group: Vec<_> = units.iter().map(|unit| entry(key, *unit)).collect();
            let lengths = files.append(&group).unwrap();
            files.accept(lengths);
        }
        let length = files.lengths()[&key];
        let index = SpoolIndex::read(root.path(), key, length).unwrap();
        index.check_complete(3).unwrap();
        assert!(matches!(index.check_complete(4), Err(SpoolError::Count { count: 0, .. })));
        assert!(matches!(index.check_complete(2), Err(SpoolError::Count { count: 1, .. })));
        for unit in 0..3 {
            assert_eq!(index.film(UnitIndex(unit)).unwrap().samples, unit + 1);
        }
    }

    #[test]
    fn of_a_unit_that_was_done_again_the_newer_result_counts() {
        let root = tempfile::tempdir().unwrap();
        let key = key(3);
        let (mut files, _) = SpoolFiles::open(root.path(), BTreeMap::new(), true).unwrap();
        let mut again = entry(key, 1);
        again.header.epoch = Epoch(500);
        let lengths = files.append(&[entry(key, 1), entry(key, 0), again.clone()]).unwrap();
        let index = SpoolIndex::read(root.path(), key, lengths[&key]).unwrap();
        index.check_complete(2).unwrap();
        assert_eq!(index.headers().map(|header| header.epoch.0).collect::<Vec<_>>(), [100, 500]);
        let lengths = files.append(&[again.clone(), again]).unwrap();
        let twice = SpoolIndex::read(root.path(), key, lengths[&key]).unwrap();
        assert!(twice.check_complete(2).is_err(), "one lease has one result");
    }

    #[test]
    fn a_torn_tail_is_cut_and_overwritten() {
        let root = tempfile::tempdir().unwrap();
        let key = key(1);
        let (mut files, _) = SpoolFiles::open(root.path(), BTreeMap::new(), true).unwrap();
        let lengths = files.append(&[entry(key, 0)]).unwrap();
        files.accept(lengths.clone());
        // Written, but the journal never heard of it: the process was killed in between.
        files.append(&[entry(key, 1)]).unwrap();
        drop(files);

        let (mut files, problems) = SpoolFiles::open(root.path(), lengths.clone(), true).unwrap();
        assert!(problems.is_empty());
        assert_eq!(std::fs::metadata(key.path(root.path())).unwrap().len(), lengths[&key]);
        let longer = files.append(&[entry(key, 2)]).unwrap();
        let index = SpoolIndex::read(root.path(), key, longer[&key]).unwrap();
        assert_eq!(index.headers().map(|header| header.unit.0).collect::<Vec<_>>(), [0, 2]);
    }

    #[test]
    fn lost_and_changed_bytes_are_seen() {
        let root = tempfile::tempdir().unwrap();
        let key = key(1);
        let (mut files, _) = SpoolFiles::open(root.path(), BTreeMap::new(), true).unwrap();
        let lengths = files.append(&[entry(key, 0), entry(key, 1)]).unwrap();
        drop(files);
        let path = key.path(root.path());
        let whole = std::fs::read(&path).unwrap();

        let mut changed = whole.clone();
        *changed.last_mut().unwrap() ^= 1;
        std::fs::write(&path, &changed).unwrap();
        let index = SpoolIndex::read(root.path(), key, lengths[&key]).unwrap();
        assert!(index.film(UnitIndex(0)).is_ok());
        assert!(matches!(index.film(UnitIndex(1)), Err(SpoolError::Hash { .. })));

        std::fs::write(&path, &whole[..whole.len() - 1]).unwrap();
        let (_, problems) = SpoolFiles::open(root.path(), lengths.clone(), true).unwrap();
        assert!(matches!(problems[..], [SpoolError::Short { .. }]));
        let short = SpoolIndex::read(root.path(), key, lengths[&key]);
        assert!(matches!(short, Err(SpoolError::Short { .. })));

        let mut foreign = whole;
        foreign[0] = b'X';
        std::fs::write(&path, &foreign).unwrap();
        let damaged = SpoolIndex::read(root.path(), key, lengths[&key]);
        assert!(matches!(damaged, Err(SpoolError::Damaged { offset: 0, .. })));
    }

    #[test]
    fn spools_that_the_journal_does_not_know_are_deleted() {
        let root = tempfile::tempdir().unwrap();
        let (kept, left) = (key(1), key(2));
        let (mut files, _) = SpoolFiles::open(root.path(), BTreeMap::new(), true).unwrap();
        let mut lengths = files.append(&[entry(kept, 0), entry(left, 0)]).unwrap();
        lengths.remove(&left);
        drop(files);
        let (mut files, _) = SpoolFiles::open(root.path(), lengths, true).unwrap();
        assert!(kept.path(root.path()).exists() && !left.path(root.path()).exists());
        files.forget(&[kept]);
        files.remove(&[kept]);
        assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 0);
    }
}
