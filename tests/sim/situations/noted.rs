//! What the farm made of what happened: notes the situations from steps and from the
//! state. Checks nothing.

use crate::checks::leases::Seen;
use crate::faults::Fault;
use crate::model::books::JobBook;
use crate::situations::sometimes;
use crate::situations::waits::{reads_frames, waits_for_frames};
use crate::world::World;
use std::collections::BTreeSet;
use tessera_core::journal::{Commit, EndedAttempt, Ending, Gone, Redone};
use tessera_core::{Action, Record, Selection, Step, TileSet};
use tessera_protocol::ids::{FrameNumber, JobId, Lease, UnitIndex, UnitKey};
use tessera_protocol::node::{CoordinatorToNode, Task};
use tessera_protocol::status::{JobState, JobSummary, NodeState, Waits};

impl World {
    /// Looks at a step before the watch takes it in: leases are still those of before.
    pub(crate) fn note_step(&mut self, step: &Step, seen: &Seen) {
        for record in &step.records {
            self.note_record(record, seen);
            self.note_node(record);
        }
        let commits = step.records.iter().map(|record| match record {
            Record::UnitsCommitted { commits, .. } => commits.len(),
            _ => 0,
        });
        sometimes!(self, ManyInAStep, commits.sum::<usize>() >= 3);
        let kept: BTreeSet<Lease> = step
            .actions
            .iter()
            .filter_map(|action| match action {
                Action::KeepResult { lease, .. } => Some(*lease),
                _ => None,
            })
            .collect();
        for action in &step.actions {
            match action {
                Action::Send { message, .. } => self.note_message(message, &kept, seen),
                Action::CloseSession { .. } => sometimes!(self, SessionReplaced),
                Action::ResolveFrame { .. } => {
                    sometimes!(self, ResolveAfterRestart, seen.inputs == 0)
                }
                Action::MeasureFrame { .. } => {
                    sometimes!(self, MeasureAfterRestart, seen.inputs == 0)
                }
                _ => {}
            }
        }
    }

    fn note_record(&mut self, record: &Record, seen: &Seen) {
        match record {
            Record::AttemptsEnded { attempts, .. } => {
                attempts.iter().for_each(|attempt| self.note_ended(attempt));
            }
            Record::FrameFailed { job, .. } => {
                self.tally.count(Fault::FrameFailed);
                self.retry_soon(*job);
            }
            Record::UnitChecked { job, frame, redone } => self.note_check(*job, *frame, redone),
            Record::NodeBarred { .. } => sometimes!(self, BarredFromJob),
            Record::JobChanged { job, .. } => self.note_change(*job),
            Record::CheckWaived { .. } => self.tally.count(Fault::CheckWaived),
            Record::UnitsTakenBack { job, frame, units, .. } => {
                self.tally.count(Fault::UnitTakenBack);
                self.note_void(*job, *frame, units);
            }
            Record::RoundMeasured { going, spent_millis, .. } => {
                sometimes!(self, RoundInTime, *going != TileSet::default() && *spent_millis > 0);
                sometimes!(self, TimeOver, *going == TileSet::default() && *spent_millis > 0);
                sometimes!(self, RoundOpened, *going != TileSet::default());
                sometimes!(self, RoundsEnded, *going == TileSet::default());
            }
            Record::PartCommitted { commit, .. } => self.note_part(commit),
            Record::NodeSuspected { guilty: true, .. } => self.tally.count(Fault::ForgerFound),
            Record::UnitsCommitted { job, frame, commits } => {
                commits.iter().for_each(|commit| self.note_commit(*job, *frame, commit));
            }
            Record::JobRetried { job, .. } => {
                self.note_waits_again(*job);
                let ended = self.ledger.believed.jobs.get(job).and_then(|book| book.ended);
                sometimes!(self, RetriedEnded, ended == Some(JobState::Failed));
                sometimes!(self, RetriedCancelled, ended == Some(JobState::Cancelled));
                sometimes!(self, RetriedUnderWay, ended.is_none());
            }
            Record::FrameFinished { job, frame, .. } => {
                let book =
                    self.ledger.believed.jobs.get(job).and_then(|book| book.frames.get(frame));
                sometimes!(self, RetryFinished, book.is_some_and(|book| book.failures > 0));
                let pieces = book.filter(|book| book.is_by_nodes()).map_or(0, |book| book.pieces);
                sometimes!(self, FinishedByNodes, pieces > 0);
                sometimes!(self, BandsAssembled, pieces > 1);
            }
            Record::JobPaused { job, .. } => {
                sometimes!(self, AfterPaused, self.ledger.believed.holds_all_back(*job));
                let Some(process) = &self.shell.process else { return };
                sometimes!(self, PauseUnderWay, process.watch.holds_any(*job));
                let book = self.ledger.believed.jobs.get(job);
                let finishing = |book: &JobBook| book.is_finishing();
                sometimes!(self, FinishingPaused, book.is_some_and(finishing));
            }
            Record::CopyStopped { job, frame, unit, epoch, winner, .. } => {
                let unit = UnitKey { job: *job, frame: *frame, unit: *unit };
                let check = self.ledger.believed.is_to_be_checked(unit);
                sometimes!(self, CopyOfCheckStopped, check);
                sometimes!(self, CopyWon, winner > epoch);
                sometimes!(self, CopyLost, winner < epoch);
                let both = seen.has_result(Lease { unit, epoch: *epoch });
                sometimes!(
                    self,
                    BothResults,
                    both && seen.has_result(Lease { unit, epoch: *winner })
                );
            }
            Record::JobEnded { job, state, note, .. } => self.note_end(*job, *state, note),
            _ => self.note_finishing(record),
        }
    }

