//! Ends of jobs and frames: done, failed or cancelled, with what is left of them everywhere.

use crate::action::Action;
use crate::books::Books;
use crate::journal::Record;
use crate::waits;
use std::collections::VecDeque;
use tessera_protocol::ids::{Epoch, FrameNumber, JobId, NodeId, UnitKey};
use tessera_protocol::node::CoordinatorToNode;
use tessera_protocol::status::JobState;

/// Ends a job whose last frame has ended, or of which a frame has failed that later frames need.
pub(crate) fn end_if_over(books: &mut Books, id: JobId) {
    let Some(job) = books.farm().job(id).filter(|job| !job.is_final()) else { return };
    let counts = job.counts();
    let is_broken = job.is_chained() && counts.frames_failed > 0 || job.lost_its_exposure();
    if !is_broken && !job.is_over() {
        return;
    }
    if counts.frames_failed == 0 {
        return end_job(books, id, JobState::Done, "");
    }
    let first = job.frames().first_failed();
    let first = first.and_then(|(at, failed)| Some((job.number(at)?, failed.reason)));
    let (frame, reason) = first.unwrap_or((FrameNumber(0), ""));
    let note = match is_broken {
        _ if job.frames().len() == 1 => format!("{frame} failed: {reason}"),
        true => format!("{frame}, which the frames after it need, failed: {reason}"),
        false => format!(
            "{} of {} frames failed; the first is {frame}: {reason}",
            counts.frames_failed,
            job.frames().len()
        ),
    };
    end_job(books, id, JobState::Failed, &note);
}

/// Ends a job, and those that wait for it in vain from now on: one after another, as chains may be
/// long.
pub(crate) fn end_job(books: &mut Books, id: JobId, state: JobState, note: &str) {
    let mut ending = VecDeque::from([(id, state, note.to_owned())]);
    while let Some((id, state, note)) = ending.pop_front() {
        // It may wait in vain for two of them.
        if books.is_open(id) {
            end_one(books, id, state, &note);
            let lost = waits::after_end(books, id).into_iter();
            ending.extend(lost.map(|(id, note)| (id, JobState::Failed, note)));
        }
    }
}

/// Ends the waits of a job that are over, or the job, if it waits in vain.
pub(crate) fn settle_waits(books: &mut Books, id: JobId) {
    if let Some(note) = waits::end_waits(books, id) {
        end_job(books, id, JobState::Failed, &note);
    }
}

/// Ends one job: its leases, its data on nodes, and its own state.
fn end_one(books: &mut Books, id: JobId, state: JobState, note: &str) {
    let leases: Vec<(UnitKey, Epoch)> = books.leases().of_job(id).collect();
    for (_, epoch) in leases {
        books.release(epoch);
    }
    books.record(Record::JobEnded { job: id, state, at: books.now(), note: note.to_owned() });
    books.close_queue(id);
    forget_everywhere(books, id);
    books.act(Action::JobEnded { job: id });
    // The end of its leases has made room on nodes.
    books.mark_all();
}

/// Tells every connected node that may hold data of the job to forget it. Nodes that are away are
/// told when they return.
fn forget_everywhere(books: &mut Books, job: JobId) {
    let here = books.roster().iter().filter(|(_, node)| node.session().is_some());
    let knowing: Vec<NodeId> =
        here.filter(|(_, node)| node.jobs_known().contains(&job)).map(|(id, _)| *id).collect();
    for id in knowing {
        books.tell(id, CoordinatorToNode::Forget { job });
        if let Some(node) = books.node_mut(id) {
            node.forget_job(job);
        }
    }
}

/// Ends a frame that cannot be finished, and the job with its last frame. Other frames continue.
pub(crate) fn fail_frame(books: &mut Books, id: JobId, frame: FrameNumber, reason: String) {
    let Some(position) = books.farm().job(id).and_then(|job| job.position(frame)) else {
        return books.fault("a frame fails that does not exist");
    };
    let leases: Vec<(UnitKey, Epoch)> = books.leases().of_frame(id, frame).collect();
    for (unit, epoch) in leases {
        books.revoke(unit, epoch);
    }
    books.record(Record::FrameFailed { job: id, frame, reason });
    books.drop_frame(id, position);
    books.orders_mut().forget_failures(id, frame);
    books.forget_time(id, frame);
    books.act(Action::FrameFailed { job: id, frame });
    end_if_over(books, id);
    books.mark_all();
}
