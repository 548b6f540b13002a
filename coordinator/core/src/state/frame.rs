//! One frame of a job: which units are committed, and the exceptions. Never a record per unit.

use crate::journal::{Commit, Ending};
use crate::results::failure_class::{Class, Cost};
use crate::splitter::Split;
use crate::state::bitmap::Bitmap;
use crate::state::committed_by::CommittedBy;
use crate::state::done::Done;
use crate::state::finishing::Finishing;
use crate::state::parts::{Parts, Standing, UnitPart};
use crate::state::rounds::FrameRounds;
use crate::state::votes::{Check, Vote};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tessera_protocol::ids::{Epoch, NodeId, UnitIndex};
use tessera_protocol::node::SampleRange;
use tessera_protocol::status::{FrameState, RoundStatus};

/// A frame as it is seen. Only frames to which something has happened take memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Frame<'a> {
    /// Nothing durable has happened to any of its units.
    Untouched,
    /// Some units are committed or troubled, or are to be checked, or a round is to be measured.
    Open(&'a OpenFrame),
    /// All units are committed, and none is to be checked any more; its files are to be made.
    Complete(&'a OpenFrame),
    /// Its files are stored.
    Done(Done<'a>),
    /// It has failed for good.
    Failed(Failure<'a>),
}

/// Facts about a frame that has failed, as they are seen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failure<'a> {
    pub(crate) reason: &'a str,
    pub(crate) units_committed: u32,
    pub(crate) samples_committed: u64,
}

/// Durable state of a frame that has begun and is not done, or has failed by itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Begun {
    /// See [`Frame::Open`].
    Open(Box<OpenFrame>),
    /// See [`Frame::Complete`].
    Complete(Box<OpenFrame>),
    /// See [`Frame::Failed`].
    Failed(Box<FailedFrame>),
}

/// State of a frame that has begun and is not finished.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct OpenFrame {
    pub(in crate::state) committed: Bitmap,
    /// Open units with ended attempts.
    pub(in crate::state) troubled: BTreeMap<UnitIndex, Trouble>,
    /// Committed units that must be rendered again by another node before the frame is resolved.
    pub(in crate::state) checks: BTreeMap<UnitIndex, Check>,
    /// Committed units that another node has rendered alike.
    pub(in crate::state) verified: Bitmap,
    /// Who finishes the frame.
    pub(in crate::state) finishing: Finishing,
    /// Node of each committed unit. In parts of its own in a snapshot.
    #[serde(skip)]
    pub(in crate::state) committed_by: CommittedBy,
    /// Units that are committed in parts, or have some of them. In parts of their own in a
    /// snapshot.
    #[serde(skip)]
    pub(in crate::state) parts: Parts,
    /// Rounds, if the frame is sampled in rounds. In a part of its own in a snapshot.
    #[serde(skip)]
    pub(in crate::state) rounds: Option<Box<FrameRounds>>,
}

/// Facts about a failed frame.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct FailedFrame {
    pub(crate) reason: String,
    pub(crate) units_committed: u32,
    pub(crate) samples_committed: u64,
}

/// Ended attempts of one open unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Trouble {
    /// Number of attempts that failed.
    pub(crate) failed: u8,
    /// Leases that expired or were lost.
    pub(crate) lost: u8,
    /// Epoch of the newest ended lease.
    pub(crate) epoch: Epoch,
    /// Node that held the newest ended lease.
    pub(crate) node: NodeId,
    /// Whether the newest lease failed, so that its result is refused.
    pub(crate) disowned: bool,
}

impl Begun {
    /// Creates the open state of a frame of which nothing is committed.
    pub(crate) fn open(split: &Split) -> Self {
        let bitmap = || Bitmap::new(split.all_units());
        let rounds = FrameRounds::of(split).map(Box::new);
        Self::Open(Box::new(OpenFrame {
            committed: bitmap(),
            verified: bitmap(),
            rounds,
            ..OpenFrame::default()
        }))
    }

    /// Returns how the frame is seen.
    pub(crate) fn view(&self) -> Frame<'_> {
        match self {
            Self::Open(open) => Frame::Open(open),
            Self::Complete(open) => Frame::Complete(open),
            Self::Failed(failed) => {
                let FailedFrame { reason, units_committed, samples_committed } = &**failed;
                Frame::Failed(Failure {
                    reason,
                    units_committed: *units_committed,
                    samples_committed: *samples_committed,
                })
            }
        }
    }

    /// Returns the state of a frame that is not finished.
    pub(crate) fn unfinished_mut(&mut self) -> Option<&mut OpenFrame> {
        match self {
            Self::Open(open) | Self::Complete(open) => Some(open),
            Self::Failed(_) => None,
        }
    }

    /// Makes the frame complete or open, according to its units, checks and rounds.
    pub(crate) fn settle(&mut self, split: &Split) {
        let (Self::Open(open) | Self::Complete(open)) = self else { return };
        let last_round = open.rounds.as_ref().is_none_or(|rounds| rounds.is_over());
        let complete = open.has_all(split) && open.checks.is_empty() && last_round;
        let open = std::mem::take(open);
        *self = if complete { Self::Complete(open) } else { Self::Open(open) };
    }
}

