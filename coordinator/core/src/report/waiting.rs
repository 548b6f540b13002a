//! Why none of an open job's units is being worked on. Shown wherever the job is shown, and derived
//! from the present state each time. Decides nothing.

use crate::books::Books;
use crate::nodes::devices::none_usable;
use crate::nodes::passed::Cause;
use crate::nodes::ready::{is_barred, is_ready};
use crate::nodes::roster::Node;
use crate::report::standing::{Pins, standing};
use crate::report::turn::turn_note;
use crate::results::limits::limits_note;
use crate::results::shortage::shortage_note;
use crate::schedule::memory::{is_barred_from, memory_note};
use crate::state::frame::Frame;
use crate::state::job::Job;
use std::collections::BTreeSet;
use tessera_protocol::compute::{Program, PtxNeeds};
use tessera_protocol::device::CudaInfo;
use tessera_protocol::ids::{Fingerprint, NodeId};
use tessera_protocol::status::{NodeState, Waits};

/// Most nodes or fingerprints that a note names.
const NAMED_MAX: usize = 3;

/// Writes the first few of several things in one line.
fn some_of<T: std::fmt::Display>(things: impl IntoIterator<Item = T>) -> String {
    let things: Vec<String> = things.into_iter().map(|thing| thing.to_string()).collect();
    let named = things[..things.len().min(NAMED_MAX)].join(", ");
    match things.len().saturating_sub(NAMED_MAX) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

/// Returns why no node can do a job, as they said themselves; None if some node may.
fn unable_note(job: &Job, nodes: &[(NodeId, &Node)]) -> Option<String> {
    let says = |(_, node): &(NodeId, &Node)| {
        let passed = node.passed().of(job.id()).filter(|passed| passed.cause == Cause::Unable)?;
        Some(format!("`{}`: {}", node.name(), passed.reason))
    };
    let said: Vec<String> = nodes.iter().map(says).collect::<Option<_>>()?;
    let said = some_of(said);
    let cannot = match job.kind().compute() {
        Some(_) => "can run it",
        None => "knows all its options",
    };
    Some(format!("no node that is connected {cannot}: {said}"))
}

/// Writes what the CUDA devices of nodes take, beside what a kernel needs; None if there are none.
fn ptx_note<'a>(needs: &PtxNeeds, nodes: impl Iterator<Item = &'a Node>) -> Option<String> {
    let take = |node: &Node, cuda: &CudaInfo| {
        let ((ptx, of), (major, minor)) = (cuda.ptx_version, cuda.compute_capability);
        format!("`{}` takes PTX {ptx}.{of} on {major}.{minor}", node.name())
    };
    let cuda_of = |node: &'a Node| {
        node.devices().iter().filter_map(move |device| Some(take(node, device.cuda.as_ref()?)))
    };
    let have: BTreeSet<String> = nodes.flat_map(cuda_of).collect();
    if have.is_empty() {
        return None;
    }
    Some(format!(
        "waits for a node that takes its {needs}; none is ready: {} (a newer driver there, or PTX \
         for an older version and target, would do; from a .cu file it is made for all)",
        some_of(have)
    ))
}

/// Returns why none of these nodes runs such a job.
fn cannot_do<'a>(job: &Job, nodes: impl Iterator<Item = &'a Node>) -> (Waits, String) {
    let compute = job.kind().compute();
    if let Some(needs) = compute.and_then(|compute| compute.ptx.as_ref())
        && let Some(note) = ptx_note(needs, nodes)
    {
        return (Waits::Driver, note);
    }
    let to_compile = compute.is_some_and(|compute| matches!(compute.program, Program::Cuda(_)));
    match to_compile {
        true => (
            Waits::Compiler,
            "waits for a node with a CUDA device and NVRTC to compile the kernel; none is ready \
             (submit PTX, or from \
             a machine that has NVRTC, and any node with a CUDA device will do)"
                .to_owned(),
        ),
        false => (
            Waits::Device,
            "waits for a node with a CUDA device, which the kernel needs; none is ready".to_owned(),
        ),
    }
}

/// Returns why no unit of a job is being worked on, as a class and as text. None if a unit is
/// leased, if all units are committed, and if the job has ended.
pub(crate) fn waiting(books: &Books, job: &Job, units_leased: u64) -> Option<(Waits, String)> {
    if job.is_final() {
        return None;
    }
    if let Some(pause) = job.paused() {
        let note = format!("paused by `{}`; `tessera resume {}` continues it", pause.by, job.id());
        return Some((Waits::Paused, note));
    }
    if let Some((frame, reason)) = books.orders().failure_of(job.id()) {
        let note = format!("{frame} cannot be written, and is tried again: {reason}");
        return Some((Waits::Disk, note));
    }
    if let Some(note) = shortage_note(books, job) {
        return Some((Waits::Shortage, note));
    }
    let checks = books.queue(job.id()).map_or(0, |work| work.redos().count());
    if units_leased > 0 || (job.counts().units_open == 0 && checks == 0) {
        return None;
    }
    if !books.is_settled() {
        let note = "the coordinator has just started, and gives nodes a moment to come back";
        return Some((Waits::Start, note.to_owned()));
    }
    nobody_for(books, job).or_else(|| Some(later(books, job, checks)))
}

