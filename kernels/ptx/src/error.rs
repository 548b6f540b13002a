//! What can go wrong with PTX: while it is read, while memory is asked for, and while a kernel
//! runs.

/// Text that is not PTX as this crate reads it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct ParseError {
    /// Line of the text, from 1.
    pub line: u32,
    /// What is wrong there.
    pub what: String,
}

impl ParseError {
    pub(crate) fn new(line: u32, what: impl Into<String>) -> ParseError {
        ParseError { line, what: what.into() }
    }
}

/// Device memory that cannot be had, or is not where it was said to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    /// More than is free.
    #[error("{asked} bytes asked for, {free} are free")]
    Full {
        /// Bytes asked for.
        asked: u64,
        /// Bytes not allocated.
        free: u64,
    },
    /// An address that no allocation begins at.
    #[error("no allocation begins at {0:#x}")]
    NotAllocated(u64),
    /// A range that no one allocation holds.
    #[error("{bytes} bytes at {address:#x} are not inside one allocation")]
    OutOfBounds {
        /// First address of the range.
        address: u64,
        /// Its length.
        bytes: u64,
    },
}

/// Why a thread stopped where it should not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Cause {
    /// An access to memory that is not allocated, or outside the memory it belongs to.
    #[error("{bytes} bytes at {address:#x} are out of bounds")]
    OutOfBounds {
        /// First address of the access.
        address: u64,
        /// Bytes of the access.
        bytes: u32,
    },
    /// An access at an address that is no multiple of its size.
    #[error("{bytes} bytes at {address:#x} are misaligned")]
    Misaligned {
        /// First address of the access.
        address: u64,
        /// Bytes of the access.
        bytes: u32,
    },
    /// An instruction that this machine does not model, or that its settings refuse.
    #[error("the instruction is not supported")]
    Unsupported,
    /// A failed assertion. [`Machine::take_assertion`](crate::Machine::take_assertion) has its
    /// text.
    #[error("an assertion failed")]
    Asserted,
    /// A `trap`.
    #[error("the kernel trapped")]
    Trapped,
    /// The launch used up its steps.
    #[error("the launch did not end within {0} steps")]
    StepLimit(u64),
    /// Threads wait for others that will never come.
    #[error("threads wait for each other")]
    Deadlock,
    /// Calls nest too deeply, or their frames need too much memory.
    #[error("the stack overflows")]
    StackOverflow,
    /// Somebody set the launch's cancel flag.
    #[error("cancelled")]
    Cancelled,
}

/// Why a launch ended early. Memory keeps what was written until then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The module has no kernel of that name.
    #[error("the module has no kernel `{0}`")]
    NoKernel(String),
    /// Shape, shared memory or parameters do not fit the kernel.
    #[error("kernel `{kernel}` cannot be launched: {what}")]
    Launch {
        /// The kernel.
        kernel: String,
        /// What does not fit.
        what: String,
    },
    /// A thread stopped.
    #[error(
        "kernel `{kernel}`, block ({}, {}, {}), thread ({}, {}, {}), line {line} `{instruction}`: \
            {cause}",
        block[0], block[1], block[2], thread[0], thread[1], thread[2]
    )]
    Thread {
        /// The kernel.
        kernel: String,
        /// Line of the PTX, from 1.
        line: u32,
        /// That line.
        instruction: String,
        /// Index of the block in the grid.
        block: [u32; 3],
        /// Index of the thread in the block.
        thread: [u32; 3],
        /// What happened.
        cause: Cause,
    },
}

impl Fault {
    /// What happened, where a thread had started.
    pub fn cause(&self) -> Option<Cause> {
        match self {
            Fault::Thread { cause, .. } => Some(*cause),
            _ => None,
        }
    }
}