impl<'a> Frame<'a> {
    /// Whether it is done or failed.
    pub(crate) fn is_final(&self) -> bool {
        matches!(self, Self::Done(_) | Self::Failed(_))
    }

    /// Whether the unit may still be committed.
    pub(crate) fn unit_is_open(&self, unit: UnitIndex, split: &Split) -> bool {
        match self {
            Self::Untouched => split.begins_with(unit),
            Self::Open(open) => !open.committed.get(unit.0) && open.has(unit, split),
            _ => false,
        }
    }

    /// Whether a result of the unit is wanted, to be committed or compared.
    pub(crate) fn unit_is_wanted(&self, unit: UnitIndex, split: &Split) -> bool {
        self.unit_is_open(unit, split) || self.check(unit).is_some()
    }

    /// The check that a committed unit waits for.
    pub(crate) fn check(&self, unit: UnitIndex) -> Option<&'a Check> {
        match self {
            Self::Open(open) => open.checks.get(&unit),
            _ => None,
        }
    }

    /// Returns the state of a frame that has begun and is not finished.
    pub(crate) fn unfinished(&self) -> Option<&'a OpenFrame> {
        match self {
            Self::Open(open) | Self::Complete(open) => Some(open),
            _ => None,
        }
    }

    /// The round that has been rendered and is to end, by being measured where there is something
    /// to measure.
    pub(crate) fn round_to_end(&self, split: &Split) -> Option<u32> {
        let Self::Open(open) = self else { return None };
        let rounds = open.rounds.as_ref().filter(|_| !open.is_finished_by_nodes())?;
        (open.has_all(split) && open.checks.is_empty()).then(|| rounds.round())
    }

    /// Samples per pixel at most of a frame that was sampled in rounds, and whose last round is
    /// known.
    pub(crate) fn newest_samples(&self) -> Option<u32> {
        match self {
            Self::Complete(open) => open.rounds.as_ref().map(|rounds| rounds.newest_samples()),
            Self::Done(done) => {
                let spent = done.read().and_then(|done| done.spent);
                spent.map(|spent| spent.samples).filter(|samples| *samples > 0)
            }
            _ => None,
        }
    }

    pub(crate) fn trouble(&self, unit: UnitIndex) -> Option<&'a Trouble> {
        match self {
            Self::Open(open) => open.troubled.get(&unit),
            _ => None,
        }
    }

    /// The first open unit at or after `from`, without finishing units.
    pub(crate) fn first_open_unit(&self, from: u32, split: &Split) -> Option<u32> {
        match self {
            Self::Untouched => {
                (from..split.units()).find(|unit| split.begins_with(UnitIndex(*unit)))
            }
            Self::Open(open) => open.first_open_unit(from, split.units()),
            _ => None,
        }
    }

    pub(crate) fn status(&self, split: &Split) -> FrameState {
        match self {
            Self::Untouched => {
                let round = FrameRounds::of(split).as_ref().map(status_of);
                FrameState::Open { committed: 0, units: split.first_work().0, round }
            }
            Self::Open(open) | Self::Complete(open) if open.is_finished_by_nodes() => {
                let pieces = split.finishing();
                let done = split.pieces().filter(|unit| open.committed.get(unit.0)).count();
                FrameState::Finishing { done: done as u32, pieces }
            }
            Self::Open(open) => FrameState::Open {
                committed: open.sampled(split),
                units: open.units(split),
                round: open.rounds.as_deref().map(status_of),
            },
            Self::Complete(_) => FrameState::Resolving,
            Self::Done(done) => {
                FrameState::Done(done.read().map(|done| done.files).unwrap_or_default())
            }
            Self::Failed(failed) => FrameState::Failed(failed.reason.to_owned()),
        }
    }
}

fn status_of(rounds: &FrameRounds) -> RoundStatus {
    RoundStatus {
        round: rounds.round(),
        rounds: rounds.round_max(),
        tiles_open: rounds.tiles_open(),
        tiles: rounds.tiles(),
        samples: rounds.newest_samples(),
    }
}

impl OpenFrame {
    pub(crate) fn committed(&self) -> &Bitmap {
        &self.committed
    }

