//! The end of a job on nodes of different speeds: when leased units should end, and which nodes
//! should wait. Only estimates times: a wrong estimate costs time, never a unit. What idle nodes do
//! meanwhile is in `copies`.
//!
//! A unit is *withheld* from a node that would finish it later than the other nodes, by their
//! measured rates, would finish everything that is left. A unit is withheld for at most twice that
//! time, by the shortest estimate so far or one near it, and only while another node works. The
//! node that would finish it first never waits. None of this happens before the end of a job is
//! near.

use crate::books::Books;
use crate::nodes::ready::is_ready;
use crate::nodes::roster::Node;
use crate::schedule::memory::usable;
use crate::schedule::pace::Pace;
use crate::schedule::rates::Speed;
use crate::state::job::{Job, Place};
use crate::timers::Timer;
use std::time::Duration;
use tessera_protocol::ids::{JobId, Lease, NodeId};

/// Units are withheld for at most twice the others' time and so many seconds.
const WITHHELD_BEYOND: f64 = 2.0;
/// Longest time that is told apart, in seconds.
const YEAR: f64 = 365.0 * 86_400.0;
/// With more nodes at work than this, their common pace is used for [`PACE_LASTS`] instead of being
/// computed for each unit.
const PACE_FROM: usize = 16;
/// Validity of a pace at the end of a job. A large farm as a whole changes slowly. Before the end,
/// a pace is valid for a part of the remaining time, but short enough to notice nodes that come and
/// go.
pub(crate) const PACE_LASTS: Duration = Duration::from_millis(100);
const PACE_LASTS_MOST: Duration = Duration::from_secs(5);
/// A pace is valid for the remaining time divided by this.
const PACE_PART: f64 = 64.0;

/// Converts computed seconds, also negative or infinite ones, to a duration of at most a year.
pub(crate) fn span(seconds: f64) -> Duration {
    Duration::from_secs_f64(if seconds.is_finite() { seconds.clamp(0.0, YEAR) } else { YEAR })
}

/// Expected end of a leased unit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected {
    pub(crate) lease: Lease,
    /// Seconds from now, negative if it is overdue; None if the node's speed is unknown.
    ends_in: Option<f64>,
    /// Seconds since it was leased.
    pub(crate) age: f64,
}

impl Expected {
    /// Seconds that it is expected to need. A unit that is overdue, or of unknown speed, is
    /// expected to need as long again as it took beyond.
    pub(crate) fn remaining(&self) -> f64 {
        self.ends_in.map_or(self.age, f64::abs)
    }

    /// Seconds until it should end, negative if it is overdue; None if that is not known.
    pub(crate) fn known(&self) -> Option<f64> {
        self.ends_in
    }

    /// Seconds until `remaining` exceeds `limit`, if nothing changes.
    pub(crate) fn until(&self, limit: f64) -> f64 {
        match self.ends_in {
            Some(ends_in) => ends_in + limit,
            None => limit - self.age,
        }
    }
}

/// Speed of a node that may have units of a job; None if it may not, or if its speed is unknown.
pub(crate) fn speed_at(books: &Books, id: NodeId, job: &Job) -> Option<Speed> {
    let node = books.roster().get(id).filter(|node| is_ready(books, id, node))?;
    if job.fingerprint().is_some_and(|pinned| pinned != node.fingerprint()) {
        return None;
    }
    let queue = books.queue(job.id())?;
    let speed = queue.estimates().rates().speed(id, usable(books, id, node, job))?;
    // A node that has been silent for longer than two of its units should take is slower than
    // it was.
    let unit = speed.alone(job.mean_unit_samples());
    let slower = (busy_for(books, id, node) / (2.0 * unit)).max(1.0);
    Some(Speed { per_sec: speed.per_sec / slower, ..speed })
}

/// Seconds since a node finished a unit, or since its oldest lease was granted if that is later.
pub(crate) fn busy_for(books: &Books, id: NodeId, node: &Node) -> f64 {
    let oldest = books.leases().of_node(id).map(|(_, held)| held.granted).min();
    oldest.map_or(0.0, |oldest| books.now().since(oldest.max(node.committed_at())).as_secs_f64())
}

/// Returns the units of a node in the order of their leases, which is that of work, and its seconds
/// of work in total. `of` replaces speeds that are not known.
pub(crate) fn expected(books: &Books, id: NodeId, of: Option<Speed>) -> (Vec<Expected>, f64) {
    let Some(node) = books.roster().get(id) else { return (Vec::new(), 0.0) };
    let busy = busy_for(books, id, node);
    let mut before = 0.0;
    // Most units of a node belong to one job, so its speed is kept.
    let mut last: Option<(JobId, Option<Speed>)> = None;
    let units = books.leases().of_node(id).map(|(lease, held)| {
        let age = books.now().since(held.granted).as_secs_f64();
        let known = books.farm().job(lease.unit.job).and_then(|job| {
            let speed = match last {
                Some((of_job, speed)) if of_job == job.id() => speed,
                _ => measured_speed(books, id, node, job).or(of),
            };
            last = Some((job.id(), speed));
            Some((speed?, books.work_of(job, lease.unit) as f64))
        });
        let ends_in = known.map(|(speed, samples)| {
            let (share, alone) = (speed.share(samples), speed.alone(samples));
            // A part of the work before it runs beside it.
            let start = f64::max(0.0, before - (alone - share));
            before += share;
            start + alone - busy
        });
        Expected { lease, ends_in, age }
    });
    let units: Vec<Expected> = units.collect();
    (units, (before - busy).max(0.0))
}

