//! Room for large arrays, and arrays read from their bytes. Knows neither devices nor other
//! processes.

use bytemuck::{Pod, Zeroable};
use std::alloc::{Layout, handle_alloc_error};

/// Elements are made room for, zeroed and filled in pieces of about so many bytes.
const PIECE_BYTES: usize = 1 << 20;

/// Reads an array of `count` elements, whose bytes `fill` writes piece by piece. Elements that have
/// not come take no memory: only addresses are reserved for them.
///
/// # Errors
/// What `fill` says; [`std::io::ErrorKind::OutOfMemory`] where there is no room for so many.
pub fn read_array<T: Pod>(
    count: usize,
    mut fill: impl FnMut(&mut [u8]) -> std::io::Result<()>,
) -> std::io::Result<Vec<T>> {
    let mut items: Vec<T> = Vec::new();
    items.try_reserve_exact(count).map_err(|_| std::io::ErrorKind::OutOfMemory)?;
    hint_huge_pages(items.as_mut_ptr().cast(), count * size_of::<T>());
    let step = (PIECE_BYTES / size_of::<T>()).max(1);
    while items.len() < count {
        let start = items.len();
        items.resize(start + step.min(count - start), T::zeroed());
        fill(bytemuck::must_cast_slice_mut(&mut items[start..]))?;
    }
    Ok(items)
}

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
    fn arrays_come_out_as_they_went_in() {
        let vertices: Vec<ShadingVertex> = (0..50_000)
            .map(|number| ShadingVertex { u0: number as f32, ..ShadingVertex::default() })
            .collect();
        let mut rest: &[u8] = bytemuck::must_cast_slice(&vertices);
        let read = read_array::<ShadingVertex>(vertices.len(), |piece| {
            let (now, later) = rest.split_at(piece.len());
            piece.copy_from_slice(now);
            rest = later;
            Ok(())
        });
        assert_eq!(read.unwrap(), vertices);
        assert!(rest.is_empty());
    }

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

    #[test]
    fn cut_and_oversized_arrays_are_errors() {
        let cut = |_: &mut [u8]| Err(std::io::ErrorKind::UnexpectedEof.into());
        assert!(read_array::<Triangle>(3, cut).is_err());
        assert!(read_array::<Triangle>(usize::MAX, |_| Ok(())).is_err());
        assert!(read_array::<Triangle>(0, cut).unwrap().is_empty());
    }
}
