//! The tail of a job: idle nodes run copies of units that other nodes hold, and the first result is
//! committed. Only estimates times: a wrong estimate costs time, never a unit. When leased units
//! should end is in `withhold`.
//!
//! A *copy* is a second lease of a unit, with its own epoch, for an idle node that should finish it
//! clearly sooner. The first lease continues: the result that comes first passes the
//! compare-and-set, the other lease is stopped, and its time is counted as waste. A job with fresh
//! units has no copies. A unit has at most two leases, never two of one node, and at most
//! [`COPIES_MAX`] copies in its life. A lease that ends without a result while the other continues
//! is no attempt.
//!
//! A copy is made instead of splitting the rest of the unit, for three reasons. A unit's epoch
//! fences the whole unit, so that a part could be committed only after the lease of the whole was
//! revoked, which would discard its node's work. A slow or stuck device does not report its
//! progress. And a node that returns after all still finds its result wanted.

use crate::books::Books;
use crate::checks::may_take;
use crate::schedule::bound::is_full;
use crate::schedule::memory::{may_work_at, usable};
use crate::schedule::withhold::{
    Expected, PACE_LASTS, better_left, busy_for, expected, measured_speed, refresh_pace, span,
    speed_at,
};
use crate::state::job::Job;
use crate::time::Moment;
use crate::timers::Timer;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use tessera_protocol::ids::{JobId, Lease, NodeId, UnitKey};
use tessera_protocol::node::Assignment;

/// Copies of a unit in its life. A unit that crashes or blocks its nodes ends up in the count of
/// attempts.
const COPIES_MAX: u8 = 3;
/// A unit is copied if the remaining time on its node is at least this many times that on the
/// other.
const GAIN: f64 = 1.5;
/// Seconds that a copy must save beyond that, for messages and discarded work.
const COPY_COSTS: f64 = 0.05;
/// With more leases than this, no units to copy are looked for: the end is not near.
const LOOK_MAX: usize = 4096;
/// Most units that are considered for copies: those with the longest time to go.
const LONGEST_MAX: usize = 64;
/// Most idle nodes that are considered for copies at once.
const IDLE_MAX: usize = 256;

/// A leased unit that may be copied.
struct Held {
    node: NodeId,
    expected: Expected,
}

/// What an idle node of known speed could do for a job.
#[derive(Clone, Copy)]
struct Offer {
    node: NodeId,
    /// Seconds until a device is free.
    wait: f64,
    /// Seconds that a unit of the mean size takes after that.
    mean: f64,
}

impl Offer {
    /// Seconds after which it would finish a unit of so many times the mean size.
    fn ends_in(&self, share: f64) -> f64 {
        self.wait + self.mean * share
    }
}

/// What the idle nodes could do for a job.
#[derive(Default)]
struct Offers {
    /// Idle nodes of known speed, the soonest first.
    known: Vec<Offer>,
    /// Idle nodes of unknown speed with a free device; looked for when they are needed.
    unknown: OnceCell<Vec<NodeId>>,
}

impl Offers {
    fn insert(&mut self, offer: Offer) {
        let place = self.known.partition_point(|other| other.ends_in(1.0) <= offer.ends_in(1.0));
        self.known.insert(place, offer);
    }
}

