//! Which unit goes to which node next. Shares among priorities (`fair`), then the oldest job, then
//! the order of its frames.
//!
//! Nodes with the fewest units are served first, one unit at a time, so that a small job spreads
//! over the farm; each is filled up to the capacity it asked for, so that its devices always have a
//! next unit. A node that holds the scene of a younger job of the same priority may serve that
//! first, until the oldest has been passed over for the patience of the settings.

mod copies;
pub(crate) mod dirty;
pub(crate) mod memory;
pub(crate) mod priorities;
pub(crate) mod queue;
pub(crate) mod rates;
pub(crate) mod withhold;

use crate::core::Core;
use crate::lease::secret::MARK_BITS;
use crate::nodes::roster::Node;
use crate::schedule::dirty::Dirty;
use crate::state::job::Place;
use std::collections::{BTreeMap, BTreeSet};
use tessera_protocol::RawJobSpec;
use tessera_protocol::ids::{Epoch, Fingerprint, JobId, Lease, NodeId, UnitKey};
use tessera_protocol::node::{Assignment, CoordinatorToNode};

/// Jobs of a priority looked at for one whose scene the node holds.
const LOOK_MAX: usize = 8;

/// What a job has for a node.
enum Offer {
    /// This unit.
    Unit(Place),
    /// Nothing that suits it.
    Unsuitable,
    /// Nothing for anybody.
    Nothing,
}

/// Nodes with room for another unit, those with the fewest units first; of equals, by id.
struct Line {
    /// In descending order, so that the first in line is the last here.
    waiting: Vec<(u32, NodeId)>,
    /// Nodes that have been given a unit in this step and have room for more.
    again: BTreeSet<(u32, NodeId)>,
}

impl Line {
    fn new(mut waiting: Vec<(u32, NodeId)>) -> Self {
        waiting.sort_unstable_by(|one, other| other.cmp(one));
        Self { waiting, again: BTreeSet::new() }
    }

    fn push(&mut self, held: u32, id: NodeId) {
        self.again.insert((held, id));
    }

    fn pop(&mut self) -> Option<(u32, NodeId)> {
        match (self.waiting.last(), self.again.first()) {
            (Some(next), Some(served)) if served < next => self.again.pop_first(),
            (Some(_), _) => self.waiting.pop(),
            (None, _) => self.again.pop_first(),
        }
    }

    /// The nodes that are left, in order.
    fn into_nodes(mut self) -> impl Iterator<Item = NodeId> {
        std::iter::from_fn(move || self.pop()).map(|(_, id)| id)
    }
}

/// Units granted in one step, by node. Each node gets them in one message.
type Granted = BTreeMap<NodeId, Vec<Assignment>>;

impl Core {
    /// Hands out units in four steps: collects the nodes with room; chooses a unit for the first in
    /// line, and grants it, until nothing suits anyone; then sends each node what it was granted.
    pub(crate) fn schedule(&mut self) {
        if self.dirty.is_empty() || self.now < self.settled_at {
            return;
        }
        let dirty = self.dirty.take();
        if self.shares.is_empty() && self.leases.len() == 0 {
            return;
        }
        let line = self.collect(&dirty);
        let (mut granted, idle) = self.choose_and_grant(line);
        if dirty.wants_copies() {
            for (id, assignment) in self.copy_units(&idle) {
                granted.entry(id).or_default().push(assignment);
            }
        }
        self.send_granted(granted);
    }

    /// The dirty nodes that have room.
    fn collect(&self, dirty: &Dirty) -> Line {
        Line::new(match dirty.nodes() {
            Some(nodes) => {
                let known = nodes.iter().filter_map(|id| Some((*id, self.roster.get(*id)?)));
                known.filter_map(|(id, node)| self.room(id, node)).collect()
            }
            None => self.roster.iter().filter_map(|(id, node)| self.room(*id, node)).collect(),
        })
    }

