//! Saves the intact values of a store that cannot be loaded, as JSON lines. Changes nothing.

use super::reader::JournalReader;
use crate::folder::{DataFolder, FolderError};
use crate::spool::{Segment, SpoolExtent, StoredResults};
use crate::store::keys::{Key, parse_key};
use crate::store::{StoreError, snapshot};
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use tessera_core::Record;
use tessera_transport::member::MemberRecord;

/// Counts the values of an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExportSummary {
    /// Number of intact values.
    pub intact: u64,
    /// Number of damaged values. Each has a line that names it.
    pub damaged: u64,
}

/// Why an export ended early.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The folder cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The store cannot be opened at all.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The lines cannot be written.
    #[error("export cannot be written")]
    Write(#[source] std::io::Error),
}

/// Writes every value of a data folder's store, one JSON object per line. Records are decoded,
/// damaged values are named, and tokens are left out. The data folder is not changed: the journal
/// is copied to the system's folder for temporary files.
pub fn export(data: &Path, out: &mut impl Write) -> Result<ExportSummary, ExportError> {
    let folder = DataFolder::inspect(data)?;
    let journal = JournalReader::inspect(&folder)?;
    let mut summary = ExportSummary::default();
    for entry in journal.entries() {
        let (key, line) = match entry {
            Ok((key, value)) => (format!("{key:02x?}"), line(&key, value)),
            Err(error) => ("the rest of the log".into(), Err(error.to_string())),
        };
        let line = match line {
            Ok(Some(line)) => {
                summary.intact += 1;
                line
            }
            Ok(None) => continue,
            Err(problem) => {
                summary.damaged += 1;
                json!({ "kind": "damaged", "key": key, "problem": problem })
            }
        };
        writeln!(out, "{line}").map_err(ExportError::Write)?;
    }
    out.flush().map_err(ExportError::Write)?;
    Ok(summary)
}

fn line(key: &[u8], value: Result<Vec<u8>, String>) -> Result<Option<Value>, String> {
    let value = value?;
    Ok(Some(match parse_key(key) {
        Some(Key::Record(sequence)) => {
            let record = Record::from_bytes(&value).map_err(|error| error.to_string())?;
            json!({ "kind": "record", "sequence": sequence, "record": record })
        }
        Some(Key::Spool(spool)) => {
            let extent = SpoolExtent::from_bytes(&value)?;
            json!({
                "kind": "spool",
                "job": spool.job.to_string(),
                "frame": spool.frame.0,
                "length": extent.length,
                "sealed": extent.sealed.iter().map(segment_line).collect::<Vec<_>>(),
            })
        }
        Some(Key::Stored(spool, number)) => {
            let stored = StoredResults::from_bytes(number, &value)?;
            json!({
                "kind": "object",
                "job": spool.job.to_string(),
                "frame": spool.frame.0,
                "object": stored.object.to_string(),
                "results": stored.entries.len(),
            })
        }
        Some(Key::Token(_) | Key::Count | Key::AuditHead | Key::File(_) | Key::AuditEntry(_)) => {
            return Ok(None);
        }
        Some(Key::Member(_)) => {
            let member: MemberRecord =
                tessera_protocol::decode(&value).map_err(|error| error.to_string())?;
            json!({ "kind": "member", "member": member })
        }
        Some(Key::Snapshot) => snapshot_line(&value)?,
        None => return Err("no such kind of key".into()),
    }))
}

fn segment_line(segment: &Segment) -> Value {
    json!({ "hash": segment.hash.to_string(), "length": segment.length })
}

fn snapshot_line(value: &[u8]) -> Result<Value, String> {
    let (sequence, bytes) = value.split_first_chunk::<8>().ok_or("it is cut short")?;
    let parts = snapshot::decode(bytes)?;
    Ok(json!({ "kind": "snapshot", "sequence": u64::from_le_bytes(*sequence), "parts": parts }))
}
