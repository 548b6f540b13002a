//! What is in a whole store, damaged or not, for `fsck`. Reads nothing itself.

use crate::store::keys::{name_of, record_key};
use crate::store::{AuditChain, Loaded, Sequence};

/// Content of a store, with a list of its damage.
#[derive(Debug, Default)]
pub struct Survey {
    /// Intact values. Records may have gaps, which `missing` lists.
    pub loaded: Loaded,
    /// Number of values that were read, with the damaged ones.
    pub values: u64,
    /// Name and damage of each damaged value.
    pub damaged: Vec<(String, String)>,
    /// Missing records, as inclusive ranges.
    pub missing: Vec<(Sequence, Sequence)>,
    /// Description of the loss if the journal has lost its end.
    pub lost_end: Option<String>,
    /// The audit log's chain, where the store has it; empty where the data folder does.
    pub audit: AuditChain,
    /// Number of files that no value names. A crash left them, and the next start deletes them.
    pub unnamed: u64,
}

impl Survey {
    /// Removes the records that the snapshot replaces, and finds the gaps between the others.
    pub fn settle(&mut self) {
        let after = self.loaded.snapshot.as_ref().map_or(0, |(sequence, _)| *sequence);
        self.loaded.records.retain(|(sequence, _)| *sequence > after);
        let mut expected = after + 1;
        for (sequence, _) in &self.loaded.records {
            if *sequence > expected {
                self.missing.push((expected, *sequence - 1));
            }
            expected = *sequence + 1;
        }
    }

    /// Names the missing records. A damaged record is not counted as missing.
    pub fn missing_names(&self) -> impl Iterator<Item = String> + '_ {
        let is_damaged = |sequence: Sequence| {
            let name = name_of(&record_key(sequence));
            self.damaged.iter().any(|(damaged, _)| *damaged == name)
        };
        self.missing.iter().filter(move |(first, last)| first != last || !is_damaged(*first)).map(
            |(first, last)| match first == last {
                true => format!("record {first} of the journal"),
                false => format!("records {first} to {last} of the journal"),
            },
        )
    }
}
