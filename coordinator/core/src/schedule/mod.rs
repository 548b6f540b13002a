//! Which unit goes to which node next: of the job whose turn it is (`fair`), then in the order of
//! its frames.
//!
//! Nodes with the fewest units are served first, one unit at a time, so that a small job spreads
//! over the farm; each is filled up to the capacity it asked for, so that its devices always have a
//! next unit. A node that holds the scene of another job may serve that before its turn, until the
//! first has been passed over for the patience of the settings, or the other's owner is ahead by as
//! much device time. A job that has not begun is never passed over.

mod bound;
pub(crate) mod cells;
mod copies;
pub(crate) mod copy_looks;
pub(crate) mod cost;
pub(crate) mod cost_map;
pub(crate) mod dirty;
pub(crate) mod estimates;
pub(crate) mod fair;
pub(crate) mod forecast;
pub(crate) mod measured;
pub(crate) mod memory;
pub(crate) mod met;
pub(crate) mod pace;
pub(crate) mod queue;
pub(crate) mod rates;
pub(crate) mod refusals;
mod room;
pub(crate) mod rooms;
pub(crate) mod scouts;
pub(crate) mod shortages;
pub(crate) mod wants;
pub(crate) mod withhold;

use crate::books::Books;
use crate::nodes::ready::is_ready;
use crate::nodes::roster::{Node, Roster};
use crate::schedule::bound::is_full;
use crate::schedule::copies::copy_units;
use crate::schedule::dirty::Dirty;
use crate::schedule::fair::Turn;
use crate::schedule::memory::{can_do, usable};
use crate::schedule::met::met_by;
use crate::schedule::queue::Queue;
use crate::schedule::room::make_room;
use crate::schedule::withhold::withhold;
use crate::state::job::{Job, Place};
use crate::time::Moment;
use std::collections::{BTreeMap, BTreeSet};
use tessera_protocol::RawJobSpec;
use tessera_protocol::ids::{Fingerprint, JobId, NodeId};
use tessera_protocol::job::JobKind;
use tessera_protocol::node::{Assignment, CoordinatorToNode};

/// Most finishing units that a node holds: it works on one with all its threads, and fetches what
/// the next one reads. Others may be idle.
const PIECES_HELD_MAX: u32 = 2;

/// Most jobs after the first in turn that are searched for one whose scene the node holds.
const LOOK_MAX: usize = 8;

/// Outcome of choosing a unit of a job for a node.
enum Offer {
    /// The node gets this unit.
    Unit(Place),
    /// The job has units, but none suits the node.
    Unsuitable,
    /// No node can get a unit of the job now.
    Nothing,
}

/// Nodes with room for another unit, those with the fewest units first; of equals, by id.
struct Line {
    /// In descending order, so that the first in line is the last element.
    waiting: Vec<(u32, NodeId)>,
    /// Nodes that were given a unit in this step and have room for more.
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

    /// Returns the nodes that are left, in order.
    fn into_nodes(mut self) -> impl Iterator<Item = NodeId> {
        std::iter::from_fn(move || self.pop()).map(|(_, id)| id)
    }
}

/// Units granted in one step, by node. Each node gets them in one message.
type Granted = BTreeMap<NodeId, Vec<Assignment>>;

/// Hands out units in four steps: collects the nodes with room; chooses a unit for the first in
/// line, and grants it, until nothing suits anyone; then sends each node what it was granted.
pub(crate) fn schedule(books: &mut Books) {
    if !books.has_marked() || !books.is_settled() {
        return;
    }
    let dirty = books.take_marked();
    if books.shares().is_empty() && books.leases().len() == 0 {
        return;
    }
    let line = collect(books, &dirty);
    let (mut granted, idle) = choose_and_grant(books, line);
    if dirty.wants_copies() {
        for (id, assignment) in copy_units(books, &idle) {
            granted.entry(id).or_default().push(assignment);
        }
    }
    send_granted(books, granted);
    make_room(books, &dirty);
}

