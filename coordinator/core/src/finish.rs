//! The end of a job on nodes of different speeds: who should rather wait, and what idle nodes take over. Guesses times and nothing else:
//! a wrong guess costs time, never a unit.
//!
//! A unit is *withheld* from a node that would end it later than the other nodes, by their measured rates, would end everything that is
//! left. It lasts at most twice as long as they should take, and never without another node that works. A unit is *moved* from a node to
//! an idle one that would end it much sooner; each unit at most [`MOVES_MAX`] times. While there is more work than the end of a
//! job, neither happens.

use crate::core::Core;
use crate::job::{Job, Place};
use crate::moment::Moment;
use crate::rates::Speed;
use crate::roster::Node;
use crate::timers::Timer;
use std::collections::BTreeMap;
use std::time::Duration;
use tessera_protocol::ids::{JobId, Lease, NodeId};
use tessera_protocol::node::Assignment;

/// Times that one unit may be moved.
const MOVES_MAX: u8 = 3;
/// A unit is moved where the other node would need less than this part of the time that is left of it.
const GAIN: f64 = 1.5;
/// Seconds that a move must save beyond that: messages, and work thrown away.
const MOVE_COSTS: f64 = 0.05;
/// Seconds beyond twice the others' time for which units are withheld at most.
const WITHHELD_BEYOND: f64 = 2.0;
/// Seconds beyond which no time is told from another.
const YEAR: f64 = 365.0 * 86_400.0;
/// With more leases than this, nobody looks for units to move: the end is not near.
const LOOK_MAX: usize = 4096;
/// Units looked at for those to move: of more, those with the longest to go.
const LONGEST_MAX: usize = 64;
/// Idle nodes that units to move are looked for at once.
const IDLE_MAX: usize = 256;
/// With more nodes at work than this, what is known of all of them is used for [`PACE_LASTS`] instead of worked out for each unit.
const PACE_FROM: usize = 64;
/// A large farm as a whole changes slowly: at the end of a job it is looked at this often, and before that in a part of the time that is
/// left, but often enough to see nodes come and go.
const PACE_LASTS: Duration = Duration::from_millis(100);
const PACE_LASTS_MOST: Duration = Duration::from_secs(5);
/// Parts of the time that is left.
const PACE_PART: f64 = 64.0;

/// A time that was computed, whatever came of it.
fn span(seconds: f64) -> Duration {
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
    /// Seconds after which the first of them would end one more unit of the mean size.
    soonest: f64,
    /// Units of the job that are leased.
    leased: f64,
}

/// When a leased unit should end.
#[derive(Clone, Copy, Debug)]
struct Expected {
    lease: Lease,
    /// Seconds from now; below 0 where it should have ended; None where the node's speed is not known.
    ends_in: Option<f64>,
    /// Seconds since it was given.
    age: f64,
}

impl Expected {
    /// Seconds that it will take yet. What is overdue, or of unknown speed, is believed to take as long again as it took beyond.
    fn remaining(&self) -> f64 {
        self.ends_in.map_or(self.age, f64::abs)
    }

    /// Seconds until it has more than `limit` seconds to go by that rule, if it goes on as it does.
    fn until(&self, limit: f64) -> f64 {
        match self.ends_in {
            Some(ends_in) => ends_in + limit,
            None => limit - self.age,
        }
    }
}

impl Pace {
    /// Without one node, which has so many seconds of work.
    fn without(self, speed: Speed, queue: f64) -> Self {
        Self {
            together: (self.together - speed.per_sec).max(0.0),
            queued: (self.queued - queue * speed.per_sec).max(0.0),
            ..self
        }
    }
}

impl Core {
    /// How fast a node that may have units of a job is at it; None where it may not, or nobody knows.
    fn speed_at(&self, id: NodeId, job: &Job) -> Option<Speed> {
        let node = self.roster.get(id).filter(|node| self.is_ready(id, node))?;
        if job.fingerprint.is_some_and(|pinned| pinned != node.fingerprint) {
            return None;
        }
        let work = self.work.get(&job.id)?;
        let speed = work.rates.speed(id, self.usable(id, node, job))?;
        // A node that has been silent for longer than two of its units should take is slower than it was.
        let unit = speed.alone(job.mean_unit_samples());
        let slower = (self.busy_for(id, node) / (2.0 * unit)).max(1.0);
        Some(Speed { per_sec: speed.per_sec / slower, ..speed })
    }

    /// Seconds since a node ended a unit, or was given the oldest that it has.
    fn busy_for(&self, id: NodeId, node: &Node) -> f64 {
        let oldest = self.leases.of_node(id).map(|(_, held)| held.granted).min();
        oldest.map_or(0.0, |oldest| self.now.since(oldest.max(node.committed_at)).as_secs_f64())
    }

