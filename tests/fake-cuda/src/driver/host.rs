//! Pinned memory of the program: given out, registered, looked up. Copies from anywhere else are
//! staged.

use super::locked;
use std::alloc::{Layout, alloc, dealloc};
use std::collections::BTreeMap;
use std::sync::Mutex;

/// Alignment of pinned memory: a page.
const ALIGNMENT: usize = 4096;

/// Ranges by address: length, and whether it is this driver's to give back.
static PINNED: Mutex<BTreeMap<usize, (usize, bool)>> = Mutex::new(BTreeMap::new());

/// New pinned memory, poisoned as device memory is; `None` where there is none.
pub(crate) fn allocate(bytes: usize) -> Option<usize> {
    let layout = Layout::from_size_align(bytes, ALIGNMENT).ok().filter(|_| bytes > 0)?;
    // SAFETY: the layout has a size.
    let pointer = unsafe { alloc(layout) };
    if pointer.is_null() {
        return None;
    }
    // SAFETY: `bytes` bytes were allocated there just now.
    unsafe { std::ptr::write_bytes(pointer, 0xCD, bytes) };
    locked(&PINNED).insert(pointer as usize, (bytes, true));
    Some(pointer as usize)
}

/// Gives pinned memory back; `false` if it was not given out here.
pub(crate) fn free(address: usize) -> bool {
    let mut pinned = locked(&PINNED);
    let Some((bytes, true)) = pinned.get(&address).copied() else { return false };
    pinned.remove(&address);
    let Ok(layout) = Layout::from_size_align(bytes, ALIGNMENT) else { return false };
    // SAFETY: allocated above with this layout, and forgotten just now.
    unsafe { dealloc(address as *mut u8, layout) };
    true
}

/// Pins memory of the program's own.
pub(crate) fn register(address: usize, bytes: usize) {
    locked(&PINNED).insert(address, (bytes, false));
}

/// Unpins it; `false` if it was not registered.
pub(crate) fn unregister(address: usize) -> bool {
    let mut pinned = locked(&PINNED);
    let is_registered = matches!(pinned.get(&address), Some((_, false)));
    is_registered && pinned.remove(&address).is_some()
}

/// Whether a whole range is pinned.
pub(crate) fn is_pinned(address: usize, bytes: usize) -> bool {
    let pinned = locked(&PINNED);
    let before = pinned.range(..=address).next_back();
    before.is_some_and(|(start, (length, _))| address + bytes <= start + length)
}
