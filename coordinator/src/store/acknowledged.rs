//! The note in a data folder of what a store elsewhere has said to be durable. A database whose
//! standby took over without the newest commits has less, and the folder's next start says so.

use super::StoreError;
use crate::folder::DataFolder;
use std::fs::File;
use std::io::{Seek, Write};
use std::path::Path;
use tessera_transport::files;
use uuid::Uuid;

/// Longest note, in bytes.
const BYTES_MAX: u64 = 256;

/// What a data folder knows of its coordinator's last lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Witness {
    /// Number of the lead.
    pub epoch: i64,
    /// Number of the lead before it.
    pub before: i64,
    /// Commits that the store had when it answered this coordinator last.
    pub commits: i64,
}

impl Witness {
    /// Whether the store has lost commits since. `began`: how many there were when the lead began
    /// that followed, or that took the place of one that was lost; None where the store knows of
    /// neither, so that it has lost even more.
    pub fn has_lost(&self, began: Option<i64>) -> bool {
        began.is_none_or(|began| began < self.commits)
    }

    /// Whether a lead after this one followed the witness's lead, or took its place.
    pub fn is_followed_by(&self, (epoch, before): (i64, i64)) -> bool {
        before == self.epoch || before == self.before && epoch != self.epoch
    }
}

/// The note, which is written before what a commit says is told to anybody. It survives a kill. A
/// power cut may lose it or tear it, and what is torn says nothing.
#[derive(Debug)]
pub struct Acknowledged {
    file: File,
    farm: Uuid,
    led: Witness,
    has_failed: bool,
}

impl Acknowledged {
    /// Reads a folder's note of this farm. None if it has none.
    pub fn read(folder: &DataFolder, farm: Uuid) -> Option<Witness> {
        let bytes = files::read_bounded(&folder.acknowledged(), BYTES_MAX).ok()?;
        let text = String::from_utf8(bytes).ok()?;
        let mut words = text.strip_suffix(" end\n")?.split_whitespace();
        if words.next()?.parse() != Ok(farm) {
            return None;
        }
        let mut number = || words.next()?.parse().ok();
        Some(Witness { epoch: number()?, before: number()?, commits: number()? })
    }

    /// Begins the note of a lead.
    pub fn begin(folder: &DataFolder, farm: Uuid, led: Witness) -> Result<Self, StoreError> {
        let path = folder.acknowledged();
        let failed = |path: &Path, source| StoreError::Io { path: path.to_path_buf(), source };
        let text = text(farm, led);
        files::write_atomically(&path, text.as_bytes(), files::Access::Secret)
            .map_err(|source| failed(&path, source))?;
        let file = File::options().write(true).open(&path);
        let file = file.map_err(|source| failed(&path, source))?;
        Ok(Self { file, farm, led, has_failed: false })
    }

    /// Notes that the store has so many commits. Where that cannot be written, what the folder says
    /// is less than there was, and a loss may stay unseen; that is told once.
    pub fn note(&mut self, commits: i64) {
        self.led.commits = commits;
        let text = text(self.farm, self.led);
        let written = self.file.rewind().and_then(|()| self.file.write_all(text.as_bytes()));
        if let Err(error) = &written
            && !self.has_failed
        {
            tracing::warn!(%error, "what the store has taken cannot be noted in the folder");
        }
        self.has_failed = written.is_err();
    }
}

/// The note has the same length for all numbers, so that one is written over another.
fn text(farm: Uuid, Witness { epoch, before, commits }: Witness) -> String {
    format!("{farm} {epoch:20} {before:20} {commits:20} end\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_read_by_its_farm_alone() {
        let root = tempfile::tempdir().unwrap();
        let folder = DataFolder::open(root.path()).unwrap();
        let farm = Uuid::from_u128(7);
        assert_eq!(Acknowledged::read(&folder, farm), None);
        let led = Witness { epoch: 9, before: 4, commits: 100_000 };
        let mut note = Acknowledged::begin(&folder, farm, led).unwrap();
        assert_eq!(Acknowledged::read(&folder, farm), Some(led));
        for commits in [100_001, i64::MAX, 5] {
            note.note(commits);
            assert_eq!(Acknowledged::read(&folder, farm), Some(Witness { commits, ..led }));
        }
        assert_eq!(Acknowledged::read(&folder, Uuid::from_u128(8)), None);
        let bytes = std::fs::read(folder.acknowledged()).unwrap();
        for length in 0..bytes.len() {
            std::fs::write(folder.acknowledged(), &bytes[..length]).unwrap();
            assert_eq!(Acknowledged::read(&folder, farm), None, "{length} bytes");
        }
    }

    #[test]
    fn a_lost_end_is_seen_by_where_the_next_lead_began() {
        let led = Witness { epoch: 9, before: 4, commits: 100 };
        assert!(led.has_lost(None) && led.has_lost(Some(99)) && !led.has_lost(Some(100)));
        assert!(led.is_followed_by((12, 9)) && led.is_followed_by((12, 4)));
        assert!(!led.is_followed_by((9, 4)) && !led.is_followed_by((12, 8)));
    }
}
