//! Spans of frames and attempts, made of what the driver sees anyway: leases as they are granted,
//! results as they arrive, records as they become durable. Decides nothing, and keeps nothing
//! unless a collector wants spans.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};
use tessera_core::journal::{EndedAttempt, Ending};
use tessera_core::{Action, Arrived, Core, Record};
use tessera_protocol::node::{Assignment, CoordinatorToNode, Task};
use tessera_protocol::status::JobState;
use tessera_protocol::{FrameNumber, JobId, Lease, UnitKey};
use tessera_telemetry::{Outcome, Span, Tracer};

/// Most frames that are followed at a time.
const FRAMES_MAX: usize = 1024;
/// Most frames that are known not to be.
const PASSED_OVER_MAX: usize = 65_536;
/// Most attempts of them that have not ended.
const ATTEMPTS_MAX: usize = 65_536;

/// Something that a record ended. Its span is made once the record is durable.
#[derive(Debug)]
pub(super) enum Ended {
    Attempt(Lease, Outcome),
    Frame { job: JobId, frame: FrameNumber, problem: Option<String> },
    Job { job: JobId, state: JobState },
}

/// An attempt that has not ended.
#[derive(Debug)]
struct Attempt {
    name: &'static str,
    node: String,
    leased: SystemTime,
    arrived: Option<(SystemTime, Arrived)>,
}

/// A frame that is followed.
#[derive(Debug)]
struct Followed {
    job_name: String,
    begun: SystemTime,
    resolving: Option<SystemTime>,
    attempts: BTreeMap<Lease, Attempt>,
    committed: u64,
    left_out: u64,
}

/// What is known of frames that are not finished.
#[derive(Debug, Default)]
pub(super) struct SpanRoom {
    tracer: Tracer,
    frames: BTreeMap<(JobId, FrameNumber), Followed>,
    /// Frames that are not followed, since there was no room when they began: no half of them is.
    passed_over: BTreeSet<(JobId, FrameNumber)>,
    attempts: usize,
    /// What the present step ends.
    ended: Vec<Ended>,
}

impl SpanRoom {
    pub(super) fn new(tracer: Tracer) -> Self {
        Self { tracer, ..Self::default() }
    }

    /// Notes leases that are granted, results that are not kept, and frames whose files are made.
    pub(super) fn note_action(&mut self, core: &Core, action: &Action) {
        if !self.tracer.is_on() {
            return;
        }
        match action {
            Action::Send { message: CoordinatorToNode::Work(granted), .. } => {
                granted.iter().for_each(|assignment| self.granted(core, assignment));
            }
            Action::ResolveFrame { job, frame } => {
                if let Some(followed) = self.frames.get_mut(&(*job, *frame)) {
                    followed.resolving = Some(SystemTime::now());
                }
            }
            Action::DropResult { lease, .. } => {
                self.ended.push(Ended::Attempt(*lease, Outcome::Unused));
            }
            _ => {}
        }
    }

    fn granted(&mut self, core: &Core, assignment: &Assignment) {
        let lease = assignment.lease();
        let name = match assignment.task {
            Task::Tile { .. } => "tile",
            Task::Chunk { .. } => "chunk",
            Task::Finish(_) => "finishing",
        };
        self.follow(core, lease, (name, SystemTime::now()));
    }

