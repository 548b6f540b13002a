//! Explanations of jobs, frames and nodes: their reasons in the order of importance. Decides
//! nothing.

use crate::books::Books;
use crate::nodes::absent::find_any;
use crate::nodes::roster::Node;
use crate::report::after::frame_waits_for;
use crate::report::job_state::job_state;
use crate::report::left::{begins, left_of};
use crate::report::reason::failure::{Ended, attempt};
use crate::report::reason::frame::Stage;
use crate::report::reason::node::Standing;
use crate::report::reason::some_of;
use crate::report::reason::wait::Wait;
use crate::report::standing::{Pins, absent_standing, standing};
use crate::report::waiting::waiting;
use crate::state::frame::{Frame, OpenFrame};
use crate::state::job::Job;
use std::collections::{BTreeMap, BTreeSet};
use tessera_protocol::client::RequestError;
use tessera_protocol::explain::{Explanation, REASONS_MAX, Reason, Subject};
use tessera_protocol::ids::{FrameNumber, JobId, NodeId};
use tessera_protocol::status::{FailureNote, JobState, NodeState};

/// Most failed attempts that an explanation names.
const FAILURES_MAX: usize = 5;

/// Explains a job, a frame or a node.
pub(crate) fn explain(books: &Books, subject: &Subject) -> Result<Explanation, RequestError> {
    let explanation = match subject {
        Subject::Job(job) => of_job(books, known(books, *job)?),
        Subject::Frame { job, frame } => of_frame(books, known(books, *job)?, *frame)?,
        Subject::Node(node) => of_node(books, find_any(books, node)?),
    };
    let Explanation { mut reasons, .. } = explanation;
    reasons.truncate(REASONS_MAX);
    Ok(Explanation { reasons, ..explanation })
}

fn known(books: &Books, id: JobId) -> Result<&Job, RequestError> {
    let unknown = || RequestError::NotFound(format!("there is no job {id}"));
    books.farm().job(id).ok_or_else(unknown)
}

fn of_job(books: &Books, job: &Job) -> Explanation {
    let mut explanation = Explanation {
        about: format!("job `{}`", job.spec().name),
        state: job_state(books, job).name().to_owned(),
        ..Explanation::default()
    };
    tell_of_job(books, job, &mut explanation);
    let failures = job.failures().iter().rev().take(FAILURES_MAX);
    explanation.reasons.extend(failures.map(failed));
    explanation
}

fn failed(note: &FailureNote) -> Reason {
    let (word, text) = attempt(note);
    text.reason(word)
}

/// Adds why a job has ended, waits or is at work, and when it should end.
fn tell_of_job(books: &Books, job: &Job, explanation: &mut Explanation) {
    if let Some(end) = job.end() {
        let ended = match end.state {
            JobState::Cancelled => Some(Ended::Cancelled),
            JobState::Failed => Some(Ended::JobFailed),
            _ => None,
        };
        let text = ended.map(|ended| ended.text(&end.note, job.id()).reason(ended.word()));
        explanation.reasons.extend(text);
        return;
    }
    let leased = books.leases().count_in(job.id()) as u64;
    let wait = waiting(books, job, leased);
    match &wait {
        Some(wait) => explanation.reasons.push(wait.text().reason(wait.word())),
        None if leased > 0 => {
            let work = at_work(books, job, leased as u32);
            explanation.reasons.push(work.text().reason(work.word()));
        }
        None => explanation.reasons.push(Stage::Files.text().reason(Stage::Files.word())),
    }
    explanation.left_secs = left_of(books, job, wait.as_ref());
    if let Some(Wait::Turn { ahead, .. }) = wait {
        explanation.ahead = ahead;
        explanation.begins_secs = begins(books, job);
    }
}

/// Returns how many nodes work on a job, checks among it. Only the others' number is bound.
fn at_work(books: &Books, job: &Job, units: u32) -> Standing {
    let held = books.leases().of_job(job.id());
    let held = held.filter_map(|(_, epoch)| books.leases().get_by_epoch(epoch));
    let nodes = held.map(|held| held.node).collect::<BTreeSet<NodeId>>().len();
    let bound = books.leases().nodes_of(job.id());
    let most = job.spec().max_nodes.filter(|most| bound >= *most as usize);
    Standing::JobAtWork { units, nodes, most }
}

