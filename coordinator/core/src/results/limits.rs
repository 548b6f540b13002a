//! Limits of a node that a job exceeds: memory or time for reading its scene, memory of the
//! machine, room on the disk. They are the node's, not the job's: the node is passed over for this
//! job, and others get the unit. When every node that may have the job has reached one, the job
//! waits, and fails after its `give_up`. A node that comes with more takes it up.

use crate::books::Books;
use crate::ends::end_job;
use crate::journal::Ending;
use crate::lease::backoff;
use crate::nodes::passed::Cause;
use crate::nodes::ready::is_ready;
use crate::nodes::roster::Node;
use crate::results::failed::end_failed;
use crate::schedule::memory::usable;
use crate::state::job::Job;
use crate::text::cut;
use crate::timers::Timer;
use std::time::Duration;
use tessera_protocol::ids::{JobId, Lease, NodeId};
use tessera_protocol::limits::REASON_MAX;
use tessera_protocol::node::LimitReached;
use tessera_protocol::status::JobState;

/// Shortest time between two looks at a job's limits.
const LOOK_LEAST: Duration = Duration::from_secs(1);
/// Most nodes that a note names.
const NAMED_MAX: usize = 3;

/// Handles a unit that exceeds a limit of a node.
pub(crate) fn on_limit(books: &mut Books, id: NodeId, lease: Lease, reached: &LimitReached) {
    let job = lease.unit.job;
    let reason = cut(&reached.reason, REASON_MAX);
    let Some(node) = books.node_mut(id) else {
        return books.fault("a node with a session is unknown");
    };
    let times = node.passed_mut().note(job, Cause::Limit(reached.limit), reason.clone());
    if reached.limit.may_pass() {
        let again = books.now().after(backoff(times, books.settings()));
        books.set_timer(again, Timer::AskAgain(id, job));
    }
    let text = format!("{}: {reason}", reached.limit.name());
    end_failed(books, id, lease, Ending::Limited(text));
    books.mark_all();
    look_at_limits(books, job);
}

/// Asks a node once more whose limit may have ended.
pub(crate) fn on_ask_again(books: &mut Books, id: NodeId, job: JobId) {
    if books.node_mut(id).is_some_and(|node| node.passed_mut().ask_again(job)) {
        books.mark_all();
    }
}

/// Ends a job that every node has been too small for, for as long as the job allows. Plans the next
/// look.
pub(crate) fn look_at_limits(books: &mut Books, id: JobId) {
    let Some(job) = books.farm().job(id).filter(|job| !job.is_final()) else { return };
    let give_up = job.give_up(books.settings());
    let said = if books.is_held_back(job) { None } else { who_is_too_small(books, job) };
    let now = books.now();
    let Some(refusals) = books.refusals_mut(id) else {
        return books.fault("an open job has no queue");
    };
    let since = refusals.note_stuck(said.is_some(), now);
    let due = since.unwrap_or(now).after(give_up);
    if let Some(said) = said.filter(|_| due <= now) {
        let note = format!(
            "given up after {} s, as every node that may have it is too small: {said}; raise what \
                is named on one of them, add a node with more, or wait longer with --give-up",
            give_up.as_secs()
        );
        return end_job(books, id, JobState::Failed, &note);
    }
    let at = due.max(now.after(LOOK_LEAST));
    if refusals.plan_look(at, now) {
        books.set_timer(at, Timer::GiveUp(id));
    }
}

/// Returns which nodes have reached a limit, if that keeps a job from every node; for people.
fn who_is_too_small(books: &Books, job: &Job) -> Option<String> {
    let may_ever = |node: &&Node| {
        node.session().is_some()
            && node.is_of(job.spec().pool.as_deref())
            && node.has_kind(job.kind())
            && job.fingerprint().is_none_or(|pinned| pinned == node.fingerprint())
    };
    let mut named = Vec::new();
    for (id, node) in books.roster().iter().filter(|(_, node)| may_ever(node)) {
        match node.passed().of(job.id()).map(|passed| (passed.cause, &passed.reason)) {
            Some((Cause::Limit(limit), reason)) => {
                named.push(format!("`{}` by its {}: {reason}", node.name(), limit.name()));
            }
            Some((Cause::Unable, _)) => {}
            _ if is_ready(books, *id, node) && usable(books, *id, node, job).next().is_none() => {}
            _ => return None,
        }
    }
    let more = named.len().saturating_sub(NAMED_MAX);
    named.truncate(NAMED_MAX);
    let said = named.join("; ");
    (!said.is_empty()).then(|| match more {
        0 => said,
        more => format!("{said}; and {more} more"),
    })
}

/// Returns which nodes are too small for a job, and after how many seconds it fails; None if some
/// node may have it.
pub(crate) fn too_small(books: &Books, job: &Job) -> Option<(String, u64)> {
    let said = who_is_too_small(books, job)?;
    let since = books.queue(job.id())?.refusals().stuck_since().unwrap_or(books.now());
    let due = since.after(job.give_up(books.settings()));
    Some((said, due.since(books.now()).as_secs()))
}
