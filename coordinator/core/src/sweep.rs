//! What is asked for all jobs of one owner.

/// What to do with the jobs of an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sweep {
    /// Cancels those that have not ended, and deletes all with their frames.
    Forget,
    /// Only counts what would be deleted.
    Count,
}