    /// The units of a node in the order in which they were given, which is that of work, and its seconds of work in all. `of` stands in
    /// for speeds that are not known.
    fn expected(&self, id: NodeId, of: Option<Speed>) -> (Vec<Expected>, f64) {
        let Some(node) = self.roster.get(id) else { return (Vec::new(), 0.0) };
        let busy = self.busy_for(id, node);
        let mut before = 0.0;
        let units = self.leases.of_node(id).map(|(lease, held)| {
            let age = self.now.since(held.granted).as_secs_f64();
            let known = self.farm.jobs.get(&lease.unit.job).and_then(|job| {
                let speed = self.measured_speed(id, node, job).or(of)?;
                Some((speed, job.grid.unit_camera_samples(lease.unit.unit) as f64))
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

    fn measured_speed(&self, id: NodeId, node: &Node, job: &Job) -> Option<Speed> {
        self.work.get(&job.id)?.rates.speed(id, self.usable(id, node, job))
    }

    /// Seconds after which a node would end one more unit.
    fn would_end(&self, id: NodeId, speed: Speed, samples: f64) -> f64 {
        let (_, queue) = self.expected(id, Some(speed));
        let (share, alone) = (speed.share(samples), speed.alone(samples));
        f64::max(0.0, queue - (alone - share)) + alone
    }

    /// Whether a unit is better left to the other nodes. Wakes the core when that ends.
    pub(crate) fn withhold(&mut self, id: NodeId, job: JobId, place: Place) -> bool {
        self.refresh_pace(job);
        let Some(seconds) = self.better_left(id, job, place) else { return false };
        let most = span(seconds * 2.0 + WITHHELD_BEYOND);
        let until = self.now.after(most);
        let Some(work) = self.work.get_mut(&job) else { return false };
        let first = work.withheld_until.is_none();
        let until = *work.withheld_until.get_or_insert(until);
        if first {
            self.timers.set(until, Timer::Look);
        }
        self.now < until
    }

    /// Seconds in which the others would end the job, where this node would need longer for the unit alone.
    fn better_left(&self, id: NodeId, job: JobId, place: Place) -> Option<f64> {
        let (job, work) = (self.farm.jobs.get(&job)?, self.work.get(&job)?);
        let mine = self.speed_at(id, job)?;
        let together = match work.pace {
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
        if (open - self.leases.len() as f64) * mean / together > mine.alone(mean) * (held + 1.0) * 2.0 {
            return None;
        }
        let unit = job.grid.unit_camera_samples(place.unit) as f64;
        let Pace { queued, soonest, leased, .. } = match work.pace {
            Some(pace) => pace.without(mine, self.expected(id, Some(mine)).1),
            None => self.pace(job, Some(id), unit),
        };
        let others_end = (((open - leased).max(1.0) * mean + queued) / together).max(soonest);
        (self.would_end(id, mine, unit) > others_end).then_some(others_end)
    }

    /// The nodes at work on a job, without one of them.
    fn others_at<'a>(
        &'a self,
        job: &'a Job,
        without: Option<NodeId>,
    ) -> impl Iterator<Item = (NodeId, Speed)> + 'a {
        let nodes = self.work.get(&job.id).into_iter().flat_map(|work| work.rates.nodes());
        let others = nodes.filter(move |id| Some(*id) != without);
        others.filter_map(|id| Some((id, self.speed_at(id, job)?)))
    }

    /// How they are getting on, where one more unit has so many samples.
    fn pace(&self, job: &Job, without: Option<NodeId>, samples: f64) -> Pace {
        let mut pace = Pace {
            until: self.now,
            together: 0.0,
            queued: 0.0,
            soonest: f64::INFINITY,
            leased: self.leases.of_job(job.id).count() as f64,
        };
        for (id, speed) in self.others_at(job, without) {
            pace.together += speed.per_sec;
            pace.queued += self.expected(id, Some(speed)).1 * speed.per_sec;
            pace.soonest = pace.soonest.min(self.would_end(id, speed, samples));
        }
        pace
    }

    /// Of a job with many nodes at work, works out how they are getting on, once in a while.
    fn refresh_pace(&mut self, id: JobId) {
        let (Some(job), Some(work)) = (self.farm.jobs.get(&id), self.work.get(&id)) else { return };
        let fresh = work.pace.is_some_and(|pace| self.now < pace.until);
        if fresh || work.rates.nodes().nth(PACE_FROM).is_none() {
            return;
        }
        let mut pace = self.pace(job, None, job.mean_unit_samples());
        let left = (job.units_beside(0) as f64 - pace.leased) * job.mean_unit_samples() / pace.together;
        pace.until = self.now.after(span(left / PACE_PART).clamp(PACE_LASTS, PACE_LASTS_MOST));
        if let Some(work) = self.work.get_mut(&id) {
            work.pace = Some(pace);
        }
    }

    /// Gives nodes that have room, and found nothing to lease, units of slower ones.
    pub(crate) fn move_units(&mut self, idle: &[NodeId]) -> Vec<(NodeId, Assignment)> {
        let mut moved = Vec::new();
        if idle.is_empty() || self.leases.len() > LOOK_MAX {
            return moved;
        }
        if self.leases.len() > LONGEST_MAX {
            // So many are not looked through for every idle node that says it lives.
            let next = self.looked_at.after(PACE_LASTS);
            if self.now < next {
                self.look_again(next);
                return moved;
            }
            self.looked_at = self.now;
        }
        let here = self.leases.holders().filter(|id| self.roster.session_of(*id).is_some());
        // What is given in this very step is not sent yet.
        let mut leased: Vec<(NodeId, Expected)> = here
            .flat_map(|id| self.expected(id, None).0.into_iter().map(move |expected| (id, expected)))
            .filter(|(_, expected)| expected.age > 0.0)
            .collect();
        if leased.len() > LONGEST_MAX {
            leased.sort_by(|(_, one), (_, other)| other.remaining().total_cmp(&one.remaining()));
            leased.truncate(LONGEST_MAX);
        }
        let mut look: Option<f64> = None;
        for id in idle.iter().take(IDLE_MAX) {
            while let Some(position) = self.worth_moving(*id, &leased, &mut look) {
                let (_, Expected { lease, .. }) = leased.swap_remove(position);
                moved.extend(self.move_unit(lease, *id).map(|assignment| (*id, assignment)));
            }
        }
        if let Some(seconds) = look {
            // A little later, so that it is then true.
            self.look_again(self.now.after(span(seconds + 0.01)));
        }
        moved
    }

    fn move_unit(&mut self, lease: Lease, to: NodeId) -> Option<Assignment> {
        let place = self.farm.jobs.get(&lease.unit.job)?.place(lease.unit)?;
        self.note_slowness(lease);
        self.revoke(lease.unit, lease.epoch);
        *self.work.get_mut(&lease.unit.job)?.moves.entry(place).or_default() += 1;
        self.lease(to, lease.unit.job, place)
    }

    /// The position of the lease that a node with room should take over: the one with the longest to go. Notes when another may be.
    fn worth_moving(
        &self,
        id: NodeId,
        leased: &[(NodeId, Expected)],
        look: &mut Option<f64>,
    ) -> Option<usize> {
        self.roster.get(id).filter(|node| self.leases.count_of(id) < node.capacity)?;
        let mut best: Option<(f64, usize)> = None;
        let mut speeds: BTreeMap<JobId, Option<(Speed, f64)>> = BTreeMap::new();
        for (position, (_, expected)) in leased.iter().enumerate().filter(|(_, (holder, _))| *holder != id) {
            let unit = expected.lease.unit;
            let Some(job) = self.farm.jobs.get(&unit.job) else { continue };
            let speed = speeds.entry(unit.job).or_insert_with(|| {
                let speed = self.speed_at(id, job)?;
                Some((speed, self.expected(id, Some(speed)).1))
            });
            let Some((speed, queue)) = *speed else { continue };
            let moves =
                job.place(unit).and_then(|place| self.work.get(&unit.job)?.moves.get(&place).copied());
            let samples = job.grid.unit_camera_samples(unit.unit) as f64;
            let (alone, share) = (speed.alone(samples), speed.share(samples));
            // Until a device is free. Short units are taken over several at a time.
            let wait = (queue - (alone - share)).max(0.0);
            if moves.unwrap_or(0) >= MOVES_MAX || wait >= MOVE_COSTS {
                continue;
            }
            if !self.may_take(id, unit) {
                continue;
            }
            let limit = (wait + alone) * GAIN + MOVE_COSTS;
            let remaining = expected.remaining();
            if remaining <= limit {
                let later = expected.until(limit);
                *look = Some(look.map_or(later, |planned| planned.min(later)));
            } else if best.is_none_or(|(most, _)| remaining > most) {
                best = Some((remaining, position));
            }
        }
        best.map(|(_, position)| position)
    }

    /// A node that loses a unit because that is overdue is slower than its last results say, and gets no other for being fast.
    fn note_slowness(&mut self, lease: Lease) {
        let Some(id) = self.leases.get(lease).map(|held| held.node) else { return };
        let (Some(node), Some(job)) = (self.roster.get(id), self.farm.jobs.get(&lease.unit.job)) else {
            return;
        };
        let busy = self.busy_for(id, node);
        let samples = job.grid.unit_camera_samples(lease.unit.unit) as f64;
        let overdue = self.measured_speed(id, node, job).is_some_and(|speed| speed.alone(samples) < busy);
        if let Some(work) = self.work.get_mut(&lease.unit.job).filter(|_| overdue) {
            work.rates.slow_down(id, samples / busy);
        }
    }

    fn look_again(&mut self, at: Moment) {
        if self.look_at.is_none_or(|planned| planned > at || planned <= self.now) {
            self.look_at = Some(at);
            self.timers.set(at, Timer::Look);
        }
    }
}
