//! How a node stands: its state, and a note that says why. Decides nothing.

use crate::books::Books;
use crate::nodes::devices::none_usable;
use crate::nodes::ready::is_barred;
use crate::nodes::roster::{Node, Presence};
use tessera_protocol::ids::NodeId;
use tessera_protocol::status::NodeState;

/// Returns the state of a node, and a note that explains it.
pub(crate) fn standing(books: &Books, id: NodeId, node: &Node) -> (NodeState, String) {
    let (state, note) = standing_unsuspected(books, id, node);
    let Some(suspect) = books.farm().trust().suspect_of(id) else { return (state, note) };
    let (barred, name) = (is_barred(books, id), node.name());
    let said = match (suspect.guilty, barred) {
        (true, true) => "quarantined: it gave a wrong result",
        (true, false) => {
            "it gave a wrong result, and gets work only because no other node may have any"
        }
        (false, _) => "in doubt, so that all its results are checked",
    };
    let end = format!("once it is in order (`tessera doctor`), `tessera undrain {name}` ends that");
    let text = [note, format!("{said}: {}; {end}", suspect.reason)];
    let text: Vec<String> = text.into_iter().filter(|part| !part.is_empty()).collect();
    let state = if barred && state == NodeState::Ready { NodeState::Unfit } else { state };
    (state, text.join("; "))
}

/// Returns the state of a node as if it were not suspected.
fn standing_unsuspected(books: &Books, id: NodeId, node: &Node) -> (NodeState, String) {
    match node.presence() {
        Presence::Away(_) => {
            return (
                NodeState::Away,
                "connection lost; its leases are kept for a while".to_owned(),
            );
        }
        Presence::Lost => return (NodeState::Lost, "connection lost".to_owned()),
        Presence::Here(_) => {}
    }
    if books.farm().is_drained(id) {
        return (NodeState::Draining, "drained by an operator".to_owned());
    }
    if node.leaving() {
        return (NodeState::Draining, "leaving".to_owned());
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
    let pins =
        books.queues().keys().filter_map(|job| books.farm().job(*job)).map(|job| job.fingerprint());
    let foreign =
        pins.clone().filter(|pin| pin.is_some_and(|pin| pin != node.fingerprint())).count();
    if foreign == 0 {
        return (NodeState::Ready, String::new());
    }
    let note = format!(
        "fingerprint {} differs from the first results of {foreign} open jobs; run the same \
            build everywhere",
        node.fingerprint()
    );
    let state = if foreign == pins.count() { NodeState::Unfit } else { NodeState::Ready };
    (state, note)
}