    /// Committed units that must be rendered again by another node before the frame is resolved.
    pub(crate) fn checks(&self) -> &BTreeMap<UnitIndex, Check> {
        &self.checks
    }

    pub(crate) fn parts(&self) -> &Parts {
        &self.parts
    }

    pub(crate) fn rounds(&self) -> Option<&FrameRounds> {
        self.rounds.as_deref()
    }

    /// Whether the unit is part of the frame, as far as its rounds and its finishing are known.
    pub(crate) fn has(&self, unit: UnitIndex, split: &Split) -> bool {
        match split.piece(unit) {
            Some(piece) => self.has_piece(piece, split),
            None => self.rounds.as_ref().is_none_or(|rounds| rounds.has(unit)),
        }
    }

    /// Returns the number of units that are sampled, as far as the rounds are known.
    pub(crate) fn units(&self, split: &Split) -> u32 {
        self.rounds.as_ref().map_or_else(|| split.units(), |rounds| rounds.units())
    }

    /// Returns the number of camera samples, as far as the rounds are known.
    pub(crate) fn camera_samples(&self, split: &Split) -> u64 {
        self.rounds
            .as_ref()
            .map_or_else(|| split.frame_camera_samples(), |rounds| rounds.camera_samples())
    }

    /// Whether all units that are known to be needed are committed.
    pub(crate) fn has_all(&self, split: &Split) -> bool {
        self.sampled(split) == self.units(split) && self.has_all_pieces(split)
    }

    fn first_open_unit(&self, from: u32, units: u32) -> Option<u32> {
        let mut unit = self.committed.first_clear(from, units)?;
        while let Some(rounds) = &self.rounds {
            let next = rounds.first_from(unit)?;
            if next == unit {
                break;
            }
            unit = self.committed.first_clear(next, units)?;
        }
        Some(unit)
    }

    /// Returns the units that depend on the results of the given units, in their order: those of
    /// later rounds, and finishing units.
    pub(crate) fn units_after(&self, units: &[UnitIndex], split: &Split) -> Vec<UnitIndex> {
        let mut after = Vec::new();
        if let Some(rounds) = &self.rounds
            && let Some(round) = first_round(rounds, units, split)
        {
            let from = |unit| rounds.first_from(unit);
            let known = std::iter::successors(from(0), |unit| from(unit + 1)).map(UnitIndex);
            after.extend(known.filter(|unit| rounds.round_of(*unit) > round));
        }
        after.extend(self.pieces_after(units, split));
        after
    }

    /// Voids the measurements of units that were taken back, and what was finished of them. False
    /// if units that depend on them are still present.
    pub(crate) fn rewind(&mut self, taken: &[UnitIndex], below: Epoch, split: &Split) -> bool {
        if !self.void_pieces(taken, below, split) {
            return false;
        }
        let Some(rounds) = &mut self.rounds else { return true };
        let Some(round) = first_round(rounds, taken, split) else { return true };
        rounds.rewind(round);
        let left =
            self.parts.iter().map(|(unit, _)| unit).filter(|unit| !rounds.has(*unit)).count();
        left == 0 && rounds.check(&self.committed).is_ok()
    }

    /// Adds a result with all samples of a unit, or with those that its parts lack. False if the
    /// unit is committed.
    pub(crate) fn commit(&mut self, commit: &Commit, samples: u32) -> bool {
        let Commit { unit, epoch, node, hash, check } = *commit;
        if !self.committed.set(unit.0) {
            return false;
        }
        let trouble = self.troubled.remove(&unit);
        self.committed_by.set(unit, node);
        if self.parts.has(unit) {
            let missing = samples.saturating_sub(self.parts.samples(unit));
            self.parts.push(unit, part_of(commit, missing));
            self.open_next_check(unit);
        } else if check {
            let after = trouble.filter(|last| last.disowned).map_or(Epoch(0), |last| last.epoch);
            self.checks.insert(unit, Check::new_after(Vote { node, epoch, hash }, after));
        }
        true
    }

    /// Adds a part of an open unit that has `whole` samples. False if it does not follow the
    /// present parts, or completes the unit.
    pub(crate) fn commit_part(&mut self, commit: &Commit, range: SampleRange, whole: u32) -> bool {
        let SampleRange { first, count: samples } = range;
        let unit = commit.unit;
        let end = first.checked_add(samples).filter(|end| samples > 0 && *end < whole);
        if self.committed.get(unit.0) || self.parts.samples(unit) != first || end.is_none() {
            return false;
        }
        self.parts.push(unit, part_of(commit, samples));
        // All earlier leases are void, and so is the rest of this one: the next lease is for the
        // rest of the unit.
        self.disown(unit, commit.epoch, commit.node);
        true
    }

