//! Why none of an open job's units is being worked on. Shown wherever the job is shown, and derived
//! from the present state each time. Decides nothing.

use crate::books::Books;
use crate::nodes::devices::none_usable;
use crate::nodes::passed::Cause;
use crate::nodes::ready::{is_barred, is_ready};
use crate::nodes::roster::Node;
use crate::report::after::waits_for;
use crate::report::reason::some_of;
use crate::report::reason::wait::{Out, Wait};
use crate::report::standing::{Pins, standing};
use crate::report::turn::ahead_of;
use crate::results::limits::too_small;
use crate::results::shortage::waiting_unit;
use crate::schedule::memory::{is_barred_from, memory_lack};
use crate::state::frame::Frame;
use crate::state::job::Job;
use std::collections::BTreeSet;
use tessera_protocol::compute::{Program, PtxNeeds};
use tessera_protocol::device::CudaInfo;
use tessera_protocol::ids::{Fingerprint, NodeId};
use tessera_protocol::status::NodeState;

/// Returns why no node can do a job, as they said themselves; None if some node may.
fn unable(job: &Job, nodes: &[(NodeId, &Node)]) -> Option<Wait> {
    let says = |(_, node): &(NodeId, &Node)| {
        let passed = node.passed().of(job.id()).filter(|passed| passed.cause == Cause::Unable)?;
        Some(format!("`{}`: {}", node.name(), passed.reason))
    };
    let said: Vec<String> = nodes.iter().map(says).collect::<Option<_>>()?;
    Some(Wait::Unable { compute: job.kind().compute().is_some(), said: some_of(said) })
}

/// Returns what the CUDA devices of nodes take, beside what a kernel needs; None if there are none.
fn driver<'a>(needs: &PtxNeeds, nodes: impl Iterator<Item = &'a Node>) -> Option<Wait> {
    let take = |node: &Node, cuda: &CudaInfo| {
        let ((ptx, of), (major, minor)) = (cuda.ptx_version, cuda.compute_capability);
        format!("`{}` takes PTX {ptx}.{of} on {major}.{minor}", node.name())
    };
    let cuda_of = |node: &'a Node| {
        node.devices().iter().filter_map(move |device| Some(take(node, device.cuda.as_ref()?)))
    };
    let have: BTreeSet<String> = nodes.flat_map(cuda_of).collect();
    (!have.is_empty()).then(|| Wait::Driver { needs: needs.to_string(), have: some_of(have) })
}

/// Returns why none of these nodes runs such a job.
fn cannot_do<'a>(job: &Job, nodes: impl Iterator<Item = &'a Node>) -> Wait {
    let compute = job.kind().compute();
    if let Some(needs) = compute.and_then(|compute| compute.ptx.as_ref())
        && let Some(wait) = driver(needs, nodes)
    {
        return wait;
    }
    match compute.is_some_and(|compute| matches!(compute.program, Program::Cuda(_))) {
        true => Wait::Compiler,
        false => Wait::Device,
    }
}

/// Returns why no unit of a job is being worked on. None if a unit is leased, if all units are
/// committed, and if the job has ended; where another process leads, only that it is paused.
pub(crate) fn waiting(books: &Books, job: &Job, units_leased: u64) -> Option<Wait> {
    if job.is_final() {
        return None;
    }
    if let Some(pause) = job.paused() {
        return Some(Wait::Paused { by: pause.by.clone(), job: job.id() });
    }
    if job.is_waiting() {
        return Some(waits_for(books, job));
    }
    if books.is_following() {
        return None;
    }
    if let Some((frame, reason)) = books.orders().failure_of(job.id()) {
        return Some(Wait::Disk { frame, reason: reason.to_owned() });
    }
    if let Some(wait) = shortage(books, job) {
        return Some(wait);
    }
    let checks = books.queue(job.id()).map_or(0, |work| work.redos().count());
    if units_leased > 0 || (job.counts().units_open == 0 && checks == 0) {
        return None;
    }
    if let Some(at) = books.begins_later(job) {
        let secs = at.since(books.now()).as_secs() + 1;
        return Some(Wait::NotBefore { at, secs, job: job.id() });
    }
    if let Some(budget) = books.withheld_by(job) {
        let currency = books.farm().accounts().rules().currency.clone();
        return Some(Wait::Budget { budget: budget.clone(), currency });
    }
    if !books.is_settled() {
        let secs = books.settled_at().since(books.now()).as_secs() + 1;
        return Some(Wait::Start { secs });
    }
    nobody_for(books, job).or_else(|| Some(later(books, job, checks)))
}

/// Returns what units of a job lack.
fn shortage(books: &Books, job: &Job) -> Option<Wait> {
    let (unit, lack) = waiting_unit(books, job)?;
    let longest = lack.since().after(books.settings().shortage_longest);
    Some(Wait::Shortage {
        reason: lack.reason().to_owned(),
        unit: format!("u{:05} of {}", unit.unit.0, unit.frame),
        node: books.name_of(lack.node()),
        units: books.queue(job.id())?.shortages().len(),
        fails_in: longest.since(books.now()).as_secs(),
    })
}

