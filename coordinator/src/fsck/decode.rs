//! Decoding of a store's content.

use crate::store::{Loaded, snapshot};
use tessera_core::{Record, SnapshotPart};

/// Decodes the snapshot's parts and the records after it. The error names the value that cannot be
/// read.
pub(crate) fn decode(loaded: &Loaded) -> Result<(Vec<SnapshotPart>, Vec<Record>), String> {
    let parts = match &loaded.snapshot {
        Some((sequence, bytes)) => snapshot::decode(bytes)
            .map_err(|problem| format!("the snapshot after record {sequence}: {problem}"))?,
        None => Vec::new(),
    };
    let record = |(sequence, bytes): &(u64, Vec<u8>)| {
        Record::from_bytes(bytes).map_err(|error| format!("record {sequence}: {error}"))
    };
    let records = loaded.records.iter().map(record).collect::<Result<_, _>>()?;
    Ok((parts, records))
}
