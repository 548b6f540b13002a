//! Arrays of the layout read from their bytes. Knows neither devices nor other processes.

use bytemuck::Pod;

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
    fn cut_and_oversized_arrays_are_errors() {
        let cut = |_: &mut [u8]| Err(std::io::ErrorKind::UnexpectedEof.into());
        assert!(read_array::<Triangle>(3, cut).is_err());
        assert!(read_array::<Triangle>(usize::MAX, |_| Ok(())).is_err());
        assert!(read_array::<Triangle>(0, cut).unwrap().is_empty());
    }
}
