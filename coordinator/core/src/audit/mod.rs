//! Checks a journal against itself with bookkeeping of its own, so that a fault of the core does
//! not hide itself.

pub(crate) mod invariants;

use crate::journal::{Commit, Record, Redone};
use crate::splitter::Split;
use crate::state::bitmap::Bitmap;
use crate::state::done::DoneFrame;
use crate::state::frame::Begun;
use crate::state::kernel_votes::Blame;
use crate::state::parts::{PARTS_MAX, Standing, UnitPart};
use crate::state::rounds::{FrameRounds, TileSet, WrittenRounds};
use crate::state::snapshot::{Part, SnapshotPart};
use crate::state::votes::{Check, Vote};
use std::collections::{BTreeMap, BTreeSet};
use tessera_protocol::client::AuditReport;
use tessera_protocol::compute::ComputeSpec;
use tessera_protocol::frames::FrameSet;
use tessera_protocol::ids::{Epoch, Fingerprint, FrameNumber, JobId, NodeId, UnitIndex};
use tessera_protocol::job::JobSpec;
use tessera_protocol::node::SampleRange;
use tessera_protocol::status::JobState;

/// Most problems that a report lists.
const PROBLEMS_MAX: usize = 100;

/// Checks a snapshot (may be empty) and the records after it: every unit committed at most once
/// (and again only where it was taken back) and under a reserved epoch used for no other unit,
/// every finished frame with all its units, every job that is done with all its frames.
pub(crate) fn audit(
    snapshot: impl IntoIterator<Item = SnapshotPart>,
    records: impl IntoIterator<Item = Record>,
) -> AuditReport {
    let mut ledger = Ledger::default();
    for part in snapshot {
        ledger.report.records += 1;
        ledger.take_part(part.0);
    }
    for record in records {
        ledger.report.records += 1;
        ledger.take(record);
    }
    ledger.report
}

/// The state according to the records so far, kept apart from the state of the core.
#[derive(Default)]
struct Ledger {
    report: AuditReport,
    reserved: Epoch,
    jobs: BTreeMap<JobId, Entry>,
    /// Epochs of commits in records, without those in the snapshot.
    epochs: BTreeSet<Epoch>,
}

/// Facts about the end of a round.
struct Measurement<'a> {
    round: u32,
    /// Share of the farm's time that the frame has used, in milliseconds.
    spent_millis: u64,
    /// Tiles that the next round is for.
    going: &'a TileSet,
}

/// Samples of a part, and its result if it is still to be checked.
type PartEntry = (u32, Option<Vote>);

/// One job according to the records so far.
struct Entry {
    grid: Split,
    blame: Blame,
    numbers: FrameSet,
    committed: BTreeMap<FrameNumber, Bitmap>,
    /// Units that are to be checked.
    unchecked: BTreeMap<(FrameNumber, UnitIndex), Check>,
    /// Units in parts: the samples of each, and the result if it is still to be checked.
    parts: BTreeMap<(FrameNumber, UnitIndex), Vec<PartEntry>>,
    /// Rounds of frames that are sampled in rounds and have begun.
    rounds_of: BTreeMap<FrameNumber, FrameRounds>,
    done: BTreeSet<FrameNumber>,
    failed: BTreeSet<FrameNumber>,
    fingerprint: Option<Fingerprint>,
    ended: bool,
    paused: bool,
    /// Number of units committed of frames that had failed when the snapshot was made.
    units_of_failed: u64,
    /// Number of units of frames that were finished when the snapshot was made.
    units_of_done: u64,
}

fn total_of(parts: &[PartEntry]) -> u32 {
    parts.iter().fold(0, |sum: u32, (samples, _)| sum.saturating_add(*samples))
}

impl Entry {
    /// Returns the rounds of a frame, from the first on; None if it is not sampled in rounds.
    fn rounds(&mut self, frame: FrameNumber) -> Option<&mut FrameRounds> {
        if let Some(rounds) = FrameRounds::of(&self.grid) {
            self.rounds_of.entry(frame).or_insert(rounds);
        }
        self.rounds_of.get_mut(&frame)
    }

