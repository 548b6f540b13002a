//! The durable state as a sequence of bounded parts, so that the journal before it may go.

use crate::journal::{JournalError, from_versioned, to_versioned};
use serde::{Deserialize, Serialize};
use tessera_protocol::CodecError;
use tessera_protocol::ids::Epoch;

/// One part of a snapshot, small enough for the codec. All parts of one snapshot, in order, are the state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SnapshotPart(pub(crate) Part);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Part {
    Farm { epochs_reserved: Epoch },
}

impl SnapshotPart {
    /// Version byte and encoding.
    pub fn to_bytes(&self) -> Result<Vec<u8>, CodecError> {
        to_versioned(self)
    }

    /// The part that bytes hold.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, JournalError> {
        from_versioned(bytes)
    }
}
