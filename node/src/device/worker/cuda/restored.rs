//! Variables that a program can write: their first values are kept on the device and written again
//! before every later chunk, so that no chunk sees what another one wrote.

use super::driver::{Call, Memory, Stream, call};
use cudarc::driver::result;

/// Address and size of a variable in bytes.
type Range = (u64, u64);

/// The variables of a loaded program.
#[derive(Default)]
pub(super) struct Restored {
    zero: Vec<Range>,
    others: Vec<Range>,
    /// The first values of the others, one after another.
    values: Option<Memory>,
    /// Whether the first chunk was prepared.
    begun: bool,
}

impl Restored {
    /// Adds a variable. `is_zero` tells that its first value is zero.
    pub(super) fn add(&mut self, range: Range, is_zero: bool) {
        match is_zero {
            true => self.zero.push(range),
            false => self.others.push(range),
        }
    }

    /// Returns the size of the kept values in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.values.as_ref().map_or(0, |memory| memory.bytes)
    }

    /// Prepares the variables for a chunk. Call it after all of them have their first values. A
    /// call that fails for lack of memory can be repeated.
    pub(super) fn prepare(&mut self, stream: &Stream) -> Call<()> {
        if self.begun {
            return self.restore(stream);
        }
        if !self.others.is_empty() {
            // What was written into the variables must have arrived.
            call("cuCtxSynchronize", result::ctx::synchronize())?;
            self.values = Some(Memory::allocate(self.others.iter().map(|(_, bytes)| bytes).sum())?);
            self.copy(stream, |variable, kept| (kept, variable))?;
        }
        self.begun = true;
        Ok(())
    }

    /// Gives all variables their first values again. Call it between two launches.
    pub(super) fn restore(&self, stream: &Stream) -> Call<()> {
        self.copy(stream, |variable, kept| (variable, kept))?;
        self.zero.iter().try_for_each(|(address, bytes)| stream.zero(*address, *bytes))
    }

    /// Copies between the variables and their kept values. `ends` gives target and source.
    fn copy(&self, stream: &Stream, ends: impl Fn(u64, u64) -> (u64, u64)) -> Call<()> {
        let mut kept = self.values.as_ref().map_or(0, |memory| memory.address);
        for (variable, bytes) in &self.others {
            let (to, from) = ends(*variable, kept);
            // SAFETY: both ranges are allocated, and live as long as the program.
            unsafe { stream.copy(to, from, *bytes) }?;
            kept += bytes;
        }
        Ok(())
    }
}