/// Returns the dirty nodes that have room, as a line.
fn collect(books: &Books, dirty: &Dirty) -> Line {
    Line::new(match dirty.nodes() {
        Some(nodes) => {
            let known = nodes.iter().filter_map(|id| Some((*id, books.roster().get(*id)?)));
            known.filter_map(|(id, node)| room(books, id, node)).collect()
        }
        None => books.roster().iter().filter_map(|(id, node)| room(books, *id, node)).collect(),
    })
}

/// Returns the number of units that a node holds, if it may have more.
fn room(books: &Books, id: NodeId, node: &Node) -> Option<(u32, NodeId)> {
    let held = books.leases().count_of(id);
    (is_ready(books, id, node) && held < node.capacity()).then_some((held, id))
}

/// Serves the line one unit at a time. Also returns the nodes that no unit suits.
fn choose_and_grant(books: &mut Books, mut line: Line) -> (Granted, Vec<NodeId>) {
    let (mut granted, mut idle) = (Granted::new(), Vec::new());
    // Once no job has anything to lease, the rest of the line is idle.
    while !books.shares().is_empty()
        && let Some((held, id)) = line.pop()
    {
        let Some((job, place)) = choose(books, id) else {
            idle.push(id);
            continue;
        };
        let Some(assignment) = books.grant(id, job, place) else {
            books.fault("a unit is chosen and cannot be granted");
            continue;
        };
        granted.entry(id).or_default().push(assignment);
        if books.roster().get(id).is_some_and(|node| held + 1 < node.capacity()) {
            line.push(held + 1, id);
        }
    }
    idle.extend(line.into_nodes());
    (granted, idle)
}

/// Chooses the unit for a node that suits it best: of the job that it made room for, of the job
/// whose turn it is, or of one after it.
fn choose(books: &mut Books, id: NodeId) -> Option<(JobId, Place)> {
    let fingerprint = books.roster().get(id)?.fingerprint();
    if let Some(job) = books.rooms().job_for(id).filter(|job| books.is_offered_job(*job))
        && let Offer::Unit(place) = offer(books, id, fingerprint, job)
    {
        return Some((job, place));
    }
    let mut head: Option<(Turn, Place)> = None;
    let met = met_by(books, id);
    let (mut after, mut looked): (Option<Turn>, usize) = (None, 0);
    while let Some(turn) = books.shares().next(after.as_ref(), Some(&met)) {
        after = Some(turn);
        if head.is_some() {
            looked += 1;
            if looked > LOOK_MAX {
                break;
            }
        }
        let job = turn.job;
        if head.is_some_and(|(head, _)| !turn.is_near(&head, books.settings().patience)) {
            continue;
        }
        let place = match offer(books, id, fingerprint, job) {
            Offer::Unit(place) => place,
            Offer::Unsuitable => continue,
            Offer::Nothing => {
                books.withdraw_job(job);
                continue;
            }
        };
        match head {
            _ if holds_scene(books, id, job) => {
                if let Some((first, _)) = head {
                    pass_over(books, first.job);
                }
                return Some((job, place));
            }
            None if !may_be_passed_over(books, id, job) => return Some((job, place)),
            None => head = Some((turn, place)),
            Some(_) => {}
        }
    }
    head.map(|(turn, place)| (turn.job, place))
}

fn offer(books: &mut Books, id: NodeId, fingerprint: Fingerprint, job: JobId) -> Offer {
    let checks = books.queue(job).is_some_and(|queue| !queue.to_check().is_empty());
    if !checks && is_full(books, id, job) {
        return Offer::Unsuitable;
    }
    match next_place(books, id, fingerprint, job) {
        Offer::Unit(place) if is_check(books, job, place) => Offer::Unit(place),
        Offer::Unit(_) if is_full(books, id, job) => Offer::Unsuitable,
        Offer::Unit(place) if withhold(books, id, job, place) => Offer::Unsuitable,
        offer => offer,
    }
}

fn is_check(books: &Books, job: JobId, place: Place) -> bool {
    books.queue(job).is_some_and(|work| work.redo(place).is_some())
}

