//! Bytes of memory that the current thread holds, counted where they are allocated.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
}

/// Bytes that this thread has allocated and nobody has freed, or that it freed for others.
pub(crate) fn held() -> isize {
    HELD.get()
}

struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

fn count(bytes: isize) {
    // A thread that ends has no count any more.
    let _ = HELD.try_with(|held| held.set(held.get() + bytes));
}

// SAFETY: every call goes to the system's allocator with the same layout.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}
