//! Takes records into the books, each if it may follow those before it.

use super::{Books, FrameBook, FrameEnd, JobBook};
use crate::checks::violation::{Checked, violated};
use crate::model::finishing::{FinishedBy, pieces_of};
use crate::model::parts::size_of;
use crate::model::rounds::RoundBook;
use crate::model::tasks::{task_of, units_of};
use std::collections::{BTreeMap, BTreeSet};
use tessera_core::journal::{Commit, EndedAttempt, Redone};
use tessera_core::{Record, TileSet};
use tessera_protocol::ids::{
    BlobHash, Epoch, Fingerprint, FrameNumber, JobId, Lease, NodeId, UnitIndex, UnitKey,
};
use tessera_protocol::job::{JobEdit, JobSpec};
use tessera_protocol::status::{CopyCount, JobState};

impl Books {
    /// Takes a record in, if it may follow those before it.
    pub(crate) fn apply(&mut self, record: &Record) -> Checked {
        match record {
            Record::EpochsReserved { up_to } => self.reserve(*up_to),
            Record::JobAccepted { job, spec, owner, .. } => self.accept(*job, spec, owner),
            Record::JobPinned { job, fingerprint } => self.pin(*job, *fingerprint),
            Record::UnitsCommitted { job, frame, commits } => {
                commits.iter().try_for_each(|commit| self.commit(*job, *frame, commit))
            }
            Record::AttemptsEnded { node, attempts, .. } => {
                attempts.iter().try_for_each(|attempt| self.end_attempt(*node, attempt))
            }
            Record::FrameFinished { job, frame, files } => {
                self.end_frame(*job, *frame, FrameEnd::Done)?;
                self.note_files(*job, files)
            }
            Record::FrameFailed { job, frame, .. } => {
                self.end_frame(*job, *frame, FrameEnd::Failed)
            }
            Record::JobEnded { job, state, note, .. } => self.end_with(*job, *state, note),
            Record::WaitEnded { job, on } => self.end_wait(*job, *on),
            Record::JobForgotten { .. }
            | Record::ExposureMetered { .. }
            | Record::PresetSet { .. } => Ok(()),
            Record::TimeSpent { .. }
            | Record::CostRulesSet { .. }
            | Record::StorageCounted { .. } => self.apply_cost(record),
            Record::JobPaused { job, .. } => self.pause(*job, true),
            Record::JobResumed { job } => self.pause(*job, false),
            Record::JobRetried { job, below, .. } => self.retry(*job, *below),
            Record::NodeDrained { node, drained, leave, .. } => {
                self.drain(*node, drained.then_some(*leave))
            }
            Record::NodeJoined { node, name, .. } => self.join_node(*node, name),
            Record::NodeGone { node, how, .. } => self.end_node(*node, *how),
            Record::NodeReplaced { old, new, .. } => self.replace_node(*old, *new),
            Record::NodesForgotten { nodes } => self.forget_nodes(nodes),
            Record::UnitChecked { job, frame, redone } => {
                self.compare_results(*job, *frame, redone)
            }
            Record::CheckWaived { job, frame, unit } => self.waive_check(*job, *frame, *unit),
            Record::PartCommitted { job, frame, commit, first, samples } => {
                self.commit_part((*job, *frame), commit, (*first, *samples))
            }
            Record::PartsDropped { job, frame, units, below } => {
                units.iter().try_for_each(|unit| self.drop_parts(*job, *frame, *unit, *below))
            }
            Record::UnitsTakenBack { job, frame, units, below } => {
                self.take_all_back((*job, *frame), units, *below, false)
            }
            Record::ResultsLost { job, frame, units, below, .. } => {
                self.take_all_back((*job, *frame), units, *below, true)
            }
            Record::FinishingBegun { job, frame } => self.begin_finishing(*job, *frame),
            Record::FinishingClosed { job, frame, .. } => self.close_finishing(*job, *frame),
            Record::RoundMeasured { job, frame, round, going, .. } => {
                self.end_round((*job, *frame), *round, going)
            }
            Record::NodeSuspected { node, .. } => self.suspect(*node),
            Record::NodeBarred { job, node, .. } => self.bar(*job, *node),
            Record::CopyStopped { job, frame, unit, epoch, winner, millis, .. } => {
                let unit = UnitKey { job: *job, frame: *frame, unit: *unit };
                self.stop_copy(Lease { unit, epoch: *epoch }, *winner, *millis)
            }
            Record::DeviceWaited { job, millis } => self.note_waited(*job, *millis),
            Record::NodeReleased { node } => self.release(*node),
            Record::JobChanged { job, change, .. } => self.change(*job, change),
        }
    }

