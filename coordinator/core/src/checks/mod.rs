//! Verification: which results are rendered again by another node, what follows if two results
//! differ, and what happens to a node that lied.
//!
//! A check is made before its frame is resolved, by an ordinary lease, so that a node cannot tell
//! it from work. If two results differ, further nodes are asked (see `state::votes`); if there is
//! no further node, the nodes that were heard are asked once more. A node that lied gets no work
//! while another node is connected. Its results in unfinished frames are rendered again unless
//! another node confirmed them. Every wait here ends: a node tries a check once, and a frame that
//! lacks only checks that no node can make continues without them, or fails if results differ.
//!
//! Users' kernels are looked at in another way, because they may be at fault themselves: see
//! `state::kernel_votes` for who is right and `checks::kernel` for what follows.

mod kernel;
pub(crate) mod looks;
pub(crate) mod opening;
pub(crate) mod redo;

use crate::action::Action;
use crate::books::Books;
use crate::checks::kernel::{end_unsteady, fail_tied};
use crate::checks::opening::{end_check, is_run_twice, look_at_checks, open_check};
use crate::checks::redo::redo_all_of;
use crate::ends::fail_frame;
use crate::frames::close::close_finishing;
use crate::frames::resolve::ask_if_due;
use crate::input::{Arrived, SessionId};
use crate::journal::{Record, Redone};
use crate::schedule::memory::{can_do, may_work_at};
use crate::state::frame::Frame;
use crate::state::job::Job;
use crate::state::kernel_votes::Blame;
use crate::state::votes::{Check, Verdict, Vote};
use tessera_protocol::ids::{FrameNumber, JobId, Lease, NodeId, UnitIndex, UnitKey};
use tessera_protocol::node::CoordinatorToNode;

/// Whether another node must render again a result that is being committed. The share of a node
/// falls as it becomes known. If the other nodes can hold no more than the checks that are pending,
/// they cannot keep up, and the result is not chosen.
pub(crate) fn is_to_be_checked(books: &Books, id: NodeId, lease: Lease) -> bool {
    let (Some(job), Some(work)) = (books.farm().job(lease.unit.job), books.queue(lease.unit.job))
    else {
        return false;
    };
    if !job.is_compared() {
        return false;
    }
    let trust = books.farm().trust();
    let is_known_wrong = job.barred().contains(&id);
    let share = trust.share(id, books.settings());
    let drawn = books.settings().secret.draw(lease, id) < share;
    let may_run_twice = is_run_twice(books, job, lease, id);
    if is_known_wrong || drawn && trust.suspect_of(id).is_some() {
        return true;
    }
    if !drawn && !may_run_twice {
        return false;
    }
    let pending = work.unchecked_of(id);
    let mut room = 0;
    let others = books.roster().iter().filter(|(other, _)| **other != id);
    let mut others = others.filter(|(other, node)| {
        can_do(node, job, lease.unit.unit) && may_work_at(books, **other, node, job)
    });
    let can_keep_up = others.any(|(_, node)| {
        room += node.capacity();
        room > pending
    });
    drawn && can_keep_up || may_run_twice && room == 0
}

/// Whether a node may take a unit. A check needs a node that has not voted on the unit.
pub(crate) fn may_take(books: &Books, id: NodeId, unit: UnitKey) -> bool {
    let known = books.farm().job(unit.job).zip(books.roster().get(id));
    if known.is_some_and(|(job, node)| !can_do(node, job, unit.unit)) {
        return false;
    }
    let Some(check) = books.check_of(unit) else { return true };
    let place = books.farm().job(unit.job).and_then(|job| job.place(unit));
    let work = books.queue(unit.job);
    place
        .zip(work)
        .and_then(|(place, work)| work.redo(place))
        .is_some_and(|redo| redo.suits(id, check, blame_of(books, unit.job)))
}

fn blame_of(books: &Books, job: JobId) -> Blame {
    books.farm().job(job).map_or(Blame::Node, Job::blame)
}

/// Compares a result of a unit that is committed already. It is not kept.
pub(crate) fn on_redone(books: &mut Books, node: NodeId, session: SessionId, result: &Arrived) {
    let (lease, hash) = (result.lease, result.hash);
    let Lease { unit, epoch } = lease;
    let Some(check) = books.check_of(unit).cloned() else {
        return books.fault("a result is compared and its unit is not to be checked");
    };
    books.settle(result);
    books.act(Action::DropResult { session, lease });
    // It is compared and not kept. Only now does the node learn that it was a check.
    books.send(session, CoordinatorToNode::Unwanted { lease });
    books.note_result(node, result);
    let (blame, vote) = (blame_of(books, unit.job), Vote { node, epoch, hash });
    let verdict = check.decide(blame, &vote);
    let redone = Redone { unit: unit.unit, epoch, node, hash };
    books.record(Record::UnitChecked { job: unit.job, frame: unit.frame, redone });
    let found = check.contradiction(Some(&vote)).filter(|_| blame == Blame::Kernel);
    if let Some(found) = found {
        return end_unsteady(books, unit, &found);
    }
    let goes_on = books.check_of(unit).is_some_and(|now| now.committed() == check.committed());
    if goes_on {
        // A copy of it continues, as one more vote.
        books.reopen_check(unit);
    } else {
        books.stop_copy(unit, epoch);
        end_check(books, unit);
    }
    match verdict {
        Some(verdict) if blame == Blame::Kernel => kernel::judge(books, unit, &verdict),
        Some(verdict) => judge(books, unit, &verdict),
        None if goes_on && books.check_of(unit).is_some_and(Check::is_exhausted) => {
            return give_up(books, unit);
        }
        None => books.offer_job(unit.job),
    }
    ask_if_due(books, unit.job, unit.frame);
}

