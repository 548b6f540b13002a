//! Why a unit has no output.

/// Why a unit has no output.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// The unit was cancelled.
    #[error("cancelled")]
    Cancelled,
    /// The device failed at the unit.
    #[error("device failed: {0}")]
    Failed(String),
    /// The process that drives the device ended while it had the unit.
    #[error("the device's worker failed: {0}")]
    Worker(String),
    /// The device took longer than the watchdog allows.
    #[error("the watchdog ended it: {0}")]
    TimedOut(String),
    /// The user's kernel cannot be used on any node: it does not compile, or lacks a variable that
    /// the job sets.
    #[error("{0}")]
    Program(String),
    /// The user's kernel is CUDA C++, and this node has no NVRTC (any more). Other nodes may have
    /// one.
    #[error("{0}")]
    NoCompiler(String),
    /// The device or its driver cannot run the user's kernel, which is not at fault. Other nodes
    /// may be able to.
    #[error("{0}")]
    Unable(String),
    /// The user's kernel failed, or did not end in time. The device is healthy.
    #[error("{0}")]
    Kernel(String),
    /// A finishing unit cannot be made: what it reads is damaged, its piece is too long for a
    /// result, or an encoder refuses it. The device is healthy, and another node would not do
    /// better.
    #[error("{0}")]
    Piece(String),
    /// The unit does not fit into the device's memory, not even with the smallest plan.
    #[error("not enough device memory: {needed} bytes are needed and {available} are there")]
    OutOfMemory {
        /// Fewest bytes that the unit needs.
        needed: u64,
        /// Bytes that the device could have given it.
        available: u64,
    },
}
