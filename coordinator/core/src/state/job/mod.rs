//! The durable state of one job. Its leases and its queue are not durable and are kept elsewhere.

mod barred;
mod check;
mod counts;
mod metered;
mod restored;

use crate::journal::{Commit, EndedAttempt, Redone};
use crate::splitter::Split;
use crate::state::frame::{DoneFrame, FailedFrame, Frame, OpenFrame, Spent};
use crate::state::kernel_votes::Blame;
use crate::state::parts::{PARTS_MAX, total};
use crate::state::rounds::TileSet;
use crate::state::votes::{Check, Vote};
use crate::time::Moment;
pub(crate) use counts::Counts;
use counts::{committed_of, open_of, parts_before_last};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;
use tessera_protocol::compute::{ComputeFormat, ComputeSpec};
use tessera_protocol::ids::{
    BlobHash, Epoch, Fingerprint, FrameNumber, JobId, NodeId, UnitIndex, UnitKey,
};
use tessera_protocol::job::{JobKind, JobSpec};
use tessera_protocol::node::{SampleRange, Task};
use tessera_protocol::status::{FailureNote, FrameFile, JobState};

/// Most failed attempts that are kept for people.
const FAILURES_MAX: usize = 64;

/// A unit by the position of its frame among the job's frames; ordered by the order of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) position: u32,
    pub(crate) unit: UnitIndex,
}

/// How and when a job ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct End {
    pub(crate) state: JobState,
    pub(crate) at: Moment,
    pub(crate) note: String,
}

/// Who paused a job, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pause {
    pub(crate) by: String,
    pub(crate) at: Moment,
}

/// Counts of units that had two leases, of which one was stopped after the other's result was
/// taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Copies {
    /// Number of times that the copy was first.
    pub(crate) won: u64,
    /// Number of times that the original lease was first.
    pub(crate) lost: u64,
    /// Total time for which stopped leases were held, in milliseconds.
    pub(crate) wasted_millis: u64,
}

/// Durable state of a job.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Job {
    pub(in crate::state) id: JobId,
    pub(in crate::state) spec: JobSpec,
    pub(in crate::state) grid: Split,
    /// Hash of the scene, or of the program and its inputs. Nodes use it to say what they hold.
    pub(in crate::state) scene: BlobHash,
    pub(in crate::state) owner: String,
    /// Number of the owner's identity.
    pub(in crate::state) owner_id: u64,
    /// Number in the order of acceptance; grows from job to job.
    pub(in crate::state) order: u64,
    pub(in crate::state) submitted_at: Moment,
    pub(in crate::state) fingerprint: Option<Fingerprint>,
    pub(in crate::state) end: Option<End>,
    /// The pause, if the job is paused. None once it has ended.
    pub(in crate::state) paused: Option<Pause>,
    /// Results below this epoch are of failed frames that were retried, unless their lease is held.
    pub(in crate::state) fence: Epoch,
    pub(in crate::state) failures: VecDeque<FailureNote>,
    pub(in crate::state) copies: Copies,
    /// Camera samples that leaving nodes handed in as parts, without those that were taken back
    /// later.
    pub(in crate::state) samples_kept: u64,
    /// Nodes that were wrong about a chunk of the user's kernel: their results are not wanted.
    pub(in crate::state) barred: BTreeSet<NodeId>,
    numbers: Vec<FrameNumber>,
    frames: Vec<Frame>,
    counts: Counts,
}

impl Job {
    pub(crate) fn id(&self) -> JobId {
        self.id
    }

    pub(crate) fn spec(&self) -> &JobSpec {
        &self.spec
    }

    pub(crate) fn grid(&self) -> Split {
        self.grid
    }

    /// Hash of the scene, or of the program and its inputs. Nodes use it to say what they hold.
    pub(crate) fn scene(&self) -> BlobHash {
        self.scene
    }

    pub(crate) fn owner(&self) -> &str {
        &self.owner
    }

    /// Number of the owner's identity. Rights to the job go by it.
    pub(crate) fn owner_id(&self) -> u64 {
        self.owner_id
    }

    /// Number in the order of acceptance; grows from job to job.
    pub(crate) fn order(&self) -> u64 {
        self.order
    }

