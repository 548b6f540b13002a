//! The durable roster: the nodes that the farm knows, also absent ones, with where each is, since
//! when and why; and which are drained. Sessions and devices are in `nodes::roster`, and are not
//! durable.

use crate::journal::{Gone, Record};
use crate::time::Moment;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tessera_protocol::ids::NodeId;

/// Where a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Whereabouts {
    /// It has joined, and is not known to be gone.
    Here,
    /// It is gone.
    Gone(Gone),
}

/// A node of the present or the past.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) pool: Option<String>,
    pub(crate) whereabouts: Whereabouts,
    /// Time since which it is there or gone.
    pub(crate) since: Moment,
    /// Why it is gone, for people; empty while it is here.
    pub(crate) why: String,
}

impl Entry {
    /// Returns how the node went; None while it is here.
    pub(crate) fn gone(&self) -> Option<Gone> {
        match self.whereabouts {
            Whereabouts::Here => None,
            Whereabouts::Gone(how) => Some(how),
        }
    }

    pub(crate) fn is_here(&self) -> bool {
        self.gone().is_none()
    }

    /// Whether the node was taken off the list. Its name may have another holder.
    pub(crate) fn is_removed(&self) -> bool {
        self.gone() == Some(Gone::Removed)
    }
}

/// What an operator asked of a drained node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Drain {
    /// Whether it is to leave, and has not left yet.
    pub(crate) leave: bool,
    /// Name of the operator.
    pub(crate) by: String,
    pub(crate) at: Moment,
}

/// All nodes that the farm knows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Register {
    entries: BTreeMap<NodeId, Entry>,
    drains: BTreeMap<NodeId, Drain>,
}

impl Register {
    /// Takes nodes of a snapshot in.
    pub(in crate::state) fn restore(
        &mut self,
        entries: Vec<(NodeId, Entry)>,
        drains: Vec<(NodeId, Drain)>,
    ) {
        self.entries.extend(entries);
        self.drains.extend(drains);
    }

    /// Returns all nodes, by id.
    pub(crate) fn entries(&self) -> &BTreeMap<NodeId, Entry> {
        &self.entries
    }

    pub(crate) fn get(&self, node: NodeId) -> Option<&Entry> {
        self.entries.get(&node)
    }

    /// Returns what an operator asked of a node; None if it is not drained.
    pub(crate) fn drain_of(&self, node: NodeId) -> Option<&Drain> {
        self.drains.get(&node)
    }

    /// Returns all drained nodes, by id.
    pub(in crate::state) fn drains(&self) -> &BTreeMap<NodeId, Drain> {
        &self.drains
    }

    /// Applies a record of nodes that come and go.
    pub(in crate::state) fn change(&mut self, record: &Record) -> Result<(), String> {
        match record {
            Record::NodeJoined { node, name, pool, at } => {
                self.join(*node, (name, pool.as_deref()), *at)
            }
            Record::NodeGone { node, how, at, why } => self.go(*node, *how, (*at, why)),
            Record::NodeReplaced { old, new, at } => self.replace(*old, *new, *at),
            Record::NodesForgotten { nodes } => self.forget(nodes),
            _ => Ok(()),
        }
    }

    /// A node has joined, or joined under another name or pool.
    fn join(
        &mut self,
        node: NodeId,
        (name, pool): (&str, Option<&str>),
        at: Moment,
    ) -> Result<(), String> {
        let entry = Entry {
            name: name.to_owned(),
            pool: pool.map(str::to_owned),
            whereabouts: Whereabouts::Here,
            since: at,
            why: String::new(),
        };
        let same =
            |known: &Entry| known.is_here() && known.name == entry.name && known.pool == entry.pool;
        if self.get(node).is_some_and(same) {
            return Err(format!("node {node} joins, and was there already"));
        }
        self.entries.insert(node, entry);
        Ok(())
    }

    /// A node is gone. Whoever is taken off the list is not drained any more.
    fn go(&mut self, node: NodeId, how: Gone, (at, why): (Moment, &str)) -> Result<(), String> {
        let entry = self.entries.get_mut(&node);
        let fits = |entry: &&mut Entry| match how {
            Gone::Left | Gone::Lost => entry.is_here(),
            Gone::Removed => !entry.is_removed(),
        };
        let Some(entry) = entry.filter(fits) else {
            return Err(format!("node {node} is {how:?}, and was not there"));
        };
        entry.whereabouts = Whereabouts::Gone(how);
        entry.since = at;
        why.clone_into(&mut entry.why);
        match how {
            Gone::Left => {
                if let Some(drain) = self.drains.get_mut(&node) {
                    drain.leave = false;
                }
            }
            Gone::Lost => {}
            Gone::Removed => drop(self.drains.remove(&node)),
        }
        Ok(())
    }