    /// Follows an attempt, and its frame if there is room for one more.
    fn follow(&mut self, core: &Core, lease: Lease, (name, leased): (&'static str, SystemTime)) {
        let UnitKey { job, frame, .. } = lease.unit;
        if !self.tracer.wants(job, frame) {
            return;
        }
        let key = (job, frame);
        if !self.frames.contains_key(&key) {
            let is_room = self.frames.len() < FRAMES_MAX && self.tracer.has_room();
            if self.passed_over.contains(&key) || !is_room {
                self.pass_over(key);
                return;
            }
            let job_name = core.job_summary(job).map_or_else(String::new, |summary| summary.name);
            let followed = Followed {
                job_name,
                begun: leased,
                resolving: None,
                attempts: BTreeMap::new(),
                committed: 0,
                left_out: 0,
            };
            self.frames.insert(key, followed);
        }
        let Some(followed) = self.frames.get_mut(&key) else { return };
        if self.attempts >= ATTEMPTS_MAX {
            followed.left_out += 1;
            return;
        }
        let mut holders = core.leases_of(lease.unit).filter(|(one, _)| *one == lease);
        let node = holders.next().map_or_else(String::new, |(_, node)| core.node_name(node));
        let attempt = Attempt { name, node, leased, arrived: None };
        self.attempts += usize::from(followed.attempts.insert(lease, attempt).is_none());
    }

    fn pass_over(&mut self, key: (JobId, FrameNumber)) {
        self.passed_over.insert(key);
        if self.passed_over.len() > PASSED_OVER_MAX {
            self.passed_over.pop_first();
        }
    }

    /// Notes a result that has arrived. That of a lease from before this coordinator's start began
    /// when its device did.
    pub(super) fn note_arrived(&mut self, core: &Core, arrived: &Arrived) {
        if !self.tracer.is_on() {
            return;
        }
        let (now, lease) = (SystemTime::now(), arrived.lease);
        let key = (lease.unit.job, lease.unit.frame);
        let is_known =
            self.frames.get(&key).is_some_and(|followed| followed.attempts.contains_key(&lease));
        if !is_known && core.leases_of(lease.unit).any(|(one, _)| one == lease) {
            let worked = Duration::from_micros(arrived.device_micros);
            self.follow(core, lease, ("unit", now.checked_sub(worked).unwrap_or(now)));
        }
        let followed = self.frames.get_mut(&key);
        if let Some(attempt) = followed.and_then(|followed| followed.attempts.get_mut(&lease)) {
            attempt.arrived = Some((now, *arrived));
        }
    }

    /// Notes what a record ends.
    pub(super) fn note(&mut self, record: &Record) {
        if !self.tracer.is_on() {
            return;
        }
        let ended = &mut self.ended;
        match record {
            Record::UnitsCommitted { job, frame, commits } => {
                let lease = |unit, epoch| {
                    let unit = UnitKey { job: *job, frame: *frame, unit };
                    Lease { unit, epoch }
                };
                ended.extend(commits.iter().map(|commit| {
                    Ended::Attempt(lease(commit.unit, commit.epoch), Outcome::Committed)
                }));
            }
            Record::UnitChecked { job, frame, redone } => {
                let unit = UnitKey { job: *job, frame: *frame, unit: redone.unit };
                let lease = Lease { unit, epoch: redone.epoch };
                ended.push(Ended::Attempt(lease, Outcome::Checked));
            }
            Record::AttemptsEnded { attempts, .. } => {
                ended.extend(attempts.iter().map(|EndedAttempt { lease, ending }| {
                    Ended::Attempt(*lease, outcome_of(ending))
                }));
            }
            Record::FrameFinished { job, frame, .. } => {
                ended.push(Ended::Frame { job: *job, frame: *frame, problem: None });
            }
            Record::FrameFailed { job, frame, reason } => {
                let problem = Some(reason.clone());
                ended.push(Ended::Frame { job: *job, frame: *frame, problem });
            }
            Record::JobEnded { job, state, .. } => {
                ended.push(Ended::Job { job: *job, state: *state });
            }
            _ => {}
        }
    }

    /// Takes what the present step ends, for when it is durable.
    pub(super) fn take_ended(&mut self) -> Vec<Ended> {
        std::mem::take(&mut self.ended)
    }

    /// Makes the spans of what has ended for good.
    pub(super) fn durable(&mut self, ended: Vec<Ended>) {
        let now = SystemTime::now();
        for one in ended {
            match one {
                Ended::Attempt(lease, outcome) => self.end_attempt(lease, &outcome, now),
                Ended::Frame { job, frame, problem } => {
                    self.end_frame((job, frame), problem.as_deref(), now);
                }
                Ended::Job { job, state } => self.end_job(job, state, now),
            }
        }
    }

    fn end_attempt(&mut self, lease: Lease, outcome: &Outcome, now: SystemTime) {
        let key = (lease.unit.job, lease.unit.frame);
        let Some(followed) = self.frames.get_mut(&key) else { return };
        let Some(attempt) = followed.attempts.remove(&lease) else { return };
        self.attempts -= 1;
        followed.committed += u64::from(*outcome == Outcome::Committed);
        followed.left_out += offer_attempt(&self.tracer, (lease, &attempt), outcome, now);
    }

    fn end_frame(&mut self, key: (JobId, FrameNumber), problem: Option<&str>, now: SystemTime) {
        self.passed_over.remove(&key);
        let Some(followed) = self.frames.remove(&key) else { return };
        self.attempts -= followed.attempts.len();
        let mut left_out = followed.left_out;
        for (lease, attempt) in &followed.attempts {
            left_out += offer_attempt(&self.tracer, (*lease, attempt), &Outcome::Unused, now);
        }
        if let Some(begun) = followed.resolving {
            let span = Span::in_frame("assemble", key, (begun, now)).failed(problem);
            left_out += u64::from(!self.tracer.offer(span));
        }
        let outcome = if problem.is_some() { "failed" } else { "done" };
        let span = Span::of_frame(key.0, key.1, (followed.begun, now))
            .with("tessera.job.name", followed.job_name)
            .with("tessera.outcome", outcome)
            .with("tessera.units", followed.committed)
            .with("tessera.spans_left_out", left_out)
            .failed(problem);
        let _ = self.tracer.offer(span);
    }

    /// Ends the frames of a job that are followed still: it was cancelled or failed.
    fn end_job(&mut self, job: JobId, state: JobState, now: SystemTime) {
        let whole = (job, FrameNumber(u32::MIN))..=(job, FrameNumber(u32::MAX));
        let keys: Vec<_> = self.frames.range(whole.clone()).map(|(key, _)| *key).collect();
        self.passed_over.retain(|key| !whole.contains(key));
        let problem = match state {
            JobState::Cancelled => "its job was cancelled",
            _ => "its job has ended",
        };
        keys.into_iter().for_each(|key| self.end_frame(key, Some(problem), now));
    }
}

fn outcome_of(ending: &Ending) -> Outcome {
    match ending {
        Ending::Failed(reason)
        | Ending::TimedOut(reason)
        | Ending::Unprepared(reason)
        | Ending::Limited(reason)
        | Ending::Repeated(reason)
        | Ending::Idle(reason) => Outcome::Failed(reason.clone()),
        Ending::Expired => Outcome::Lost("its lease expired"),
        Ending::Lost => Outcome::Lost("its node was lost"),
    }
}

/// Offers the span of an attempt, and that of its commit. Returns how many were not taken.
fn offer_attempt(
    tracer: &Tracer,
    (lease, attempt): (Lease, &Attempt),
    outcome: &Outcome,
    now: SystemTime,
) -> u64 {
    let mut left_out = 0;
    let mut span = Span::of_attempt(attempt.name, lease, (attempt.leased, now))
        .with("tessera.node", attempt.node.as_str())
        .with("tessera.outcome", outcome.word())
        .failed(outcome.problem());
    if let Some((at, arrived)) = &attempt.arrived {
        let seconds = |micros: u64| Duration::from_micros(micros).as_secs_f64();
        span = span
            .with("tessera.device", u32::from(arrived.device))
            .with("tessera.device_seconds", seconds(arrived.device_micros))
            .with("tessera.waited_seconds", seconds(arrived.waited_micros));
        if *outcome == Outcome::Committed {
            let commit = Span::in_attempt("commit", lease, (*at, now));
            left_out += u64::from(!tracer.offer(commit));
        }
    }
    left_out + u64::from(!tracer.offer(span))
}
