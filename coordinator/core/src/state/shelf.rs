//! Where the files of finished frames are written down, so that they take no memory until somebody
//! asks. The shell gives a file; tests and the simulator keep the bytes in memory.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A place on a shelf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slot(pub u32);

/// Keeps small pieces of bytes by their place. What was put there comes out again unchanged. It is
/// filled anew at every start, from the journal.
///
/// A shelf that can no longer return a piece says so from then on. Its core must not go on then: a
/// restart reads everything from the journal again.
pub trait Shelf: Debug + Send + Sync {
    /// Keeps bytes, and returns their place.
    fn put(&self, bytes: &[u8]) -> Slot;
    /// Returns the bytes at a place; None if they are lost.
    fn get(&self, slot: Slot) -> Option<Vec<u8>>;
    /// Drops the bytes at a place, which may be used again.
    fn free(&self, slot: Slot);
    /// Whether bytes were lost.
    fn is_lost(&self) -> bool;
}

/// A shelf in memory.
#[derive(Debug, Default)]
pub struct MemoryShelf(Mutex<Pieces>);

#[derive(Debug, Default)]
struct Pieces {
    next: u32,
    pieces: BTreeMap<u32, Box<[u8]>>,
}

impl MemoryShelf {
    /// Creates an empty shelf.
    pub fn new() -> Arc<Self> {
        Arc::new(Self::default())
    }

    fn pieces(&self) -> MutexGuard<'_, Pieces> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shelf for MemoryShelf {
    fn put(&self, bytes: &[u8]) -> Slot {
        let mut pieces = self.pieces();
        let slot = pieces.next;
        pieces.next += 1;
        pieces.pieces.insert(slot, bytes.into());
        Slot(slot)
    }

    fn get(&self, slot: Slot) -> Option<Vec<u8>> {
        self.pieces().pieces.get(&slot.0).map(|bytes| bytes.to_vec())
    }

    fn free(&self, slot: Slot) {
        self.pieces().pieces.remove(&slot.0);
    }

    fn is_lost(&self) -> bool {
        false
    }
}