    fn note_finishing(&mut self, record: &Record) {
        match record {
            Record::ResultsLost { job, frame, units, .. } => self.note_void(*job, *frame, units),
            Record::FinishingBegun { .. } => sometimes!(self, FinishingBegun),
            Record::FinishingClosed { reason, .. } => {
                sometimes!(self, FinishersGone, reason.contains("no node is here"));
                sometimes!(self, FinishersFailed, reason.contains(" ended "));
            }
            _ => {}
        }
    }

    /// Notes what is taken back of a frame that nodes finish.
    fn note_void(&mut self, job: JobId, frame: FrameNumber, units: &[UnitIndex]) {
        let book = self.ledger.believed.jobs.get(&job).and_then(|book| book.frames.get(&frame));
        let Some(book) = book.filter(|book| book.is_by_nodes()) else { return };
        let samples = units.iter().any(|unit| unit.0 < book.units);
        sometimes!(self, FinishingVoid, samples);
        sometimes!(self, PieceTakenBack, !samples);
    }

    fn note_ended(&mut self, attempt: &EndedAttempt) {
        self.note_passed_over(attempt);
        match attempt.ending {
            Ending::Expired => self.tally.count(Fault::LeaseExpired),
            Ending::Lost => self.tally.count(Fault::LeaseLost),
            Ending::TimedOut(ref reason) => {
                sometimes!(self, StalledTakenBack, reason.contains("no progress"));
                self.tally.count(Fault::TimedOut);
            }
            Ending::Failed(ref reason) => {
                sometimes!(self, ShortageTooLong, reason.contains("waited"));
            }
            _ => {}
        }
    }

    fn note_node(&mut self, record: &Record) {
        match record {
            Record::NodeGone { how, why, .. } => {
                sometimes!(self, NodeRemoved, *how == Gone::Removed);
                sometimes!(self, NotBack, why.contains("has not come back"));
            }
            Record::NodeReplaced { .. } => sometimes!(self, NodeReplaced),
            Record::NodesForgotten { .. } => sometimes!(self, NodesForgotten),
            _ => {}
        }
    }

    /// Notes what nodes could not do that others may.
    fn note_passed_over(&mut self, attempt: &EndedAttempt) {
        sometimes!(self, IdleTakenBack, matches!(attempt.ending, Ending::Idle(_)));
        sometimes!(self, FailedAgain, matches!(attempt.ending, Ending::Repeated(_)));
        let left = match attempt.ending {
            Ending::Unprepared(_) => &mut self.unprepared,
            Ending::Limited(_) => &mut self.limited,
            _ => return,
        };
        left.insert(attempt.lease.unit);
    }

    fn note_change(&mut self, job: JobId) {
        let Some(process) = &self.shell.process else { return };
        sometimes!(self, ChangedUnderWay, process.watch.holds_any(job));
    }

