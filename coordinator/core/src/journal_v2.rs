//! What records and snapshots of version 2 held where it differs from now, so that a farm keeps its
//! jobs over the change. Written no more.
//!
//! Commits did not say whether they are checked, and frames did not know who made what, nor that
//! anything is to be checked.

use crate::journal::snapshot::{Part, SnapshotPart};
use crate::journal::{Commit, Record};
use crate::journal_v3::FromV3;
use crate::splitter::Split;
use crate::state::bitmap::Bitmap;
use crate::state::frame::{DoneFrame, FailedFrame, Frame, OpenFrame, Trouble};
use serde::Deserialize;
use std::collections::BTreeMap;
use tessera_protocol::ids::{BlobHash, Epoch, FrameNumber, JobId, NodeId, UnitIndex};
use tessera_protocol::status::FrameFile;
use tessera_protocol::{CodecError, decode};

/// Position of `Record::UnitsCommitted` among the variants: the first byte of its encoding.
const COMMITS_VARIANT: u8 = 3;
/// Position of `Part::Frames`.
const FRAMES_VARIANT: u8 = 2;

#[derive(Deserialize)]
struct Commits {
    job: JobId,
    frame: FrameNumber,
    commits: Vec<FormerCommit>,
}

#[derive(Deserialize)]
struct FormerCommit {
    unit: UnitIndex,
    epoch: Epoch,
    node: NodeId,
    hash: BlobHash,
}

#[derive(Deserialize)]
struct Frames {
    job: JobId,
    from: u32,
    frames: Vec<FormerFrame>,
}

#[derive(Deserialize)]
enum FormerFrame {
    Untouched,
    Open(Box<FormerOpen>),
    Complete,
    Done(Vec<FrameFile>),
    Failed(Box<FailedFrame>),
}

#[derive(Deserialize)]
struct FormerOpen {
    committed: Bitmap,
    troubled: BTreeMap<UnitIndex, Trouble>,
}

/// What can be read from its bytes of version 2, without the version byte.
pub(crate) trait FromV2: Sized {
    fn from_v2(bytes: &[u8]) -> Result<Self, CodecError>;
}

impl FromV2 for Record {
    fn from_v2(bytes: &[u8]) -> Result<Self, CodecError> {
        let Some((&COMMITS_VARIANT, rest)) = bytes.split_first() else {
            return Self::from_v3(bytes);
        };
        let Commits { job, frame, commits } = decode(rest)?;
        let commit = |former: FormerCommit| {
            let FormerCommit { unit, epoch, node, hash } = former;
            Commit { unit, epoch, node, hash, check: false }
        };
        Ok(Self::UnitsCommitted { job, frame, commits: commits.into_iter().map(commit).collect() })
    }
}

impl FromV2 for SnapshotPart {
    fn from_v2(bytes: &[u8]) -> Result<Self, CodecError> {
        let Some((&FRAMES_VARIANT, rest)) = bytes.split_first() else {
            return Self::from_v3(bytes);
        };
        let Frames { job, from, frames } = decode(rest)?;
        Ok(Self(Part::Frames { job, from, frames: frames.into_iter().map(Frame::from).collect() }))
    }
}

impl From<FormerFrame> for Frame {
    fn from(former: FormerFrame) -> Self {
        match former {
            FormerFrame::Untouched => Self::Untouched,
            FormerFrame::Open(open) => {
                let FormerOpen { committed, troubled } = *open;
                Self::Open(Box::new(OpenFrame { committed, troubled, ..OpenFrame::default() }))
            }
            // How many units it has is said by its job: see `fill_former`.
            FormerFrame::Complete => Self::Complete(Box::default()),
            FormerFrame::Done(files) => Self::Done(DoneFrame { files, spent: None }),
            FormerFrame::Failed(failed) => Self::Failed(failed),
        }
    }
}

/// Gives a frame of version 2 the bitmaps that it did not have.
pub(crate) fn fill_former(frame: &mut Frame, grid: &Split) {
    let units = grid.units();
    match frame {
        Frame::Open(open) if open.verified == Bitmap::default() => {
            open.verified = Bitmap::new(units)
        }
        Frame::Complete(open) if open.committed == Bitmap::default() => {
            (open.committed, open.verified) = (Bitmap::new(units), Bitmap::new(units));
            (0..units).for_each(|unit| {
                open.committed.set(unit);
            });
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::RECORD_VERSION;

    fn unhex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> =
            text.bytes().map(|d| (d as char).to_digit(16).unwrap() as u8).collect();
        digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
    }

    #[test]
    fn a_commit_of_version_2_is_read_and_was_not_checked() {
        // Version, variant; job, frame; one commit: unit, epoch, node, hash.
        let (job, node, hash) = ("11".repeat(16), "22".repeat(16), "33".repeat(32));
        let bytes = unhex(&format!("020310{job}0701050910{node}{hash}"));
        let record = Record::from_bytes(&bytes).unwrap();
        let Record::UnitsCommitted { frame, commits, .. } = &record else { panic!("{record:?}") };
        assert_eq!((*frame, commits.len()), (FrameNumber(7), 1));
        let commit = commits[0];
        assert_eq!((commit.unit, commit.epoch, commit.check), (UnitIndex(5), Epoch(9), false));
        assert_eq!(commit.hash, BlobHash([0x33; 32]));
        let again = record.to_bytes().unwrap();
        assert_eq!(again[0], RECORD_VERSION);
        assert_eq!(Record::from_bytes(&again).unwrap(), record);
    }

    #[test]
    fn frames_of_version_2_are_read_and_nothing_of_them_is_checked() {
        // Version, variant; job, first position; three frames: untouched, open with one of its
        // units, complete.
        let bytes = unhex(&format!("020210{}00030001010101000{}", "11".repeat(16), 2));
        let SnapshotPart(Part::Frames { mut frames, .. }) =
            SnapshotPart::from_bytes(&bytes).unwrap()
        else {
            panic!("no frames")
        };
        let grid = Split::Chunks(crate::splitter::chunks::Chunks::of_length(10, 4));
        frames.iter_mut().for_each(|frame| fill_former(frame, &grid));
        let [Frame::Untouched, Frame::Open(open), Frame::Complete(complete)] = &frames[..] else {
            panic!("{frames:?}")
        };
        assert_eq!((open.committed.ones(), complete.committed.ones()), (1, 3));
        assert!(open.verified.is_sound(3) && complete.verified.is_sound(3));
        assert!(open.checks.is_empty() && open.unverified_of(NodeId(uuid::Uuid::nil())).is_empty());
    }
}
