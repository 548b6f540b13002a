//! One job of the audit: its frames, its units, and the checks of each. Judges no record.

use crate::journal::Commit;
use crate::splitter::Split;
use crate::state::bitmap::Bitmap;
use crate::state::finishing::Finishing;
use crate::state::kernel_votes::Blame;
use crate::state::rounds::FrameRounds;
use crate::state::votes::{Check, Vote};
use std::collections::{BTreeMap, BTreeSet};
use tessera_protocol::compute::ComputeSpec;
use tessera_protocol::frames::FrameSet;
use tessera_protocol::ids::{Fingerprint, FrameNumber, UnitIndex};
use tessera_protocol::job::{After, JobSpec};

/// Samples of a part, and its result if it is still to be checked.
pub(super) type PartEntry = (u32, Option<Vote>);

/// One job according to the records so far.
pub(super) struct Entry {
    pub(super) grid: Split,
    pub(super) blame: Blame,
    pub(super) numbers: FrameSet,
    pub(super) committed: BTreeMap<FrameNumber, Bitmap>,
    /// Units that are to be checked.
    pub(super) unchecked: BTreeMap<(FrameNumber, UnitIndex), Check>,
    /// Units in parts: the samples of each, and the result if it is still to be checked.
    pub(super) parts: BTreeMap<(FrameNumber, UnitIndex), Vec<PartEntry>>,
    /// Frames that nodes finish, and those of which that was given up.
    pub(super) finished_by: BTreeMap<FrameNumber, Finishing>,
    /// Rounds of frames that are sampled in rounds and have begun.
    pub(super) rounds_of: BTreeMap<FrameNumber, FrameRounds>,
    pub(super) done: BTreeSet<FrameNumber>,
    pub(super) failed: BTreeSet<FrameNumber>,
    pub(super) fingerprint: Option<Fingerprint>,
    pub(super) ended: bool,
    pub(super) paused: bool,
    /// What the job still waits for.
    pub(super) waits: Vec<After>,
    /// Number of units committed of frames that had failed when the snapshot was made.
    pub(super) units_of_failed: u64,
    /// Number of units of frames that were finished when the snapshot was made.
    pub(super) units_of_done: u64,
}

pub(super) fn total_of(parts: &[PartEntry]) -> u32 {
    parts.iter().fold(0, |sum: u32, (samples, _)| sum.saturating_add(*samples))
}

impl Entry {
    /// Returns a job of which nothing has been computed.
    pub(super) fn new(spec: &JobSpec) -> Self {
        Self {
            grid: Split::of(&spec.kind),
            blame: match spec.kind.compute().is_some_and(ComputeSpec::runs_users_kernel) {
                true => Blame::Kernel,
                false => Blame::Node,
            },
            numbers: spec.kind.frames().clone(),
            committed: BTreeMap::new(),
            unchecked: BTreeMap::new(),
            parts: BTreeMap::new(),
            finished_by: BTreeMap::new(),
            rounds_of: BTreeMap::new(),
            done: BTreeSet::new(),
            failed: BTreeSet::new(),
            fingerprint: None,
            ended: false,
            paused: false,
            waits: spec.after.clone(),
            units_of_failed: 0,
            units_of_done: 0,
        }
    }

    /// Returns the rounds of a frame, from the first on; None if it is not sampled in rounds.
    pub(super) fn rounds(&mut self, frame: FrameNumber) -> Option<&mut FrameRounds> {
        if let Some(rounds) = FrameRounds::of(&self.grid) {
            self.rounds_of.entry(frame).or_insert(rounds);
        }
        self.rounds_of.get_mut(&frame)
    }

    /// Returns the numbers of a frame's units: committed, needed, and still to be checked.
    pub(super) fn standing(&mut self, frame: FrameNumber) -> (u32, u32, usize) {
        let all = self.grid.units();
        let pieces = if self.is_by_nodes(frame) { self.grid.finishing() } else { 0 };
        let units = self.rounds(frame).map_or(all, |rounds| rounds.units()) + pieces;
        let unchecked = self.unchecked.keys().filter(|(of, _)| *of == frame).count();
        (self.committed.get(&frame).map_or(0, Bitmap::ones), units, unchecked)
    }

    /// Whether nodes finish a frame.
    pub(super) fn is_by_nodes(&self, frame: FrameNumber) -> bool {
        self.finished_by.get(&frame) == Some(&Finishing::ByNodes)
    }

    /// Returns the number of a frame's units that are committed, without finishing units.
    pub(super) fn sampled(&self, frame: FrameNumber) -> u32 {
        let committed = self.committed.get(&frame);
        committed.map_or(0, |units| units.ones_below(self.grid.units()))
    }

    /// Whether a unit may be committed: one of a round so far, a band of a frame that nodes finish,
    /// or the assembly of bands that need no check.
    pub(super) fn asks_for(&mut self, frame: FrameNumber, unit: UnitIndex) -> bool {
        if !self.grid.is_finishing(unit) {
            return self.rounds(frame).is_none_or(|rounds| rounds.has(unit));
        }
        let Some(committed) = self.committed.get(&frame).filter(|_| self.is_by_nodes(frame)) else {
            return false;
        };
        let settled = |band: u32| {
            committed.get(band) && !self.unchecked.contains_key(&(frame, UnitIndex(band)))
        };
        self.grid.assembly() != Some(unit) || self.grid.bands().all(settled)
    }

    /// Begins the checks of a complete unit: of its own result, or of its parts, one after another.
    pub(super) fn begin_checks(&mut self, frame: FrameNumber, commit: &Commit) {
        let key = (frame, commit.unit);
        let result = Vote { node: commit.node, epoch: commit.epoch, hash: commit.hash };
        let own = commit.check.then_some(result);
        let first = match self.parts.get_mut(&key) {
            None => own,
            Some(parts) => {
                let before = total_of(parts);
                parts.push((self.grid.unit_size(commit.unit).saturating_sub(before), own));
                parts.iter().find_map(|(_, result)| *result)
            }
        };
        self.unchecked.extend(first.map(|first| (key, Check::new(first))));
    }

    /// Ends a check and begins that of the next part; false if there was no check.
    pub(super) fn next_check(&mut self, frame: FrameNumber, unit: UnitIndex) -> bool {
        let key = (frame, unit);
        let Some(over) = self.unchecked.remove(&key) else { return false };
        let parts = self.parts.get_mut(&key).into_iter().flatten();
        let mut to_check = parts.filter(|(_, result)| result.is_some());
        if let Some((_, result)) =
            to_check.next().filter(|(_, result)| *result == Some(*over.committed()))
        {
            *result = None;
        }
        let next = to_check.find_map(|(_, result)| *result);
        self.unchecked.extend(next.map(|next| (key, Check::new(next))));
        true
    }
}
