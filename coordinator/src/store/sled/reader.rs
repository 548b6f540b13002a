//! Reading of a journal: every value, with its damage. Changes nothing. A coordinator that is not
//! running is read in a copy of its journal.

use super::copy::{self, OpenCopy};
use super::large::LargeValues;
use super::witness;
use crate::folder::DataFolder;
use crate::store::envelope::{self, Payload};
use crate::store::keys::{COUNT_KEY, SNAPSHOT_KEY, name_of, record_key};
use crate::store::mark::StoreMark;
use crate::store::survey::Survey;
use crate::store::{Loaded, Sequence, StoreError};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Name of the journal's log in messages.
const LOG: &str = "the log (`db`)";

/// A key and its value, or a description of the damage.
pub(super) type Entry = (Vec<u8>, Result<Vec<u8>, String>);

/// A journal that can be read.
#[derive(Debug)]
pub struct JournalReader {
    /// Folder of the journal, for messages. The bytes may be in a copy.
    pub(super) path: PathBuf,
    pub(super) db: sled::Db,
    pub(super) large: LargeValues,
    /// Number of commits since the store was made.
    pub(super) commits: u64,
    /// Number of commits that the witness had counted when the store was opened.
    pub(super) witnessed: u64,
    /// The copy that `db` is in, if it is one.
    _copy: Option<OpenCopy>,
}

impl JournalReader {
    /// Reads the journal of a coordinator that is not running. Its files are copied to the system's
    /// folder for temporary files, and nothing in the data folder changes.
    pub fn inspect(folder: &DataFolder) -> Result<Self, StoreError> {
        StoreMark::refuse(folder)?;
        let path = folder.witness();
        let witnessed = witness::read(&path).map_err(|source| StoreError::Io { path, source })?;
        let copy = copy::open(&folder.sled(), witnessed, &std::env::temp_dir())?;
        Ok(Self::of(copy, folder, witnessed))
    }

    /// Reads a copy of a folder's journal.
    pub(super) fn of(copy: OpenCopy, folder: &DataFolder, witnessed: u64) -> Self {
        let mut reader = Self::new(copy.db.clone(), folder, witnessed);
        reader._copy = Some(copy);
        reader
    }

    pub(super) fn new(db: sled::Db, folder: &DataFolder, witnessed: u64) -> Self {
        let large = LargeValues::new(folder.records());
        let path = folder.sled();
        let mut reader = Self { path, db, large, commits: 0, witnessed, _copy: None };
        // `load` reports a damaged count together with all other damage.
        reader.commits = reader.count().unwrap_or(0);
        reader
    }

    /// Reads the number of commits; 0 for a journal without commits.
    fn count(&self) -> Result<u64, StoreError> {
        let Some(sealed) = self.db.get(COUNT_KEY).map_err(self.sled_failed())? else {
            return Ok(0);
        };
        let payload = envelope::open(COUNT_KEY, &sealed)
            .map_err(|problem| self.damaged(COUNT_KEY, problem))?;
        payload.count().ok_or_else(|| self.damaged(COUNT_KEY, "it has eight bytes"))
    }

    /// Describes the loss if the journal ends before its last durable commit.
    pub(super) fn lost_end(&self) -> Option<String> {
        (self.commits < self.witnessed).then(|| {
            format!(
                "its end is lost: it has {} commits, but {} were made durable",
                self.commits, self.witnessed
            )
        })
    }

    /// Describes why a journal that is not sound is refused.
    pub(super) fn what_is_wrong(&self) -> StoreError {
        self.load().err().unwrap_or_else(|| StoreError::Damaged {
            path: self.path.clone(),
            what: LOG.into(),
            problem: "a part of it cannot be read".into(),
        })
    }

    pub(super) fn sled_failed(&self) -> impl Fn(sled::Error) -> StoreError {
        let path = self.path.clone();
        move |source| match source {
            sled::Error::Corruption { .. } => StoreError::Damaged {
                path: path.clone(),
                what: LOG.into(),
                problem: "a page of it cannot be read".into(),
            },
            source => StoreError::Sled { path: path.clone(), source },
        }
    }

