//! The border to C: entry points that cannot unwind, and pointers that are checked for null. Knows
//! neither CUDA nor NVML.

use std::ffi::{CStr, c_char};

/// A pointer argument was null, or a text was not UTF-8.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BadPointer;

/// Where an entry point writes an answer.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct Out<T>(*mut T);

impl<T: Copy> Out<T> {
    /// Writes the answer.
    pub(crate) fn put(self, value: T) -> Result<(), BadPointer> {
        self.put_at(0, value)
    }

    /// Writes the answer if it was asked for.
    pub(crate) fn put_if_any(self, value: T) {
        let _ = self.put(value);
    }

    /// Writes element `index` of an array of answers.
    pub(crate) fn put_at(self, index: usize, value: T) -> Result<(), BadPointer> {
        if self.0.is_null() {
            return Err(BadPointer);
        }
        // SAFETY: the caller of a C entry point vouches for the pointers that it gives, which are
        // not null.
        unsafe { self.0.add(index).write_unaligned(value) };
        Ok(())
    }

    /// Reads element `index` of an array that the caller gave.
    pub(crate) fn get_at(self, index: usize) -> Result<T, BadPointer> {
        if self.0.is_null() {
            return Err(BadPointer);
        }
        // SAFETY: as above.
        Ok(unsafe { self.0.add(index).read_unaligned() })
    }

    /// No place.
    pub(crate) const fn null() -> Out<T> {
        Out(std::ptr::null_mut())
    }

    /// True where the caller gave no place.
    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }
}

impl Out<c_char> {
    /// Writes a text and its end into a buffer of `room` bytes, cut to fit.
    pub(crate) fn put_text(self, room: usize, text: &str) -> Result<(), BadPointer> {
        let whole = text.as_bytes();
        let fits = &whole[..whole.len().min(room.saturating_sub(1))];
        for (index, byte) in fits.iter().chain([&0]).enumerate().take(room) {
            self.put_at(index, byte.cast_signed() as c_char)?;
        }
        Ok(())
    }
}

/// A text that ends with a zero.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct Text(*const c_char);

impl Text {
    /// The text; borrowed from the caller for as long as the entry point runs.
    pub(crate) fn read<'call>(self) -> Result<&'call str, BadPointer> {
        if self.0.is_null() {
            return Err(BadPointer);
        }
        // SAFETY: the caller of a C entry point gives a text with its end, and keeps it during the
        // call.
        unsafe { CStr::from_ptr(self.0) }.to_str().map_err(|_| BadPointer)
    }
}

/// Bytes of the program's own memory, by address: read or written when a stream gets there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostBytes {
    pub(crate) address: usize,
    pub(crate) length: usize,
}

impl HostBytes {
    /// What stands there now.
    pub(crate) fn read(self) -> Vec<u8> {
        if self.address == 0 || self.length == 0 {
            return Vec::new();
        }
        // SAFETY: the program vouches that these bytes live until its stream has passed the copy,
        // as with CUDA.
        unsafe { std::slice::from_raw_parts(self.address as *const u8, self.length) }.to_vec()
    }

    /// Writes there; `bytes` is cut to the length.
    pub(crate) fn write(self, bytes: &[u8]) {
        let length = bytes.len().min(self.length);
        if self.address == 0 || length == 0 {
            return;
        }
        // SAFETY: as above, and nobody else touches them meanwhile.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.address as *mut u8, length) };
    }
}

/// Runs an entry point's body: its answer as a number, and `unknown` (999 in both libraries) where
/// it panicked.
pub(crate) fn answer<E: Into<u32>>(body: impl FnOnce() -> Result<(), E>) -> u32 {
    const UNKNOWN: u32 = 999;
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)) {
        Ok(Ok(())) => 0,
        Ok(Err(error)) => error.into(),
        Err(_) => UNKNOWN,
    }
}

/// Exported C functions whose bodies give `Result<(), Error>`.
macro_rules! export {
    (
        $error:ty;
        $($(#[$meta:meta])* fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block)*
    ) => {
        $(
            $(#[$meta])*
            #[unsafe(no_mangle)]
            extern "C" fn $name($($argument: $type),*) -> u32 {
                $crate::ffi::answer(|| -> Result<(), $error> { $body })
            }
        )*
    };
}
pub(crate) use export;
