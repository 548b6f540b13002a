//! The nodes of the present and the past, as records tell of them.

use super::Books;
use crate::checks::violation::{Checked, violated};
use std::collections::BTreeMap;
use tessera_core::journal::Gone;
use tessera_core::{Core, Moment};
use tessera_protocol::ids::NodeId;
use tessera_protocol::status::NodeState;

/// A node: its name, and how it went if it is gone.
#[derive(Clone, Debug, PartialEq)]
struct NodeBook {
    name: String,
    gone: Option<Gone>,
}

/// All nodes that are kept.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeBooks(BTreeMap<NodeId, NodeBook>);

impl Books {
    /// The node is on the list, and not known to be gone.
    pub(crate) fn is_here(&self, node: NodeId) -> bool {
        self.nodes.0.get(&node).is_some_and(|book| book.gone.is_none())
    }

    /// The node is on the list, and known to be gone.
    pub(crate) fn is_gone(&self, node: NodeId) -> bool {
        self.nodes.0.get(&node).is_some_and(|book| book.gone.is_some())
    }

    pub(crate) fn is_drained(&self, node: NodeId) -> bool {
        self.drained.contains_key(&node)
    }

    /// Some node went like this.
    pub(crate) fn some_gone(&self, how: Gone) -> bool {
        self.nodes.0.values().any(|book| book.gone == Some(how))
    }

    pub(super) fn join_node(&mut self, node: NodeId, name: &str) -> Checked {
        let book = NodeBook { name: name.to_owned(), gone: None };
        match self.nodes.0.insert(node, book.clone()) == Some(book) {
            true => violated(format!("{node} joins, and was there")),
            false => Ok(()),
        }
    }

    pub(super) fn end_node(&mut self, node: NodeId, how: Gone) -> Checked {
        let book = self.nodes.0.get_mut(&node);
        let fits = |gone: Option<Gone>| match how {
            Gone::Removed => gone != Some(Gone::Removed),
            Gone::Left | Gone::Lost => gone.is_none(),
        };
        let Some(book) = book.filter(|book| fits(book.gone)) else {
            return violated(format!("{node} is {how:?}, and was not there"));
        };
        book.gone = Some(how);
        match how {
            Gone::Removed => drop(self.drained.remove(&node)),
            Gone::Left => {
                self.drained.entry(node).and_modify(|leave| *leave = false);
            }
            Gone::Lost => {}
        }
        Ok(())
    }

    pub(super) fn replace_node(&mut self, old: NodeId, new: NodeId) -> Checked {
        let names = |node| self.nodes.0.get(&node).map(|book| book.name.clone());
        if names(old) != names(new) || !self.is_here(new) {
            return violated(format!("{new} replaces {old}, and has another name, or is not here"));
        }
        let drained = self.drained.get(&old).copied();
        self.end_node(old, Gone::Removed)?;
        if let Some(leave) = drained {
            self.drained.entry(new).or_insert(leave);
        }
        Ok(())
    }

    pub(super) fn forget_nodes(&mut self, nodes: &[NodeId]) -> Checked {
        for node in nodes {
            if !self.is_gone(*node) {
                return violated(format!("{node} is forgotten, and was not gone"));
            }
            self.nodes.0.remove(node);
            self.drained.remove(node);
        }
        Ok(())
    }

    pub(super) fn drain(&mut self, node: NodeId, leave: Option<bool>) -> Checked {
        if self.drained.get(&node).copied() == leave {
            return violated(format!("{node} is drained, or not, twice"));
        }
        match leave {
            Some(leave) => drop(self.drained.insert(node, leave)),
            None => drop(self.drained.remove(&node)),
        }
        Ok(())
    }

    /// The core lists the nodes that the books have, each as it is.
    pub(crate) fn compare_nodes(&self, core: &Core) -> Checked {
        let rows = core.nodes(Moment(0));
        if rows.len() != self.nodes.0.len() {
            let known = self.nodes.0.len();
            return violated(format!("the core lists {} nodes, the records {known}", rows.len()));
        }
        for row in rows {
            let book = self.nodes.0.get(&row.node);
            let gone = match row.state {
                NodeState::Left => Some(Gone::Left),
                NodeState::Lost => Some(Gone::Lost),
                NodeState::Removed => Some(Gone::Removed),
                _ => None,
            };
            let same = book.is_some_and(|book| book.gone == gone && book.name == row.name);
            if !same || row.drained != self.is_drained(row.node) {
                let said = format!("{} {:?}, drained: {}", row.name, row.state, row.drained);
                return violated(format!("the core says of {said}; the records: {book:?}"));
            }
        }
        Ok(())
    }
}