    fn end_with(&mut self, job: JobId, state: JobState, note: &str) -> Checked {
        self.check_end_with(job, note)?;
        self.end(job, state)
    }

    /// What is changed is what the record names; something has to be different.
    fn change(&mut self, job: JobId, change: &JobEdit) -> Checked {
        let book = self.going(job)?;
        book.changed = true;
        let spec = &mut book.spec;
        let before = spec.clone();
        let JobEdit { name, priority, pool, max_nodes, not_before } = change.clone();
        spec.name = name.unwrap_or_else(|| before.name.clone());
        spec.priority = priority.unwrap_or(before.priority);
        spec.pool = pool.unwrap_or_else(|| before.pool.clone());
        spec.max_nodes = max_nodes.unwrap_or(before.max_nodes);
        spec.not_before = not_before.unwrap_or(before.not_before);
        match *spec == before {
            true => violated(format!("job {job} is changed to what it was")),
            false => Ok(()),
        }
    }

    fn reserve(&mut self, up_to: Epoch) -> Checked {
        if up_to.0 <= self.reserved {
            return violated(format!("epochs up to {up_to} are reserved after {}", self.reserved));
        }
        self.reserved = up_to.0;
        Ok(())
    }

    fn pin(&mut self, job: JobId, fingerprint: Fingerprint) -> Checked {
        let before = self.going(job)?.pinned.replace(fingerprint);
        before.map_or(Ok(()), |_| violated(format!("job {job} is pinned twice")))
    }

    /// Only the committed result of a suspected node is still compared.
    fn suspect(&mut self, node: NodeId) -> Checked {
        self.suspects.insert(node);
        let frames = self.jobs.values_mut().flat_map(|job| job.frames.values_mut());
        for results in frames.flat_map(|frame| frame.checks.values_mut()) {
            let committed = results[0];
            results.retain(|(other, _)| *other != node);
            if committed.0 == node {
                results.insert(0, committed);
            }
        }
        Ok(())
    }

    /// Of a node that was wrong about a user's kernel, only what it committed is still compared.
    fn bar(&mut self, job: JobId, node: NodeId) -> Checked {
        let book = self.going(job)?;
        if !book.runs_users_kernel() || book.is_uncompared() {
            return violated(format!("{node} is barred from job {job}, which bars none"));
        }
        book.barred.insert(node);
        for results in book.frames.values_mut().flat_map(|frame| frame.checks.values_mut()) {
            let committed = results.remove(0);
            results.retain(|(other, _)| *other != node);
            results.insert(0, committed);
        }
        Ok(())
    }

    fn release(&mut self, node: NodeId) -> Checked {
        match self.suspects.remove(&node) {
            true => Ok(()),
            false => violated(format!("{node} is released, and was not suspected")),
        }
    }

    fn waive_check(&mut self, job: JobId, frame: FrameNumber, unit: UnitIndex) -> Checked {
        let of_user = self.going(job)?.runs_users_kernel();
        let book = self.open_frame(job, frame)?;
        let results = book.checks.get(&unit.0).cloned();
        book.end_check(unit.0, false);
        let all_alike =
            |results: &[(NodeId, BlobHash)]| results.iter().all(|(_, hash)| *hash == results[0].1);
        match results {
            Some(results) if results.len() == 1 || of_user && all_alike(&results) => Ok(()),
            other => violated(format!("the check of {job}/{frame}/{unit:?} is waived: {other:?}")),
        }
    }

