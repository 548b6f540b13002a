//! How a node stands: its state, and the reasons for it. Decides nothing.

use crate::books::Books;
use crate::journal::Gone;
use crate::nodes::devices::{Unusable, none_usable};
use crate::nodes::passed::Cause;
use crate::nodes::ready::is_barred;
use crate::nodes::roster::Node;
use crate::report::reason::node::Standing;
use crate::state::register::Entry;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use tessera_protocol::ids::{Fingerprint, NodeId};
use tessera_protocol::status::NodeState;

/// The fingerprints of open jobs, counted when a node needs them, once for all nodes of a listing.
#[derive(Debug, Default)]
pub(crate) struct Pins(OnceCell<(BTreeMap<Fingerprint, usize>, usize)>);

impl Pins {
    /// Returns the number of open jobs with another fingerprint than this, and of all open jobs.
    fn foreign_to(&self, books: &Books, own: Fingerprint) -> (usize, usize) {
        let (pinned, jobs) = self.0.get_or_init(|| {
            let mut pinned = BTreeMap::new();
            let jobs = books.queues().keys().filter_map(|job| books.farm().job(*job));
            let count = jobs.map(|job| job.fingerprint()).fold(0, |count, pin| {
                if let Some(pin) = pin {
                    *pinned.entry(pin).or_default() += 1;
                }
                count + 1
            });
            (pinned, count)
        });
        let foreign = pinned.iter().filter(|(pin, _)| **pin != own).map(|(_, count)| count).sum();
        (foreign, *jobs)
    }
}

/// Returns the line of a listing for these reasons.
pub(crate) fn note(reasons: &[Standing]) -> String {
    reasons.iter().map(|reason| reason.text().note()).collect::<Vec<_>>().join("; ")
}

/// Returns the state of a node, and the reasons: why it has no work, and what is not confined
/// there.
pub(crate) fn standing(
    books: &Books,
    id: NodeId,
    node: &Node,
    pins: &Pins,
) -> (NodeState, Vec<Standing>) {
    let unsuspected = standing_unsuspected(books, id, node, pins);
    let (state, mut reasons) = with_suspicion(books, id, node.name(), unsuspected);
    if let Some(said) = node.unconfined().filter(|_| node.session().is_some()) {
        reasons.push(Standing::Unconfined { said: said.to_owned() });
    }
    (state, reasons)
}

/// Returns the state of a node that has not been there in this process, and the reasons.
pub(crate) fn absent_standing(
    books: &Books,
    id: NodeId,
    entry: Option<&Entry>,
) -> (NodeState, Vec<Standing>) {
    let standing = match entry.filter(|entry| !entry.is_here()) {
        Some(entry) => gone(books, id, entry),
        None => (NodeState::Away, vec![Standing::Unseen]),
    };
    with_suspicion(books, id, &books.name_of(id), standing)
}

/// Returns how a node is gone, and why.
fn gone(books: &Books, id: NodeId, entry: &Entry) -> (NodeState, Vec<Standing>) {
    let why = entry.why.clone();
    let (state, reason) = match entry.gone() {
        Some(Gone::Left) => (NodeState::Left, Standing::Left { why }),
        Some(Gone::Removed) => (NodeState::Removed, Standing::Removed { why }),
        Some(Gone::Lost) | None => (NodeState::Lost, Standing::Lost { why }),
    };
    (state, [Some(reason), drained(books, id, false)].into_iter().flatten().collect())
}

/// Says who drained a node; None if nobody did.
fn drained(books: &Books, id: NodeId, here: bool) -> Option<Standing> {
    let by = books.farm().register().drain_of(id)?.by.clone();
    Some(Standing::Drained { by, name: books.name_of(id), here })
}

fn with_suspicion(
    books: &Books,
    id: NodeId,
    name: &str,
    (state, mut reasons): (NodeState, Vec<Standing>),
) -> (NodeState, Vec<Standing>) {
    let Some(suspect) = books.farm().trust().suspect_of(id) else { return (state, reasons) };
    let barred = is_barred(books, id);
    let (reason, name) = (suspect.reason.clone(), name.to_owned());
    reasons.push(match (suspect.guilty, barred) {
        (true, true) => Standing::Wrong { reason, name },
        (true, false) => Standing::WrongAlone { reason, name },
        (false, _) => Standing::Doubted { reason, name },
    });
    let state = if barred && state == NodeState::Ready { NodeState::Unfit } else { state };
    (state, reasons)
}

/// Returns the state of a node as if it were not suspected.
fn standing_unsuspected(
    books: &Books,
    id: NodeId,
    node: &Node,
    pins: &Pins,
) -> (NodeState, Vec<Standing>) {
    if node.session().is_none() {
        let entry = books.farm().register().get(id);
        return match entry.filter(|entry| !entry.is_here()) {
            Some(entry) => gone(books, id, entry),
            None => (NodeState::Away, vec![Standing::Away]),
        };
    }
    let drained = drained(books, id, true);
    if node.leaving() {
        let reasons = drained.into_iter().chain([Standing::Leaving]).collect();
        return (NodeState::Draining, reasons);
    }
    if let Some(drained) = drained {
        let busy = books.leases().count_of(id) > 0;
        let state = if busy { NodeState::Draining } else { NodeState::Drained };
        return (state, vec![drained]);
    }
    if let Some((until, why)) = node.fitness().unfit() {
        let (secs, why) = (until.since(books.now()).as_secs(), why.clone());
        let name = node.name().to_owned();
        return (NodeState::Unfit, vec![Standing::Unfit { why, secs, name }]);
    }
    if let Some(reason) = none_usable(node.devices()) {
        return (NodeState::Unfit, vec![without_device(reason)]);
    }
    if let Some(passed) = passed_over(node) {
        return (NodeState::Ready, vec![passed]);
    }
    let (foreign, open) = pins.foreign_to(books, node.fingerprint());
    if foreign == 0 {
        return (NodeState::Ready, Vec::new());
    }
    let other = Standing::OtherBuild { fingerprint: node.fingerprint(), jobs: foreign };
    let state = if foreign == open { NodeState::Unfit } else { NodeState::Ready };
    (state, vec![other])
}

fn without_device(reason: Unusable) -> Standing {
    match reason {
        Unusable::NoDevice => Standing::NoDevice,
        Unusable::Testing(said) => Standing::Testing { said },
        Unusable::Quarantined(said) => Standing::Devices { said },
    }
}

/// Says for which jobs a node is passed over; None if for none.
fn passed_over(node: &Node) -> Option<Standing> {
    let (job, passed, jobs) = node.passed().first()?;
    let (reason, name) = (passed.reason.clone(), node.name().to_owned());
    Some(match passed.cause {
        Cause::Unable => Standing::Unable { jobs, job, reason },
        Cause::Limit(limit) => Standing::Limited { jobs, job, limit, reason },
        Cause::Failing => Standing::Failing { jobs, job, reason, name },
    })
}
