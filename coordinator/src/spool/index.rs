//! Reading of a spool: the places of each unit's results, and the results themselves with their
//! checks.

use super::entry::{EntryError, EntryHeader, HEADER_BYTES};
use super::extent::{SegmentName, SpoolExtent};
use super::key::SpoolKey;
use super::store::{SpoolError, SpoolRead, SpoolReader};
use bytes::Bytes;
use std::io;
use std::path::PathBuf;
use tessera_core::{FrameRounds, Split};
use tessera_protocol::{BlobHash, TileSums, UnitIndex};

/// Bytes that are read at once when an entry is only checked.
const CHECK_BYTES: usize = 1 << 20;

/// Entries of one spool, by unit. An entry needs 64 bytes of memory, so a 4K frame with tiles of 64
/// pixels needs 128 KiB. A unit in parts has several entries, in the order of their samples.
pub struct SpoolIndex {
    path: PathBuf,
    spool: Box<dyn SpoolRead>,
    entries: Vec<(EntryHeader, u64)>,
    /// Position from which on results are elsewhere.
    elsewhere_from: u64,
}

impl std::fmt::Debug for SpoolIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SpoolIndex").field("path", &self.path).finish_non_exhaustive()
    }
}

impl SpoolIndex {
    /// Reads the headers of the durable part, and checks them against the seals.
    pub fn read(
        spools: &dyn SpoolReader,
        key: SpoolKey,
        extent: &SpoolExtent,
    ) -> Result<Self, SpoolError> {
        let spool = spools.open(key, extent)?;
        let mut reading = Reading { path: spool.place(), spool, entries: Vec::new() };
        let mut start = 0;
        for segment in &extent.sealed {
            let end = start + segment.length;
            if reading.headers(start, end)? != segment.hash {
                return Err(SpoolError::Seal { path: reading.path, hash: segment.hash });
            }
            start = end;
        }
        reading.headers(start, extent.length)?;
        let mut start = extent.length;
        for stored in &extent.stored {
            let place =
                |(header, offset): &(EntryHeader, u32)| (*header, start + u64::from(*offset));
            reading.entries.extend(stored.entries.iter().map(place));
            start += u64::from(stored.object.length);
        }
        let Reading { path, spool, entries } = reading;
        Ok(Self { path, spool, entries: newest(entries), elsewhere_from: extent.length })
    }

    /// Returns the headers, by unit and then by sample.
    pub fn headers(&self) -> impl Iterator<Item = &EntryHeader> {
        self.entries.iter().map(|(header, _)| header)
    }

    /// Checks that every unit from 0 to `units` - 1 is there once, or in parts without gaps. There
    /// may be finishing units, from there to `all` - 1, but no other unit.
    pub fn check_complete(&self, units: u32, all: u32) -> Result<(), SpoolError> {
        self.check_units(0..units, |unit| !(units..all).contains(&unit.0))
    }

    /// Checks the units of a frame's rounds in the same way. There may be other units, from rounds
    /// that were rendered but not needed.
    pub fn check_rounds(&self, rounds: &FrameRounds) -> Result<(), SpoolError> {
        let sampled = 0..rounds.grid().units();
        let all = 0..Split::Tiles(*rounds.grid()).all_units();
        self.check_units(sampled.filter(|unit| rounds.has(UnitIndex(*unit))), |unit| {
            rounds.has(unit) || !all.contains(&unit.0)
        })
    }

    fn check_units(
        &self,
        units: impl Iterator<Item = u32>,
        counts: impl Fn(UnitIndex) -> bool,
    ) -> Result<(), SpoolError> {
        let counting =
            self.entries.iter().map(|(header, _)| *header).filter(|header| counts(header.unit));
        let mut entries = counting.peekable();
        for expected in units {
            let unit = UnitIndex(expected);
            let (mut samples, mut epoch) = (0, None);
            while let Some(entry) = entries.next_if(|entry| entry.unit == unit) {
                let path = self.path.clone();
                if epoch == Some(entry.epoch) {
                    return Err(SpoolError::Count { path, unit, count: 2 });
                }
                if entry.first != samples {
                    return Err(SpoolError::Gap { path, unit, first: entry.first, samples });
                }
                (samples, epoch) = (entry.first.saturating_add(entry.samples), Some(entry.epoch));
            }
            if epoch.is_none() {
                return Err(SpoolError::Count { path: self.path.clone(), unit, count: 0 });
            }
        }
        match entries.next() {
            None => Ok(()),
            Some(entry) => {
                Err(SpoolError::Count { path: self.path.clone(), unit: entry.unit, count: 1 })
            }
        }
    }

