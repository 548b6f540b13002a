//! How an attempt of a unit ended, in the words of a span.

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Its result counts, and is durable.
    Committed,
    /// Its result was compared with one that counts.
    Checked,
    /// It failed for this reason.
    Failed(String),
    /// Its node or its time was lost.
    Lost(&'static str),
    /// It ended without a result that counts: given back, or another one was there first.
    Unused,
}

impl Outcome {
    /// Returns the value of `tessera.outcome`.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Committed => "committed",
            Self::Checked => "checked",
            Self::Failed(_) => "failed",
            Self::Lost(_) => "lost",
            Self::Unused => "unused",
        }
    }

    /// Returns what went wrong, if something did.
    pub fn problem(&self) -> Option<&str> {
        match self {
            Self::Failed(reason) => Some(reason),
            Self::Lost(reason) => Some(reason),
            Self::Committed | Self::Checked | Self::Unused => None,
        }
    }
}
