//! Connections: control messages in order, results and heartbeats out of order, everything with a
//! delay, and nothing after the end.

use crate::checks::violation::Checked;
use crate::faults::Fault;
use crate::faults::planted::Planted;
use crate::node::SimNode;
use crate::world::World;
use crate::world::events::{Event, LinkId, NodeEvent, Parcel};
use std::collections::BTreeMap;
use tessera_core::SessionId;
use tessera_protocol::ids::ProcessEpoch;
use tessera_protocol::node::{CoordinatorToNode, Join};

/// Added to the number of a process, for that of a copy of its node.
const CLONE: u64 = 1_000_000;

/// One connection of a node.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) node: usize,
    pub(crate) process: u64,
    /// Of the coordinator.
    pub(crate) incarnation: u64,
    /// From the node's join on.
    pub(crate) session: Option<SessionId>,
    pub(crate) node_open: bool,
    pub(crate) coordinator_open: bool,
    /// Nothing arrives after.
    pub(crate) dead_from: u64,
    /// Nothing that the node sends arrives any more.
    deaf_up: bool,
    /// Nothing that the coordinator sends arrives any more.
    deaf_down: bool,
    /// The node has said that it leaves, and the coordinator is about to hear it.
    left: bool,
    /// It is a copy's, of a node that lives.
    pub(crate) cloned: bool,
    /// Messages on their way; those that the coordinator has decided on and not sent yet included.
    pub(crate) up: u32,
    pub(crate) down: u32,
    control_up_at: u64,
    control_down_at: u64,
}

impl Link {
    /// Nothing is on its way, and neither end is about to learn of something.
    pub(crate) fn is_quiet(&self) -> bool {
        let open = self.node_open && self.coordinator_open && self.dead_from == u64::MAX;
        open && self.session.is_some() && self.up == 0 && self.down == 0
    }
}

/// All connections that either end still believes in.
#[derive(Debug, Default)]
pub(crate) struct Links {
    pub(crate) links: BTreeMap<LinkId, Link>,
    next: LinkId,
}

impl World {
    pub(crate) fn open_link(&mut self, node: usize, process: u64, incarnation: u64) -> LinkId {
        let id = self.links.next;
        self.links.next += 1;
        let link = Link {
            node,
            process,
            incarnation,
            session: None,
            node_open: true,
            coordinator_open: true,
            dead_from: u64::MAX,
            deaf_up: false,
            deaf_down: false,
            left: false,
            cloned: false,
            up: 0,
            down: 0,
            control_up_at: self.now,
            control_down_at: self.now,
        };
        self.links.links.insert(id, link);
        id
    }

    /// A node sends something; `slow` is added to its time.
    pub(crate) fn send_up(&mut self, id: LinkId, parcel: Parcel, slow: u64) {
        let Some(node) = self.links.links.get(&id).map(|link| link.node) else { return };
        let delay = self.latency(node) + slow;
        let ordered = matches!(parcel, Parcel::Join(..) | Parcel::Control(_));
        let Some(link) = self.links.links.get_mut(&id).filter(|link| link.node_open) else {
            return;
        };
        // Nothing overtakes the join, and control messages do not overtake each other.
        let mut at = self.now + delay;
        if ordered {
            at = at.max(link.control_up_at);
            link.control_up_at = at;
        } else if link.session.is_none() {
            at = at.max(link.control_up_at);
        }
        link.up += 1;
        self.events.plan(at, Event::Up(id, parcel));
    }

    /// The coordinator sends something that was counted in when it was decided.
    pub(crate) fn send_down(&mut self, id: LinkId, message: CoordinatorToNode) {
        let Some(node) = self.links.links.get(&id).map(|link| link.node) else { return };
        let delay = self.latency(node);
        let Some(link) = self.links.links.get_mut(&id) else { return };
        let at = (self.now + delay).max(link.control_down_at);
        link.control_down_at = at;
        self.events.plan(at, Event::Down(id, message));
    }

    fn latency(&mut self, node: usize) -> u64 {
        let SimNode { plan, lag, .. } = &self.nodes[node];
        let (least, most) = (plan.latency / 2 + lag / 2, plan.latency * 2 + lag);
        self.random.between(least, most)
    }

    /// One direction is gone. Both ends find out, because what the other one answers is missing.
    pub(crate) fn deafen(&mut self, id: LinkId, up: bool) {
        let last = self.now + self.random.between(3_000, 9_000);
        let Some(link) = self.links.links.get_mut(&id).filter(|link| link.dead_from == u64::MAX)
        else {
            return;
        };
        if up {
            link.deaf_up = true;
        } else {
            link.deaf_down = true;
        }
        self.end_at(id, last);
    }

    /// The connection is gone; each end finds out in its own time.
    pub(crate) fn cut(&mut self, id: LinkId) {
        let last = self.now + self.random.between(0, 200);
        self.end_at(id, last);
    }

    fn end_at(&mut self, id: LinkId, last: u64) {
        let (up, down) = (self.random.between(10, 12_000), self.random.between(10, 12_000));
        let Some(link) = self.links.links.get_mut(&id).filter(|link| link.dead_from == u64::MAX)
        else {
            return;
        };
        link.dead_from = last;
        self.events.plan(last + up, Event::CoordinatorNotices(id));
        self.events.plan(last + down, Event::NodeNotices(id));
    }