    /// Returns the place to name in errors.
    pub(crate) fn place(&self) -> PathBuf {
        self.path.clone()
    }

    /// Returns the places of a unit's entries.
    pub(crate) fn of_unit(&self, unit: UnitIndex) -> Result<&[(EntryHeader, u64)], SpoolError> {
        let start = self.entries.partition_point(|(header, _)| header.unit < unit);
        let end = self.entries.partition_point(|(header, _)| header.unit <= unit);
        match self.entries.get(start..end) {
            Some(entries) if !entries.is_empty() => Ok(entries),
            _ => Err(SpoolError::Count { path: self.path.clone(), unit, count: 0 }),
        }
    }

    /// Returns the bytes of an entry, if they are still in memory. They were checked as they came.
    pub(crate) fn recent(&self, header: &EntryHeader) -> Option<Bytes> {
        self.spool.recent(header)
    }

    /// Returns the bytes of an entry: from memory, or read and checked.
    pub(crate) fn entry(&self, entry: &(EntryHeader, u64)) -> Result<Bytes, SpoolError> {
        match self.recent(&entry.0) {
            Some(bytes) => Ok(bytes),
            None => self.read_entry(entry).map(Bytes::from),
        }
    }

    /// Reads the bytes of an entry, and checks their hash.
    pub(crate) fn read_entry(&self, entry: &(EntryHeader, u64)) -> Result<Vec<u8>, SpoolError> {
        let mut bytes = vec![0; entry.0.length as usize];
        self.read_entry_into(entry, &mut bytes)?;
        Ok(bytes)
    }

    /// Reads the bytes of an entry into a buffer of their length, and checks their hash.
    pub(crate) fn read_entry_into(
        &self,
        (header, start): &(EntryHeader, u64),
        bytes: &mut [u8],
    ) -> Result<(), SpoolError> {
        self.read_of(header, *start, bytes)?;
        match BlobHash::of(bytes) == header.hash {
            true => Ok(()),
            false => Err(SpoolError::Hash { path: self.path.clone(), unit: header.unit }),
        }
    }

    /// Checks the hash of an entry, without its bytes in memory at once.
    pub(crate) fn check_entry(
        &self,
        (header, start): &(EntryHeader, u64),
    ) -> Result<(), SpoolError> {
        let mut hasher = blake3::Hasher::new();
        let mut buffer = vec![0; CHECK_BYTES.min(header.length as usize)];
        let (mut at, end) = (*start, start + u64::from(header.length));
        while at < end {
            let count = (end - at).min(buffer.len() as u64) as usize;
            self.read_of(header, at, &mut buffer[..count])?;
            hasher.update(&buffer[..count]);
            at += count as u64;
        }
        match BlobHash(*hasher.finalize().as_bytes()) == header.hash {
            true => Ok(()),
            false => Err(SpoolError::Hash { path: self.path.clone(), unit: header.unit }),
        }
    }

    /// Reads bytes of a result. One that is elsewhere may be gone, which is its own fault.
    fn read_of(&self, header: &EntryHeader, at: u64, buffer: &mut [u8]) -> Result<(), SpoolError> {
        self.read_at(at, buffer).map_err(|error| match error {
            SpoolError::Io { path, source }
                if at >= self.elsewhere_from
                    && matches!(
                        source.kind(),
                        io::ErrorKind::NotFound | io::ErrorKind::UnexpectedEof
                    ) =>
            {
                SpoolError::Gone { path, unit: header.unit, source }
            }
            error => error,
        })
    }

    /// Reads bytes of the spool from a position on, and checks nothing.
    pub(crate) fn read_at(&self, position: u64, buffer: &mut [u8]) -> Result<(), SpoolError> {
        let failed = |source| SpoolError::Io { path: self.path.clone(), source };
        self.spool.read_exact_at(position, buffer).map_err(failed)
    }