/// Gives copies to nodes that have room and found nothing to lease, of units that would take other
/// nodes longer.
pub(crate) fn copy_units(books: &mut Books, idle: &[NodeId]) -> Vec<(NodeId, Assignment)> {
    let mut given = Vec::new();
    if idle.is_empty() || books.leases().len() > LOOK_MAX {
        return given;
    }
    if books.leases().len() > LONGEST_MAX {
        // So many leases are not searched at every result.
        let now = books.now();
        if let Err(next) = books.copy_looks_mut().begin_long(now, PACE_LASTS) {
            look_again(books, next);
            return given;
        }
    }
    let idle = &idle[..idle.len().min(IDLE_MAX)];
    let (mut offers, mut look) = (BTreeMap::new(), f64::INFINITY);
    for Held { node, expected } in worth_copying(books) {
        let job = expected.lease.unit.job;
        let offered = offers.entry(job).or_insert_with(|| {
            refresh_pace(books, job);
            offers_for(books, idle, job)
        });
        let Some(other) = who_copies(books, idle, offered, node, &expected, &mut look) else {
            continue;
        };
        match copy_unit(books, expected.lease, other) {
            Some(assignment) => given.push((other, assignment)),
            None => books.fault("a unit is to be copied and cannot be granted"),
        }
        offers.iter_mut().for_each(|(job, offered)| offer_again(books, offered, other, *job));
    }
    if look.is_finite() {
        // A little later, so that the condition holds then.
        let at = books.now().after(span(look + 0.01));
        look_again(books, at);
    }
    given
}

/// Whether a job has no unit left to begin with, and gets work.
fn may_be_copied(books: &mut Books, id: JobId) -> bool {
    let gets_work = books.farm().job(id).is_some_and(|job| !books.is_held_back(job));
    gets_work && !books.has_fresh_units(id)
}

/// Returns units that may be copied, those with the longest time to go first.
fn worth_copying(books: &mut Books) -> Vec<Held> {
    let jobs: Vec<JobId> = books.leases().jobs().collect();
    let ending: BTreeSet<JobId> =
        jobs.into_iter().filter(|job| may_be_copied(books, *job)).collect();
    if ending.is_empty() {
        return Vec::new();
    }
    let here = books.leases().holders().filter(|id| books.roster().session_of(*id).is_some());
    let held = here.flat_map(|node| {
        expected(books, node, None).0.into_iter().map(move |expected| Held { node, expected })
    });
    let fits = |held: &Held| {
        let unit = held.expected.lease.unit;
        ending.contains(&unit.job)
            && !books.leases().is_copied(unit)
            && copies_of(books, unit) < COPIES_MAX
    };
    let mut held: Vec<Held> = held.filter(fits).collect();
    held.sort_by(|one, other| other.expected.remaining().total_cmp(&one.expected.remaining()));
    held.truncate(LONGEST_MAX);
    held
}

fn copies_of(books: &Books, unit: UnitKey) -> u8 {
    let place = books.farm().job(unit.job).and_then(|job| job.place(unit));
    let work = books.queue(unit.job);
    place.zip(work).and_then(|(place, work)| work.copies().get(&place).copied()).unwrap_or(0)
}

/// Returns what idle nodes could do for a job.
fn offers_for(books: &Books, idle: &[NodeId], job: JobId) -> Offers {
    let mut offers = Offers::default();
    let (Some(job), Some(work)) = (books.farm().job(job), books.queue(job)) else {
        return offers;
    };
    let idle: BTreeSet<NodeId> = idle.iter().copied().collect();
    let known = idle.into_iter().filter(|id| work.estimates().rates().knows(*id));
    known.filter_map(|id| offer_of(books, id, job)).for_each(|offer| offers.insert(offer));
    offers
}

/// Updates the offer of a node that was given a copy and may have room for more.
fn offer_again(books: &Books, offers: &mut Offers, id: NodeId, job: JobId) {
    let Some(job) = books.farm().job(job) else { return };
    offers.known.retain(|offer| offer.node != id);
    offer_of(books, id, job).into_iter().for_each(|offer| offers.insert(offer));
    if let Some(unknown) = offers.unknown.get_mut() {
        unknown.retain(|one| *one != id || is_unknown_and_free(books, id, job));
    }
}

