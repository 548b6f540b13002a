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

/// Bytes of memory that a result takes beside its own, so that short ones are not without number.
const COST: usize = 256;

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
            self.bytes -= bytes.len() + COST;
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
            let (id, cost) = ((*key, header.unit, header.epoch), bytes.len() + COST);
            held.remove(&id);
            if cost > self.most {
                continue;
            }
            while held.bytes + cost > self.most
                && let Some((_, oldest)) = held.order.pop_first()
            {
                held.remove(&oldest);
            }
            let number = held.order.last_key_value().map_or(0, |(last, _)| last + 1);
            held.order.insert(number, id);
            held.results.insert(id, (number, header.hash, bytes.clone()));
            held.bytes += cost;
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

    /// Returns the bytes of a result, if they are here.
    pub(super) fn get(&self, key: SpoolKey, header: &EntryHeader) -> Option<Bytes> {
        let held = lock(&self.held);
        let (_, hash, bytes) = held.results.get(&(key, header.unit, header.epoch))?;
        (*hash == header.hash).then(|| bytes.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spool::contract::{entry, key};

    /// Returns the bytes of a result in memory.
    fn cost(entry: &SpoolEntry) -> usize {
        entry.body.length() + COST
    }

    #[test]
    fn the_newest_results_are_in_memory_and_no_more() {
        let of = key(1);
        let entries: Vec<SpoolEntry> = (0..4).map(|unit| entry(of, unit)).collect();
        let two = entries[2..].iter().map(cost).sum();
        let recent = Recent::of(two);
        recent.keep(&entries);
        let has = |one: &SpoolEntry| recent.get(one.key, &one.header).is_some();
        assert_eq!(entries.iter().map(has).collect::<Vec<_>>(), [false, false, true, true]);
        let SpoolBody::Bytes(bytes) = &entries[3].body else { panic!("it has bytes") };
        assert_eq!(recent.get(of, &entries[3].header).as_ref(), Some(bytes));
        // A group that is written again, after the disk was full.
        recent.keep(&entries[2..]);
        assert!(has(&entries[2]) && has(&entries[3]) && lock(&recent.held).bytes == two);
        // Other bytes of the same unit, of another spool, and one that is too long.
        let other = EntryHeader { hash: BlobHash::of(b"other"), ..entries[3].header };
        assert_eq!(recent.get(of, &other), None);
        assert_eq!(recent.get(key(2), &entries[3].header), None);
        let small = Recent::of(cost(&entries[0]) - 1);
        small.keep(&entries[..1]);
        assert_eq!(small.get(of, &entries[0].header), None);
    }

    #[test]
    fn results_of_a_spool_that_ends_leave_memory() {
        let recent = Recent::of(1 << 20);
        let (a, b) = (entry(key(1), 0), entry(key(2), 0));
        recent.keep(&[a.clone(), b.clone()]);
        recent.forget(&[a.key]);
        assert_eq!(recent.get(a.key, &a.header), None);
        assert!(recent.get(b.key, &b.header).is_some());
        recent.forget(&[b.key]);
        let held = lock(&recent.held);
        assert_eq!((held.bytes, held.results.len(), held.order.len()), (0, 0, 0));
    }
}
