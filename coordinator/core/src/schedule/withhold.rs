//! The end of a job on nodes of different speeds: when what is leased should end, and who should
//! rather wait. Guesses times and nothing else: a wrong guess costs time, never a unit. What idle
//! nodes do meanwhile is in `tail`.
//!
//! A unit is *withheld* from a node that would end it later than the other nodes, by their measured
//! rates, would end everything that is left. It lasts at most twice as long as they should take, by
//! the shortest guess so far or one near it, and never without another node that works; the one
//! that would end it first is never kept waiting. While there is more work than the end of a job,
//! it does not happen.

use crate::core::Core;
use crate::nodes::roster::Node;
use crate::schedule::rates::Speed;
use crate::state::job::{Job, Place};
use crate::time::Moment;
use crate::timers::Timer;
use std::time::Duration;
use tessera_protocol::ids::{JobId, Lease, NodeId};

/// Seconds beyond twice the others' time for which units are withheld at most.
const WITHHELD_BEYOND: f64 = 2.0;
/// Seconds beyond which no time is told from another.
const YEAR: f64 = 365.0 * 86_400.0;
/// With more nodes at work than this, what is known of all of them is used for [`PACE_LASTS`]
/// instead of worked out for each unit.
const PACE_FROM: usize = 16;
/// A large farm as a whole changes slowly: at the end of a job it is looked at this often, and
/// before that in a part of the time that is left, but often enough to see nodes come and go.
pub(crate) const PACE_LASTS: Duration = Duration::from_millis(100);
const PACE_LASTS_MOST: Duration = Duration::from_secs(5);
/// Parts of the time that is left.
const PACE_PART: f64 = 64.0;

/// A time that was computed, whatever came of it.
pub(crate) fn span(seconds: f64) -> Duration {
    Duration::from_secs_f64(if seconds.is_finite() { seconds.clamp(0.0, YEAR) } else { YEAR })
}

/// How all nodes at work on a job are getting on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// When it has to be worked out again.
    until: Moment,
    /// Camera samples per second of all of them.
    together: f64,
    /// Camera samples that they have yet to do of what they hold.
    queued: f64,
    /// The first two of them that would end one more unit of the mean size.
    soonest: [Soonest; 2],
    /// Units of the job that are leased.
    leased: f64,
}

/// A node, and the seconds after which it would end one more unit.
#[derive(Clone, Copy, Debug)]
struct Soonest {
    node: Option<NodeId>,
    secs: f64,
}

/// When a leased unit should end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected {
    pub(crate) lease: Lease,
    /// Seconds from now; below 0 where it should have ended; None where the node's speed is not
    /// known.
    ends_in: Option<f64>,
    /// Seconds since it was given.
    pub(crate) age: f64,
}

impl Expected {
    /// Seconds that it will take yet. What is overdue, or of unknown speed, is believed to take as
    /// long again as it took beyond.
    pub(crate) fn remaining(&self) -> f64 {
        self.ends_in.map_or(self.age, f64::abs)
    }

    /// Seconds until it has more than `limit` seconds to go by that rule, if it goes on as it does.
    pub(crate) fn until(&self, limit: f64) -> f64 {
        match self.ends_in {
            Some(ends_in) => ends_in + limit,
            None => limit - self.age,
        }
    }
}

impl Pace {
    /// Without one node, which has so many seconds of work.
    fn without(self, id: NodeId, speed: Speed, queue: f64) -> Self {
        let [first, second] = self.soonest;
        Self {
            together: (self.together - speed.per_sec).max(0.0),
            queued: (self.queued - queue * speed.per_sec).max(0.0),
            soonest: [if first.node == Some(id) { second } else { first }; 2],
            ..self
        }
    }

    /// With one more node, which would end a unit after so many seconds.
    fn note_end(&mut self, node: NodeId, secs: f64) {
        let [first, second] = self.soonest;
        let next = Soonest { node: Some(node), secs };
        if secs < first.secs {
            self.soonest = [next, first];
        } else if secs < second.secs {
            self.soonest[1] = next;
        }
    }
}

impl Core {
    /// How fast a node that may have units of a job is at it; None where it may not, or nobody
    /// knows.
    pub(crate) fn speed_at(&self, id: NodeId, job: &Job) -> Option<Speed> {
        let node = self.roster.get(id).filter(|node| self.is_ready(id, node))?;
        if job.fingerprint().is_some_and(|pinned| pinned != node.fingerprint()) {
            return None;
        }
        let work = self.queues.get(&job.id())?;
        let speed = work.rates().speed(id, self.usable(id, node, job))?;
        // A node that has been silent for longer than two of its units should take is slower than
        // it was.
        let unit = speed.alone(job.mean_unit_samples());
        let slower = (self.busy_for(id, node) / (2.0 * unit)).max(1.0);
        Some(Speed { per_sec: speed.per_sec / slower, ..speed })
    }

    /// Seconds since a node ended a unit, or was given the oldest that it has.
    pub(crate) fn busy_for(&self, id: NodeId, node: &Node) -> f64 {
        let oldest = self.leases.of_node(id).map(|(_, held)| held.granted).min();
        oldest.map_or(0.0, |oldest| self.now.since(oldest.max(node.committed_at())).as_secs_f64())
    }

