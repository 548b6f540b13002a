//! Whom a share belongs to.

use std::fmt;

/// The holder of a share of the farm: who submitted a job, or uploaded a file. Shares are counted
/// by it, and by nothing else.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner(String);

impl Owner {
    /// The owner that records call by this name.
    pub fn named(name: &str) -> Self {
        Self(name.to_owned())
    }

    /// Whether records call the owner by this name.
    pub fn is_named(&self, name: &str) -> bool {
        self.0 == name
    }

    /// The name in records, for people.
    pub fn name(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