    pub(crate) fn submitted_at(&self) -> Moment {
        self.submitted_at
    }

    pub(crate) fn fingerprint(&self) -> Option<Fingerprint> {
        self.fingerprint
    }

    pub(crate) fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// The pause, if the job is paused. None once it has ended.
    pub(crate) fn paused(&self) -> Option<&Pause> {
        self.paused.as_ref()
    }

    /// Results below this epoch are of failed frames that were retried, unless their lease is held.
    pub(crate) fn fence(&self) -> Epoch {
        self.fence
    }

    pub(crate) fn failures(&self) -> &VecDeque<FailureNote> {
        &self.failures
    }

    pub(crate) fn copies(&self) -> Copies {
        self.copies
    }

    /// Camera samples that leaving nodes handed in as parts, without those that were taken back
    /// later.
    pub(crate) fn samples_kept(&self) -> u64 {
        self.samples_kept
    }

    pub(crate) fn new(
        id: JobId,
        spec: JobSpec,
        (owner, owner_id): (String, u64),
        order: u64,
        submitted_at: Moment,
    ) -> Self {
        let (grid, scene) = (Split::of(&spec.kind), spec.kind.data_hash());
        let numbers: Vec<FrameNumber> = spec.kind.frames().iter().collect();
        let frames = vec![Frame::Untouched; numbers.len()];
        let (units, samples) = grid.first_work();
        let count = frames.len() as u64;
        let counts = Counts {
            units_open: u64::from(units) * count,
            samples_open: samples * count,
            ..Counts::default()
        };
        Self {
            id,
            spec,
            grid,
            scene,
            owner,
            owner_id,
            order,
            submitted_at,
            fingerprint: None,
            end: None,
            paused: None,
            fence: Epoch(0),
            failures: VecDeque::new(),
            copies: Copies::default(),
            samples_kept: 0,
            barred: BTreeSet::new(),
            counts,
            numbers,
            frames,
        }
    }

    pub(crate) fn kind(&self) -> &JobKind {
        &self.spec.kind
    }

    /// Returns the spec of a compute job whose frames read the results of earlier frames; None for
    /// others.
    fn feeding(&self) -> Option<&ComputeSpec> {
        self.kind().compute().filter(|compute| compute.feed.is_some())
    }

    /// Returns the share of the farm's time that each frame may use, if there is a limit.
    pub(crate) fn time(&self) -> Option<Duration> {
        let secs = self.kind().render()?.time_secs?;
        Some(Duration::from_secs(secs.into()))
    }

    /// Whether each frame needs the result of the frame before.
    pub(crate) fn is_chained(&self) -> bool {
        self.feeding().is_some()
    }

    /// Whether no unit of the frame at this position may be leased yet, because it needs an
    /// unfinished frame.
    pub(crate) fn is_shut(&self, position: u32) -> bool {
        self.is_chained() && position > 0 && self.fed(position).is_none()
    }

    /// Returns the result that the frame at this position reads, once it is finished.
    pub(crate) fn fed(&self, position: u32) -> Option<BlobHash> {
        let compute = self.feeding()?;
        let Frame::Done(done) = self.frames.get(position.checked_sub(1)? as usize)? else {
            return None;
        };
        let place = compute.formats.iter().position(|format| *format == ComputeFormat::Npy)?;
        Some(done.files.get(place)?.hash)
    }

    pub(crate) fn frames(&self) -> &[Frame] {
        &self.frames
    }

    pub(crate) fn counts(&self) -> Counts {
        self.counts
    }

    pub(crate) fn is_final(&self) -> bool {
        self.end.is_some()
    }

    /// Whether every frame is done or failed.
    pub(crate) fn is_over(&self) -> bool {
        (self.counts.frames_done + self.counts.frames_failed) as usize == self.frames.len()
    }

    /// Returns the number of units of all frames. With rounds, only of the rounds so far, without
    /// those that a failed frame lacked.
    pub(crate) fn units(&self) -> u64 {
        match self.grid.has_rounds() {
            true => self.counts.units_committed + self.counts.units_open,
            false => u64::from(self.grid.units()) * self.frames.len() as u64,
        }
    }

