//! What nodes send back for leases: results, failures, and leases that are returned. Which results
//! are accepted is in `acceptance`; what a lease without a result costs is in `failed`.

pub(crate) mod acceptance;
pub(crate) mod failed;
pub(crate) mod failure_class;
pub(crate) mod idle;
pub(crate) mod limits;
pub(crate) mod shortage;
pub(crate) mod stalled;
pub(crate) mod unprepared;

use crate::action::Action;
use crate::books::Books;
use crate::checks::opening::open_check;
use crate::checks::{is_to_be_checked, on_redone};
use crate::frames::resolve::ask_if_due;
use crate::input::{Arrived, FilmShape, ResultShape, SessionId};
use crate::journal::{Commit, Record};
use crate::nodes::passed::Cause;
use crate::results::acceptance::{is_acceptable, refusal};
use crate::results::failed::{doubt, end_failed, ending_of_failure, fail_attempt};
use crate::results::failure_class::Class;
use crate::results::limits::on_limit;
use crate::results::shortage::on_shared_shortage;
use crate::results::unprepared::{on_unprepared, refute};
use crate::schedule::memory::on_shortage;
use crate::state::job::Job;
use crate::state::kernel_votes::Blame;
use crate::state::parts::PARTS_MAX;
use crate::text::cut;
use tessera_protocol::ids::{Epoch, Fingerprint, JobId, Lease, NodeId, UnitKey};
use tessera_protocol::job::JobKind;
use tessera_protocol::limits::{LEASES_MAX, REASON_MAX};
use tessera_protocol::node::{CoordinatorToNode, Failure, SampleRange, Task};

/// Handles an arrived result: commits, compares, sets aside or refuses it.
pub(crate) fn on_result(books: &mut Books, session: SessionId, result: &Arrived) {
    let lease = result.lease;
    let Some(node) = books.heard_from(session) else {
        return books.act(Action::DropResult { session, lease });
    };
    books.note_active(node);
    if !is_acceptable(books, node, lease) {
        books.act(Action::DropResult { session, lease });
        let message = refusal(books, lease);
        return books.send(session, message);
    }
    let expected = books.farm().job(lease.unit.job).and_then(|job| shape_of(job, lease.unit));
    match (fit(expected, result.shape), books.check_of(lease.unit)) {
        (Fit::Whole, Some(_)) => on_redone(books, node, session, result),
        (Fit::Whole, None) => {
            pin(books, node, lease.unit.job);
            commit(books, node, session, result);
        }
        (Fit::Part(samples), None) if takes_part(books, lease) => {
            pin(books, node, lease.unit.job);
            commit_part(books, node, session, result, samples);
        }
        (Fit::Part(_), _) | (Fit::Elsewhere, Some(_)) => set_aside(books, session, lease),
        // A former process granted the lease before the unit had parts.
        (Fit::Elsewhere, None) if books.leases().get(lease).is_none() => {
            set_aside(books, session, lease)
        }
        (Fit::Elsewhere | Fit::Foreign, _) => {
            books.act(Action::DropResult { session, lease });
            let reason =
                format!("the result has the shape {:?} instead of {expected:?}", result.shape);
            return on_result_damaged(books, session, lease, &reason);
        }
    }
    books.mark_node(node);
}

/// Drops a useless result without blaming its node, and returns its lease.
fn set_aside(books: &mut Books, session: SessionId, lease: Lease) {
    books.act(Action::DropResult { session, lease });
    books.send(session, CoordinatorToNode::Unwanted { lease });
    if books.release(lease.epoch).is_some() {
        books.give_back(lease.unit, books.now());
    }
}

/// Whether an open unit may have one more part: it has few, and no other lease, whose result would
/// overlap with the part.
fn takes_part(books: &Books, lease: Lease) -> bool {
    let unit = lease.unit;
    let frame = books.farm().job(unit.job).and_then(|job| job.frame(unit.frame)?.unfinished());
    books.leases().of_unit(unit).all(|epoch| epoch == lease.epoch)
        && frame.is_none_or(|open| open.parts().of(unit.unit).len() < PARTS_MAX)
}