    /// The units of a node in the order in which they were given, which is that of work, and its
    /// seconds of work in all. `of` stands in for speeds that are not known.
    pub(crate) fn expected(&self, id: NodeId, of: Option<Speed>) -> (Vec<Expected>, f64) {
        let Some(node) = self.roster.get(id) else { return (Vec::new(), 0.0) };
        let busy = self.busy_for(id, node);
        let mut before = 0.0;
        // Most units of a node are of one job.
        let mut last: Option<(JobId, Option<Speed>)> = None;
        let units = self.leases.of_node(id).map(|(lease, held)| {
            let age = self.now.since(held.granted).as_secs_f64();
            let known = self.farm.job(lease.unit.job).and_then(|job| {
                let speed = match last {
                    Some((of_job, speed)) if of_job == job.id() => speed,
                    _ => self.measured_speed(id, node, job).or(of),
                };
                last = Some((job.id(), speed));
                Some((speed?, job.lease_samples(lease.unit) as f64))
            });
            let ends_in = known.map(|(speed, samples)| {
                let (share, alone) = (speed.share(samples), speed.alone(samples));
                // So much of what is before it runs beside it.
                let start = f64::max(0.0, before - (alone - share));
                before += share;
                start + alone - busy
            });
            Expected { lease, ends_in, age }
        });
        let units: Vec<Expected> = units.collect();
        (units, (before - busy).max(0.0))
    }

    pub(crate) fn measured_speed(&self, id: NodeId, node: &Node, job: &Job) -> Option<Speed> {
        self.queues.get(&job.id())?.rates().speed(id, self.usable(id, node, job))
    }

    /// Whether a unit is better left to the other nodes. Wakes the core when that ends.
    pub(crate) fn withhold(&mut self, id: NodeId, job: JobId, place: Place) -> bool {
        self.refresh_pace(job);
        let Some(seconds) = self.better_left(id, job, place) else { return false };
        let most = span(seconds * 2.0 + WITHHELD_BEYOND);
        let Some(work) = self.queues.get_mut(&job) else {
            self.fault("a unit is withheld of no open job");
            return false;
        };
        // A first guess can be far off, so a much shorter one stands in its place. It is never
        // prolonged, or it would not end.
        if work.withheld_until().is_none_or(|until| until.since(self.now) > most * 2) {
            let until = self.now.after(most);
            work.withhold_until(until);
            self.timers.set(until, Timer::Look);
        }
        work.withheld_until().is_some_and(|until| self.now < until)
    }

    /// Seconds in which the others would end the job, where this node would need longer for the
    /// unit alone.
    pub(crate) fn better_left(&self, id: NodeId, job: JobId, place: Place) -> Option<f64> {
        let (job, work) = (self.farm.job(job)?, self.queues.get(&job)?);
        let mine = self.speed_at(id, job)?;
        let together = match work.pace() {
            Some(pace) => pace.together - mine.per_sec,
            None => self.others_at(job, Some(id)).map(|(_, speed)| speed.per_sec).sum(),
        };
        if together <= 0.0 {
            return None;
        }
        // What is not leased, at least; and what this node needs, at most.
        let mean = job.mean_unit_samples();
        let open = job.units_beside(place.position) as f64;
        let held = f64::from(self.leases.count_of(id));
        if (open - self.leases.count() as f64) * mean / together
            > mine.alone(mean) * (held + 1.0) * 2.0
        {
            return None;
        }
        let (_, queue) = self.expected(id, Some(mine));
        // The same size for all: otherwise rounding could keep the unit from each of them.
        let (unit, pace) = match work.pace() {
            Some(pace) => (mean, pace.without(id, mine, queue)),
            None => {
                let unit = job.key(place).map_or(mean, |unit| job.lease_samples(unit) as f64);
                (unit, self.pace(job, Some(id), unit))
            }
        };
        let Pace { queued, soonest: [soonest, _], leased, .. } = pace;
        let others_end = (((open - leased).max(1.0) * mean + queued) / together).max(soonest.secs);
        (mine.behind(queue, unit) > others_end).then_some(others_end)
    }

    /// The nodes at work on a job, without one of them.
    fn others_at<'a>(
        &'a self,
        job: &'a Job,
        without: Option<NodeId>,
    ) -> impl Iterator<Item = (NodeId, Speed)> + 'a {
        let nodes = self.queues.get(&job.id()).into_iter().flat_map(|work| work.rates().nodes());
        let others = nodes.filter(move |id| Some(*id) != without);
        others.filter_map(|id| Some((id, self.speed_at(id, job)?)))
    }

    /// How they are getting on, where one more unit has so many samples.
    fn pace(&self, job: &Job, without: Option<NodeId>, samples: f64) -> Pace {
        let mut pace = Pace {
            until: self.now,
            together: 0.0,
            queued: 0.0,
            soonest: [Soonest { node: None, secs: f64::INFINITY }; 2],
            leased: self.leases.count_in(job.id()) as f64,
        };
        for (id, speed) in self.others_at(job, without) {
            pace.together += speed.per_sec;
            let (_, queue) = self.expected(id, Some(speed));
            pace.queued += queue * speed.per_sec;
            pace.note_end(id, speed.behind(queue, samples));
        }
        pace
    }

    /// Of a job with many nodes at work, works out how they are getting on, once in a while.
    pub(crate) fn refresh_pace(&mut self, id: JobId) {
        let (Some(job), Some(work)) = (self.farm.job(id), self.queues.get(&id)) else {
            return self.fault("a leased or offered job is not open");
        };
        let fresh = work.pace().is_some_and(|pace| self.now < pace.until);
        if fresh || work.rates().nodes().nth(PACE_FROM).is_none() {
            return;
        }
        let mut pace = self.pace(job, None, job.mean_unit_samples());
        let left =
            (job.units_beside(0) as f64 - pace.leased) * job.mean_unit_samples() / pace.together;
        pace.until = self.now.after(span(left / PACE_PART).clamp(PACE_LASTS, PACE_LASTS_MOST));
        if let Some(work) = self.queues.get_mut(&id) {
            work.set_pace(pace);
        }
    }
}