    /// The coordinator ends a connection, or with it.
    pub(crate) fn hang_up(&mut self, id: LinkId, notice: u64) {
        let Some(link) = self.links.links.get_mut(&id) else { return };
        link.coordinator_open = false;
        link.dead_from = link.dead_from.min(self.now);
        self.events.plan(self.now + notice, Event::NodeNotices(id));
        self.forget_link(id);
    }

    /// A node ends a connection, or with it.
    pub(crate) fn leave_link(&mut self, id: LinkId) {
        let notice = self.random.between(1, 10_000);
        let last = self.now + self.random.between(0, 200);
        let Some(link) = self.links.links.get_mut(&id) else { return };
        link.node_open = false;
        if link.dead_from == u64::MAX {
            link.dead_from = last;
            self.events.plan(last + notice, Event::CoordinatorNotices(id));
        }
        self.forget_link(id);
    }

    /// A node ends a connection in good order, because it leaves.
    pub(crate) fn say_goodbye(&mut self, id: LinkId) {
        let Some(link) = self.links.links.get_mut(&id) else { return };
        link.left = link.node_open && link.dead_from == u64::MAX && !link.deaf_up;
    }

    /// Another process of this node has a connection that goes on.
    fn has_rival(&self, id: LinkId) -> bool {
        let Some(own) = self.links.links.get(&id) else { return false };
        self.links.links.iter().any(|(other, link)| {
            let open = link.node_open && link.coordinator_open && self.now <= link.dead_from;
            *other != id
                && open
                && link.session.is_some()
                && link.incarnation == own.incarnation
                && link.node == own.node
                && link.process != own.process
        })
    }

    /// A second process of a node is refused while the first one goes on, as the shell does it.
    pub(crate) fn refuses(&mut self, id: LinkId) -> bool {
        let served = self.planted.as_ref().is_some_and(Planted::serves_clones);
        let refused = self.has_rival(id) && !served;
        if refused {
            self.hang_up(id, 10);
        }
        refused
    }

    /// A copy of a node dials. It wants all the units that it can get.
    pub(crate) fn clone_node(&mut self, node: usize) {
        let Some(process) = &self.nodes[node].process else { return };
        let (number, link) = (process.number, process.link);
        let session = link.and_then(|link| self.links.links.get(&link)?.session);
        if session.is_none() || self.nodes[node].plan.liar {
            return;
        }
        let copy = number + CLONE;
        let plan = &self.nodes[node].plan;
        let join = Join {
            pool: plan.pool.map(str::to_owned),
            devices: self.devices_of(node),
            capacity: 64,
            nvrtc: plan.compiles.then_some((12, 0)),
            ..Join::new(plan.id, plan.name.clone(), ProcessEpoch(copy))
        };
        let id = self.open_link(node, copy, self.shell.incarnation);
        if let Some(link) = self.links.links.get_mut(&id) {
            link.cloned = true;
        }
        let fingerprint = self.nodes[node].fingerprint;
        self.send_up(id, Parcel::Join(Box::new(join), fingerprint), 0);
        // It is gone soon, whatever it is told.
        self.cut(id);
    }

    fn forget_link(&mut self, id: LinkId) {
        let over = |link: &Link| !link.node_open && !link.coordinator_open;
        if self.links.links.get(&id).is_some_and(over) {
            self.links.links.remove(&id);
        }
    }

    pub(crate) fn on_up(&mut self, id: LinkId, parcel: Parcel) -> Checked {
        let Some(link) = self.links.links.get_mut(&id) else { return Ok(()) };
        link.up -= 1;
        let alive = self.now <= link.dead_from && !link.deaf_up;
        let (arrives, incarnation) = (link.coordinator_open && alive, link.incarnation);
        match arrives {
            true => self.as_process(incarnation, |world| world.on_parcel(id, parcel)),
            false => Ok(()),
        }
    }

    pub(crate) fn on_down(&mut self, id: LinkId, message: CoordinatorToNode) -> Checked {
        let Some(link) = self.links.links.get_mut(&id) else { return Ok(()) };
        link.down -= 1;
        let arrives = link.node_open && self.now <= link.dead_from && !link.deaf_down;
        let (node, process) = (link.node, link.process);
        let current =
            self.nodes[node].process.as_ref().is_some_and(|known| known.number == process);
        if arrives && current { self.on_node_message(node, message) } else { Ok(()) }
    }

    pub(crate) fn on_coordinator_notices(&mut self, id: LinkId) -> Checked {
        let Some(link) = self.links.links.get_mut(&id).filter(|link| link.coordinator_open) else {
            return Ok(());
        };
        link.coordinator_open = false;
        let (session, left, incarnation) = (link.session, link.left, link.incarnation);
        self.forget_link(id);
        self.as_process(incarnation, |world| match session {
            Some(session) if left => world.on_node_left(session),
            Some(session) => world.on_session_lost(session),
            None => Ok(()),
        })
    }

    pub(crate) fn on_node_notices(&mut self, id: LinkId) {
        let Some(link) = self.links.links.get_mut(&id).filter(|link| link.node_open) else {
            return;
        };
        let (node, number, coordinator_open) = (link.node, link.process, link.coordinator_open);
        if coordinator_open && link.session.is_some() && link.incarnation == self.shell.incarnation
        {
            self.tally.count(Fault::QuickReturn);
        }
        link.node_open = false;
        self.forget_link(id);
        let Some(process) = &mut self.nodes[node].process else { return };
        if process.number == number && process.link == Some(id) {
            process.link = None;
            let delay = self.random.between(1, 1_500);
            self.after(delay, Event::Node(node, number, NodeEvent::Dial));
        }
    }
}
