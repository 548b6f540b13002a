//! Threads of a block.

use serde::{Deserialize, Serialize};

/// Threads of a block along each axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// Threads along the fastest axis.
    pub x: u32,
    /// Threads along the second axis.
    pub y: u32,
    /// Threads along the slowest axis.
    pub z: u32,
}

impl Block {
    /// Creates a block of one axis.
    pub fn line(x: u32) -> Self {
        Self { x, y: 1, z: 1 }
    }

    /// Returns the number of threads. It saturates where the block is not checked.
    pub fn threads(&self) -> u32 {
        self.x.saturating_mul(self.y).saturating_mul(self.z)
    }

    /// Returns whether all threads lie on the fastest axis, so that a block is a range of indices.
    pub fn is_line(&self) -> bool {
        self.y == 1 && self.z == 1
    }
}

impl std::fmt::Display for Block {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.x)?;
        if !self.is_line() {
            write!(f, "x{}", self.y)?;
        }
        if self.z != 1 { write!(f, "x{}", self.z) } else { Ok(()) }
    }
}

impl std::str::FromStr for Block {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("`{text}` is not a block of threads; write `512`, `16x16` or `8x8x8`");
        let edges: Vec<u32> =
            text.split('x').map(str::parse).collect::<Result<_, _>>().map_err(|_| wrong())?;
        let edge = |axis: usize| edges.get(axis).copied().unwrap_or(1);
        match edges.len() {
            1..=3 => Ok(Self { x: edge(0), y: edge(1), z: edge(2) }),
            _ => Err(wrong()),
        }
    }
}