    fn note_commit(&mut self, job: JobId, frame: FrameNumber, commit: &Commit) {
        let unit = UnitKey { job, frame, unit: commit.unit };
        let (unprepared, limited) = (self.unprepared.remove(&unit), self.limited.remove(&unit));
        sometimes!(self, UnpreparedElsewhere, unprepared);
        sometimes!(self, LimitElsewhere, limited);
        let waited =
            self.shell.process.as_ref().is_some_and(|process| process.watch.was_short(unit));
        sometimes!(self, CommitAfterShortage, waited);
        if self.shortages.remove(&unit) {
            self.tally.count(Fault::ShortageCleared);
        }
        let attempt =
            self.ledger.believed.frame(unit).and_then(|frame| frame.attempts.get(&commit.unit.0));
        let elsewhere = attempt.is_some_and(|(_, node, failed)| *failed && *node != commit.node);
        let after_end = attempt.is_some_and(|(epoch, ..)| *epoch == commit.epoch);
        let parts =
            self.ledger.believed.frame(unit).and_then(|frame| frame.parts.get(&commit.unit.0));
        let by_others =
            parts.is_some_and(|parts| parts.iter().any(|part| part.node != commit.node));
        let elsewhere = elsewhere && parts.is_none();
        sometimes!(self, RestElsewhere, by_others);
        sometimes!(self, RetryElsewhere, elsewhere);
        sometimes!(self, CommitAfterEnd, after_end);
        let Some(process) = &self.shell.process else { return };
        sometimes!(self, CommitAfterRestart, process.watch.is_former(commit.epoch));
    }

    fn note_check(&mut self, job: JobId, frame: FrameNumber, redone: &Redone) {
        self.tally.count(Fault::UnitChecked);
        let Some(book) = self.ledger.believed.jobs.get(&job) else { return };
        let results = book.frames.get(&frame).and_then(|frame| frame.checks.get(&redone.unit.0));
        let Some(results) = results.filter(|_| book.runs_users_kernel()) else { return };
        let again = results.iter().any(|(node, _)| *node == redone.node);
        let alone = results.len() == 1;
        sometimes!(self, SecondRun, again && !alone);
        sometimes!(self, OwnSecondRun, again && alone);
    }

    fn note_part(&mut self, commit: &Commit) {
        sometimes!(self, PartKept);
        let Some(process) = &self.shell.process else { return };
        sometimes!(self, PartAfterRestart, process.watch.is_former(commit.epoch));
    }

    fn note_end(&mut self, job: JobId, state: JobState, note: &str) {
        let given_up = note.starts_with("given up");
        if !given_up && (note.contains("memory") || note.contains("fits no device")) {
            self.tally.count(Fault::JobFitsNowhere);
        }
        sometimes!(self, SaidByTwo, note.contains("(said by `"));
        sometimes!(self, SaidTwice, note.contains("(said twice by"));
        sometimes!(self, GivenUp, note.starts_with("given up after"));
        sometimes!(self, KernelUnsteady, note.contains("gave another result"));
        sometimes!(self, ThreeDiffer, note.contains("three results"));
        let meant = self.ledger.believed.jobs.get(&job).is_some_and(|book| book.is_uncompared());
        sometimes!(self, NotCompared, meant && state == JobState::Done);
        let Some(process) = &self.shell.process else { return };
        sometimes!(
            self,
            CancelUnderWay,
            state == JobState::Cancelled && process.watch.holds_any(job)
        );
        sometimes!(
            self,
            PausedEnds,
            state == JobState::Done && self.ledger.believed.is_paused(job)
        );
        let done = self.ledger.believed.jobs.get(&job).is_some_and(|book| book.some_done());
        sometimes!(self, FrameFailsOthersGoOn, state == JobState::Failed && done);
    }

