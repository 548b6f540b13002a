//! Leases as the simulator sees them from outside one coordinator process: who may hold what, why a
//! lease comes or goes, and when it must have ended. Compared with what the core says after every
//! step.

mod changes;
mod fence;
mod inputs;
mod messages;
mod records;

use crate::checks::violation::Checked;
use crate::model::books::Books;
use std::collections::{BTreeMap, BTreeSet};
use tessera_core::{Action, Core, SessionId, Settings, Step};
use tessera_protocol::ids::{Epoch, Fingerprint, JobId, Lease, NodeId, ProcessEpoch, UnitKey};

/// What the inputs of one step said about leases.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) inputs: u32,
    /// When the core had the first of them.
    since: u64,
    named: BTreeSet<(NodeId, Lease)>,
    joined: BTreeSet<NodeId>,
    returned: BTreeSet<Lease>,
    /// Leases that are said to have failed, or whose results arrived damaged.
    failed: BTreeSet<Lease>,
    /// Leases whose results arrived.
    arrived: BTreeSet<Lease>,
    /// A node that said that it leaves.
    left: Option<NodeId>,
}

impl Seen {
    /// A node named this lease.
    pub(crate) fn names(&self, lease: Lease) -> bool {
        self.named.iter().any(|(_, named)| *named == lease)
    }

    /// The result of this lease arrived.
    pub(crate) fn has_result(&self, lease: Lease) -> bool {
        self.arrived.contains(&lease)
    }

    pub(crate) fn somebody_joined(&self) -> bool {
        !self.joined.is_empty()
    }
}

/// A node as this process should know it.
#[derive(Debug)]
struct Known {
    process: ProcessEpoch,
    session: SessionId,
    away_since: Option<u64>,
    fingerprint: Fingerprint,
    capacity: u32,
    /// Some device of it is ready.
    usable: bool,
    leaving: bool,
}

/// A lease that the core holds.
#[derive(Clone, Copy, Debug)]
struct Held {
    node: NodeId,
    granted: u64,
    renewed: u64,
    /// What was granted or renewed may have been so much earlier: somewhere among the inputs of one
    /// step.
    earlier: u64,
}

/// One process of the coordinator, watched.
#[derive(Debug)]
pub(crate) struct Watch {
    settings: Settings,
    /// Every epoch below was reserved before this process started.
    start: u64,
    /// Of all steps before this one.
    newest_epoch: u64,
    known: BTreeMap<NodeId, Known>,
    /// Of all sessions, also those that are over.
    nodes: BTreeMap<SessionId, NodeId>,
    held: BTreeMap<Lease, Held>,
    by_node: BTreeMap<NodeId, BTreeSet<Lease>>,
    /// Leases of checks and of units that have two, and when each is due if nothing is heard of it:
    /// their end is no attempt, so that no record tells of it.
    quiet: BTreeMap<Lease, u64>,
    /// Units that lacked what is not their own.
    short: BTreeSet<UnitKey>,
    /// The newest lease of each unit that this process has given.
    given: BTreeMap<UnitKey, (Epoch, NodeId)>,
    /// Nodes that were out of work for their failures and have had no lease since.
    out: BTreeSet<NodeId>,
    /// Nodes of which a lease has ended in this step whose end no record tells of.
    ended_quietly: BTreeSet<NodeId>,
    /// Leases of former processes that were taken up again.
    pub(crate) taken_back: u64,
    /// Leases of units that have two which ended with their node, so that the other was left.
    pub(crate) left_alone: u64,
    /// The core's clock, milliseconds.
    now: u64,
}

/// Everything of a step that ends or begins leases.
#[derive(Default)]
struct Changes {
    given: BTreeSet<(NodeId, Lease)>,
    epochs: BTreeSet<u64>,
    ended: BTreeSet<Lease>,
    pinned: BTreeSet<JobId>,
    /// Jobs that ended or were paused, or of which a frame ended.
    shut: BTreeSet<JobId>,
    paused: BTreeSet<JobId>,
    /// Units that were to be checked when the step began, and are taken back in it.
    checked: BTreeSet<UnitKey>,
}