/// Returns why no node may have units of the job.
fn nobody_for(books: &Books, job: &Job) -> Option<Wait> {
    let here: Vec<(NodeId, &Node)> = books
        .roster()
        .iter()
        .filter(|(_, node)| node.session().is_some())
        .map(|(id, node)| (*id, node))
        .collect();
    if here.is_empty() {
        return Some(Wait::Nodes);
    }
    let pool = job.spec().pool.clone();
    let of_pool: Vec<(NodeId, &Node)> =
        here.into_iter().filter(|(_, node)| node.is_of(pool.as_deref())).collect();
    if let Some(pool) = pool.clone().filter(|_| of_pool.is_empty()) {
        return Some(Wait::Pool { pool, job: job.id() });
    }
    if !of_pool.iter().any(|(_, node)| node.has_kind(job.kind())) {
        return Some(cannot_do(job, of_pool.iter().map(|(_, node)| *node)));
    }
    let fits = |node: &Node| job.fingerprint().is_none_or(|pinned| pinned == node.fingerprint());
    if let Some(pinned) = job.fingerprint().filter(|_| !of_pool.iter().any(|(_, node)| fits(node)))
    {
        let others: BTreeSet<Fingerprint> =
            of_pool.iter().map(|(_, node)| node.fingerprint()).collect();
        return Some(Wait::Build { pinned: pinned.to_string(), have: some_of(others), pool });
    }
    let may: Vec<(NodeId, &Node)> = of_pool.into_iter().filter(|(_, node)| fits(node)).collect();
    if let Some(wait) = unable(job, &may) {
        return Some(wait);
    }
    if let Some((said, fails_in)) = too_small(books, job) {
        return Some(Wait::Limits { said, fails_in });
    }
    let ready: Vec<&Node> =
        may.iter().filter(|(id, node)| is_ready(books, *id, node)).map(|(_, node)| *node).collect();
    if ready.is_empty() {
        let out = |(id, node): &(NodeId, &Node)| (node.name().to_owned(), out(books, *id, node));
        return Some(Wait::OutOfWork { pool, nodes: may.iter().map(out).collect() });
    }
    if !ready.iter().any(|node| node.can_do(job.kind())) {
        return Some(cannot_do(job, ready.into_iter()));
    }
    let barred: Vec<String> = may
        .iter()
        .filter(|(id, _)| is_barred_from(books, *id, job))
        .map(|(id, node)| match job.barred().contains(id) {
            true => format!("`{}` gave it wrong results", node.name()),
            false => format!("`{}` keeps failing it", node.name()),
        })
        .collect();
    if barred.len() >= ready.len() && !barred.is_empty() {
        return Some(Wait::Barred { pool, said: some_of(barred) });
    }
    memory_lack(books, job).map(Wait::Memory)
}

/// Returns why a connected node is out of work.
fn out(books: &Books, id: NodeId, node: &Node) -> Out {
    match standing(books, id, node, &Pins::default()).0 {
        NodeState::Draining => Out::Draining,
        NodeState::Drained => Out::Drained,
        _ if is_barred(books, id) || node.fitness().unfit().is_some() => Out::Quarantined,
        _ => none_usable(node.devices())
            .map_or(Out::Other, |reason| Out::NoDevice(reason.said().to_owned())),
    }
}

/// Returns what must happen before a node gets units that it may have.
fn later(books: &Books, job: &Job, checks: usize) -> Wait {
    let work = books.queue(job.id());
    if job.counts().units_open == 0 {
        return Wait::Check { results: checks };
    }
    if job.is_chained()
        && let Some(position) = job.frames().first_not_done()
        && let Some(Frame::Complete(_)) = job.frames().get(position)
        && let Some(frame) = job.number(position)
    {
        return Wait::Feed { frame };
    }
    let complete =
        job.frames().begun().filter(|(_, begun)| matches!(begun.view(), Frame::Complete(_)));
    let free = job.free_frames();
    if free.is_some_and(|free| free == job.frames().done().len() as usize + complete.count()) {
        return waits_for(books, job);
    }
    let soonest = work.and_then(|work| work.waiting().values().min().copied());
    let nothing_else = work.is_some_and(|work| {
        work.ready().is_empty() && work.waiting().len() as u64 == job.counts().units_open
    });
    if let Some(soonest) = soonest.filter(|_| nothing_else) {
        let secs = soonest.since(books.now()).as_secs() + 1;
        return Wait::Backoff { secs, job: job.id() };
    }
    let (ahead, more) = ahead_of(books, job);
    Wait::Turn { ahead, more, job: job.id() }
}