    /// Returns the bytes of a result, after a check of their hash.
    pub(crate) fn bytes_of(&self, header: &EntryHeader) -> Result<Bytes, SpoolError> {
        let entries = self.of_unit(header.unit)?;
        match entries.iter().find(|(other, _)| other == header) {
            Some(entry) => self.entry(entry),
            None => {
                let (path, unit) = (self.path.clone(), header.unit);
                Err(SpoolError::Count { path, unit, count: 0 })
            }
        }
    }

    /// Returns the bytes of a unit's only result, after a check of their hash.
    pub fn bytes(&self, unit: UnitIndex) -> Result<Bytes, SpoolError> {
        self.entry(self.only(unit)?)
    }

    /// Returns the place of a unit's only result.
    pub(crate) fn only(&self, unit: UnitIndex) -> Result<&(EntryHeader, u64), SpoolError> {
        match self.of_unit(unit)? {
            [entry] => Ok(entry),
            several => {
                let count = several.len() as u32;
                Err(SpoolError::Count { path: self.path.clone(), unit, count })
            }
        }
    }

    /// Reads every result, also one that is in memory, and checks its hash.
    pub fn check_bytes(&self) -> impl Iterator<Item = SpoolError> + '_ {
        self.entries.iter().filter_map(|entry| self.read_entry(entry).err())
    }

    /// Returns the film of a unit, which is the sum of its parts.
    pub fn film(&self, unit: UnitIndex) -> Result<TileSums, SpoolError> {
        let failed = |source| SpoolError::Film { path: self.path.clone(), unit, source };
        let mut whole: Option<TileSums> = None;
        for entry in self.of_unit(unit)? {
            let film = TileSums::from_bytes(&self.entry(entry)?).map_err(failed)?;
            match &mut whole {
                None => whole = Some(film),
                Some(whole) => whole.add(&film).map_err(failed)?,
            }
        }
        whole.ok_or_else(|| SpoolError::Count { path: self.path.clone(), unit, count: 0 })
    }
}

/// State of the reading of a spool's headers.
struct Reading {
    path: PathBuf,
    spool: Box<dyn SpoolRead>,
    entries: Vec<(EntryHeader, u64)>,
}

impl Reading {
    /// Reads the headers of a range of whole entries. Returns the name of a segment with them.
    fn headers(&mut self, mut offset: u64, end: u64) -> Result<BlobHash, SpoolError> {
        let mut name = SegmentName::default();
        while offset < end {
            let mut bytes = [0; HEADER_BYTES];
            let damaged = || SpoolError::Damaged { path: self.path.clone(), offset };
            if end - offset < HEADER_BYTES as u64 {
                return Err(damaged());
            }
            let failed = |source| SpoolError::Io { path: self.path.clone(), source };
            self.spool.read_exact_at(offset, &mut bytes).map_err(failed)?;
            let header = EntryHeader::from_bytes(&bytes).map_err(|error| match error {
                EntryError::Damaged => damaged(),
                EntryError::Version(source) => {
                    SpoolError::Version { path: self.path.clone(), offset, source }
                }
            })?;
            let start = offset + HEADER_BYTES as u64;
            let next = start + u64::from(header.length);
            if next > end {
                return Err(damaged());
            }
            name.add(&header);
            self.entries.push((header, start));
            offset = next;
        }
        Ok(name.hash())
    }
}