/// Returns why no node may have units of the job.
fn nobody_for(books: &Books, job: &Job) -> Option<(Waits, String)> {
    let here: Vec<(NodeId, &Node)> = books
        .roster()
        .iter()
        .filter(|(_, node)| node.session().is_some())
        .map(|(id, node)| (*id, node))
        .collect();
    if here.is_empty() {
        return Some((Waits::Nodes, "no node is connected".to_owned()));
    }
    let pool = job.spec().pool.as_deref();
    let of_pool: Vec<(NodeId, &Node)> =
        here.into_iter().filter(|(_, node)| node.is_of(pool)).collect();
    let pool = pool.map_or(String::new(), |pool| format!(" of pool `{pool}`"));
    if of_pool.is_empty() {
        return Some((Waits::Pool, format!("no node{pool} is connected")));
    }
    if !of_pool.iter().any(|(_, node)| node.has_kind(job.kind())) {
        return Some(cannot_do(job, of_pool.iter().map(|(_, node)| *node)));
    }
    let fits = |node: &Node| job.fingerprint().is_none_or(|pinned| pinned == node.fingerprint());
    if let Some(pinned) = job.fingerprint().filter(|_| !of_pool.iter().any(|(_, node)| fits(node)))
    {
        let others: BTreeSet<Fingerprint> =
            of_pool.iter().map(|(_, node)| node.fingerprint()).collect();
        let note = format!(
            "its first results have the fingerprint {pinned}, and the nodes{pool} that are \
             connected have {}; run \
             the build of the first results somewhere, or submit the job again",
            some_of(others)
        );
        return Some((Waits::Fingerprint, note));
    }
    let may: Vec<(NodeId, &Node)> = of_pool.into_iter().filter(|(_, node)| fits(node)).collect();
    if let Some(note) = unable_note(job, &may) {
        return Some((Waits::Fingerprint, note));
    }
    if let Some(note) = limits_note(books, job) {
        return Some((Waits::Limits, note));
    }
    let ready: Vec<&Node> =
        may.iter().filter(|(id, node)| is_ready(books, *id, node)).map(|(_, node)| *node).collect();
    if ready.is_empty() {
        let named = may
            .iter()
            .map(|(id, node)| format!("`{}` is {}", node.name(), out_word(books, *id, node)));
        let note =
            format!("every node{pool} that could have it is out of work: {}", some_of(named));
        return Some((Waits::OutOfWork, note));
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
        let note = format!("waits for another node{pool} to come back: {}", some_of(barred));
        return Some((Waits::OutOfWork, note));
    }
    memory_note(books, job).map(|note| (Waits::Memory, note))
}

/// Returns why a connected node is out of work, as its state or as its devices' note.
fn out_word(books: &Books, id: NodeId, node: &Node) -> String {
    match standing(books, id, node, &Pins::default()).0 {
        NodeState::Draining => "draining".to_owned(),
        NodeState::Drained => "drained".to_owned(),
        _ if is_barred(books, id) || node.fitness().unfit().is_some() => "quarantined".to_owned(),
        _ => match none_usable(node.devices()) {
            Some(said) => format!("without a device that may work ({said})"),
            None => "out of work".to_owned(),
        },
    }
}

/// Returns what must happen before a node gets units that it may have.
fn later(books: &Books, job: &Job, checks: usize) -> (Waits, String) {
    let work = books.queue(job.id());
    if job.counts().units_open == 0 {
        let note =
            format!("{checks} of its results wait for another node, which is to render them again");
        return (Waits::Check, note);
    }
    if job.is_chained()
        && let Some(position) = job.frames().first_not_done()
        && let Some(Frame::Complete(_)) = job.frames().get(position)
        && let Some(frame) = job.number(position)
    {
        return (Waits::Feed, format!("{frame}, which the next frame reads, is being made"));
    }
    let soonest = work.and_then(|work| work.waiting().values().min().copied());
    let nothing_else = work.is_some_and(|work| {
        work.ready().is_empty() && work.waiting().len() as u64 == job.counts().units_open
    });
    if let Some(soonest) = soonest.filter(|_| nothing_else) {
        let secs = soonest.since(books.now()).as_secs() + 1;
        let note = format!(
            "its open units have failed, and are tried again in {secs} s; `tessera job {}` \
                says why",
            job.id()
        );
        return (Waits::Backoff, note);
    }
    (Waits::Turn, turn_note(books, job))
}
