//! Whom a share belongs to.

use std::cmp::Ordering;
use std::fmt;

/// The holder of a share of the farm: who submitted a job, or uploaded a file. Shares are counted
/// by the number of the identity, and by nothing else: a name can pass to another holder.
#[derive(Clone, Debug)]
pub struct Owner {
    id: u64,
    name: String,
}

impl Owner {
    /// Creates the owner with this number of the identity. The name is for people.
    pub fn new(id: u64, name: &str) -> Self {
        Self { id, name: name.to_owned() }
    }

    /// Number of the identity.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The name in records, for people.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl PartialEq for Owner {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for Owner {}

impl PartialOrd for Owner {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Owner {
    fn cmp(&self, other: &Self) -> Ordering {
        self.id.cmp(&other.id)
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}