    /// Returns the mean camera samples of a unit; with rounds, of an open one.
    pub(crate) fn mean_unit_samples(&self) -> f64 {
        if self.grid.has_rounds() && self.counts.units_open > 0 {
            return self.counts.samples_open as f64 / self.counts.units_open as f64;
        }
        self.grid.frame_camera_samples() as f64 / f64::from(self.grid.units().max(1))
    }

    /// Returns the number of units that wait for a result and may be worked on beside one of this
    /// frame. In a chained job, only those of the same frame.
    pub(crate) fn units_beside(&self, position: u32) -> u64 {
        match self.frames.get(position as usize) {
            Some(frame) if self.is_chained() => u64::from(open_of(frame, &self.grid).0),
            _ => self.counts.units_open,
        }
    }

    pub(crate) fn position(&self, frame: FrameNumber) -> Option<u32> {
        self.numbers.binary_search(&frame).ok().map(|position| position as u32)
    }

    pub(crate) fn number(&self, position: u32) -> Option<FrameNumber> {
        self.numbers.get(position as usize).copied()
    }

    pub(crate) fn frame(&self, number: FrameNumber) -> Option<&Frame> {
        self.frames.get(self.position(number)? as usize)
    }

    /// Returns the place of a unit that the splitter knows.
    pub(crate) fn place(&self, unit: UnitKey) -> Option<Place> {
        let position = self.position(unit.frame)?;
        (unit.unit.0 < self.grid.units()).then_some(Place { position, unit: unit.unit })
    }

    pub(crate) fn key(&self, place: Place) -> Option<UnitKey> {
        Some(UnitKey { job: self.id, frame: self.number(place.position)?, unit: place.unit })
    }

    /// Returns the frame that a record names, of a job that has not ended.
    fn frame_mut(&mut self, number: FrameNumber) -> Result<&mut Frame, String> {
        if self.is_final() {
            return Err(format!("job {} has ended", self.id));
        }
        let position = self
            .position(number)
            .ok_or_else(|| format!("job {} has no frame {number}", self.id))?;
        self.frames
            .get_mut(position as usize)
            .ok_or_else(|| format!("job {} lost frame {number}", self.id))
    }

    pub(crate) fn pin(&mut self, fingerprint: Fingerprint) -> Result<(), String> {
        match self.fingerprint {
            Some(pinned) if pinned != fingerprint => {
                Err(format!("job {} is pinned to {pinned}", self.id))
            }
            _ => {
                self.fingerprint = Some(fingerprint);
                Ok(())
            }
        }
    }

    pub(crate) fn commit(&mut self, number: FrameNumber, commits: &[Commit]) -> Result<(), String> {
        let (grid, units, id) = (self.grid, self.grid.units(), self.id);
        let frame = self.frame_mut(number)?;
        let open = frame
            .open_mut(&grid)
            .ok_or_else(|| format!("{id}/{number} takes no results any more"))?;
        let (mut samples, mut whole) = (0, 0);
        for commit in commits {
            if commit.unit.0 >= units || !open.has(commit.unit) {
                return Err(format!("{id}/{number} has no unit {}", commit.unit.0));
            }
            let before = open.parts.samples(commit.unit);
            if !open.commit(commit, grid.unit_size(commit.unit)) {
                return Err(format!(
                    "unit {} of {id}/{number} is committed already",
                    commit.unit.0
                ));
            }
            samples +=
                grid.unit_camera_samples(commit.unit) - grid.camera_samples(commit.unit, before);
            whole += grid.unit_camera_samples(commit.unit);
        }
        frame.settle(&grid);
        self.counts.units_committed += commits.len() as u64;
        self.counts.units_open -= commits.len() as u64;
        self.counts.samples_open -= whole;
        self.counts.samples_committed += samples;
        Ok(())
    }

    pub(crate) fn end_attempt(
        &mut self,
        node: NodeId,
        attempt: &EndedAttempt,
    ) -> Result<(), String> {
        let (unit, grid) = (attempt.lease.unit, self.grid);
        let frame = self.frame_mut(unit.frame)?;
        if unit.unit.0 >= grid.units() || !frame.unit_is_open(unit.unit, &grid) {
            return Err(format!("{unit} is not open"));
        }
        if let Some(open) = frame.open_mut(&grid) {
            open.note_ending(unit.unit, attempt.lease.epoch, node, &attempt.ending);
        }
        Ok(())
    }

