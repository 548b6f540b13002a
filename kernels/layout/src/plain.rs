//! Arrays of the layout as bytes, and back: for devices and for other processes. Knows neither.

use crate::{
    AliasEntry, BvhNode8, Camera, Environment, EnvironmentCell, Instance, Layers, Light, LightNode,
    Material, Medium, ShadingVertex, Texture, Triangle, TriangleBlock,
};

/// Elements are made room for, zeroed and filled in pieces of about so many bytes.
const PIECE_BYTES: usize = 1 << 20;

/// A type that is plain bytes.
///
/// # Safety
/// `repr(C)` without padding and without pointers, and a value for every pattern of bits: its bytes
/// may be read, and any may be written.
pub unsafe trait Plain: Copy {}

// SAFETY: numbers have no padding, and every pattern is one.
unsafe impl Plain for u8 {}
// SAFETY: as above.
unsafe impl Plain for [u32; 3] {}
// SAFETY: as above.
unsafe impl Plain for [f32; 3] {}

/// Types of the layout: their sizes are the sums of their fields' sizes, with explicit reserved
/// fields.
macro_rules! plain {
    ($($type:ty = $size:expr;)*) => {$(
        const _: () = assert!(size_of::<$type>() == $size);
        // SAFETY: `repr(C)`; the fields are numbers and add up to the size, so that there is no
        // padding.
        unsafe impl Plain for $type {}
    )*};
}

plain! {
    Triangle = 9 * 4 + 3 * 4;
    ShadingVertex = 16 * 4;
    Material = 16 * 4 + 4 * 48;
    Layers = 28 * 4 + 14 * 48;
    Medium = 8 * 4;
    Texture = 8 + 10 * 4;
    Light = 20 * 4;
    LightNode = 12 * 8 * 4;
    AliasEntry = 4 * 4;
    EnvironmentCell = 3 * 4;
    BvhNode8 = 2 * 3 * 8 * 4 + 16 * 4;
    TriangleBlock = 3 * 3 * 4 * 4 + 4 * 4;
    Instance = 30 * 4 + 6 * 4;
    Camera = 24 * 4;
    Environment = 28 * 4;
}

/// The bytes of an array.
pub fn bytes_of<T: Plain>(items: &[T]) -> &[u8] {
    // SAFETY: `Plain` types have no uninitialised bytes; the length is that of the borrowed slice.
    unsafe { std::slice::from_raw_parts(items.as_ptr().cast(), size_of_val(items)) }
}

/// The bytes of one value.
pub fn bytes_of_one<T: Plain>(item: &T) -> Vec<u8> {
    bytes_of(std::slice::from_ref(item)).to_vec()
}

/// One value of its bytes; None where there are more or fewer.
pub fn from_bytes<T: Plain>(bytes: &[u8]) -> Option<T> {
    // SAFETY: the length is the type's, every pattern of bits is a value, and the read takes any
    // alignment.
    (bytes.len() == size_of::<T>()).then(|| unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}

/// An array of `count` elements, whose bytes `fill` writes piece by piece. What has not come takes
/// no memory but its room.
///
/// # Errors
/// What `fill` says; [`std::io::ErrorKind::OutOfMemory`] where there is no room for so many.
pub fn read_array<T: Plain>(
    count: usize,
    mut fill: impl FnMut(&mut [u8]) -> std::io::Result<()>,
) -> std::io::Result<Vec<T>> {
    let mut items: Vec<T> = Vec::new();
    items.try_reserve_exact(count).map_err(|_| std::io::ErrorKind::OutOfMemory)?;
    hint_huge_pages(items.as_mut_ptr().cast(), count * size_of::<T>());
    let step = (PIECE_BYTES / size_of::<T>()).max(1);
    while items.len() < count {
        let more = step.min(count - items.len());
        // SAFETY: there is room for `count` elements, and `len + more` is at most that; the piece
        // is zeroed before anybody sees it, and every pattern of bits is an element.
        unsafe {
            let start = items.as_mut_ptr().add(items.len());
            start.write_bytes(0, more);
            fill(std::slice::from_raw_parts_mut(start.cast(), more * size_of::<T>()))?;
            items.set_len(items.len() + more);
        }
    }
    Ok(items)
}

/// Asks for huge pages before an array is touched: paths look up texels and vertices all over a
/// scene, and with small pages much of that is waiting for the table of pages. A hint, on which
/// nothing depends.
#[cfg(target_os = "linux")]
fn hint_huge_pages(start: *mut u8, bytes: usize) {
    const HUGE: usize = 2 << 20;
    let skipped = (start as usize).next_multiple_of(HUGE) - start as usize;
    let whole = bytes.saturating_sub(skipped) / HUGE * HUGE;
    if whole > 0 {
        // SAFETY: the range is a part of the array's own allocation, and this kind of advice
        // changes nothing of what it holds.
        unsafe { libc::madvise(start.add(skipped).cast(), whole, libc::MADV_HUGEPAGE) };
    }
}

#[cfg(not(target_os = "linux"))]
fn hint_huge_pages(_: *mut u8, _: usize) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_come_out_as_they_went_in() {
        let vertices: Vec<ShadingVertex> = (0..50_000)
            .map(|number| ShadingVertex { u0: number as f32, ..ShadingVertex::default() })
            .collect();
        let mut rest = bytes_of(&vertices);
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
    fn what_does_not_come_or_fit_is_an_error() {
        let cut = |_: &mut [u8]| Err(std::io::ErrorKind::UnexpectedEof.into());
        assert!(read_array::<Triangle>(3, cut).is_err());
        assert!(read_array::<Triangle>(usize::MAX, |_| Ok(())).is_err());
        assert!(read_array::<Triangle>(0, cut).unwrap().is_empty());
    }

    #[test]
    fn one_value_has_exactly_its_bytes() {
        let triangle = Triangle { material: 7, ..Triangle::default() };
        let bytes = bytes_of_one(&triangle);
        assert_eq!(from_bytes::<Triangle>(&bytes), Some(triangle));
        assert_eq!(from_bytes::<Triangle>(&bytes[1..]), None);
    }
}