    /// A node that may have more, with how many units it holds.
    fn room(&self, id: NodeId, node: &Node) -> Option<(u32, NodeId)> {
        let held = self.leases.count_of(id);
        (self.is_ready(id, node) && held < node.capacity()).then_some((held, id))
    }

    /// Serves the line one unit at a time. Also returns the nodes that no unit suits.
    fn choose_and_grant(&mut self, mut line: Line) -> (Granted, Vec<NodeId>) {
        let (mut granted, mut idle) = (Granted::new(), Vec::new());
        // Once no job has anything to lease, the rest of the line is idle.
        while !self.shares.is_empty()
            && let Some((held, id)) = line.pop()
        {
            let Some((job, place)) = self.choose(id) else {
                idle.push(id);
                continue;
            };
            let Some(assignment) = self.grant(id, job, place) else {
                self.fault("a unit is chosen and cannot be granted");
                continue;
            };
            granted.entry(id).or_default().push(assignment);
            if self.roster.get(id).is_some_and(|node| held + 1 < node.capacity()) {
                line.push(held + 1, id);
            }
        }
        idle.extend(line.into_nodes());
        (granted, idle)
    }

    /// The unit that a node gets next: of the priority that is furthest behind its share.
    fn choose(&mut self, id: NodeId) -> Option<(JobId, Place)> {
        self.shares.order().into_iter().find_map(|priority| self.choose_from(id, priority))
    }

    /// The unit of a priority that suits a node best.
    fn choose_from(&mut self, id: NodeId, priority: u8) -> Option<(JobId, Place)> {
        let fingerprint = self.roster.get(id)?.fingerprint();
        let mut head: Option<(JobId, Place)> = None;
        let (mut after, mut looked) = (None, 0);
        while let Some((order, job)) = self.shares.next_job(priority, after) {
            after = Some(order);
            let place = match self.offer(id, fingerprint, job) {
                Offer::Unit(place) => place,
                Offer::Unsuitable => continue,
                Offer::Nothing => {
                    self.shares.remove(priority, order);
                    continue;
                }
            };
            match head {
                _ if self.holds_scene(id, job) => {
                    if let Some((oldest, _)) = head {
                        self.pass_over(oldest);
                    }
                    return Some((job, place));
                }
                None => {
                    head = Some((job, place));
                    if !self.may_be_passed_over(id, job) {
                        return head;
                    }
                }
                Some(_) => {}
            }
            looked += 1;
            if looked > LOOK_MAX {
                break;
            }
        }
        head
    }

    fn offer(&mut self, id: NodeId, fingerprint: Fingerprint, job: JobId) -> Offer {
        match self.next_place(id, fingerprint, job) {
            Offer::Unit(place) if !self.is_check(job, place) && self.withhold(id, job, place) => {
                Offer::Unsuitable
            }
            offer => offer,
        }
    }

    fn is_check(&self, job: JobId, place: Place) -> bool {
        self.queues.get(&job).is_some_and(|work| work.redo(place).is_some())
    }

    fn next_place(&mut self, id: NodeId, fingerprint: Fingerprint, job: JobId) -> Offer {
        let fits = self.farm.job(job).zip(self.roster.get(id));
        let fits = fits.is_some_and(|(job, node)| self.usable(id, node, job).next().is_some());
        let (Some(job), Some(work)) = (self.farm.job(job), self.queues.get_mut(&job)) else {
            self.fault("a job is offered and not open");
            return Offer::Nothing;
        };
        if !fits || job.fingerprint().is_some_and(|pinned| pinned != fingerprint) {
            return if work.is_empty(job, &self.leases) {
                Offer::Nothing
            } else {
                Offer::Unsuitable
            };
        }
        let (roster, now) = (&self.roster, self.now);
        let short: BTreeSet<Place> = work
            .shortages()
            .iter()
            .filter(|(_, of)| of.node == id)
            .map(|(place, _)| *place)
            .collect();
        let place = work.next(id, job, &self.leases, |place, until| {
            let frame = job.frames().get(place.position as usize);
            let last = frame.and_then(|frame| frame.trouble(place.unit));
            let elsewhere = |(other, node): (&NodeId, &Node)| {
                *other != id
                    && node.is_willing()
                    && node.fingerprint() == fingerprint
                    && node.serves(job)
            };
            until > now
                && (last.is_some_and(|trouble| trouble.node == id) || short.contains(&place))
                && roster.iter().any(elsewhere)
        });
        match place {
            Some(place) => Offer::Unit(place),
            None if work.ready().is_empty() && work.to_check().is_empty() => Offer::Nothing,
            None => Offer::Unsuitable,
        }
    }