    /// Returns a frame that has checks.
    fn checked_mut(&mut self, number: FrameNumber) -> Result<&mut OpenFrame, String> {
        match self.frame_mut(number)? {
            Frame::Open(open) => Ok(open),
            _ => Err(format!("frame {number} has no checks")),
        }
    }

    /// Compares a result with the committed one. If it stands, the check is over; the check is
    /// returned if another node has confirmed it.
    pub(crate) fn compare(
        &mut self,
        number: FrameNumber,
        redone: &Redone,
    ) -> Result<Option<Check>, String> {
        let Redone { unit, epoch, node, hash } = *redone;
        let (grid, blame) = (self.grid, self.blame());
        let open = self.checked_mut(number)?;
        let check = open
            .checks
            .get_mut(&unit)
            .ok_or_else(|| format!("unit {} is not to be checked", unit.0))?;
        let vote = Vote { node, epoch, hash };
        let stands =
            check.decide(blame, &vote).is_some_and(|found| found.truth == check.committed.hash);
        check.add(vote);
        // A node that is alone may only have agreed with itself.
        let confirmed = blame == Blame::Node || check.is_confirmed();
        let over = if stands { open.end_check(unit, confirmed) } else { None };
        self.frame_mut(number)?.settle(&grid);
        Ok(over.filter(|_| confirmed))
    }

    /// Ends a check that was not made.
    pub(crate) fn waive(&mut self, number: FrameNumber, unit: UnitIndex) -> Result<(), String> {
        let grid = self.grid;
        let ended = self.checked_mut(number)?.end_check(unit, false);
        ended.ok_or_else(|| format!("unit {} is not to be checked", unit.0))?;
        self.frame_mut(number)?.settle(&grid);
        Ok(())
    }

    /// Ends a round of a frame after so much of the farm's time. The next is for these tiles;
    /// without tiles the frame is complete.
    pub(crate) fn end_round(
        &mut self,
        number: FrameNumber,
        round: u32,
        spent_millis: u64,
        going: &TileSet,
    ) -> Result<(), String> {
        let grid = self.grid;
        let frame = self.frame_mut(number)?;
        if frame.round_to_end(&grid) != Some(round) {
            return Err(format!("round {round} of {number} ends, and is not to"));
        }
        if let Frame::Open(open) = frame
            && let Some(rounds) = &mut open.rounds
        {
            rounds.end_round(round, going)?;
            rounds.note_spent(spent_millis);
        }
        let (units, samples) = open_of(frame, &grid);
        frame.settle(&grid);
        self.counts.units_open += u64::from(units);
        self.counts.samples_open += samples;
        Ok(())
    }

    /// Opens committed units of an unfinished frame again; their measurements are void.
    pub(crate) fn take_back(
        &mut self,
        number: FrameNumber,
        taken: &[UnitIndex],
        below: Epoch,
    ) -> Result<(), String> {
        let grid = self.grid;
        let frame = self.frame_mut(number)?;
        let (units_before, samples_before) = open_of(frame, &grid);
        let (Frame::Open(open) | Frame::Complete(open)) = frame else {
            return Err(format!("units of {number} are taken back, which is not open"));
        };
        let (mut samples, mut kept) = (0, 0);
        for unit in taken {
            kept += parts_before_last(open, *unit, &grid);
            if !open.take_back(*unit, below) {
                return Err(format!(
                    "unit {} of {number} is taken back, and was not committed",
                    unit.0
                ));
            }
            samples += grid.unit_camera_samples(*unit);
        }
        if !open.rewind(taken) {
            return Err(format!("units of {number} are taken back, and not those of later rounds"));
        }
        frame.settle(&grid);
        let (units_open, samples_open) = open_of(frame, &grid);
        self.counts.units_committed -= taken.len() as u64;
        self.counts.units_open =
            self.counts.units_open + u64::from(units_open) - u64::from(units_before);
        self.counts.samples_open = self.counts.samples_open + samples_open - samples_before;
        self.counts.samples_committed -= samples;
        self.samples_kept = self.samples_kept.saturating_sub(kept);
        Ok(())
    }