    /// A check is over where a second node says what is committed, and no more than that are
    /// against it.
    fn compare_results(&mut self, job: JobId, frame: FrameNumber, redone: &Redone) -> Checked {
        let unit = UnitKey { job, frame, unit: redone.unit };
        if redone.epoch.0 >= self.reserved
            || self.commit_epochs.insert(redone.epoch.0, unit).is_some()
        {
            return violated(format!(
                "{unit} is checked with {}, which is not its own",
                redone.epoch
            ));
        }
        self.settled.insert(Lease { unit, epoch: redone.epoch });
        let of_user = self.going(job)?.runs_users_kernel();
        let book = self.open_frame(job, frame)?;
        let Some(results) = book.checks.get_mut(&redone.unit.0) else {
            return violated(format!("{unit} is checked, and was not to be"));
        };
        results.push((redone.node, redone.hash));
        let (maker, truth) = results[0];
        let confirmed = results.iter().any(|(node, hash)| *node != maker && *hash == truth);
        let over = if of_user { stands_of_kernel(results) } else { stands(results) };
        if over {
            book.end_check(redone.unit.0, !of_user || confirmed);
        }
        Ok(())
    }

    /// Only the result of the other lease stops one of two.
    fn stop_copy(&mut self, lease: Lease, winner: Epoch, millis: u64) -> Checked {
        if !self.has_commit(Lease { epoch: winner, ..lease }) || self.has_commit(lease) {
            return violated(format!("{lease} is stopped for {winner}, which has no result"));
        }
        if lease.epoch.0 >= self.reserved {
            return violated(format!("{lease} is stopped, and was never reserved"));
        }
        let copies = &mut self.going(lease.unit.job)?.copies;
        match winner > lease.epoch {
            true => copies.won += 1,
            false => copies.lost += 1,
        }
        copies.wasted_millis += millis;
        Ok(())
    }

    fn note_waited(&mut self, job: JobId, millis: u64) -> Checked {
        self.going(job)?.devices_waited_millis += millis;
        match millis {
            0 => violated(format!("a device waited for nothing of job {job}")),
            _ => Ok(()),
        }
    }

    fn take_all_back(
        &mut self,
        (job, frame): (JobId, FrameNumber),
        units: &[UnitIndex],
        below: Epoch,
        lost: bool,
    ) -> Checked {
        let all = (units, below, lost);
        units.iter().try_for_each(|unit| self.take_back((job, frame), *unit, all))?;
        self.void_pieces((job, frame), units, below)?;
        self.rewind(job, frame, units)
    }

    fn end_round(
        &mut self,
        (job, frame): (JobId, FrameNumber),
        round: u32,
        going: &TileSet,
    ) -> Checked {
        let book = self.open_frame(job, frame)?;
        if book.sampled() < book.wanted() as usize || !book.checks.is_empty() {
            return violated(format!("round {round} of {job}/{frame} is measured before its end"));
        }
        book.rounds.as_mut().map_or(Ok(()), |rounds| rounds.end_round(round, going))
    }

    fn rewind(&mut self, job: JobId, frame: FrameNumber, units: &[UnitIndex]) -> Checked {
        let book = self.open_frame(job, frame)?;
        let last = book.units;
        let units: Vec<UnitIndex> = units.iter().copied().filter(|of| of.0 < last).collect();
        let Some(rounds) = book.rounds.as_mut().filter(|_| !units.is_empty()) else {
            return Ok(());
        };
        let round = rounds.first_round(&units);
        rounds.rewind(round);
        match book.committed.keys().chain(book.parts.keys()).find(|unit| !rounds.wants(**unit)) {
            Some(unit) => {
                violated(format!("{job}/{frame} goes back to round {round}, and keeps unit {unit}"))
            }
            None => Ok(()),
        }
    }

    fn take_back(
        &mut self,
        (job, frame): (JobId, FrameNumber),
        unit: UnitIndex,
        (all, below, lost): (&[UnitIndex], Epoch, bool),
    ) -> Checked {
        let key = UnitKey { job, frame, unit };
        let book = self.open_frame(job, frame)?;
        // What was rendered because of the others goes with them, whoever did it.
        let last = book.units;
        let samples: Vec<UnitIndex> = all.iter().copied().filter(|of| of.0 < last).collect();
        let later = |rounds: &RoundBook| rounds.is_after(unit.0, rounds.first_round(&samples));
        let follows = match unit.0 < last {
            true => book.rounds.as_ref().is_some_and(later),
            false => !samples.is_empty() || book.is_assembly(unit.0) && all.len() > 1,
        };
        let Some((epoch, node)) = book.committed.remove(&unit.0) else {
            return violated(format!("{key} is taken back, and was not committed"));
        };
        let parts = book.parts.remove(&unit.0).unwrap_or_default();
        let all_alike = !parts.is_empty() && parts.iter().all(|part| part.alike);
        if (book.verified.remove(&unit.0) || all_alike) && !follows && !lost {
            return violated(format!(
                "{key} is taken back, and other nodes have rendered it alike"
            ));
        }
        book.undone.insert(unit.0);
        book.checks.remove(&unit.0);
        book.attempts.insert(unit.0, (below, node, true));
        self.settled.insert(Lease { unit: key, epoch });
        Ok(())
    }