    fn holds_scene(&self, id: NodeId, job: JobId) -> bool {
        let (node, job) = (self.roster.get(id), self.farm.job(job));
        node.zip(job).is_some_and(|(node, job)| node.scenes().contains(&job.scene()))
    }

    /// A job whose scene the node does not hold, and that has not waited too long.
    fn may_be_passed_over(&self, id: NodeId, job: JobId) -> bool {
        let holds_some = self.roster.get(id).is_some_and(|node| !node.scenes().is_empty());
        let since = self.queues.get(&job).and_then(|work| work.passed_over_since());
        holds_some && since.is_none_or(|since| self.now < since.after(self.settings.patience))
    }

    fn pass_over(&mut self, job: JobId) {
        if let Some(work) = self.queues.get_mut(&job) {
            work.pass_over(self.now);
        }
    }

    /// Leases a unit to a node under a new epoch.
    pub(crate) fn grant(&mut self, id: NodeId, job: JobId, place: Place) -> Option<Assignment> {
        let known = self.farm.job(job)?;
        let UnitKey { frame, unit, .. } = known.key(place)?;
        let task = known.task(place)?;
        let (count, reserve) =
            self.epochs.take(self.farm.epochs_reserved(), self.settings.epoch_block);
        if let Some(up_to) = reserve {
            self.record(crate::journal::Record::EpochsReserved { up_to });
        }
        let mark = self.settings.secret.mark(UnitKey { job, frame, unit }, id, count);
        let epoch = Epoch(count << MARK_BITS | mark);
        let assignment = Assignment { job, frame, unit, epoch, task };
        self.hold(assignment.lease(), id);
        Some(assignment)
    }

    /// Enters a lease into the books: of a unit that is not leased, or a copy.
    pub(crate) fn hold(&mut self, lease: Lease, id: NodeId) {
        let Some((place, work)) = self.open_unit(lease.unit, "a unit is leased of no open job")
        else {
            return;
        };
        work.lease(place);
        let Some(job) = self.farm.job(lease.unit.job) else {
            return self.fault("an open job is unknown");
        };
        self.shares.charge(job.spec().priority, job.lease_samples(lease.unit));
        let counted = job.time().is_some();
        self.leases.grant(lease, id, counted, (self.now, &self.settings));
        match self.roster.get_mut(id) {
            Some(node) => node.note_job(lease.unit.job),
            None => self.fault("a unit is leased to an unknown node"),
        }
    }

    fn send_granted(&mut self, granted: Granted) {
        for (id, assignments) in granted {
            self.send_work(id, assignments);
        }
    }

    fn send_work(&mut self, id: NodeId, assignments: Vec<Assignment>) {
        let jobs: BTreeSet<JobId> = assignments.iter().map(|assignment| assignment.job).collect();
        for job in jobs {
            if !self.roster.get_mut(id).is_some_and(|node| node.note_job_sent(job)) {
                continue;
            }
            match self.farm.job(job).map(|job| Box::new(RawJobSpec::from(job.kind()))) {
                Some(spec) => self.tell(id, CoordinatorToNode::Job { job, spec }),
                None => self.fault("a unit is granted of an unknown job"),
            }
        }
        self.tell(id, CoordinatorToNode::Work(assignments));
    }
}
