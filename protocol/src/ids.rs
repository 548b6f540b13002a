//! Identities: newtypes whose `Display` is what people read and search for.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Names one submission. The client makes it, a random UUID, so that a repeated submit is
/// harmless.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct JobId(pub uuid::Uuid);

/// Characters of an id's short form: with 10,000 jobs, a new job has the short form of another one
/// once in 400,000 times.
pub const SHORT_ID: usize = 8;

impl JobId {
    /// Creates a new id. All its characters are random but two, so that ids differ early.
    pub fn new() -> Self {
        Self(uuid::Uuid::new_v4())
    }
}

impl Default for JobId {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The text is not an id of the expected kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a {what}")]
pub struct IdError {
    /// Kind of id that was expected.
    pub what: &'static str,
    /// Text that was given.
    pub text: String,
}

impl FromStr for JobId {
    type Err = IdError;
    fn from_str(text: &str) -> Result<Self, IdError> {
        text.parse().map(Self).map_err(|_| IdError { what: "job id", text: text.to_owned() })
    }
}

/// Number of a frame of a job, as the user gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FrameNumber(pub u32);

impl fmt::Display for FrameNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "f{:04}", self.0)
    }
}

/// Number of a unit within its frame: tile index × pass count + pass index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct UnitIndex(pub u32);

/// Names a unit: what is leased, retried and committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct UnitKey {
    /// Job of the unit.
    pub job: JobId,
    /// Frame of the unit.
    pub frame: FrameNumber,
    /// Number of the unit within the frame.
    pub unit: UnitIndex,
}

impl fmt::Display for UnitKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/u{:05}", self.job, self.frame, self.unit.0)
    }
}

/// Number of a lease. It grows with every lease of the farm, also over restarts. A result with an
/// old epoch is refused.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Epoch(pub u64);

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "e{}", self.0)
    }
}

/// Names one lease, to the node and to the coordinator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Lease {
    /// Unit that the lease is for.
    pub unit: UnitKey,
    /// Epoch of the lease.
    pub epoch: Epoch,
}

impl fmt::Display for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.unit, self.epoch)
    }
}

/// Names a machine that runs `tessera node`, as long as it keeps its data folder. The node's
/// certificate contains it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NodeId(pub uuid::Uuid);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for BlobHash {
    type Err = IdError;

    /// Reads 64 lower-case hexadecimal digits: a blob has one name.
    fn from_str(text: &str) -> Result<Self, IdError> {
        let wrong = || IdError { what: "hash of 64 hexadecimal digits", text: text.to_owned() };
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if text.len() != 64 || !text.bytes().all(is_digit) {
            return Err(wrong());
        }
        let mut hash = [0; 32];
        for (byte, pair) in hash.iter_mut().zip(text.as_bytes().chunks(2)) {
            let pair = std::str::from_utf8(pair).map_err(|_| wrong())?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| wrong())?;
        }
        Ok(Self(hash))
    }
}

impl FromStr for NodeId {
    type Err = IdError;
    fn from_str(text: &str) -> Result<Self, IdError> {
        text.parse().map(Self).map_err(|_| IdError { what: "node id", text: text.to_owned() })
    }
}

/// Names one run of a node's process. When it changes, no unit of the former run is being worked on
/// any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ProcessEpoch(pub u64);

/// Names a blob: the BLAKE3 hash of its bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BlobHash(pub [u8; 32]);

impl BlobHash {
    /// Returns the hash of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }
}

impl fmt::Display for BlobHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for BlobHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Version hash of kernel sources, scene flattening and film format. A job never mixes results with
/// different fingerprints.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Fingerprint(pub [u8; 32]);

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0[..8].iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blob_has_one_name() {
        let hash = BlobHash([0xab; 32]);
        let name = hash.to_string();
        assert_eq!(name.parse(), Ok(hash));
        for other in
            [name.to_uppercase(), name[..63].to_owned(), format!("{name}0"), "é".repeat(32)]
        {
            assert!(other.parse::<BlobHash>().is_err(), "{other}");
        }
    }
}