/// Returns the idle node that would finish a unit soonest, if that is clearly sooner than its
/// holder. Otherwise notes when one may be.
fn who_copies(
    books: &Books,
    idle: &[NodeId],
    offers: &Offers,
    holder: NodeId,
    expected: &Expected,
    look: &mut f64,
) -> Option<NodeId> {
    let unit = expected.lease.unit;
    let job = books.farm().job(unit.job)?;
    let share = books.work_of(job, unit) as f64 / job.mean_unit_samples();
    let may =
        |id: NodeId| id != holder && may_take(books, id, unit) && !is_full(books, id, unit.job);
    let mut is_late = |limit: f64| match expected.remaining() > limit {
        // Leases of this step have not been sent yet.
        true if expected.age <= 0.0 => {
            *look = 0.0;
            false
        }
        true => true,
        false => {
            *look = look.min(expected.until(limit));
            false
        }
    };
    // If the soonest offer is not soon enough, no other is.
    let soonest = offers.known.iter().find(|offer| may(offer.node));
    let soonest = soonest.filter(|offer| is_late(offer.ends_in(share) * GAIN + COPY_COSTS));
    let best = match soonest {
        Some(offer) => offer.node,
        None if is_late(books.settings().copy_after.as_secs_f64()) => {
            let are_free =
                || idle.iter().copied().filter(|id| is_unknown_and_free(books, *id, job)).collect();
            offers.unknown.get_or_init(are_free).iter().copied().find(|id| may(*id))?
        }
        None => return None,
    };
    // The nodes at work may have finished everything before it does.
    match job.place(unit).and_then(|place| better_left(books, best, job.id(), place)) {
        Some(seconds) => {
            *look = look.min(seconds);
            None
        }
        None => Some(best),
    }
}

/// What an idle node could do for a job now; None if it may not work, or if its speed is unknown.
fn offer_of(books: &Books, id: NodeId, job: &Job) -> Option<Offer> {
    let node = books.roster().get(id)?;
    if books.leases().count_of(id) >= node.capacity() || !may_work_at(books, id, node, job) {
        return None;
    }
    let speed = speed_at(books, id, job)?;
    let (_, queue) = expected(books, id, Some(speed));
    let mean = job.mean_unit_samples();
    let wait = speed.wait(queue, mean);
    // A node takes several short units at a time.
    (wait < COPY_COSTS).then_some(Offer { node: id, wait, mean: speed.alone(mean) })
}

/// Whether a node's speed at a job is unknown and one of its devices is free. The result of the
/// copy tells its speed.
fn is_unknown_and_free(books: &Books, id: NodeId, job: &Job) -> bool {
    books.roster().get(id).is_some_and(|node| {
        let held = books.leases().count_of(id);
        held < node.capacity()
            && may_work_at(books, id, node, job)
            && (held as usize) < usable(books, id, node, job).count()
            && speed_at(books, id, job).is_none()
    })
}

fn copy_unit(books: &mut Books, lease: Lease, to: NodeId) -> Option<Assignment> {
    let place = books.farm().job(lease.unit.job)?.place(lease.unit)?;
    note_slowness(books, lease);
    books.count_copy(lease.unit);
    books.grant(to, lease.unit.job, place)
}

/// A node whose unit is copied because it is overdue is slower than its last results say. Notes it,
/// so that the node gets no more units as a fast one.
fn note_slowness(books: &mut Books, lease: Lease) {
    let id = books.leases().get(lease).map(|held| held.node);
    let known = id.and_then(|id| Some((id, books.roster().get(id)?)));
    let (Some((id, node)), Some(job)) = (known, books.farm().job(lease.unit.job)) else {
        return books.fault("a copied lease has no holder or no job");
    };
    if job.grid().is_finishing(lease.unit.unit) {
        return;
    }
    let busy = busy_for(books, id, node);
    let samples = job.lease_samples(lease.unit) as f64;
    let overdue =
        measured_speed(books, id, node, job).is_some_and(|speed| speed.alone(samples) < busy);
    if let Some(estimates) = books.estimates_mut(lease.unit.job).filter(|_| overdue) {
        estimates.slow_down(id, samples / busy);
    }
}

fn look_again(books: &mut Books, at: Moment) {
    let now = books.now();
    if books.copy_looks_mut().plan(at, now) {
        books.set_timer(at, Timer::Look);
    }
}