    fn note_message(&mut self, message: &CoordinatorToNode, kept: &BTreeSet<Lease>, seen: &Seen) {
        match message {
            CoordinatorToNode::Unwanted { lease } => {
                sometimes!(self, ResultRefused);
                let book = self.ledger.believed.jobs.get(&lease.unit.job);
                let late = book.is_some_and(|book| lease.epoch.0 < book.fence);
                sometimes!(self, RetryLate, late && self.ledger.believed.is_open(lease.unit));
            }
            CoordinatorToNode::Committed { lease } => {
                sometimes!(self, AcknowledgedAgain, !kept.contains(lease));
            }
            CoordinatorToNode::Forget { .. } => {
                sometimes!(self, ForgottenLater, seen.somebody_joined())
            }
            CoordinatorToNode::Revoke { leases } => {
                let void = leases.iter().any(|lease| seen.names(*lease));
                sometimes!(self, RevokedLate, void && !seen.somebody_joined());
            }
            CoordinatorToNode::Work(work) => {
                for assignment in work {
                    let book = self.ledger.believed.jobs.get(&assignment.job);
                    sometimes!(self, AfterFrame, book.is_some_and(waits_for_frames));
                    let told = book.is_some_and(|book| book.spec.not_before.is_some());
                    sometimes!(self, BegunAtItsTime, told);
                    sometimes!(self, InputFound, book.is_some_and(reads_frames));
                    let feeds = book.is_some_and(|book| book.reads_before(assignment.frame));
                    sometimes!(self, FedFrame, feeds);
                    sometimes!(self, ResumedLeased, book.is_some_and(|book| book.resumed > 0));
                    let check = self.ledger.believed.is_to_be_checked(assignment.lease().unit);
                    sometimes!(self, LeaseOfACheck, check);
                    // Of several inputs, one may have ended the other lease.
                    let unit = assignment.lease().unit;
                    let held = self
                        .shell
                        .process
                        .as_ref()
                        .is_some_and(|process| process.watch.holds(unit));
                    let copy = held && seen.inputs == 1 && self.ledger.believed.is_wanted(unit);
                    let piece = matches!(assignment.task, Task::Finish(_));
                    sometimes!(self, PieceChecked, piece && check);
                    sometimes!(self, PieceCopied, piece && copy);
                    sometimes!(self, CopyGiven, copy && !check);
                    sometimes!(self, CheckCopied, copy && check);
                    let parts = self
                        .ledger
                        .believed
                        .frame(unit)
                        .and_then(|frame| frame.parts.get(&unit.unit.0));
                    let former = |epoch| {
                        self.shell
                            .process
                            .as_ref()
                            .is_some_and(|process| process.watch.is_former(epoch))
                    };
                    let before =
                        parts.is_some_and(|parts| parts.iter().all(|part| former(part.epoch)));
                    sometimes!(self, PartChecked, check && parts.is_some());
                    sometimes!(self, RestAfterRestart, !check && before);
                }
            }
            _ => {}
        }
    }

    /// Looks at the whole farm; called now and then.
    pub(crate) fn note_farm(&mut self) {
        let Some(process) = &self.shell.process else { return };
        let census = process.core.census();
        if census.jobs == 0 {
            return;
        }
        let (here, all) = (census.nodes, self.nodes.len());
        sometimes!(self, NobodyHere, here == 0);
        sometimes!(self, OneHere, here == 1);
        sometimes!(self, EverybodyHere, here == all);
        let books = self.ledger.believed.jobs.values().filter(|book| book.ended.is_none());
        let open: usize = books.map(|book| book.open_units()).sum();
        let wanted: u32 = self.nodes.iter().map(|node| node.plan.capacity).sum();
        sometimes!(self, EverybodyBusy, open as u32 > wanted);
        sometimes!(self, ManyOpen, open >= 1000);
        sometimes!(self, IdleFarm, open > 0 && open == census.units && census.units < here);
    }
}

impl World {
    pub(crate) fn count_standings(&mut self) {
        self.note_farm();
        let Some(process) = &self.shell.process else { return };
        for row in process.core.nodes(self.clock()) {
            match row.state {
                NodeState::Lost => self.tally.count(Fault::GraceOver),
                NodeState::Drained => sometimes!(self, DrainedIdle),
                NodeState::Unfit if row.note.contains("in a row") => {
                    self.tally.count(Fault::NodeUnfit)
                }
                NodeState::Unfit if row.note.contains("quarantined") => {
                    self.tally.count(Fault::DevicesAllOut)
                }
                _ => {}
            }
        }
        let waits = |row: &JobSummary| row.note.contains("of the devices that are ready");
        let page = process.core.jobs(&Selection::default(), None, self.clock());
        let rows = page.unwrap_or_default().jobs;
        let lacks = rows.iter().any(|row| row.note.starts_with("waiting: "));
        sometimes!(self, ShortageTold, lacks);
        let behind = rows.iter().any(|row| row.note.contains("its turn behind"));
        sometimes!(self, WaitsBehind, behind);
        if rows.iter().any(waits) {
            self.tally.count(Fault::JobWaitsForMemory);
        }
        let waits: BTreeSet<Waits> = rows.iter().filter_map(|row| row.waits).collect();
        sometimes!(self, WaitsForLimits, waits.contains(&Waits::Limits));
        sometimes!(self, AfterWaits, waits.contains(&Waits::After));
        sometimes!(self, BudgetWaits, waits.contains(&Waits::Budget));
        sometimes!(self, BeginsLater, waits.contains(&Waits::NotBefore));
        sometimes!(self, WaitsForNodes, waits.contains(&Waits::Nodes));
        sometimes!(self, WaitsForPool, waits.contains(&Waits::Pool));
        sometimes!(self, WaitsForCheck, waits.contains(&Waits::Check));
        sometimes!(self, WaitsForBuild, waits.contains(&Waits::Fingerprint));
        sometimes!(self, WaitsForOutOfWork, waits.contains(&Waits::OutOfWork));
    }
}