/// Speed of a node at a job by its results, also if it may not work now.
pub(crate) fn measured_speed(books: &Books, id: NodeId, node: &Node, job: &Job) -> Option<Speed> {
    books.queue(job.id())?.estimates().rates().speed(id, usable(books, id, node, job))
}

/// Whether a unit is better left to the other nodes. Sets a timer for the end of that.
pub(crate) fn withhold(books: &mut Books, id: NodeId, job: JobId, place: Place) -> bool {
    refresh_pace(books, job);
    let Some(seconds) = better_left(books, id, job, place) else { return false };
    let most = span(seconds * 2.0 + WITHHELD_BEYOND);
    let now = books.now();
    let Some(estimates) = books.estimates_mut(job) else {
        books.fault("a unit is withheld in a closed job");
        return false;
    };
    let new = estimates.withhold(now, most);
    let is_withheld = estimates.is_withheld(now);
    if let Some(until) = new {
        books.set_timer(until, Timer::Look);
    }
    is_withheld
}

/// Seconds in which the other nodes would end the job, if this node would need longer for just this
/// unit.
pub(crate) fn better_left(books: &Books, id: NodeId, job: JobId, place: Place) -> Option<f64> {
    let (job, known) = (books.farm().job(job)?, books.queue(job)?.estimates().pace());
    let mine = speed_at(books, id, job)?;
    let together = match known {
        Some(pace) => pace.together() - mine.per_sec,
        None => others_at(books, job, Some(id)).map(|(_, speed)| speed.per_sec).sum(),
    };
    if together <= 0.0 {
        return None;
    }
    // Compares the least work that is not leased with the most that this node needs.
    let mean = job.mean_unit_samples();
    let open = job.units_beside(place.position) as f64;
    let held = f64::from(books.leases().count_of(id));
    if (open - books.leases().count() as f64) * mean / together
        > mine.alone(mean) * (held + 1.0) * 2.0
    {
        return None;
    }
    let (_, queue) = expected(books, id, Some(mine));
    // All use the same size: otherwise rounding could withhold the unit from every node.
    let (unit, others) = match known {
        Some(pace) => (mean, pace.without(id, mine, queue)),
        None => {
            let unit = job.key(place).map_or(mean, |unit| books.work_of(job, unit) as f64);
            (unit, pace(books, job, Some(id), unit))
        }
    };
    let others_end = others.end_of(open, mean, together);
    (mine.behind(queue, unit) > others_end).then_some(others_end)
}

/// Returns the nodes at work on a job, without one of them.
fn others_at<'a>(
    books: &'a Books,
    job: &'a Job,
    without: Option<NodeId>,
) -> impl Iterator<Item = (NodeId, Speed)> + 'a {
    let nodes = books.queue(job.id()).into_iter().flat_map(|work| work.estimates().rates().nodes());
    let others = nodes.filter(move |id| Some(*id) != without);
    others.filter_map(|id| Some((id, speed_at(books, id, job)?)))
}

/// Computes the pace of these nodes, if one more unit has so many samples.
fn pace(books: &Books, job: &Job, without: Option<NodeId>, samples: f64) -> Pace {
    let mut pace = Pace::new(books.now(), books.leases().count_in(job.id()));
    for (id, speed) in others_at(books, job, without) {
        let (_, queue) = expected(books, id, Some(speed));
        pace.add(id, speed, queue, samples);
    }
    pace
}

/// Computes the pace of a job with many nodes at work, if the last one is no longer valid.
pub(crate) fn refresh_pace(books: &mut Books, id: JobId) {
    let (Some(job), Some(work)) = (books.farm().job(id), books.queue(id)) else {
        return books.fault("a leased or offered job is not open");
    };
    let fresh = work.estimates().pace().is_some_and(|pace| pace.is_fresh(books.now()));
    if fresh || work.estimates().rates().nodes().nth(PACE_FROM).is_none() {
        return;
    }
    let mean = job.mean_unit_samples();
    let all = pace(books, job, None, mean);
    let left = (job.units_beside(0) as f64 - all.leased()) * mean / all.together();
    let until = books.now().after(span(left / PACE_PART).clamp(PACE_LASTS, PACE_LASTS_MOST));
    if let Some(estimates) = books.estimates_mut(id) {
        estimates.set_pace(all.lasting(until));
    }
}
