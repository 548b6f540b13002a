//! What happens to a unit whose lease ends without a result: it is ready again, waits, goes to
//! another node, or is dead. Also what happens to nodes that keep failing.

use crate::books::Books;
use crate::ends::fail_frame;
use crate::frames::close::close_finishing;
use crate::journal::{EndedAttempt, Ending, Record};
use crate::lease::{Held, backoff};
use crate::nodes::passed::Cause;
use crate::nodes::ready::is_ready;
use crate::nodes::roster::Node;
use crate::results::failure_class::Class;
use crate::schedule::memory::{has_peer, is_barred_from};
use crate::text::cut;
use crate::timers::Timer;
use tessera_protocol::ids::{Epoch, JobId, Lease, NodeId, UnitKey};
use tessera_protocol::limits::REASON_MAX;

/// Ends a lease that has reached its deadline.
pub(crate) fn on_lease_expired(books: &mut Books, epoch: Epoch) {
    let Some(held) = books.leases().get_by_epoch(epoch).copied() else {
        return books.fault("a deadline has no lease");
    };
    let lease = Lease { unit: held.unit, epoch };
    books.revoke(held.unit, epoch);
    end_attempts(books, held.node, vec![EndedAttempt { lease, ending: Ending::Expired }]);
}

/// Ends leases that are lost with their node.
pub(crate) fn lose(books: &mut Books, node: NodeId, epochs: &[Epoch]) {
    let mut attempts = Vec::new();
    for epoch in epochs {
        match books.release(*epoch) {
            Some(Held { unit, .. }) => {
                let lease = Lease { unit, epoch: *epoch };
                attempts.push(EndedAttempt { lease, ending: Ending::Lost });
            }
            None => books.fault("a lease of a node is not held"),
        }
    }
    end_attempts(books, node, attempts);
}

/// Counts attempts of open units whose leases have been released, and decides on the units. A
/// failed check says nothing about its unit, which is committed. Of two leases of a unit, the first
/// to end says nothing while the other continues.
pub(crate) fn end_attempts(books: &mut Books, node: NodeId, attempts: Vec<EndedAttempt>) {
    let is_check = |attempt: &EndedAttempt| books.check_of(attempt.lease.unit).is_some();
    let (checks, mut attempts): (Vec<_>, Vec<_>) = attempts.into_iter().partition(is_check);
    checks.iter().for_each(|attempt| books.fail_check(attempt.lease.unit, node));
    attempts.retain(|attempt| !books.leases().is_leased(attempt.lease.unit));
    if attempts.is_empty() {
        return;
    }
    let name = books.roster().get(node).map_or_else(String::new, |node| node.name().to_owned());
    let endings: Vec<(UnitKey, Ending)> =
        attempts.iter().map(|attempt| (attempt.lease.unit, attempt.ending.clone())).collect();
    books.record(Record::AttemptsEnded { at: books.now(), node, name: name.clone(), attempts });
    for (unit, ending) in endings {
        after_attempt(books, unit, &ending, (node, &name));
    }
}

