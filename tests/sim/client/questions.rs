//! Users who ask how things are, and nodes that are told of commits: what they are answered goes to
//! the history checker, which knows nothing else of the farm.

use crate::checks::violation::{Checked, Violation};
use crate::faults::Fault;
use crate::model::books::FrameEnd;
use crate::situations::sometimes;
use crate::world::World;
use crate::world::events::Event;
use tessera_core::{Core, Moment, Selection};
use tessera_history::{Asked, JobSeen, Seen};
use tessera_protocol::ids::{BlobHash, JobId, UnitIndex, UnitKey};
use tessera_protocol::status::{FrameState, JobSummary};

/// Questions about one job at most in a run, so that they stay a small part of it.
const QUESTIONS_MAX: u32 = 12;

/// Everything that one question brought to light, on its way to whoever asked.
#[derive(Clone, Debug)]
pub(crate) struct Answers {
    asked: Asked,
    /// The coordinator's process, and that of the client's first question.
    incarnation: u64,
    first: u64,
    seen: Vec<Seen>,
}

impl World {
    /// A client begins to look at a job now and then.
    pub(crate) fn follow_job(&mut self, index: usize) {
        if self.chance(Fault::Question) {
            let first = self.random.between(1, 4_000);
            self.after(first, Event::Question(index, 0));
        }
    }

    /// A client asks for a job, its frames, and the list of all jobs.
    pub(crate) fn on_question(&mut self, index: usize, before: u32) -> Checked {
        if before < QUESTIONS_MAX {
            let next = self.random.between(300, 12_000);
            self.after(next, Event::Question(index, before + 1));
        }
        let Some(place) = self.find_coordinator() else { return Ok(()) };
        self.as_process(place, |world| world.answer_question(index))
    }

    pub(crate) fn answer_question(&mut self, index: usize) -> Checked {
        let is_stale = self.is_stale();
        sometimes!(self, StaleAsked, is_stale);
        // Nobody answers after its term.
        self.check_own_term()?;
        if is_stale {
            // One whose clock stood still as well shows what it knew.
            return Ok(());
        }
        // An answer tells what has been decided so far: whatever that is goes to the disk before
        // it.
        self.take_step()?;
        let asked = self.history.ask();
        let job = self.clients.jobs[index].plan.id;
        let Some(process) = &mut self.shell.process else { return Ok(()) };
        let incarnation = self.shell.incarnation;
        let first = *self.clients.jobs[index].first_asked.get_or_insert(incarnation);
        let answers = Answers { asked, incarnation, first, seen: shown(&process.core, job) };
        for seen in &answers.seen {
            if let Seen::Finished { job, frame, .. } = seen {
                self.fetch_frame(*job, *frame)?;
            }
        }
        let Some(process) = &mut self.shell.process else { return Ok(()) };
        match process.pending.back_mut() {
            Some(pending) => pending.answers.push(answers),
            None => self.send_answers(answers),
        }
        Ok(())
    }

    /// Answers leave for the client.
    pub(crate) fn send_answers(&mut self, answers: Answers) {
        if !self.chance(Fault::ReplyLost) {
            let delay = self.random.between(1, 2_000);
            self.after(delay, Event::Answers(Box::new(answers)));
        }
    }

    /// The client has its answers.
    pub(crate) fn on_answers(&mut self, answers: &Answers) -> Checked {
        let (mut goes_on, mut finished) = (false, false);
        for seen in &answers.seen {
            goes_on |= matches!(seen, Seen::Job(seen) if !seen.state.is_final());
            finished |= matches!(seen, Seen::Finished { .. });
        }
        sometimes!(self, SawFrameEarly, goes_on && finished);
        sometimes!(self, SawAcrossRestart, answers.incarnation > answers.first);
        answers.seen.iter().try_for_each(|seen| self.saw(answers.asked, seen))
    }

    /// Failed frames of a job are going to be open again, durably: nothing of them is committed any
    /// more.
    pub(crate) fn saw_retry(&mut self, job: JobId) -> Checked {
        let Some(book) = self.ledger.durable.jobs.get(&job) else { return Ok(()) };
        let failed = book.frames.iter().filter(|(_, frame)| frame.end == FrameEnd::Failed);
        let units: Vec<UnitKey> = failed
            .flat_map(|(number, frame)| {
                let key = |unit: &u32| UnitKey { job, frame: *number, unit: UnitIndex(*unit) };
                frame
                    .committed
                    .range(..frame.units)
                    .map(|(unit, _)| unit)
                    .map(key)
                    .collect::<Vec<_>>()
            })
            .collect();
        for unit in units {
            self.saw(self.history.ask(), &Seen::TakenBack(unit))?;
        }
        self.saw(self.history.ask(), &Seen::Retried(job))
    }

    /// Somebody saw something.
    pub(crate) fn saw(&mut self, asked: Asked, seen: &Seen) -> Checked {
        self.history.saw(asked, seen).map_err(|broken| Violation(format!("a client saw: {broken}")))
    }
}

/// What the farm shows of a job.
fn shown(core: &Core, job: JobId) -> Vec<Seen> {
    let rows = core.jobs(&Selection::default(), None, Moment(0)).unwrap_or_default().jobs;
    let mut seen = vec![Seen::Listed(rows.iter().map(|row| row.job).collect())];
    let Some(summary) = core.job_summary(job) else {
        seen.push(Seen::Unknown(job));
        return seen;
    };
    seen.push(Seen::Job(job_seen(&summary)));
    for row in core.frames(job, 0).unwrap_or_default() {
        let frame = row.frame;
        seen.push(match row.state {
            FrameState::Done(files) => {
                let hashes: Vec<u8> = files.iter().flat_map(|file| file.hash.0).collect();
                Seen::Finished { job, frame, hash: BlobHash::of(&hashes) }
            }
            _ => Seen::Unfinished { job, frame },
        });
    }
    seen
}

fn job_seen(summary: &JobSummary) -> JobSeen {
    JobSeen {
        job: summary.job,
        state: summary.state,
        units: summary.units,
        units_committed: summary.units_committed,
        frames: summary.frames,
        frames_done: summary.frames_done,
    }
}
