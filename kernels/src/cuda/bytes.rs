//! Arrays of the layout as bytes, for uploading. Knows no device.

use tessera_layout::{AliasEntry, Light, Material, ShadingVertex, Texture, Triangle};

/// A type that is plain bytes.
///
/// # Safety
/// `repr(C)` without padding, so that every byte is initialised, and without pointers.
pub(crate) unsafe trait Plain: Copy {}

// SAFETY: numbers have no padding.
unsafe impl Plain for u8 {}
// SAFETY: as above.
unsafe impl Plain for [u32; 3] {}
// SAFETY: as above.
unsafe impl Plain for [f32; 3] {}

/// Types of the layout: their sizes are the sums of their fields' sizes, with explicit reserved fields.
macro_rules! plain {
    ($($type:ty = $size:expr;)*) => {$(
        const _: () = assert!(size_of::<$type>() == $size);
        // SAFETY: `repr(C)`; the fields add up to the size, so that there is no padding.
        unsafe impl Plain for $type {}
    )*};
}

plain! {
    Triangle = 9 * 4 + 3 * 4;
    ShadingVertex = 16 * 4;
    Material = 16 * 4 + 4 * 48;
    Texture = 8 + 6 * 4;
    Light = 20 * 4;
    AliasEntry = 4 * 4;
}

/// The bytes of an array.
pub(crate) fn bytes_of<T: Plain>(items: &[T]) -> &[u8] {
    // SAFETY: `Plain` types have no uninitialised bytes; the length is that of the borrowed slice.
    unsafe { std::slice::from_raw_parts(items.as_ptr().cast(), size_of_val(items)) }
}

/// The bytes of a kernel's parameters.
pub(crate) fn bytes_of_one<T: Plain>(item: &T) -> Vec<u8> {
    bytes_of(std::slice::from_ref(item)).to_vec()
}
