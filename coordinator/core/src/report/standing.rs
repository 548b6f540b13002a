//! How a node stands: its state, and a note that says why. Decides nothing.

use crate::books::Books;
use crate::journal::Gone;
use crate::nodes::devices::none_usable;
use crate::nodes::ready::is_barred;
use crate::nodes::roster::Node;
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

/// Returns the state of a node, and a note that explains it and says what is not confined there.
pub(crate) fn standing(books: &Books, id: NodeId, node: &Node, pins: &Pins) -> (NodeState, String) {
    let (state, note) = standing_suspected(books, id, node, pins);
    let Some(unconfined) = node.unconfined().filter(|_| node.session().is_some()) else {
        return (state, note);
    };
    (state, joined([note, format!("sandbox: {unconfined}")]))
}

fn joined(parts: [String; 2]) -> String {
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("; ")
}

/// Returns the state of a node, and a note, as if its sandbox were complete.
fn standing_suspected(books: &Books, id: NodeId, node: &Node, pins: &Pins) -> (NodeState, String) {
    let (state, note) = standing_unsuspected(books, id, node, pins);
    with_suspicion(books, id, node.name(), (state, note))
}

/// Returns the state of a node that has not been there in this process, and a note.
pub(crate) fn absent_standing(
    books: &Books,
    id: NodeId,
    entry: Option<&Entry>,
) -> (NodeState, String) {
    let standing = match entry.filter(|entry| !entry.is_here()) {
        Some(entry) => gone(books, id, entry),
        None => (NodeState::Away, "not seen since the coordinator started".to_owned()),
    };
    with_suspicion(books, id, &books.name_of(id), standing)
}

/// Returns how a node is gone, and why.
fn gone(books: &Books, id: NodeId, entry: &Entry) -> (NodeState, String) {
    let state = match entry.gone() {
        Some(Gone::Left) => NodeState::Left,
        Some(Gone::Removed) => NodeState::Removed,
        Some(Gone::Lost) | None => NodeState::Lost,
    };
    let drained = drained_by(books, id).map(|by| format!("; {by}: no work when it comes back"));
    (state, format!("{}{}", entry.why, drained.unwrap_or_default()))
}

/// Says who drained a node; None if nobody did.
fn drained_by(books: &Books, id: NodeId) -> Option<String> {
    let drain = books.farm().register().drain_of(id)?;
    Some(format!("drained by `{}`", drain.by))
}

fn with_suspicion(
    books: &Books,
    id: NodeId,
    name: &str,
    (state, note): (NodeState, String),
) -> (NodeState, String) {
    let Some(suspect) = books.farm().trust().suspect_of(id) else { return (state, note) };
    let barred = is_barred(books, id);
    let said = match (suspect.guilty, barred) {
        (true, true) => "quarantined: it gave a wrong result",
        (true, false) => {
            "it gave a wrong result, and gets work only because no other node may have any"
        }
        (false, _) => "in doubt, so that all its results are checked",
    };
    let end = format!("once it is in order (`tessera doctor`), `tessera undrain {name}` ends that");
    let text = joined([note, format!("{said}: {}; {end}", suspect.reason)]);
    let state = if barred && state == NodeState::Ready { NodeState::Unfit } else { state };
    (state, text)
}

/// Returns the state of a node as if it were not suspected.
fn standing_unsuspected(
    books: &Books,
    id: NodeId,
    node: &Node,
    pins: &Pins,
) -> (NodeState, String) {
    if node.session().is_none() {
        let entry = books.farm().register().get(id);
        return match entry.filter(|entry| !entry.is_here()) {
            Some(entry) => gone(books, id, entry),
            None => {
                (NodeState::Away, "connection lost; its leases are kept for a while".to_owned())
            }
        };
    }
    let drained = drained_by(books, id);
    if node.leaving() {
        let note = drained.map_or("leaving".to_owned(), |drained| format!("{drained}; leaving"));
        return (NodeState::Draining, note);
    }
    if let Some(drained) = drained {
        let busy = books.leases().count_of(id) > 0;
        let state = if busy { NodeState::Draining } else { NodeState::Drained };
        return (state, drained);
    }
    if let Some((_, reason)) = node.fitness().unfit() {
        return (NodeState::Unfit, reason.clone());
    }
    if let Some(reason) = none_usable(node.devices()) {
        return (NodeState::Unfit, reason);
    }
    if let Some(note) = node.passed().note_for(node.name()) {
        return (NodeState::Ready, note);
    }
    let (foreign, open) = pins.foreign_to(books, node.fingerprint());
    if foreign == 0 {
        return (NodeState::Ready, String::new());
    }
    let note = format!(
        "fingerprint {} differs from the first results of {foreign} open jobs; run the same \
            build everywhere",
        node.fingerprint()
    );
    let state = if foreign == open { NodeState::Unfit } else { NodeState::Ready };
    (state, note)
}