    pub(super) fn damaged(&self, key: &[u8], problem: impl Into<String>) -> StoreError {
        StoreError::Damaged { path: self.path.clone(), what: name_of(key), problem: problem.into() }
    }

    /// Returns every key with its value, or with a description of the damage. An error of sled is
    /// the last item, because sled does not get past a page that it cannot read.
    pub(super) fn entries(&self) -> impl Iterator<Item = Result<Entry, StoreError>> + '_ {
        let mut ended = false;
        self.db.iter().map_while(move |entry| {
            if ended {
                return None;
            }
            ended = entry.is_err();
            Some(entry.map_err(self.sled_failed()).map(|(key, sealed)| {
                let value =
                    envelope::open(&key, &sealed).and_then(|payload| self.large.read(payload));
                (key.to_vec(), value)
            }))
        })
    }

    pub(super) fn snapshot(&self) -> Result<Option<(Sequence, Vec<u8>)>, StoreError> {
        let Some(sealed) = self.db.get(SNAPSHOT_KEY).map_err(self.sled_failed())? else {
            return Ok(None);
        };
        let bytes = envelope::open(SNAPSHOT_KEY, &sealed)
            .and_then(|payload| self.large.read(payload))
            .map_err(|problem| self.damaged(SNAPSHOT_KEY, problem))?;
        let Some((sequence, bytes)) = bytes.split_first_chunk::<8>() else {
            return Err(self.damaged(SNAPSHOT_KEY, "it is cut short"));
        };
        Ok(Some((Sequence::from_le_bytes(*sequence), bytes.to_vec())))
    }

    /// Returns the large values that the journal names. Fails if a value is damaged, because it is
    /// then unknown what that value names.
    pub(super) fn named(&self) -> Result<BTreeSet<[u8; 32]>, StoreError> {
        let mut named = BTreeSet::new();
        for entry in self.db.iter() {
            let (key, sealed) = entry.map_err(self.sled_failed())?;
            match envelope::open(&key, &sealed) {
                Ok(Payload::Large(hash)) => drop(named.insert(hash)),
                Ok(Payload::Inline(_)) => {}
                Err(problem) => return Err(self.damaged(&key, problem)),
            }
        }
        Ok(named)
    }

    /// Reads the complete content. Fails at the first damaged value.
    pub fn load(&self) -> Result<Loaded, StoreError> {
        self.count()?;
        if let Some(problem) = self.lost_end() {
            let what = "the journal".into();
            return Err(StoreError::Damaged { path: self.path.clone(), what, problem });
        }
        let mut loaded = Loaded { snapshot: self.snapshot()?, ..Loaded::default() };
        let after = loaded.snapshot.as_ref().map_or(0, |(sequence, _)| *sequence);
        for entry in self.entries() {
            let (key, value) = entry?;
            value
                .and_then(|value| loaded.take(&key, value))
                .map_err(|problem| self.damaged(&key, problem))?;
        }
        // The snapshot replaces these records; `tidy` removes them.
        loaded.records.retain(|(sequence, _)| *sequence > after);
        for (index, (sequence, _)) in loaded.records.iter().enumerate() {
            let expected = after + 1 + index as u64;
            if *sequence != expected {
                return Err(self.damaged(&record_key(expected), "it is missing"));
            }
        }
        Ok(loaded)
    }

    /// Reads every value, damaged or not. A part that sled cannot read is listed as damaged.
    pub fn survey(&self) -> Survey {
        let mut survey = Survey { lost_end: self.lost_end(), ..Survey::default() };
        for entry in self.entries() {
            let (key, value) = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    survey.damaged.push((LOG.into(), error.to_string()));
                    break;
                }
            };
            survey.values += 1;
            if let Err(problem) = value.and_then(|value| survey.loaded.take(&key, value)) {
                survey.damaged.push((name_of(&key), problem));
            }
        }
        survey.settle();
        // Unknown if a damaged value makes it unknown what is named.
        survey.unnamed =
            self.named().and_then(|named| self.large.count_beside(&named)).unwrap_or(0);
        survey
    }
}