/// Commits the first samples of a lease; `samples` counts from the unit's first.
fn commit_part(
    books: &mut Books,
    node: NodeId,
    session: SessionId,
    result: &Arrived,
    samples: SampleRange,
) {
    let lease = result.lease;
    let Lease { unit, epoch } = lease;
    let check = is_to_be_checked(books, node, lease);
    let held = books.settle(result);
    let commit = Commit { unit: unit.unit, epoch, node, hash: result.hash, check };
    books.record(Record::PartCommitted {
        job: unit.job,
        frame: unit.frame,
        commit,
        first: samples.first,
        samples: samples.count,
    });
    books.act(Action::KeepResult { session, lease });
    books.send(session, CoordinatorToNode::Committed { lease });
    books.note_result(node, result);
    refute(books, unit, node);
    if held.is_some() {
        books.give_back(unit, books.now());
    }
}

/// Counts a damaged result as a failed attempt.
pub(crate) fn on_result_damaged(books: &mut Books, session: SessionId, lease: Lease, reason: &str) {
    let Some(node) = books.heard_from(session) else { return };
    let message = refusal(books, lease);
    books.send(session, message);
    if is_acceptable(books, node, lease) {
        fail_attempt(books, node, lease, reason);
    }
}

fn commit(books: &mut Books, node: NodeId, session: SessionId, result: &Arrived) {
    let lease = result.lease;
    let Lease { unit, epoch } = lease;
    let check = is_to_be_checked(books, node, lease);
    books.settle(result);
    let commit = Commit { unit: unit.unit, epoch, node, hash: result.hash, check };
    books.record_commit(unit, commit);
    books.act(Action::KeepResult { session, lease });
    books.send(session, CoordinatorToNode::Committed { lease });
    books.stop_copy(unit, epoch);
    books.commit_unit(unit);
    books.note_result(node, result);
    refute(books, unit, node);
    // If the unit has parts, its check begins with the first part that was chosen.
    if let Some(maker) = books.check_of(unit).map(|check| check.committed().node) {
        open_check(books, unit, maker);
    }
    ask_if_due(books, unit.job, unit.frame);
}

/// Pins the job to the fingerprint of its first result. Leases of nodes with another fingerprint
/// are void.
fn pin(books: &mut Books, node: NodeId, id: JobId) {
    let Some(fingerprint) = books.roster().get(node).map(|node| node.fingerprint()) else {
        return books.fault("a result is taken from an unknown node");
    };
    if books.farm().job(id).is_none_or(|job| job.fingerprint().is_some()) {
        return;
    }
    books.record(Record::JobPinned { job: id, fingerprint });
    books.note_wants(id);
    let foreign: Vec<(UnitKey, Epoch)> = books
        .leases()
        .of_job(id)
        .filter(|(unit, epoch)| is_foreign(books, *unit, *epoch, fingerprint))
        .collect();
    for (unit, epoch) in foreign {
        books.revoke(unit, epoch);
        books.give_back(unit, books.now());
    }
}

fn is_foreign(books: &Books, unit: UnitKey, epoch: Epoch, fingerprint: Fingerprint) -> bool {
    let held = books.leases().get(Lease { unit, epoch });
    let node = held.and_then(|held| books.roster().get(held.node));
    node.is_none_or(|node| node.fingerprint() != fingerprint)
}

