//! The targets of events, as monitoring and requests know them. Sends nothing.

use std::pin::Pin;

/// Counts of one target since the coordinator began to lead.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TargetFigures {
    /// Name of the target in the file of events.
    pub name: String,
    /// `webhook` or `mail`.
    pub kind: &'static str,
    /// Events that were delivered.
    pub delivered: u64,
    /// Attempts to deliver that failed.
    pub failed: u64,
    /// Events that were given up: for want of room, or because they were too old.
    pub dropped: u64,
    /// Events that wait.
    pub waiting: u64,
    /// Whether the newest attempt failed.
    pub is_failing: bool,
}

/// Outcome of a test of a target.
pub type Tested = Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;

/// Whoever sends events to targets.
pub trait EventTargets: Send + Sync {
    /// Returns the counts of all targets.
    fn figures(&self) -> Vec<TargetFigures>;

    /// Returns the names of the targets that jobs can name.
    fn on_request(&self) -> Vec<String>;

    /// Sends a test event to a target at once, and says what came of it. None if there is no such
    /// target.
    fn test(&self, name: &str) -> Option<Tested>;
}