    fn accept(&mut self, job: JobId, spec: &JobSpec, owner: &str) -> Checked {
        self.check_known(job, spec)?;
        let units = units_of(job, &spec.kind);
        let rounds = RoundBook::of(&spec.kind);
        let pieces = pieces_of(&spec.kind).len() as u32;
        let frame = || FrameBook {
            units,
            pieces,
            finished_by: FinishedBy::Unbegun,
            rounds: rounds.clone(),
            committed: BTreeMap::new(),
            undone: BTreeSet::new(),
            checks: BTreeMap::new(),
            verified: BTreeSet::new(),
            parts: BTreeMap::new(),
            attempts: BTreeMap::new(),
            end: FrameEnd::Open,
            failures: 0,
        };
        let book = JobBook {
            spec: spec.clone(),
            owner: owner.to_owned(),
            pinned: None,
            frames: spec.kind.frames().iter().map(|number| (number, frame())).collect(),
            ended: None,
            paused: false,
            waits: spec.after.clone(),
            changed: false,
            barred: BTreeSet::new(),
            resumed: 0,
            copies: CopyCount::default(),
            devices_waited_millis: 0,
            spent_micros: 0,
            file_bytes: 0,
            stored_byte_millis: 0,
            ends: 0,
            retried: 0,
            kept_before: 0,
            fence: 0,
        };
        self.order.push(job);
        match self.jobs.insert(job, book) {
            Some(_) => violated(format!("job {job} is accepted twice")),
            None => Ok(()),
        }
    }

    fn pause(&mut self, job: JobId, pause: bool) -> Checked {
        let book = self.going(job)?;
        book.resumed += u32::from(!pause);
        match std::mem::replace(&mut book.paused, pause) == pause {
            true => violated(format!("job {job} is paused or resumed twice")),
            false => Ok(()),
        }
    }

    /// Frames that failed are open, with nothing in them; others are what they were.
    fn retry(&mut self, job: JobId, below: Epoch) -> Checked {
        let Some(book) = self.jobs.get_mut(&job) else {
            return violated(format!("job {job} is retried, and is unknown"));
        };
        let failed = book.frames.iter_mut().filter(|(_, frame)| frame.end == FrameEnd::Failed);
        let mut any = false;
        for (number, frame) in failed {
            any = true;
            book.kept_before += frame.samples(&book.spec.kind, job, *number).1;
            let committed = std::mem::take(&mut frame.committed);
            frame.undone.extend(committed.keys());
            self.settled.extend(committed.into_iter().map(|(unit, (epoch, _))| {
                let unit = UnitKey { job, frame: *number, unit: UnitIndex(unit) };
                Lease { unit, epoch }
            }));
            (frame.checks, frame.verified, frame.parts) =
                (BTreeMap::new(), BTreeSet::new(), BTreeMap::new());
            (frame.attempts, frame.end) = (BTreeMap::new(), FrameEnd::Open);
            frame.rounds = RoundBook::of(&book.spec.kind);
            frame.finished_by = FinishedBy::Unbegun;
        }
        (book.ended, book.retried) = (None, book.retried + 1);
        book.fence = book.fence.max(below.0);
        if book.frames.values().all(|frame| frame.committed.is_empty() && frame.parts.is_empty()) {
            book.pinned = None;
        }
        if any {
            Ok(())
        } else {
            violated(format!("job {job} is retried, and none of its frames has failed"))
        }
    }

    fn commit(&mut self, job: JobId, frame: FrameNumber, commit: &Commit) -> Checked {
        let unit = UnitKey { job, frame, unit: commit.unit };
        self.check_commit(unit, commit)?;
        if self.holds_back(job, frame) {
            return violated(format!("{unit} is committed, and waits for another job"));
        }
        let whole =
            self.jobs.get(&job).and_then(|book| task_of(book.kind(), unit)).map_or(0, size_of);
        let book = self.open_frame(job, frame)?;
        if !book.wants(commit.unit.0) {
            return violated(format!("{unit} is committed, and does not exist or is not wanted"));
        }
        if book.committed.insert(commit.unit.0, (commit.epoch, commit.node)).is_some() {
            return violated(format!("{unit} is committed twice"));
        }
        book.undone.remove(&commit.unit.0);
        book.complete(commit, whole);
        Ok(())
    }

