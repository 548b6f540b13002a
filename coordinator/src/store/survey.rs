//! A look at everything in a store, damaged or not: what `fsck` goes by. Changes nothing.

use super::journal::{Journal, Key, name_of, parse_key, record_key};
use super::{Loaded, Sequence, StoreError};
use tessera_transport::TokenRecord;

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

impl Loaded {
    /// Takes a value in under its key.
    pub(super) fn take(&mut self, key: &[u8], value: Vec<u8>) -> Result<(), String> {
        match parse_key(key) {
            Some(Key::Record(sequence)) => self.records.push((sequence, value)),
            Some(Key::Spool(spool)) => {
                let length = <[u8; 8]>::try_from(value)
                    .map_err(|_| "a length has eight bytes".to_owned())?;
                self.spools.insert(spool, u64::from_le_bytes(length));
            }
            Some(Key::Token(hash)) => {
                let token = TokenRecord::from_bytes(&value).map_err(|error| error.to_string())?;
                self.tokens.insert(hash, token);
            }
            Some(Key::Snapshot) => {
                let (sequence, bytes) = value.split_first_chunk::<8>().ok_or("it is cut short")?;
                self.snapshot = Some((Sequence::from_le_bytes(*sequence), bytes.to_vec()));
            }
            Some(Key::Count) => {}
            None => return Err("no such kind of key".into()),
        }
        Ok(())
    }
}