    /// Returns the numbers of a frame's units: committed, needed, and still to be checked.
    fn standing(&mut self, frame: FrameNumber) -> (u32, u32, usize) {
        let all = self.grid.units();
        let units = self.rounds(frame).map_or(all, |rounds| rounds.units());
        let unchecked = self.unchecked.keys().filter(|(of, _)| *of == frame).count();
        (self.committed.get(&frame).map_or(0, Bitmap::ones), units, unchecked)
    }

    /// Begins the checks of a complete unit: of its own result, or of its parts, one after another.
    fn begin_checks(&mut self, frame: FrameNumber, commit: &Commit) {
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
    fn next_check(&mut self, frame: FrameNumber, unit: UnitIndex) -> bool {
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

impl Ledger {
    fn problem(&mut self, text: String) {
        if self.report.problems.len() < PROBLEMS_MAX {
            self.report.problems.push(text);
        }
    }

    fn accept(&mut self, id: JobId, spec: &JobSpec) {
        let entry = Entry {
            grid: Split::of(&spec.kind),
            blame: match spec.kind.compute().is_some_and(ComputeSpec::runs_users_kernel) {
                true => Blame::Kernel,
                false => Blame::Node,
            },
            numbers: spec.kind.frames().clone(),
            committed: BTreeMap::new(),
            unchecked: BTreeMap::new(),
            parts: BTreeMap::new(),
            rounds_of: BTreeMap::new(),
            done: BTreeSet::new(),
            failed: BTreeSet::new(),
            fingerprint: None,
            ended: false,
            paused: false,
            units_of_failed: 0,
            units_of_done: 0,
        };
        self.report.jobs += 1;
        if self.jobs.insert(id, entry).is_some() {
            self.problem(format!("job {id} is accepted twice"));
        }
    }

    /// The entry of an open job; a record about any other is a problem.
    fn open(&mut self, id: JobId, what: &str) -> Option<&mut Entry> {
        let problem = match self.jobs.get(&id) {
            None => format!("{what} of job {id}, which was never accepted"),
            Some(entry) if entry.ended => format!("{what} of job {id}, which had ended"),
            Some(_) => return self.jobs.get_mut(&id),
        };
        self.problem(problem);
        None
    }

    fn take(&mut self, record: Record) {
        match record {
            Record::EpochsReserved { up_to } if up_to <= self.reserved => {
                self.problem(format!("epochs are reserved up to {up_to} after {}", self.reserved));
            }
            Record::EpochsReserved { up_to } => self.reserved = up_to,
            Record::JobAccepted { job, spec, .. } => self.accept(job, &spec),
            Record::JobPinned { job, fingerprint } => self.pin(job, fingerprint),
            Record::UnitsCommitted { job, frame, commits } => {
                commits.iter().for_each(|commit| self.commit(job, frame, commit));
            }
            Record::AttemptsEnded { attempts, .. } => {
                for attempt in attempts {
                    self.open(attempt.lease.unit.job, "an attempt");
                }
            }
            Record::FrameFinished { job, frame, .. } => self.finish(job, frame),
            Record::FrameFailed { job, frame, .. } => self.fail(job, frame),
            Record::JobEnded { job, state, .. } => self.end(job, state),
            Record::UnitChecked { job, frame, redone } => self.check(job, frame, &redone),
            Record::CheckWaived { job, frame, unit } => self.end_check(job, frame, unit),
            Record::UnitsTakenBack { job, frame, units, .. } => {
                units.iter().for_each(|unit| self.take_back(job, frame, *unit));
                self.rewind(job, frame, &units);
            }
            Record::RoundMeasured { job, frame, round, going, spent_millis } => {
                self.measure(job, frame, Measurement { round, spent_millis, going: &going });
            }
            Record::NodeSuspected { node, .. } => self.suspect(node),
            Record::NodeBarred { job, node, .. } => self.bar(job, node),
            Record::CopyStopped { job, frame, unit, epoch, .. } => {
                self.stop_copy(job, frame, unit, epoch)
            }
            Record::PartCommitted { job, frame, commit, first, samples } => {
                self.commit_part(job, frame, &commit, SampleRange { first, count: samples });
            }
            Record::PartsDropped { job, frame, units, .. } => {
                units.iter().for_each(|unit| self.drop_parts(job, frame, *unit));
            }
            Record::NodeDrained { .. }
            | Record::NodeReleased { .. }
            | Record::ExposureMetered { .. } => {}
            Record::JobForgotten { job } => self.forget(job),
            Record::JobPaused { job, .. } => self.pause(job, true),
            Record::JobResumed { job } => self.pause(job, false),
            Record::JobRetried { job, .. } => self.retry(job),
        }
    }

    fn forget(&mut self, id: JobId) {
        match self.jobs.remove(&id) {
            None => self.problem(format!("job {id} is forgotten, and was never accepted")),
            Some(entry) => {
                let units: u64 =
                    entry.committed.values().map(|units| u64::from(units.ones())).sum();
                // Of frames that failed before it, a snapshot holds only a number.
                let told = entry.units_of_failed + entry.units_of_done;
                self.report.units_committed -= (units + told).min(self.report.units_committed);
                self.report.frames -= entry.done.len() as u64;
                self.report.jobs -= 1;
                if !entry.ended {
                    self.problem(format!("job {id} is forgotten before its end"));
                }
            }
        }
    }

    fn pause(&mut self, id: JobId, pause: bool) {
        if let Some(entry) = self.open(id, "a pause")
            && std::mem::replace(&mut entry.paused, pause) == pause
        {
            self.problem(format!("job {id} is paused or resumed twice"));
        }
    }

    /// Drops what was committed of failed frames. If the job has ended, that is all frames that are
    /// not done.
    fn retry(&mut self, id: JobId) {
        let Some(entry) = self.jobs.get_mut(&id) else {
            return self.problem(format!("job {id} is retried, and was never accepted"));
        };
        let failed = |entry: &Entry, frame: &FrameNumber| {
            entry.failed.contains(frame) || (entry.ended && !entry.done.contains(frame))
        };
        let frames: Vec<FrameNumber> =
            entry.numbers.iter().filter(|frame| failed(entry, frame)).collect();
        let mut units = std::mem::take(&mut entry.units_of_failed);
        for frame in &frames {
            units += entry.committed.remove(frame).map_or(0, |units| u64::from(units.ones()));
            entry.unchecked.retain(|(of, _), _| of != frame);
            entry.parts.retain(|(of, _), _| of != frame);
            entry.rounds_of.remove(frame);
        }
        (entry.failed, entry.ended) = (BTreeSet::new(), false);
        let none = entry.committed.values().all(|units| units.ones() == 0);
        if none && entry.done.is_empty() && entry.parts.is_empty() {
            entry.fingerprint = None;
        }
        self.report.units_committed -= units.min(self.report.units_committed);
        if frames.is_empty() {
            self.problem(format!("job {id} is retried, and none of its frames has failed"));
        }
    }

    fn pin(&mut self, id: JobId, fingerprint: Fingerprint) {
        if let Some(entry) = self.open(id, "the fingerprint")
            && entry.fingerprint.replace(fingerprint).is_some()
        {
            self.problem(format!("job {id} is pinned twice"));
        }
    }

    fn take_epoch(&mut self, id: JobId, frame: FrameNumber, epoch: Epoch) {
        if epoch >= self.reserved {
            self.problem(format!("{id}/{frame}: {epoch} was never reserved"));
        }
        if !self.epochs.insert(epoch) {
            self.problem(format!("{id}/{frame}: {epoch} is committed twice"));
        }
    }

    fn commit_part(&mut self, id: JobId, frame: FrameNumber, commit: &Commit, range: SampleRange) {
        let SampleRange { first, count: samples } = range;
        self.take_epoch(id, frame, commit.epoch);
        let unit = commit.unit;
        let Some(entry) = self.open(id, "a part") else { return };
        let whole = entry.grid.unit_size(unit);
        let closed = entry.done.contains(&frame) || entry.failed.contains(&frame);
        let committed = entry.committed.get(&frame).is_some_and(|units| units.get(unit.0));
        let known = entry.numbers.position(frame).is_some();
        let parts = entry.parts.entry((frame, unit)).or_default();
        let before = total_of(parts);
        let follows = first == before
            && samples > 0
            && first.checked_add(samples).is_some_and(|end| end < whole);
        let vote = Vote { node: commit.node, epoch: commit.epoch, hash: commit.hash };
        parts.push((samples, commit.check.then_some(vote)));
        let many = parts.len() > PARTS_MAX;
        if closed || committed || !known || !follows || many {
            self.problem(format!(
                "{id}/{frame}/u{:05}: {samples} samples from {first} are not a part of {whole}, of \
                    which {before} were there",
                unit.0
            ));
        }
    }

    fn drop_parts(&mut self, id: JobId, frame: FrameNumber, unit: UnitIndex) {
        let Some(entry) = self.open(id, "parts") else { return };
        let committed = entry.committed.get(&frame).is_some_and(|units| units.get(unit.0));
        if entry.parts.remove(&(frame, unit)).is_none() || committed {
            self.problem(format!(
                "{id}/{frame}/u{:05} loses parts, and had none, or is committed",
                unit.0
            ));
        }
    }

    fn commit(&mut self, id: JobId, frame: FrameNumber, commit: &Commit) {
        self.take_epoch(id, frame, commit.epoch);
        let unit = commit.unit.0;
        let Some(entry) = self.open(id, "a result") else { return };
        let units = entry.grid.units();
        let asked = entry.rounds(frame).is_none_or(|rounds| rounds.has(commit.unit));
        if unit >= units || !asked || entry.numbers.position(frame).is_none() {
            return self.problem(format!("{id}/{frame} has no unit {unit}"));
        }
        let closed = entry.done.contains(&frame) || entry.failed.contains(&frame);
        let fresh = entry.committed.entry(frame).or_insert_with(|| Bitmap::new(units)).set(unit);
        if fresh {
            self.report.units_committed += 1;
        } else {
            self.report.units_committed_twice += 1;
            self.problem(format!("{id}/{frame}/u{unit:05} is committed twice"));
        }
        if let Some(entry) = self.jobs.get_mut(&id) {
            entry.begin_checks(frame, commit);
        }
        if closed {
            self.problem(format!("{id}/{frame}/u{unit:05} is committed after the frame's end"));
        }
    }

    fn check(&mut self, id: JobId, frame: FrameNumber, redone: &Redone) {
        let (unit, epoch) = (redone.unit, redone.epoch);
        if epoch >= self.reserved || !self.epochs.insert(epoch) {
            self.problem(format!("{id}/{frame}: a check has {epoch}, which is not its own"));
        }
        let Some(entry) = self.open(id, "a check") else { return };
        let Some(votes) = entry.unchecked.get_mut(&(frame, unit)) else {
            return self
                .problem(format!("{id}/{frame}/u{:05} is checked, and was not to be", unit.0));
        };
        let vote = Vote { node: redone.node, epoch, hash: redone.hash };
        let verdict = votes.decide(entry.blame, &vote);
        let stands = verdict.is_some_and(|verdict| verdict.truth == votes.committed().hash);
        votes.add(vote);
        if stands {
            entry.next_check(frame, unit);
        }
    }

    fn stop_copy(&mut self, id: JobId, frame: FrameNumber, unit: UnitIndex, epoch: Epoch) {
        if epoch >= self.reserved || self.epochs.contains(&epoch) {
            self.problem(format!("{id}/{frame}: {epoch} is stopped, and is not a copy's own"));
        }
        let Some(entry) = self.open(id, "a copy") else { return };
        if !entry.committed.get(&frame).is_some_and(|units| units.get(unit.0)) {
            self.problem(format!("{id}/{frame}/u{:05} has a copy stopped, and no result", unit.0));
        }
    }

    fn end_check(&mut self, id: JobId, frame: FrameNumber, unit: UnitIndex) {
        let Some(entry) = self.open(id, "a check") else { return };
        if !entry.next_check(frame, unit) {
            self.problem(format!(
                "{id}/{frame}/u{:05} is waived, and was not to be checked",
                unit.0
            ));
        }
    }

    fn take_back(&mut self, id: JobId, frame: FrameNumber, unit: UnitIndex) {
        let Some(entry) = self.open(id, "a unit") else { return };
        entry.unchecked.remove(&(frame, unit));
        entry.parts.remove(&(frame, unit));
        let ended = entry.done.contains(&frame) || entry.failed.contains(&frame);
        let committed = entry.committed.get_mut(&frame).is_some_and(|units| units.clear(unit.0));
        match committed && !ended {
            true => self.report.units_committed -= 1,
            false => self
                .problem(format!("{id}/{frame}/u{:05} is taken back, and was not there", unit.0)),
        }
    }

    /// Voids the measurements of a frame of which units were taken back.
    fn rewind(&mut self, id: JobId, frame: FrameNumber, units: &[UnitIndex]) {
        let Some(entry) = self.jobs.get_mut(&id) else { return };
        let Some(rounds) = entry.rounds(frame) else { return };
        let Some(round) = units.iter().map(|unit| rounds.round_of(*unit)).min() else { return };
        rounds.rewind(round);
        let rounds = rounds.clone();
        if entry.committed.get(&frame).is_some_and(|units| rounds.check(units).is_err()) {
            self.problem(format!(
                "{id}/{frame} goes back to round {round}, and keeps units of later ones"
            ));
        }
    }

    fn measure(&mut self, id: JobId, frame: FrameNumber, measured: Measurement<'_>) {
        let Measurement { round, spent_millis, going } = measured;
        let Some(entry) = self.open(id, "a round") else { return };
        let (committed, units, unchecked) = entry.standing(frame);
        let ended = entry.done.contains(&frame) || entry.failed.contains(&frame);
        if committed != units || unchecked > 0 || ended {
            let text = format!(
                "{id}/{frame}: round {round} is measured with {committed} of {units} units, \
                    {unchecked} to be checked"
            );
            return self.problem(text);
        }
        let measured = match entry.rounds(frame) {
            Some(rounds) if spent_millis < rounds.spent_millis() => {
                Err(format!("the time that it has had shrinks from {} ms", rounds.spent_millis()))
            }
            Some(rounds) => {
                rounds.end_round(round, going).map(|()| rounds.note_spent(spent_millis))
            }
            None => Err("a round is measured of a frame without rounds".to_owned()),
        };
        if let Err(problem) = measured {
            self.problem(format!("{id}/{frame}: {problem}"));
        }
    }

    fn suspect(&mut self, node: NodeId) {
        let checks = self.jobs.values_mut().flat_map(|entry| entry.unchecked.values_mut());
        checks.for_each(|check| check.strike(node));
    }

    fn bar(&mut self, id: JobId, node: NodeId) {
        let Some(entry) = self.open(id, "a wrong chunk") else { return };
        entry.unchecked.values_mut().for_each(|check| check.strike(node));
        if entry.blame != Blame::Kernel {
            self.problem(format!("node {node} is barred from job {id}, which bars none"));
        }
    }

    fn finish(&mut self, id: JobId, frame: FrameNumber) {
        let Some(entry) = self.open(id, "a frame") else { return };
        let (committed, units, unchecked) = entry.standing(frame);
        let early = entry.rounds(frame).is_some_and(|rounds| !rounds.is_over());
        let twice = !entry.done.insert(frame) || entry.failed.contains(&frame);
        if committed != units || early {
            self.problem(format!("{id}/{frame} is finished with {committed} of {units} units"));
        }
        if unchecked > 0 {
            self.problem(format!(
                "{id}/{frame} is finished, and {unchecked} of its units are to be checked"
            ));
        }
        match twice {
            true => self.problem(format!("{id}/{frame} ends twice")),
            false => self.report.frames += 1,
        }
    }

    fn fail(&mut self, id: JobId, frame: FrameNumber) {
        let Some(entry) = self.open(id, "a frame") else { return };
        if !entry.failed.insert(frame) || entry.done.contains(&frame) {
            self.problem(format!("{id}/{frame} ends twice"));
        }
    }

    fn end(&mut self, id: JobId, state: JobState) {
        let Some(entry) = self.open(id, "the end") else { return };
        (entry.ended, entry.paused) = (true, false);
        let (done, all) = (entry.done.len(), entry.numbers.len() as usize);
        if (state == JobState::Done) != (done == all) {
            self.problem(format!("job {id} ends as {state:?} with {done} of {all} frames"));
        }
    }

    fn take_part(&mut self, part: Part) {
        match part {
            Part::Farm(farm) => self.reserved = farm.epochs_reserved,
            Part::Job(job) => {
                self.accept(job.id, &job.spec);
                if let Some(entry) = self.jobs.get_mut(&job.id) {
                    entry.fingerprint = job.fingerprint;
                    entry.ended = job.end.is_some();
                }
            }
            Part::Paused { job, .. } => self.pause(job, true),
            Part::CommittedBy { .. }
            | Part::Trust { .. }
            | Part::Copies { .. }
            | Part::Retried { .. }
            | Part::Barred { .. }
            | Part::Kept { .. } => {}
            Part::UnitParts { job, position, units } => {
                let entry = self.jobs.get_mut(&job);
                let number = entry.as_ref().and_then(|entry| entry.numbers.get(position));
                let (Some(entry), Some(frame)) = (entry, number) else {
                    return self
                        .problem(format!("parts of a frame of job {job} that does not exist"));
                };
                for (unit, parts) in units {
                    let to_check = |part: &UnitPart| {
                        (part.samples, (part.standing == Standing::ToCheck).then_some(part.result))
                    };
                    entry.parts.insert((frame, unit), parts.iter().map(to_check).collect());
                }
            }
            Part::FrameRounds { job, position, written } => {
                self.take_rounds(job, position, written)
            }
            Part::Frames { job, frames } => {
                frames.iter().for_each(|(position, begun)| self.take_frame(job, *position, begun));
            }
            Part::Done { job, frames } => {
                frames.iter().for_each(|(position, done)| self.take_done(job, *position, done));
            }
        }
    }

    fn take_rounds(&mut self, id: JobId, position: u32, written: WrittenRounds) {
        let entry = self.jobs.get_mut(&id);
        let number = entry.as_ref().and_then(|entry| entry.numbers.get(position));
        let rounds = entry.as_ref().and_then(|entry| FrameRounds::restored(&entry.grid, written));
        match (entry, number, rounds) {
            (Some(entry), Some(frame), Some(rounds)) => drop(entry.rounds_of.insert(frame, rounds)),
            _ => self.problem(format!("rounds of a frame of job {id} are invalid")),
        }
    }

    /// Returns the entry of a job, and the number of its frame at a position.
    fn at(&mut self, id: JobId, position: u32) -> Option<(&mut Entry, FrameNumber)> {
        let Some(entry) = self.jobs.get_mut(&id) else {
            self.problem(format!("frames of job {id}, which was never accepted"));
            return None;
        };
        match entry.numbers.get(position) {
            Some(number) => self.jobs.get_mut(&id).map(|entry| (entry, number)),
            None => {
                self.problem(format!("job {id} has no frame at {position}"));
                None
            }
        }
    }

    fn take_done(&mut self, id: JobId, position: u32, done: &DoneFrame) {
        let Some((entry, number)) = self.at(id, position) else { return };
        let units = u64::from(done.spent.map_or(entry.grid.units(), |spent| spent.units));
        entry.done.insert(number);
        entry.units_of_done += units;
        self.report.units_committed += units;
        self.report.frames += 1;
    }

    fn take_frame(&mut self, id: JobId, position: u32, begun: &Begun) {
        let Some((entry, number)) = self.at(id, position) else { return };
        let units = match begun {
            Begun::Open(open) => {
                entry.committed.insert(number, open.committed().clone());
                entry.unchecked.extend(
                    open.checks().iter().map(|(unit, check)| ((number, *unit), check.clone())),
                );
                open.committed().ones()
            }
            Begun::Complete(open) => {
                entry.committed.insert(number, open.committed().clone());
                open.committed().ones()
            }
            Begun::Failed(failed) => {
                entry.units_of_failed += u64::from(failed.units_committed);
                entry.failed.insert(number);
                failed.units_committed
            }
        };
        self.report.units_committed += u64::from(units);
    }
}
