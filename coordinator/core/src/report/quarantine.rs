//! Which nodes and devices get no work, or are in doubt, because of what they did. Decides nothing.

use crate::books::Books;
use crate::nodes::ready::is_barred;
use crate::nodes::roster::Node;
use crate::report::reason::node::Standing;
use tessera_protocol::device::DeviceState;
use tessera_protocol::ids::NodeId;

/// A node or a device that is quarantined or in doubt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quarantine {
    /// The node.
    pub node: NodeId,
    /// Name of the node.
    pub name: String,
    /// Name of the device; None means the whole node.
    pub device: Option<String>,
    /// The kind of reason in a word, as in explanations: `unfit`, `wrong`, `doubted`, `devices`.
    pub word: &'static str,
    /// Why, for people.
    pub why: String,
}

/// Returns every quarantine. Of absent nodes, only what is durable is known.
pub(crate) fn quarantines(books: &Books) -> Vec<Quarantine> {
    let mut all: Vec<Quarantine> = suspects(books).collect();
    for (id, node) in books.roster().iter().filter(|(_, node)| node.session().is_some()) {
        all.extend(unfit(books, *id, node));
        all.extend(devices(*id, node));
    }
    all
}

fn quarantine(id: NodeId, name: &str, reason: &Standing) -> Quarantine {
    let (word, why) = (reason.word(), reason.text().why);
    Quarantine { node: id, name: name.to_owned(), device: None, word, why }
}

fn suspects(books: &Books) -> impl Iterator<Item = Quarantine> + '_ {
    books.farm().trust().suspects().iter().map(|(id, suspect)| {
        let name = books.name_of(*id);
        let (reason, of) = (suspect.reason.clone(), name.clone());
        let standing = match (suspect.guilty, is_barred(books, *id)) {
            (true, true) => Standing::Wrong { reason, name: of },
            (true, false) => Standing::WrongAlone { reason, name: of },
            (false, _) => Standing::Doubted { reason, name: of },
        };
        quarantine(*id, &name, &standing)
    })
}

fn unfit(books: &Books, id: NodeId, node: &Node) -> Option<Quarantine> {
    let (until, why) = node.fitness().unfit()?;
    let (why, secs) = (why.clone(), until.since(books.now()).as_secs());
    let name = node.name().to_owned();
    Some(quarantine(id, node.name(), &Standing::Unfit { why, secs, name }))
}

fn devices(id: NodeId, node: &Node) -> impl Iterator<Item = Quarantine> + '_ {
    node.devices().iter().filter_map(move |device| {
        let DeviceState::Quarantined { reason, remedy } = &device.state else { return None };
        let said = format!("{} is quarantined: {reason}; {remedy}", device.slot);
        let of_node = quarantine(id, node.name(), &Standing::Devices { said });
        Some(Quarantine { device: Some(device.slot.clone()), ..of_node })
    })
}