/// Handles a failed attempt that a node reports.
pub(crate) fn on_unit_failed(
    books: &mut Books,
    session: SessionId,
    lease: Lease,
    failure: &Failure,
) {
    let Some(node) = books.heard_from(session) else { return };
    books.note_active(node);
    if !is_acceptable(books, node, lease) {
        return;
    }
    let class = Class::of_failure(failure);
    match failure {
        Failure::OutOfMemory(shortage) => return on_shortage(books, node, lease, shortage),
        Failure::Asset(reason) => return on_shared_shortage(books, node, lease, reason),
        Failure::Unable(reason) => return on_unable(books, node, lease, reason),
        Failure::Limit(reached) => return on_limit(books, node, lease, reached),
        Failure::Scene(reason) => {
            return on_unprepared(books, node, lease, ("the scene cannot be prepared", reason));
        }
        Failure::Program(reason) => {
            return on_unprepared(books, node, lease, ("the kernel cannot be used", reason));
        }
        _ => {}
    }
    let reason = cut(failure.reason(), REASON_MAX);
    let ending = ending_of_failure(books, node, lease, reason, class == Class::TimedOut);
    end_failed(books, node, lease, ending);
    // Nothing that a user's kernel brings down says anything about the node.
    let of_job = matches!(failure, Failure::Kernel(_))
        || books.farm().job(lease.unit.job).is_some_and(|job| job.blame() == Blame::Kernel);
    if class.rule().doubts && !of_job {
        doubt(books, node, lease.unit.job);
    }
}

/// Handles a node whose build does not know an option of the job: it gets no more of this job, and
/// the unit goes to another node.
fn on_unable(books: &mut Books, id: NodeId, lease: Lease, reason: &str) {
    if let Some(node) = books.node_mut(id) {
        node.passed_mut().note(lease.unit.job, Cause::Unable, cut(reason, REASON_MAX));
    }
    if books.release_unbegun(lease.epoch).is_some() {
        books.give_back(lease.unit, books.now());
    }
    books.mark_all();
}

/// Makes units ready that a node gives back without having started them.
pub(crate) fn on_returned(books: &mut Books, session: SessionId, leases: &[Lease]) {
    let Some(node) = books.heard_from(session) else { return };
    books.note_active(node);
    for lease in leases.iter().take(LEASES_MAX) {
        if books.leases().get(*lease).is_some_and(|held| held.node == node) {
            books.release_unbegun(lease.epoch);
            books.give_back(lease.unit, books.now());
        }
    }
}

/// How a result fits its lease.
enum Fit {
    /// It has all samples of the lease.
    Whole,
    /// It has only the first samples of the lease; counted from the unit's first.
    Part(SampleRange),
    /// It has other samples of the unit.
    Elsewhere,
    /// It has another shape.
    Foreign,
}

fn fit(expected: Option<(ResultShape, u32)>, found: ResultShape) -> Fit {
    let Some((expected, unit_first)) = expected else { return Fit::Foreign };
    if expected == found {
        return Fit::Whole;
    }
    let (ResultShape::Film(wanted), ResultShape::Film(film)) = (expected, found) else {
        return Fit::Foreign;
    };
    let same_samples = FilmShape { first: wanted.first, samples: wanted.samples, ..film };
    match (same_samples == wanted, film.first == wanted.first) {
        (false, _) => Fit::Foreign,
        (true, false) => Fit::Elsewhere,
        (true, true) if (1..wanted.samples).contains(&film.samples) => {
            Fit::Part(SampleRange { first: film.first - unit_first, count: film.samples })
        }
        (true, true) => Fit::Foreign,
    }
}

/// Returns the shape that a lease's result must have, and the first sample of its unit.
fn shape_of(job: &Job, unit: UnitKey) -> Option<(ResultShape, u32)> {
    let place = job.place(unit)?;
    if let Some(piece) = job.grid().piece(unit.unit) {
        return Some((ResultShape::Finished(piece), 0));
    }
    match (job.task(place)?, job.grid().task(unit.unit, None)?, job.kind()) {
        (
            Task::Tile { tile, samples },
            Task::Tile { samples: whole, .. },
            JobKind::Render(render),
        ) => {
            let film = FilmShape {
                width: tile.width,
                height: tile.height,
                channels: render.channels(),
                first: samples.first,
                samples: samples.count,
            };
            Some((ResultShape::Film(film), whole.first))
        }
        (Task::Chunk { count, .. }, _, JobKind::Compute(compute)) => {
            Some((ResultShape::Chunk(compute.chunk_shape(count)), 0))
        }
        _ => None,
    }
}