    fn end_attempt(&mut self, node: NodeId, attempt: &EndedAttempt) -> Checked {
        let Lease { unit, epoch } = attempt.lease;
        if !self.is_open(unit) {
            return violated(format!("an attempt of {unit} ended, which is not open"));
        }
        let book = self.open_frame(unit.job, unit.frame)?;
        let failed = attempt.ending.has_failed();
        let newest = book.attempts.entry(unit.unit.0).or_insert((epoch, node, failed));
        if epoch >= newest.0 {
            *newest = (epoch, node, failed);
        }
        Ok(())
    }

    fn end_frame(&mut self, job: JobId, frame: FrameNumber, end: FrameEnd) -> Checked {
        let book = self.open_frame(job, frame)?;
        let committed = book.committed.len();
        if end == FrameEnd::Done && (!book.is_whole() || !book.is_last_round()) {
            return violated(format!(
                "{job}/{frame} is finished with {committed} of {} units",
                book.wanted()
            ));
        }
        if end == FrameEnd::Done && !book.checks.is_empty() {
            return violated(format!(
                "{job}/{frame} is finished, and {:?} are to be checked",
                book.checks
            ));
        }
        book.end = end;
        book.failures += u32::from(end == FrameEnd::Failed);
        Ok(())
    }

    pub(crate) fn end(&mut self, job: JobId, state: JobState) -> Checked {
        let book = self.going(job)?;
        let done = book.frames.values().all(|frame| frame.end == FrameEnd::Done);
        if done != (state == JobState::Done) || !state.is_final() {
            return violated(format!("job {job} ends as {state:?}, with all frames done: {done}"));
        }
        for frame in book.frames.values_mut().filter(|frame| frame.end == FrameEnd::Open) {
            frame.end = FrameEnd::Failed;
        }
        book.ends += 1;
        book.ended = Some(state);
        book.paused = false;
        Ok(())
    }
}

/// What is committed stands: of the nodes that always say the same, more say this than anything
/// else, and two at least, or all that are left where some contradict themselves.
fn stands(results: &[(NodeId, BlobHash)]) -> bool {
    let steady = |node: NodeId| {
        results.iter().all(|(other, hash)| {
            let first = results.iter().find(|(of, _)| *of == node).map(|(_, hash)| *hash);
            *other != node || Some(*hash) == first
        })
    };
    let nodes: BTreeSet<NodeId> = results.iter().map(|(node, _)| *node).collect();
    let steadies: BTreeMap<NodeId, BlobHash> =
        results.iter().filter(|(node, _)| steady(*node)).copied().collect();
    let votes = |hash: BlobHash| steadies.values().filter(|said| **said == hash).count();
    let (for_it, truth) = (votes(results[0].1), results[0].1);
    let beaten = steadies.values().any(|hash| *hash != truth && votes(*hash) >= for_it);
    !beaten && (for_it >= 2 || for_it == 1 && steadies.len() == 1 && nodes.len() > 1)
}

/// What is committed of a user's kernel stands: no node contradicts itself, at least two agree on
/// it, and fewer say otherwise, each of them twice. A node alone is heard twice.
fn stands_of_kernel(results: &[(NodeId, BlobHash)]) -> bool {
    let runs = |node: NodeId| results.iter().filter(move |(of, _)| *of == node);
    let steady = results.iter().all(|(node, hash)| runs(*node).all(|(_, said)| said == hash));
    let (mut with, mut against) = (BTreeSet::new(), BTreeSet::new());
    let truth = results[0].1;
    for (node, hash) in results {
        if *hash == truth {
            with.insert(*node)
        } else {
            against.insert((*node, *hash))
        };
    }
    let heard = against.iter().all(|(node, _)| runs(*node).count() > 1);
    let alone = against.is_empty() && with.len() == 1 && results.len() > 1;
    let others: BTreeSet<BlobHash> = against.iter().map(|(_, hash)| *hash).collect();
    steady && (alone || with.len() >= 2 && with.len() > against.len() && heard && others.len() <= 1)
}