    /// Commits the first of an open unit's missing samples.
    pub(crate) fn commit_part(
        &mut self,
        number: FrameNumber,
        commit: &Commit,
        range: SampleRange,
    ) -> Result<(), String> {
        let SampleRange { first, count: samples } = range;
        let (grid, unit, id) = (self.grid, commit.unit, self.id);
        let frame = self.frame_mut(number)?;
        let open = frame.open_mut(&grid).filter(|open| unit.0 < grid.units() && open.has(unit));
        let open = open.ok_or_else(|| format!("{id}/{number} takes no part of unit {}", unit.0))?;
        if open.parts.of(unit).len() >= PARTS_MAX
            || !open.commit_part(commit, range, grid.unit_size(unit))
        {
            let text = format!(
                "{samples} samples from {first} are not a part of unit {} of {id}/{number}",
                unit.0
            );
            return Err(text);
        }
        let samples = grid.camera_samples(unit, samples);
        self.counts.samples_committed += samples;
        self.samples_kept += samples;
        Ok(())
    }

    /// Drops the parts of open units.
    pub(crate) fn drop_parts(
        &mut self,
        number: FrameNumber,
        units: &[UnitIndex],
        below: Epoch,
    ) -> Result<(), String> {
        let grid = self.grid;
        let Frame::Open(open) = self.frame_mut(number)? else {
            return Err(format!("parts of {number} are dropped, which is not open"));
        };
        let mut samples = 0;
        for unit in units {
            let parts = open.drop_parts(*unit, below).ok_or_else(|| {
                format!("parts of unit {} of {number} are dropped, and there were none", unit.0)
            })?;
            samples += grid.camera_samples(*unit, total(&parts));
        }
        self.counts.samples_committed -= samples;
        self.samples_kept = self.samples_kept.saturating_sub(samples);
        Ok(())
    }

    /// Returns the task of a unit's lease: all of the unit, what its parts lack, or the part that
    /// is to be checked.
    pub(crate) fn task(&self, place: Place) -> Option<Task> {
        let task = self.grid.task(place.unit, self.fed(place.position))?;
        let open = self.frames.get(place.position as usize).and_then(Frame::unfinished);
        Some(match (task, open) {
            (Task::Tile { tile, samples }, Some(open)) => {
                Task::Tile { tile, samples: open.wanted_samples(place.unit, samples) }
            }
            (task, _) => task,
        })
    }

    /// Returns the work of a unit's lease now, in camera samples or indices.
    pub(crate) fn lease_samples(&self, unit: UnitKey) -> u64 {
        let open = self
            .frame(unit.frame)
            .and_then(Frame::unfinished)
            .filter(|open| open.parts.has(unit.unit));
        let whole = SampleRange { first: 0, count: self.grid.unit_size(unit.unit) };
        match open {
            Some(open) => {
                self.grid.camera_samples(unit.unit, open.wanted_samples(unit.unit, whole).count)
            }
            None => self.grid.unit_camera_samples(unit.unit),
        }
    }

    /// Removes a suspect's votes about the units of other nodes.
    pub(crate) fn unhear(&mut self, node: NodeId) {
        for frame in &mut self.frames {
            if let Frame::Open(open) = frame {
                open.checks.values_mut().for_each(|check| check.strike(node));
            }
        }
    }

    /// Counts a stopped lease of a unit that had two.
    pub(crate) fn stop_copy(
        &mut self,
        stopped: Epoch,
        winner: Epoch,
        millis: u64,
    ) -> Result<(), String> {
        if self.is_final() || stopped == winner {
            return Err(format!("{stopped} of job {} is stopped for {winner}", self.id));
        }
        let copies = &mut self.copies;
        let count = if winner > stopped { &mut copies.won } else { &mut copies.lost };
        *count = count.saturating_add(1);
        copies.wasted_millis = copies.wasted_millis.saturating_add(millis);
        Ok(())
    }

    pub(crate) fn note_failure(&mut self, note: FailureNote) {
        if self.failures.len() == FAILURES_MAX {
            self.failures.pop_front();
        }
        self.failures.push_back(note);
    }