/// Suspects every node whose vote differs from the truth.
fn judge(books: &mut Books, unit: UnitKey, verdict: &Verdict) {
    for node in &verdict.guilty {
        let reason = format!("its result of {unit} is not what the others have");
        suspect(books, *node, reason, true);
    }
}

/// The right one of several results cannot be found: the frame fails, or the coordinator finishes
/// it if it is about a finishing unit. None of the nodes is trusted until a person has looked at
/// it.
fn give_up(books: &mut Books, unit: UnitKey) {
    let Some(check) = books.check_of(unit) else {
        return books.fault("a check is given up that is over");
    };
    let nodes = check.nodes();
    let names: Vec<String> =
        nodes.iter().map(|node| format!("`{}`", books.name_of(*node))).collect();
    if blame_of(books, unit.job) == Blame::Kernel {
        return fail_tied(books, unit, &names);
    }
    let names = names.join(" and ");
    let is_piece = books.farm().job(unit.job).is_some_and(|job| job.grid().is_finishing(unit.unit));
    if is_piece {
        let text = format!("{unit} has different results on {names}");
        close_finishing(books, unit.job, unit.frame, &text);
    }
    for node in nodes {
        let reason = format!(
            "{unit} has different results on {names}, and no other node could tell which is right"
        );
        suspect(books, node, reason, false);
    }
    if is_piece {
        return;
    }
    let text = format!(
        "unit u{:05} has different results on {names}, and no other node could tell which is \
            right; check them with `tessera doctor`, or add a node, and submit the frame again",
        unit.unit.0
    );
    fail_frame(books, unit.job, unit.frame, text);
}

fn suspect(books: &mut Books, node: NodeId, reason: String, guilty: bool) {
    let (name, at) = (books.name_of(node), books.now());
    // A doubt does not replace a proof.
    let guilty = guilty || books.farm().trust().is_guilty(node);
    books.record(Record::NodeSuspected { node, name, at, reason, guilty });
    if guilty {
        books.take_away(node);
    }
    redo_all_of(books, node);
    books.mark_all();
}

/// Goes through the checks of a frame that no node has made in time.
pub(crate) fn on_checks_due(books: &mut Books, id: JobId, number: FrameNumber) {
    books.looks_mut().begin(id, number);
    let Some(job) = books.farm().job(id).filter(|job| !job.is_final()) else { return };
    let Some(Frame::Open(open)) = job.frame(number) else { return };
    if books.is_held_back(job) {
        // The job gets no work, so it means nothing that no node makes the checks.
        if !open.checks().is_empty() {
            look_at_checks(books, id, number);
        }
        return;
    }
    let last = open.has_all(&job.grid());
    let units: Vec<UnitIndex> = open.checks().keys().copied().collect();
    for unit in units {
        let unit = UnitKey { job: id, frame: number, unit };
        if !move_check_on(books, unit, last) {
            return;
        }
    }
    let waits = books.farm().job(id).and_then(|job| job.frame(number)?.unfinished());
    if waits.is_some_and(|open| !open.checks().is_empty()) {
        look_at_checks(books, id, number);
    }
    ask_if_due(books, id, number);
}

/// Makes sure that a check ends; false if its frame has ended with it. `last`: the frame waits only
/// for checks.
fn move_check_on(books: &mut Books, unit: UnitKey, last: bool) -> bool {
    let Some(check) = books.check_of(unit).filter(|_| !books.leases().is_leased(unit)) else {
        return true;
    };
    let disputed = check.is_disputed();
    if somebody_may_take(books, unit) {
        return true;
    }
    if blame_of(books, unit.job) == Blame::Kernel {
        return kernel::move_on(books, unit, last);
    }
    if disputed {
        // Nodes that have voted vote once more: one that contradicts itself lies.
        if books.ask_again(unit) {
            return true;
        }
        if last {
            give_up(books, unit);
            return false;
        }
    } else if last {
        books.record(Record::CheckWaived { job: unit.job, frame: unit.frame, unit: unit.unit });
        end_check(books, unit);
    }
    true
}

fn somebody_may_take(books: &Books, unit: UnitKey) -> bool {
    let Some(job) = books.farm().job(unit.job) else { return false };
    let tried =
        job.place(unit).zip(books.queue(unit.job)).and_then(|(place, work)| work.redo(place));
    if tried.is_some_and(|redo| redo.tried() >= usize::from(job.attempts(books.settings()))) {
        return false;
    }
    let mut nodes = books.roster().iter();
    nodes.any(|(id, node)| may_take(books, *id, unit) && may_work_at(books, *id, node, job))
}

/// An operator trusts a node again.
pub(crate) fn release_node(books: &mut Books, node: NodeId) {
    if books.farm().trust().suspect_of(node).is_some() {
        books.record(Record::NodeReleased { node });
    }
    if let Some(known) = books.node_mut(node) {
        known.forgive();
    }
    books.mark_all();
}

/// Resumes the checks of a job after a restart.
pub(crate) fn take_up_checks(books: &mut Books, id: JobId) {
    let Some(job) = books.farm().job(id) else {
        return books.fault("an open job is unknown");
    };
    let unfinished = job.frames().unfinished();
    let open = unfinished.filter_map(|(position, open)| Some((job.number(position)?, open)));
    let checks: Vec<(UnitKey, NodeId)> = open
        .flat_map(|(frame, open)| {
            let key = move |unit| UnitKey { job: id, frame, unit };
            open.checks().iter().map(move |(unit, check)| (key(*unit), check.committed().node))
        })
        .collect();
    for (unit, maker) in checks {
        open_check(books, unit, maker);
    }
}
