//! Names inside a function: registers, its own memory, by nested scopes. Allots no slots.

use std::collections::HashMap;

/// What a name stands for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Name {
    /// A register's slot and width.
    Register { slot: u32, bits: u8 },
    /// Bytes of the stack frame: parameters and locals.
    Frame { offset: u32, bytes: u32 },
    /// Offset in the block's shared memory.
    Shared(u32),
    /// Shared memory whose size the launch gives.
    SharedDynamic,
}

/// One pair of braces.
#[derive(Default)]
pub(crate) struct Scope {
    pub(crate) names: HashMap<String, Name>,
    /// `.reg .b32 %r<7>`: prefix, number of registers, width of each.
    pub(crate) ranges: HashMap<String, (u64, u8)>,
}

impl Scope {
    /// Width of a register that a range declares.
    pub(crate) fn in_range(&self, name: &str) -> Option<u8> {
        let prefix = name.trim_end_matches(|character: char| character.is_ascii_digit());
        // A prefix can end in digits itself, so every split is tried, the usual one first.
        (prefix.len()..name.len()).find_map(|at| {
            let (count, bits) = self.ranges.get(&name[..at])?;
            let number: u64 = name[at..].parse().ok()?;
            (number < *count).then_some(*bits)
        })
    }
}