    /// A node has the name of an older one from now on, which is taken off the list. It is drained
    /// if the older one was.
    fn replace(&mut self, old: NodeId, new: NodeId, at: Moment) -> Result<(), String> {
        if !self.get(new).is_some_and(Entry::is_here) {
            return Err(format!("node {new} replaces {old}, and is not there"));
        }
        let drain = self.drains.get(&old).cloned();
        self.go(old, Gone::Removed, (at, &format!("replaced by {new}, which has its name")))?;
        if let Some(drain) = drain {
            self.drains.entry(new).or_insert(drain);
        }
        Ok(())
    }

    /// Nodes that were gone for long are not kept any longer.
    fn forget(&mut self, nodes: &[NodeId]) -> Result<(), String> {
        for node in nodes {
            if self.get(*node).is_none_or(Entry::is_here) {
                return Err(format!("node {node} is forgotten, and was not gone"));
            }
            self.entries.remove(node);
            self.drains.remove(node);
        }
        Ok(())
    }

    /// An operator drains a node, or ends that.
    pub(in crate::state) fn set_drain(
        &mut self,
        node: NodeId,
        drain: Option<Drain>,
    ) -> Result<(), String> {
        let leaves = |drain: &Option<Drain>| drain.as_ref().map(|drain| drain.leave);
        let before = self.drains.get(&node).cloned();
        if leaves(&before) == leaves(&drain) {
            return Err(format!("node {node} is drained, or not, twice"));
        }
        match drain {
            Some(drain) => drop(self.drains.insert(node, drain)),
            None => drop(self.drains.remove(&node)),
        }
        Ok(())
    }

    /// Returns the nodes to forget so that at most `most` absent ones are kept: first those that
    /// were taken off the list, then those that are not drained; of each, who is gone for longest.
    pub(crate) fn beyond(&self, most: usize) -> Vec<NodeId> {
        let gone =
            self.entries.iter().filter_map(|(node, entry)| Some((node, entry, entry.gone()?)));
        let mut gone: Vec<_> = gone
            .map(|(node, entry, how)| {
                let kept = how != Gone::Removed;
                (kept, kept && self.drains.contains_key(node), entry.since, *node)
            })
            .collect();
        let beyond = gone.len().saturating_sub(most);
        gone.sort_unstable();
        gone.into_iter().take(beyond).map(|(.., node)| node).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn node(number: u128) -> NodeId {
        NodeId(Uuid::from_u128(number))
    }

    #[test]
    fn what_contradicts_the_register_is_refused() {
        let mut register = Register::default();
        let at = Moment(5);
        assert!(register.go(node(1), Gone::Lost, (at, "")).is_err());
        register.join(node(1), ("a", None), at).unwrap();
        assert!(register.join(node(1), ("a", None), at).is_err());
        assert!(register.forget(&[node(1)]).is_err());
        register.join(node(1), ("b", None), at).unwrap();
        register.go(node(1), Gone::Left, (at, "told to")).unwrap();
        assert!(register.go(node(1), Gone::Lost, (at, "")).is_err());
        assert!(register.replace(node(1), node(2), at).is_err());
        register.go(node(1), Gone::Removed, (at, "")).unwrap();
        assert!(register.go(node(1), Gone::Removed, (at, "")).is_err());
        assert!(register.set_drain(node(1), None).is_err());
    }

    #[test]
    fn removed_nodes_are_forgotten_first_and_drained_ones_last() {
        let mut register = Register::default();
        for number in 1..=5 {
            register.join(node(number), ("a", None), Moment(0)).unwrap();
        }
        let drain = Drain { leave: true, by: "ada".to_owned(), at: Moment(1) };
        register.set_drain(node(1), Some(drain)).unwrap();
        register.go(node(1), Gone::Left, (Moment(1), "")).unwrap();
        register.go(node(2), Gone::Lost, (Moment(2), "")).unwrap();
        register.go(node(3), Gone::Left, (Moment(3), "")).unwrap();
        register.go(node(4), Gone::Removed, (Moment(4), "")).unwrap();
        assert_eq!(register.beyond(4), []);
        assert_eq!(register.beyond(1), [node(4), node(2), node(3)]);
        assert_eq!(register.beyond(0), [node(4), node(2), node(3), node(1)]);
        assert!(!register.drain_of(node(1)).unwrap().leave, "it has left");
        register.forget(&register.beyond(0)).unwrap();
        assert_eq!(register.entries().len(), 1);
        assert!(register.drain_of(node(1)).is_none());
    }
}