fn after_attempt(books: &mut Books, unit: UnitKey, ending: &Ending, (id, name): (NodeId, &str)) {
    let Some(job) = books.farm().job(unit.job).filter(|job| !job.is_final()) else { return };
    let attempts = job.attempts(books.settings());
    let passed_over = is_barred_from(books, id, job);
    let frame = job.frame(unit.frame);
    // Another unit of the same list may have ended the frame, or the job with it.
    let Some(trouble) = frame.and_then(|frame| frame.trouble(unit.unit)).copied() else {
        return;
    };
    let is_piece = job.grid().is_finishing(unit.unit);
    if is_piece && (trouble.failed >= attempts || trouble.lost >= books.settings().losses) {
        let (times, words) = (trouble.failed + trouble.lost, ending.words());
        let text = format!("u{:05} ended {times} times, last on `{name}`: {words}", unit.unit.0);
        return close_finishing(books, unit.job, unit.frame, &text);
    }
    if trouble.failed >= attempts {
        let (times, words) = (trouble.failed, ending.words());
        let text =
            format!("unit u{:05} failed {times} times, last on `{name}`: {words}", unit.unit.0);
        return fail_frame(books, unit.job, unit.frame, text);
    }
    if trouble.lost >= books.settings().losses {
        let text = format!(
            "unit u{:05} was lost with its node, or not finished in time, {} times",
            unit.unit.0, trouble.lost
        );
        return fail_frame(books, unit.job, unit.frame, text);
    }
    let until = books.now().after(backoff(trouble.failed.into(), books.settings()));
    // Another node need not wait for what this one cannot do.
    let waits = Class::of_ending(ending).rule().backs_off && !passed_over;
    match waits {
        true => books.put_off(unit, until),
        false => books.give_back(unit, books.now().after(books.settings().patience)),
    }
}

/// Counts a failed attempt whose result would have been accepted.
pub(crate) fn fail_attempt(books: &mut Books, node: NodeId, lease: Lease, reason: &str) {
    let ending = ending_of_failure(books, node, lease, cut(reason, REASON_MAX), false);
    end_failed(books, node, lease, ending);
    doubt(books, node, lease.unit.job);
}

/// Returns how an ordinary failure ends its lease. Where a unit fails on the same node as the last
/// time, and another node may have it, that is no further attempt: the node is passed over for the
/// job, so that one node alone uses up no unit's attempts.
pub(crate) fn ending_of_failure(
    books: &mut Books,
    id: NodeId,
    lease: Lease,
    reason: String,
    timed_out: bool,
) -> Ending {
    let unit = lease.unit;
    let job = books.farm().job(unit.job);
    let again = job.is_some_and(|job| {
        let last = job.frame(unit.frame).and_then(|frame| frame.trouble(unit.unit));
        last.is_some_and(|last| last.node == id && last.disowned) && has_peer(books, id, job)
    });
    match (again, timed_out) {
        (true, _) => {
            let why = format!("{unit} failed on it twice in a row: {reason}");
            pass_over(books, id, unit.job, &why);
            Ending::Repeated(reason)
        }
        (false, true) => Ending::TimedOut(reason),
        (false, false) => Ending::Failed(reason),
    }
}

/// Passes a node over for a job as long as another one may have it.
pub(crate) fn pass_over(books: &mut Books, id: NodeId, job: JobId, reason: &str) {
    if let Some(node) = books.node_mut(id) {
        node.passed_mut().note(job, Cause::Failing, cut(reason, REASON_MAX));
    }
    books.mark_all();
}

/// Ends a lease whose attempt failed.
pub(crate) fn end_failed(books: &mut Books, node: NodeId, lease: Lease, ending: Ending) {
    books.release_failed(lease.epoch);
    end_attempts(books, node, vec![EndedAttempt { lease, ending }]);
}

/// Gives no work for a while to a node that only fails, unless it is the last one.
pub(crate) fn doubt(books: &mut Books, id: NodeId, job: JobId) {
    let is_other = |(other, node): (&NodeId, &Node)| *other != id && is_ready(books, *other, node);
    let others = books.roster().iter().any(is_other);
    let (now, first) = (books.now(), books.settings().unfit);
    let Some(node) = books.node_mut(id) else {
        return books.fault("a node that failed is unknown");
    };
    if node.fitness_mut().note_failure(job) && others {
        let until = node.fitness_mut().set_unfit(now, first);
        books.set_timer(until, Timer::Fit(id));
    }
}

/// Lets an unfit node work again if its time is over.
pub(crate) fn on_fit_again(books: &mut Books, id: NodeId) {
    // The node may have rejoined since, and be fit already.
    let now = books.now();
    if books.node_mut(id).is_some_and(|node| node.fitness_mut().recover(now)) {
        books.mark_all();
    }
}