    /// Drops the parts of an open unit, and refuses results of leases below an epoch. None if it
    /// has no parts.
    pub(crate) fn drop_parts(&mut self, unit: UnitIndex, below: Epoch) -> Option<Vec<UnitPart>> {
        if self.committed.get(unit.0) || !self.parts.has(unit) {
            return None;
        }
        self.disown(unit, below, NodeId(Default::default()));
        Some(self.parts.remove(unit))
    }

    /// Refuses results of leases up to this one. Ended attempts still count.
    pub(in crate::state) fn disown(&mut self, unit: UnitIndex, epoch: Epoch, node: NodeId) {
        let none = Trouble { failed: 0, lost: 0, epoch, node, disowned: true };
        let trouble = self.troubled.entry(unit).or_insert(none);
        (trouble.epoch, trouble.node, trouble.disowned) = (epoch.max(trouble.epoch), node, true);
    }

    /// Opens the check of a committed unit's next part.
    fn open_next_check(&mut self, unit: UnitIndex) {
        if let Some((part, _)) = self.parts.to_check(unit) {
            self.checks.insert(unit, Check::new(part.result));
        }
    }

    /// Ends a unit's check without a verdict against it. The unit is verified if another node
    /// rendered it alike. Of a unit in parts, it ends the check of one part and opens that of the
    /// next.
    pub(crate) fn end_check(&mut self, unit: UnitIndex, verified: bool) -> Option<Check> {
        let check = self.checks.remove(&unit)?;
        if self.parts.has(unit) {
            self.parts.end_check(unit, verified);
            self.open_next_check(unit);
        } else if verified {
            self.verified.set(unit.0);
        }
        Some(check)
    }

    /// Opens a committed unit again, and refuses results of leases below an epoch. False if it was
    /// not committed.
    pub(crate) fn take_back(&mut self, unit: UnitIndex, below: Epoch) -> bool {
        if !self.committed.clear(unit.0) {
            return false;
        }
        self.checks.remove(&unit);
        self.verified.clear(unit.0);
        self.committed_by.clear(unit);
        self.parts.remove(unit);
        let node = NodeId(Default::default());
        self.troubled
            .insert(unit, Trouble { failed: 0, lost: 0, epoch: below, node, disowned: true });
        true
    }

    /// Returns the units that a node committed, or has parts in, and that no other node has
    /// rendered alike.
    pub(crate) fn unverified_of(&self, node: NodeId) -> Vec<UnitIndex> {
        let blind = |unit: &UnitIndex| !self.verified.get(unit.0) && !self.parts.has(*unit);
        let mut units: Vec<UnitIndex> = self.committed_by.units_of(node).filter(blind).collect();
        units.extend(self.parts.units_of(node).filter(|unit| self.committed.get(unit.0)));
        units.sort_unstable();
        units
    }

    /// Returns the open units with parts of a node.
    pub(crate) fn open_parts_of(&self, node: NodeId) -> Vec<UnitIndex> {
        self.parts.units_of(node).filter(|unit| !self.committed.get(unit.0)).collect()
    }

    /// Returns the samples for a lease on a unit that has these in all.
    pub(crate) fn wanted_samples(&self, unit: UnitIndex, whole: SampleRange) -> SampleRange {
        self.parts.wanted(unit, whole, self.committed.get(unit.0))
    }

    /// Counts an ended attempt.
    pub(crate) fn note_ending(
        &mut self,
        unit: UnitIndex,
        epoch: Epoch,
        node: NodeId,
        ending: &Ending,
    ) {
        let none = Trouble { failed: 0, lost: 0, epoch: Epoch(0), node, disowned: false };
        let trouble = self.troubled.entry(unit).or_insert(none);
        match Class::of_ending(ending).rule().cost {
            Cost::Attempt => trouble.failed = trouble.failed.saturating_add(1),
            Cost::Loss => trouble.lost = trouble.lost.saturating_add(1),
            Cost::Nothing => {}
        }
        if epoch >= trouble.epoch {
            (trouble.epoch, trouble.node, trouble.disowned) = (epoch, node, ending.has_failed());
        }
    }
}

/// Returns the first round of units, of those that belong to one.
fn first_round(rounds: &FrameRounds, units: &[UnitIndex], split: &Split) -> Option<u32> {
    let sampled = units.iter().filter(|unit| !split.is_finishing(**unit));
    sampled.map(|unit| rounds.round_of(*unit)).min()
}

fn part_of(commit: &Commit, samples: u32) -> UnitPart {
    let Commit { epoch, node, hash, check, .. } = *commit;
    let standing = if check { Standing::ToCheck } else { Standing::Unchecked };
    UnitPart { samples, result: Vote { node, epoch, hash }, standing }
}