impl Watch {
    pub(crate) fn new(settings: Settings, reserved: u64, now: u64) -> Self {
        Self {
            settings,
            start: reserved.max(1),
            newest_epoch: 0,
            known: BTreeMap::new(),
            nodes: BTreeMap::new(),
            held: BTreeMap::new(),
            by_node: BTreeMap::new(),
            quiet: BTreeMap::new(),
            short: BTreeSet::new(),
            given: BTreeMap::new(),
            out: BTreeSet::new(),
            ended_quietly: BTreeSet::new(),
            taken_back: 0,
            left_alone: 0,
            now,
        }
    }

    fn of_session(&mut self, session: SessionId) -> Option<&mut Known> {
        let node = self.node_of(session)?;
        self.known.get_mut(&node)
    }

    /// The node of a session that lasts.
    fn node_of(&self, session: SessionId) -> Option<NodeId> {
        let node = self.nodes.get(&session)?;
        let lasts = |known: &&Known| known.session == session && known.away_since.is_none();
        self.known.get(node).filter(lasts).map(|_| *node)
    }

    /// The session of a node that is here.
    pub(crate) fn session_of(&self, node: NodeId) -> Option<SessionId> {
        self.known.get(&node).filter(|known| known.away_since.is_none()).map(|known| known.session)
    }

    /// The epoch was reserved by a process before this one.
    pub(crate) fn is_former(&self, epoch: Epoch) -> bool {
        epoch.0 > 0 && epoch.0 < self.start
    }

    /// Checks a step against the state before it, takes it in, and compares what it touches with
    /// the core. `books` are taken along.
    pub(crate) fn on_step(
        &mut self,
        step: &Step,
        seen: &Seen,
        core: &Core,
        books: &mut Books,
    ) -> Checked {
        let mut changes = Changes::default();
        self.ended_quietly.clear();
        self.check_results(step)?;
        self.check_gone(step, seen, books)?;
        for record in &step.records {
            self.note_record(record, seen, books, &mut changes)?;
            books.apply(record)?;
        }
        for action in &step.actions {
            if let Action::Send { session, message } = action {
                self.note_message(*session, message, seen, books, &mut changes)?;
            }
        }
        self.newest_epoch = changes.epochs.last().copied().unwrap_or(self.newest_epoch);
        self.follow(seen, &changes, core, books)?;
        for (node, _) in &changes.given {
            self.out.remove(node);
        }
        if seen.inputs != 1 {
            return Ok(());
        }
        self.check_capacity(&changes)?;
        self.check_fresh(&changes, books)
    }

    /// Nodes of which a lease has ended in the last step whose end no record tells of: checks, and
    /// one of a unit's two leases.
    pub(crate) fn ended_quietly(&self) -> impl Iterator<Item = NodeId> {
        self.ended_quietly.iter().copied()
    }

    /// Takes over that a node is out of work for its failures; whether it had work before.
    pub(crate) fn note_out(&mut self, node: NodeId) -> bool {
        self.out.insert(node)
    }

    /// Nodes that are here.
    pub(crate) fn here(&self) -> impl Iterator<Item = NodeId> {
        self.known.iter().filter(|(_, known)| known.away_since.is_none()).map(|(node, _)| *node)
    }

    /// Some unit of a job is leased.
    pub(crate) fn holds_any(&self, job: JobId) -> bool {
        self.held_in(job).next().is_some()
    }

    /// The unit lacked what is not its own, while this process knows of it.
    pub(crate) fn was_short(&self, unit: UnitKey) -> bool {
        self.short.contains(&unit)
    }

    /// Somebody holds the unit.
    pub(crate) fn holds(&self, unit: UnitKey) -> bool {
        self.held_of(unit).next().is_some()
    }

    /// Leases that the core holds, of one node; None where there are none.
    pub(crate) fn held_by(&self, node: NodeId) -> Option<&BTreeSet<Lease>> {
        self.by_node.get(&node)
    }
}
