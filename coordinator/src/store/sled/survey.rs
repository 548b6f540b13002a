//! A look at everything in a store, damaged or not: what `fsck` goes by. Changes nothing.

use super::journal::Journal;
use super::keys::{name_of, record_key};
use crate::store::{Loaded, Sequence, StoreError};

/// Everything that a store holds, with what is wrong with it.
#[derive(Debug, Default)]
pub struct Survey {
    /// What is intact. Records may have gaps, each of which is named by `missing`.
    pub loaded: Loaded,
    /// Values read, damaged ones included.
    pub values: u64,
    /// Values that are not what was written: what they are, and what is wrong.
    pub damaged: Vec<(String, String)>,
    /// Records that ought to be there, as inclusive ranges.
    pub missing: Vec<(Sequence, Sequence)>,
    /// The journal ends before what was made durable: how.
    pub lost_end: Option<String>,
    /// Files of large values that no value names: left by a crash, and deleted by the next start.
    pub unnamed: u64,
}

impl Journal {
    /// Reads every value. Fails only where sled itself does.
    pub fn survey(&self) -> Result<Survey, StoreError> {
        let mut survey = Survey { lost_end: self.lost_end(), ..Survey::default() };
        for entry in self.entries() {
            let (key, value) = entry?;
            survey.values += 1;
            if let Err(problem) = value.and_then(|value| survey.loaded.take(&key, value)) {
                survey.damaged.push((name_of(&key), problem));
            }
        }
        survey.settle();
        survey.unnamed = self.unnamed()?;
        Ok(survey)
    }
}

impl Survey {
    /// Leaves out the records that the snapshot stands for, and finds the gaps between the others.
    fn settle(&mut self) {
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

    /// A damaged record is no gap: what the missing ones are called.
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