fn next_place(books: &mut Books, id: NodeId, fingerprint: Fingerprint, job: JobId) -> Offer {
    let fits = books.farm().job(job).zip(books.roster().get(id));
    let fits = fits.is_some_and(|(job, node)| usable(books, id, node, job).next().is_some());
    let (Some(known), Some(queue)) = (books.farm().job(job), books.queue(job)) else {
        books.fault("a job is offered and not open");
        return Offer::Nothing;
    };
    if !fits || known.fingerprint().is_some_and(|pinned| pinned != fingerprint) {
        return if books.has_nothing(job) { Offer::Nothing } else { Offer::Unsuitable };
    }
    let now = books.now();
    let short = queue.shortages().iter().filter(|(_, of)| of.node() == id);
    let short: BTreeSet<Place> = short.map(|(place, _)| *place).collect();
    let has_pieces = books.leases().pieces_of(id) >= PIECES_HELD_MAX;
    let place = books.next_unit(id, job, |job: &Job, roster: &Roster, place, until: Moment| {
        let is_one_too_many = has_pieces && job.grid().is_finishing(place.unit);
        if is_one_too_many || roster.get(id).is_none_or(|node| !can_do(node, job, place.unit)) {
            return true;
        }
        let frame = job.frames().get(place.position);
        let last = frame.and_then(|frame| frame.trouble(place.unit));
        let elsewhere = |(other, node): (&NodeId, &Node)| {
            *other != id
                && node.is_willing()
                && node.capacity() > 0
                && node.fingerprint() == fingerprint
                && node.serves(job)
        };
        until > now
            && (last.is_some_and(|trouble| trouble.node == id) || short.contains(&place))
            && roster.iter().any(elsewhere)
    });
    match place {
        Some(place) => Offer::Unit(place),
        None if books.queue(job).is_some_and(Queue::has_exceptions) => Offer::Unsuitable,
        None => Offer::Nothing,
    }
}

fn holds_scene(books: &Books, id: NodeId, job: JobId) -> bool {
    let (node, job) = (books.roster().get(id), books.farm().job(job));
    node.zip(job).is_some_and(|(node, job)| node.scenes().contains(&job.scene()))
}

/// Whether another job may go first: the node does not hold the scene of this one, which has begun
/// and has not waited too long.
fn may_be_passed_over(books: &Books, id: NodeId, job: JobId) -> bool {
    let holds_some = books.roster().get(id).is_some_and(|node| !node.scenes().is_empty());
    let Some(work) = books.queue(job).filter(|work| holds_some && work.begun()) else {
        return false;
    };
    let since = work.estimates().passed_over_since();
    since.is_none_or(|since| books.now() < since.after(books.settings().patience))
}

fn pass_over(books: &mut Books, job: JobId) {
    let now = books.now();
    if let Some(estimates) = books.estimates_mut(job) {
        estimates.pass_over(now);
    }
}

fn send_granted(books: &mut Books, granted: Granted) {
    for (id, assignments) in granted {
        send_work(books, id, assignments);
    }
}

fn send_work(books: &mut Books, id: NodeId, assignments: Vec<Assignment>) {
    let jobs: BTreeSet<JobId> = assignments.iter().map(|assignment| assignment.job).collect();
    for job in jobs {
        if !books.node_mut(id).is_some_and(|node| node.note_job_sent(job)) {
            continue;
        }
        let Some(described) = books.farm().job(job) else {
            books.fault("a unit is granted, but its job is unknown");
            continue;
        };
        let spec = Box::new(RawJobSpec::from(described.kind()));
        let owner = matches!(described.kind(), JobKind::Compute(_))
            .then(|| CoordinatorToNode::Owner { job, owner: described.owner_id() });
        if let Some(owner) = owner {
            books.tell(id, owner);
        }
        books.tell(id, CoordinatorToNode::Job { job, spec });
    }
    books.tell(id, CoordinatorToNode::Work(assignments));
}
