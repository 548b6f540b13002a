//! Handles: numbers that a program holds for things of the driver's, so that a stale or invented
//! one is an error and not a crash. Knows not what the things are.

use super::locked;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Things by handle. A handle is used once.
pub(crate) struct Table<T> {
    entries: Mutex<(u64, BTreeMap<u64, Arc<T>>)>,
}

impl<T> Table<T> {
    /// Handles begin above `first`; ranges that differ tell kinds of handle apart for long enough.
    pub(crate) const fn new(first: u64) -> Table<T> {
        Table { entries: Mutex::new((first << 16, BTreeMap::new())) }
    }

    pub(crate) fn insert(&self, thing: Arc<T>) -> u64 {
        let mut entries = locked(&self.entries);
        // Even numbers of 16, as addresses are.
        entries.0 += 16;
        let handle = entries.0;
        entries.1.insert(handle, thing);
        handle
    }

    pub(crate) fn get(&self, handle: u64) -> Option<Arc<T>> {
        locked(&self.entries).1.get(&handle).cloned()
    }

    pub(crate) fn remove(&self, handle: u64) -> Option<Arc<T>> {
        locked(&self.entries).1.remove(&handle)
    }

    /// Forgets what does not pass.
    pub(crate) fn retain(&self, keep: impl Fn(&T) -> bool) {
        locked(&self.entries).1.retain(|_, thing| keep(thing));
    }
}