fn of_frame(books: &Books, job: &Job, number: FrameNumber) -> Result<Explanation, RequestError> {
    let (Some(position), Some(frame)) = (job.position(number), job.frame(number)) else {
        let (name, frame) = (&job.spec().name, number.0);
        return Err(RequestError::NotFound(format!("job `{name}` has no frame {frame}")));
    };
    let mut explanation = Explanation {
        about: format!("frame {} of job `{}`", number.0, job.spec().name),
        state: word_of(frame).to_owned(),
        ..Explanation::default()
    };
    match stage(books, job, position, number) {
        Some(stage) => explanation.reasons.push(stage.text().reason(stage.word())),
        None => {
            let noted = match frame {
                Frame::Failed(failed) => failed.reason,
                _ => "",
            };
            let ended = Ended::FrameFailed;
            explanation.reasons.push(ended.text(noted, job.id()).reason(ended.word()));
        }
    }
    let after = frame_waits_for(books, job, number);
    if let Some(wait) = &after {
        explanation.reasons.push(wait.text().reason(wait.word()));
    }
    let in_work = books.leases().of_frame(job.id(), number).next().is_some();
    if !frame.is_final() && !in_work {
        let mut whole = Explanation::default();
        tell_of_job(books, job, &mut whole);
        // What is said of the frame already is not said of its job again.
        let said = |reason: &Reason| after.as_ref().is_some_and(|wait| wait.word() == reason.word);
        whole.reasons.retain(|reason| !explanation.reasons.contains(reason) && !said(reason));
        explanation.reasons.append(&mut whole.reasons);
        (explanation.ahead, explanation.begins_secs) = (whole.ahead, whole.begins_secs);
    }
    let prefix = format!("{number}/");
    let own = job.failures().iter().rev().filter(|note| note.unit.starts_with(&prefix));
    explanation.reasons.extend(own.take(FAILURES_MAX).map(failed));
    Ok(explanation)
}

fn word_of(frame: Frame<'_>) -> &'static str {
    match frame {
        Frame::Untouched => "waiting",
        Frame::Open(_) => "open",
        Frame::Complete(_) => "finishing",
        Frame::Done(_) => "done",
        Frame::Failed(_) => "failed",
    }
}

/// Returns the stage of a frame; None if it has failed.
fn stage(books: &Books, job: &Job, position: u32, number: FrameNumber) -> Option<Stage> {
    let frame = job.frames().get(position)?;
    let who = who_works(books, job, number);
    Some(match frame {
        Frame::Failed(_) => return None,
        Frame::Done(done) => Stage::Done { files: done.read().map_or(0, |done| done.files.len()) },
        Frame::Untouched if !who.is_empty() => {
            Stage::AtWork { who, left: job.grid().first_work().0 }
        }
        Frame::Untouched => {
            let done = job.frames().done().positions().take_while(|at| *at < position).count();
            let before = position.saturating_sub(done as u32);
            Stage::NotBegun { units: job.grid().first_work().0, before }
        }
        Frame::Open(open) | Frame::Complete(open) => of_begun(job, open, who),
    })
}

fn of_begun(job: &Job, open: &OpenFrame, who: String) -> Stage {
    let grid = job.grid();
    let nobody = || if who.is_empty() { "nobody yet".to_owned() } else { who.clone() };
    if open.is_finished_by_nodes() {
        let left = grid.pieces().filter(|unit| !open.committed().get(unit.0)).count() as u32;
        if left > 0 {
            return Stage::Finishing { left, who: nobody() };
        }
    }
    let left = open.units(&grid).saturating_sub(open.sampled(&grid));
    match (left, who.is_empty()) {
        (0, _) if !open.checks().is_empty() => Stage::InCheck { results: open.checks().len() },
        (0, _) => Stage::Files,
        (left, false) => Stage::AtWork { who, left },
        (left, true) => Stage::Open { left },
    }
}

/// Returns which nodes hold units of a frame, for people; empty if none does.
fn who_works(books: &Books, job: &Job, frame: FrameNumber) -> String {
    let mut nodes: BTreeMap<NodeId, u32> = BTreeMap::new();
    for (_, epoch) in books.leases().of_frame(job.id(), frame) {
        if let Some(held) = books.leases().get_by_epoch(epoch) {
            *nodes.entry(held.node).or_default() += 1;
        }
    }
    some_of(nodes.iter().map(|(node, units)| format!("`{}` ({units})", books.name_of(*node))))
}

fn of_node(books: &Books, id: NodeId) -> Explanation {
    let known = books.roster().get(id);
    let (state, mut reasons) = match known {
        Some(node) => standing(books, id, node, &Pins::default()),
        None => absent_standing(books, id, books.farm().register().get(id)),
    };
    if let Some(node) = known.filter(|_| state == NodeState::Ready) {
        reasons.push(what_it_does(books, id, node));
    }
    let reasons = reasons.iter().map(|reason| reason.text().reason(reason.word())).collect();
    let (about, state) = (format!("node `{}`", books.name_of(id)), state.name().to_owned());
    Explanation { about, state, reasons, ..Explanation::default() }
}

/// Returns whether a node works, or why there is nothing for it.
fn what_it_does(books: &Books, id: NodeId, node: &Node) -> Standing {
    let units = books.leases().count_of(id);
    let jobs: BTreeSet<JobId> =
        books.leases().of_node(id).map(|(lease, _)| lease.unit.job).collect();
    match units {
        0 if node.capacity() == 0 => Standing::Full { units },
        0 => Standing::NoJob { open: books.queues().len() },
        units => Standing::AtWork { units, jobs: jobs.len() },
    }
}