/// Returns the entries that count, by unit and samples. A unit that was taken back and done again
/// is in a spool twice. Then the result of the newest lease counts. If that does not begin with the
/// unit's first sample, the parts before it also count, back to the one that does. All entries with
/// the same epoch are kept; that is a fault, which readers report.
fn newest(mut entries: Vec<(EntryHeader, u64)>) -> Vec<(EntryHeader, u64)> {
    entries.sort_by_key(|(header, start): &(EntryHeader, u64)| (header.unit, header.epoch, *start));
    let mut counting: Vec<(EntryHeader, u64)> = Vec::with_capacity(entries.len());
    for entry in entries {
        let header = entry.0;
        let begins_anew = header.first == 0;
        let before =
            |last: &&(EntryHeader, u64)| last.0.unit == header.unit && last.0.epoch < header.epoch;
        while begins_anew && counting.last().as_ref().is_some_and(before) {
            counting.pop();
        }
        counting.push(entry);
    }
    counting
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spool::contract::{entry, key};
    use crate::spool::{DiskSpools, SpoolEntry, Spools, path_of};
    use std::collections::BTreeMap;
    use std::path::Path;
    use tessera_protocol::Epoch;

    fn read(root: &Path, key: SpoolKey, extent: &SpoolExtent) -> Result<SpoolIndex, SpoolError> {
        SpoolIndex::read(&*DiskSpools::reader_of(root), key, extent)
    }

    #[test]
    fn results_are_found_by_unit_whatever_their_order() {
        let root = tempfile::tempdir().unwrap();
        let key = key(7);
        let (mut files, problems) = DiskSpools::open(root.path(), BTreeMap::new(), true).unwrap();
        assert!(problems.is_empty());
        for units in [&[2, 0][..], &[1]] {
            let group: Vec<_> = units.iter().map(|unit| entry(key, *unit)).collect();
            let lengths = files.append(&group).unwrap();
            files.accept(lengths);
        }
        let length = files.extents()[&key].clone();
        let index = read(root.path(), key, &length).unwrap();
        index.check_complete(3, 3).unwrap();
        index.check_complete(2, 3).expect("the last may finish the frame");
        assert!(matches!(index.check_complete(4, 4), Err(SpoolError::Count { count: 0, .. })));
        assert!(matches!(index.check_complete(2, 2), Err(SpoolError::Count { count: 1, .. })));
        for unit in 0..3 {
            assert_eq!(index.film(UnitIndex(unit)).unwrap().samples, unit + 1);
        }
    }

    #[test]
    fn the_newer_result_of_a_redone_unit_counts() {
        let root = tempfile::tempdir().unwrap();
        let key = key(3);
        let (mut files, _) = DiskSpools::open(root.path(), BTreeMap::new(), true).unwrap();
        let mut again = entry(key, 1);
        again.header.epoch = Epoch(500);
        let lengths = files.append(&[entry(key, 1), entry(key, 0), again.clone()]).unwrap();
        let index = read(root.path(), key, &lengths[&key]).unwrap();
        index.check_complete(2, 2).unwrap();
        assert_eq!(index.headers().map(|header| header.epoch.0).collect::<Vec<_>>(), [100, 500]);
        let lengths = files.append(&[again.clone(), again]).unwrap();
        let twice = read(root.path(), key, &lengths[&key]).unwrap();
        assert!(twice.check_complete(2, 2).is_err(), "one lease has one result");
    }

    // promise: P2
    #[test]
    fn a_unit_is_the_sum_of_its_parts_without_dropped_ones() {
        let root = tempfile::tempdir().unwrap();
        let key = key(3);
        let (mut files, _) = DiskSpools::open(root.path(), BTreeMap::new(), true).unwrap();
        let part = |epoch: u64, first: u32, samples: u32| {
            let mut film = TileSums::empty(4, 4, 3);
            film.samples = samples;
            film.values.fill(i64::from(samples) << epoch);
            let bytes = Bytes::from(film.to_bytes());
            let (length, hash) = (bytes.len() as u32, BlobHash::of(&bytes));
            let header = EntryHeader {
                unit: UnitIndex(1),
                epoch: Epoch(epoch),
                first,
                samples,
                length,
                hash,
            };
            SpoolEntry { key, header, body: bytes.into() }
        };
        // The first two were dropped. Then come a part of five, one of three, and the rest.
        let group = [
            part(1, 0, 4),
            part(2, 4, 6),
            part(3, 0, 5),
            entry(key, 0),
            part(4, 5, 3),
            part(5, 8, 2),
        ];
        let mut length = SpoolExtent::default();
        for entry in &group {
            let lengths = files.append(std::slice::from_ref(entry)).unwrap();
            length = lengths[&key].clone();
            files.accept(lengths);
        }
        let index = read(root.path(), key, &length).unwrap();
        index.check_complete(2, 2).unwrap();
        let film = index.film(UnitIndex(1)).unwrap();
        assert_eq!((film.samples, film.values[7]), (10, (5 << 3) + (3 << 4) + (2 << 5)));
        assert!(matches!(index.bytes(UnitIndex(1)), Err(SpoolError::Count { count: 3, .. })));
        assert_eq!((index.check_bytes().count(), index.headers().count()), (0, 4));

        // A unit that was taken back completely, and done again completely.
        let lengths = files.append(&[part(6, 0, 10)]).unwrap();
        let again = read(root.path(), key, &lengths[&key]).unwrap();
        again.check_complete(2, 2).unwrap();
        assert_eq!(again.film(UnitIndex(1)).unwrap().values[0], 10 << 6);
        // A part is missing.
        let lengths = files.append(&[part(6, 0, 4), part(7, 5, 5)]).unwrap();
        let gap = read(root.path(), key, &lengths[&key]).unwrap();
        assert!(matches!(
            gap.check_complete(2, 2),
            Err(SpoolError::Gap { first: 5, samples: 4, .. })
        ));
    }

    #[test]
    fn a_torn_tail_is_cut_and_overwritten() {
        let root = tempfile::tempdir().unwrap();
        let key = key(1);
        let (mut files, _) = DiskSpools::open(root.path(), BTreeMap::new(), true).unwrap();
        let lengths = files.append(&[entry(key, 0)]).unwrap();
        files.accept(lengths.clone());
        // The bytes were written, but the process was killed before the journal knew of them.
        files.append(&[entry(key, 1)]).unwrap();
        drop(files);

        let (mut files, problems) = DiskSpools::open(root.path(), lengths.clone(), true).unwrap();
        assert!(problems.is_empty());
        assert_eq!(
            std::fs::metadata(path_of(root.path(), key)).unwrap().len(),
            lengths[&key].length
        );
        let longer = files.append(&[entry(key, 2)]).unwrap();
        let index = read(root.path(), key, &longer[&key]).unwrap();
        assert_eq!(index.headers().map(|header| header.unit.0).collect::<Vec<_>>(), [0, 2]);
    }

    // promise: P1
    #[test]
    fn lost_and_changed_bytes_are_seen() {
        let root = tempfile::tempdir().unwrap();
        let key = key(1);
        let (mut files, _) = DiskSpools::open(root.path(), BTreeMap::new(), true).unwrap();
        let lengths = files.append(&[entry(key, 0), entry(key, 1)]).unwrap();
        drop(files);
        let path = path_of(root.path(), key);
        let whole = std::fs::read(&path).unwrap();

        let mut changed = whole.clone();
        *changed.last_mut().unwrap() ^= 1;
        std::fs::write(&path, &changed).unwrap();
        let index = read(root.path(), key, &lengths[&key]).unwrap();
        assert!(index.film(UnitIndex(0)).is_ok());
        assert!(matches!(index.film(UnitIndex(1)), Err(SpoolError::Hash { .. })));

        std::fs::write(&path, &whole[..whole.len() - 1]).unwrap();
        let short = read(root.path(), key, &lengths[&key]);
        assert!(matches!(short, Err(SpoolError::Short { .. })));
        let (mut anew, problems) = DiskSpools::open(root.path(), lengths.clone(), true).unwrap();
        assert!(matches!(problems[..], [SpoolError::Short { .. }]));
        assert!(anew.extents().is_empty() && !path.exists());
        assert_eq!(anew.append(&[entry(key, 0)]).unwrap().len(), 1);

        let mut foreign = whole;
        foreign[0] = b'X';
        std::fs::write(&path, &foreign).unwrap();
        let damaged = read(root.path(), key, &lengths[&key]);
        assert!(matches!(damaged, Err(SpoolError::Damaged { offset: 0, .. })));
    }

    #[test]
    fn spools_that_the_journal_does_not_know_are_deleted() {
        let root = tempfile::tempdir().unwrap();
        let (kept, left) = (key(1), key(2));
        let (mut files, _) = DiskSpools::open(root.path(), BTreeMap::new(), true).unwrap();
        let mut lengths = files.append(&[entry(kept, 0), entry(left, 0)]).unwrap();
        lengths.remove(&left);
        drop(files);
        let (mut files, _) = DiskSpools::open(root.path(), lengths, true).unwrap();
        assert!(path_of(root.path(), kept).exists() && !path_of(root.path(), left).exists());
        files.forget(&[kept]);
        files.delete(&[kept]);
        assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 0);
    }
}
