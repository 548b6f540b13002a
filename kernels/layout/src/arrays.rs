//! Room for large arrays. Knows neither devices nor other processes.

use bytemuck::Zeroable;
use std::alloc::{Layout, handle_alloc_error};

/// Returns an empty array with room for `count` elements. Threads that fill it share the making of
/// its pages, because the thread that touches a page first makes it.
pub fn room_for<T>(count: usize) -> Vec<T> {
    let mut items: Vec<T> = Vec::new();
    items.reserve_exact(count);
    hint_huge_pages(items.as_mut_ptr().cast(), count * size_of::<T>());
    items
}

/// Returns an array of `count` elements of zeros, whose pages are made when they are first touched.
/// Ends the process where there is no memory, like other allocations.
pub fn zeroed_array<T: Zeroable>(count: usize) -> Vec<T> {
    let Ok(mut items) = bytemuck::allocation::try_zeroed_vec::<T>(count) else {
        handle_alloc_error(Layout::array::<T>(count).unwrap_or(Layout::new::<T>()));
    };
    hint_huge_pages(items.as_mut_ptr().cast(), count * size_of::<T>());
    items
}

/// Asks for huge pages before an array is touched: paths look up texels and vertices all over a
/// scene, and with small pages much of that is waiting for the table of pages. A hint, on which
/// nothing depends.
#[cfg(target_os = "linux")]
fn hint_huge_pages(start: *mut u8, bytes: usize) {
    use rustix::mm::{Advice, madvise};
    const HUGE: usize = 2 << 20;
    let skipped = (start as usize).next_multiple_of(HUGE) - start as usize;
    let whole = bytes.saturating_sub(skipped) / HUGE * HUGE;
    if whole > 0 {
        // SAFETY: the range is a part of the array's own allocation, and this kind of advice
        // changes nothing of what it holds.
        let _ = unsafe { madvise(start.add(skipped).cast(), whole, Advice::LinuxHugepage) };
    }
}

#[cfg(not(target_os = "linux"))]
fn hint_huge_pages(_: *mut u8, _: usize) {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ShadingVertex, Triangle};

    #[test]
    fn large_arrays_have_exactly_the_room_they_need() {
        for count in [0, 1, 300_000] {
            let zeroed = zeroed_array::<ShadingVertex>(count);
            assert_eq!((zeroed.len(), zeroed.capacity()), (count, count));
            assert!(zeroed.iter().all(|vertex| *vertex == ShadingVertex::default()));
            let room = room_for::<Triangle>(count);
            assert_eq!((room.len(), room.capacity()), (0, count));
        }
    }
}
