//! Limits of a node that a job's data may exceed: the node's own class of failure.

use serde::{Deserialize, Serialize};

/// Limit of one node. Another node may have more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeLimit {
    /// Memory that the process that reads a scene may use: `--scene-memory`.
    SceneMemory,
    /// Time that reading a scene, or one of its frames, may take: `--scene-time`.
    SceneTime,
    /// Memory of the machine or of the node's control group.
    Memory,
    /// Room on the node's disk.
    Disk,
}

impl NodeLimit {
    /// Returns the name of the limit, for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::SceneMemory => "scene memory",
            Self::SceneTime => "scene time",
            Self::Memory => "memory",
            Self::Disk => "disk",
        }
    }

    /// Returns what gives the node more, for people.
    pub fn remedy(self) -> &'static str {
        match self {
            Self::SceneMemory => "start it with a greater --scene-memory",
            Self::SceneTime => "start it with a greater --scene-time",
            Self::Memory => "give its machine or its control group more memory",
            Self::Disk => "make room on its disk",
        }
    }

    /// Whether the limit may end while the node runs, so that asking again makes sense. The others
    /// are settings of its process.
    pub fn may_pass(self) -> bool {
        matches!(self, Self::Memory | Self::Disk)
    }
}

/// A limit that a unit's data exceeds on a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitReached {
    /// Which limit.
    pub limit: NodeLimit,
    /// Description for people: what was needed, and how much there is.
    pub reason: String,
}
