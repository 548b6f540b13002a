//! What threads did, one by one: which instructions ran, and which memory they touched. Written
//! by `run`, read by `profile`.

use crate::instruction::Op;

/// Instructions that ran one after the other, without a jump between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// Calls that the thread is in.
    pub(crate) depth: u32,
    pub(crate) function: u32,
    pub(crate) from: u32,
    /// The first instruction behind.
    pub(crate) to: u32,
}

/// Memory that an access can be to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    Global,
    Stack,
    Shared,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    pub(crate) space: Space,
    pub(crate) address: u64,
    pub(crate) bytes: u32,
}

/// What one thread did since its warp was looked at.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    pub(crate) runs: Vec<Run>,
    pub(crate) accesses: Vec<Access>,
}

/// Whether an instruction accesses memory, and which; generic ones by their address.
pub(crate) fn space_of(op: Op) -> Option<Space> {
    match op {
        Op::Load | Op::LoadMany | Op::Store | Op::StoreMany | Op::Atomic => Some(Space::Global),
        Op::LoadStack | Op::LoadStackMany | Op::StoreStack | Op::StoreStackMany => {
            Some(Space::Stack)
        }
        Op::LoadShared | Op::LoadSharedMany | Op::StoreShared | Op::StoreSharedMany => {
            Some(Space::Shared)
        }
        _ => None,
    }
}
