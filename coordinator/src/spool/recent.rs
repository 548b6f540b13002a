//! Results that were written lately, in memory: finishing units and whoever puts files together
//! read most results seconds after they arrived. Owns the bound. What is durable is the files'
//! business.

use super::entry::EntryHeader;
use super::key::SpoolKey;
use super::store::{SpoolBody, SpoolEntry};
use crate::sync::lock;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Mutex;
use tessera_protocol::{BlobHash, Epoch, UnitIndex};

/// Fewest bytes of a result that is kept. Shorter ones are read as fast from the system's memory,
/// and would be many: a job may have a million of them.
const LEAST: usize = 4 << 10;

/// A result: its spool, its unit, and the lease that made it.
type Id = (SpoolKey, UnitIndex, Epoch);

/// The newest results of all spools, up to a number of bytes.
#[derive(Debug, Default)]
pub(super) struct Recent {
    most: usize,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    bytes: usize,
    /// Each result with its number.
    results: BTreeMap<Id, (u64, BlobHash, Bytes)>,
    /// Results by their numbers, which grow.
    order: BTreeMap<u64, Id>,
}

impl Held {
    fn remove(&mut self, id: &Id) {
        if let Some((number, _, bytes)) = self.results.remove(id) {
            self.order.remove(&number);
            self.bytes -= bytes.len();
        }
    }
}

impl Recent {
    /// Keeps at most so many bytes; 0 for none.
    pub(super) fn of(most: usize) -> Self {
        Self { most, held: Mutex::default() }
    }

    /// Keeps results whose bytes are checked. The oldest ones of all spools make room for them.
    pub(super) fn keep(&self, group: &[SpoolEntry]) {
        if self.most == 0 {
            return;
        }
        let mut held = lock(&self.held);
        for SpoolEntry { key, header, body } in group {
            let SpoolBody::Bytes(bytes) = body else { continue };
            let (id, length) = ((*key, header.unit, header.epoch), bytes.len());
            held.remove(&id);
            if !(LEAST..=self.most).contains(&length) {
                continue;
            }
            while held.bytes + length > self.most
                && let Some((_, oldest)) = held.order.pop_first()
            {
                held.remove(&oldest);
            }
            let number = held.order.last_key_value().map_or(0, |(last, _)| last + 1);
            held.order.insert(number, id);
            held.results.insert(id, (number, header.hash, bytes.clone()));
            held.bytes += length;
        }
    }

    /// Lets the results of spools go.
    pub(super) fn forget(&self, keys: &[SpoolKey]) {
        let mut held = lock(&self.held);
        for key in keys {
            let (first, last) = ((UnitIndex(0), Epoch(0)), (UnitIndex(u32::MAX), Epoch(u64::MAX)));
            let range = (*key, first.0, first.1)..=(*key, last.0, last.1);
            let ids: Vec<Id> = held.results.range(range).map(|(id, _)| *id).collect();
            ids.iter().for_each(|id| held.remove(id));
        }
    }

    /// Returns the bytes of a result, if they are here and are what its header in the spool says.
    pub(super) fn get(&self, key: SpoolKey, header: &EntryHeader) -> Option<Bytes> {
        let held = lock(&self.held);
        let (_, hash, bytes) = held.results.get(&(key, header.unit, header.epoch))?;
        let is_it = *hash == header.hash && bytes.len() == header.length as usize;
        is_it.then(|| bytes.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spool::contract::{entry, key};

    /// A result of so many bytes.
    fn result(key: SpoolKey, unit: u32, length: usize) -> SpoolEntry {
        let bytes = Bytes::from(vec![unit as u8; length]);
        let entry = entry(key, unit);
        let (length, hash) = (bytes.len() as u32, BlobHash::of(&bytes));
        let header = EntryHeader { length, hash, ..entry.header };
        SpoolEntry { header, body: bytes.into(), ..entry }
    }

    #[test]
    fn the_newest_results_are_in_memory_and_no_more() {
        let of = key(1);
        let entries: Vec<SpoolEntry> =
            (0..4).map(|unit| result(of, unit, LEAST + unit as usize)).collect();
        let two = entries[2..].iter().map(|entry| entry.body.length()).sum();
        let recent = Recent::of(two);
        recent.keep(&entries);
        let has = |one: &SpoolEntry| recent.get(one.key, &one.header).is_some();
        assert_eq!(entries.iter().map(has).collect::<Vec<_>>(), [false, false, true, true]);
        let SpoolBody::Bytes(bytes) = &entries[3].body else { panic!("it has bytes") };
        assert_eq!(recent.get(of, &entries[3].header).as_ref(), Some(bytes));
        // A group that is written again, after the disk was full.
        recent.keep(&entries[2..]);
        assert!(has(&entries[2]) && has(&entries[3]) && lock(&recent.held).bytes == two);
        // Other bytes of the same unit, and of another spool.
        let other = EntryHeader { hash: BlobHash::of(b"other"), ..entries[3].header };
        assert_eq!(recent.get(of, &other), None);
        let longer = EntryHeader { length: entries[3].header.length + 1, ..entries[3].header };
        assert_eq!(recent.get(of, &longer), None);
        assert_eq!(recent.get(key(2), &entries[3].header), None);
    }

    #[test]
    fn results_that_are_too_short_or_too_long_are_not_kept() {
        let recent = Recent::of(2 * LEAST);
        let lengths = [LEAST - 1, LEAST, 2 * LEAST, 2 * LEAST + 1];
        let of = key(1);
        for (unit, kept) in [(0, false), (1, true), (2, true), (3, false)] {
            let one = result(of, unit, lengths[unit as usize]);
            recent.keep(std::slice::from_ref(&one));
            assert_eq!(recent.get(of, &one.header).is_some(), kept, "{unit}");
        }
    }

    #[test]
    fn results_of_a_spool_that_ends_leave_memory() {
        let recent = Recent::of(1 << 20);
        let (a, b) = (result(key(1), 0, LEAST), result(key(2), 0, LEAST));
        recent.keep(&[a.clone(), b.clone()]);
        recent.forget(&[a.key]);
        assert_eq!(recent.get(a.key, &a.header), None);
        assert!(recent.get(b.key, &b.header).is_some());
        recent.forget(&[b.key]);
        let held = lock(&recent.held);
        assert_eq!((held.bytes, held.results.len(), held.order.len()), (0, 0, 0));
    }
}