    pub(crate) fn finish_frame(
        &mut self,
        number: FrameNumber,
        files: &[FrameFile],
    ) -> Result<(), String> {
        let id = self.id;
        let frame = self.frame_mut(number)?;
        let Frame::Complete(open) = frame else {
            return Err(format!("{id}/{number} is finished, but its units are not in"));
        };
        let spent = open.rounds.as_ref().map(|rounds| Spent {
            units: rounds.units(),
            camera_samples: rounds.camera_samples(),
            samples: rounds.newest_samples(),
        });
        *frame = Frame::Done(DoneFrame { files: files.to_vec(), spent });
        self.counts.frames_done += 1;
        Ok(())
    }

    pub(crate) fn fail_frame(&mut self, number: FrameNumber, reason: &str) -> Result<(), String> {
        let grid = self.grid;
        let frame = self.frame_mut(number)?;
        if frame.is_final() {
            return Err(format!("frame {number} had ended"));
        }
        let (units, samples) = open_of(frame, &grid);
        *frame = failed(frame, &grid, reason);
        self.counts.frames_failed += 1;
        self.counts.units_open -= u64::from(units);
        self.counts.samples_open -= samples;
        Ok(())
    }

    /// Pauses the job. The error says why it cannot be paused.
    pub(crate) fn pause(&mut self, pause: Pause) -> Result<(), String> {
        if self.is_final() || self.paused.is_some() {
            return Err(format!("job {} is paused, and has ended or was paused already", self.id));
        }
        self.paused = Some(pause);
        Ok(())
    }

    /// Resumes the job.
    pub(crate) fn resume(&mut self) -> Result<(), String> {
        let paused = self.paused.take();
        paused.map(drop).ok_or_else(|| format!("job {} is resumed, and was not paused", self.id))
    }

    /// Opens every failed frame again, and the job with them.
    pub(crate) fn retry(&mut self, below: Epoch) -> Result<(), String> {
        if self.counts.frames_failed == 0 {
            return Err(format!(
                "failed frames of job {} are opened again, and it has none",
                self.id
            ));
        }
        for frame in self.frames.iter_mut().filter(|frame| matches!(frame, Frame::Failed(_))) {
            *frame = Frame::Untouched;
        }
        self.counts = self.derived_counts();
        self.end = None;
        self.fence = self.fence.max(below);
        let in_parts =
            self.frames.iter().filter_map(Frame::unfinished).any(|open| !open.parts.is_empty());
        if self.counts.units_committed == 0 && !in_parts {
            // Without results, no fingerprint is required any more.
            self.fingerprint = None;
        }
        Ok(())
    }

    /// Returns the first frame to which nothing has happened.
    pub(crate) fn first_untouched(&self) -> Option<u32> {
        self.frames
            .iter()
            .position(|frame| matches!(frame, Frame::Untouched))
            .map(|position| position as u32)
    }

    /// Ends the job. Unfinished frames fail with the note.
    pub(crate) fn end_as(&mut self, state: JobState, at: Moment, note: &str) -> Result<(), String> {
        if self.is_final() || !state.is_final() {
            return Err(format!("job {} cannot end as {state:?}", self.id));
        }
        let all_done = self.counts.frames_done as usize == self.frames.len();
        if (state == JobState::Done) != all_done {
            return Err(format!(
                "job {} ends as {state:?} with {} frames done",
                self.id, self.counts.frames_done
            ));
        }
        for frame in self.frames.iter_mut().filter(|frame| !frame.is_final()) {
            *frame = failed(frame, &self.grid, note);
            self.counts.frames_failed += 1;
        }
        (self.counts.units_open, self.counts.samples_open) = (0, 0);
        self.end = Some(End { state, at, note: note.to_owned() });
        self.paused = None;
        Ok(())
    }
}

fn failed(frame: &Frame, grid: &Split, reason: &str) -> Frame {
    let (units_committed, samples_committed) = committed_of(frame, grid);
    Frame::Failed(Box::new(FailedFrame {
        reason: reason.to_owned(),
        units_committed,
        samples_committed,
    }))
}
