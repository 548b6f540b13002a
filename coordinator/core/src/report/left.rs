//! Time left: what jobs have still to do, over the speed of the nodes that may do it, while others
//! have their shares of these. Where something of it is not known, nothing is said. Decides
//! nothing.

use crate::books::Books;
use crate::nodes::ready::is_ready;
use crate::report::left_checks::{Worker, secs_with_checks};
use crate::report::reason::wait::Wait;
use crate::schedule::cells::Layout;
use crate::schedule::cost_map::CostMap;
use crate::schedule::fair::{Turn, weight_of};
use crate::schedule::forecast::Forecast;
use crate::schedule::memory::usable;
use crate::schedule::met::met_by_some;
use crate::schedule::withhold::{busy_for, expected, span, speed_at};
use crate::state::job::Job;
use crate::time::Moment;
use std::collections::{BTreeMap, BTreeSet};
use tessera_protocol::ids::{JobId, NodeId, UnitIndex};

/// Most jobs that share the farm for which ends are forecast.
const RIVALS_MAX: usize = 64;
/// Most unfinished frames whose units are looked at; others count as if all cells were open alike.
const FRAMES_SEEN_MAX: usize = 64;
/// Units of a frame that are looked at, at most twice as many.
const UNITS_SEEN_MAX: u32 = 2048;
/// Least share of its time in which a node's devices are taken to work.
const BUSY_LEAST: f64 = 0.1;
/// A node whose newest units took so many times as long as its others has become slow. Tiles beside
/// each other differ by less.
const SLOWER: f64 = 4.0;
/// What the last units cost beyond an even end, in units of the fastest node.
const LAST_UNITS: f64 = 0.5;

/// A job that has, or will soon have, units in work.
struct Rival {
    job: JobId,
    pool: Option<String>,
    owner: u64,
    priority: u8,
    /// Weight of the owner.
    weight: u32,
    /// Seconds that it needs if it has its nodes for itself, and those of its last units; None if
    /// that is not known.
    needs: Option<(f64, f64)>,
}

impl Rival {
    fn of(books: &Books, job: &Job) -> Self {
        Self {
            job: job.id(),
            pool: job.spec().pool.clone(),
            owner: job.owner_id(),
            priority: job.spec().priority,
            weight: books.settings().weights.of(job.owner_id(), job.owner()),
            needs: alone(books, job),
        }
    }

    /// Whether both may have the same nodes.
    fn meets(&self, other: &Self) -> bool {
        self.pool.is_none() || other.pool.is_none() || self.pool == other.pool
    }
}

/// Returns the seconds until a job should end; None while it waits for something else than others.
pub(crate) fn left_of(books: &Books, job: &Job, wait: Option<&Wait>) -> Option<u64> {
    let goes_on = matches!(wait, None | Some(Wait::Turn { .. } | Wait::Feed { .. }));
    // When the rest of a job that waits for another may begin is not known.
    let goes_on = goes_on && job.waits().is_empty();
    (goes_on && !job.is_final() && !books.is_following()).then(|| left(books, job)).flatten()
}

fn left(books: &Books, job: &Job) -> Option<u64> {
    let end = books.forecast(|| forecast(books)).end_of(job.id())?;
    Some(end.since(books.now()).as_millis().div_ceil(1000) as u64)
}

/// Forecasts the end of every job that is at work.
fn forecast(books: &Books) -> Forecast {
    let now = books.now();
    let ends = rivals(books).map(|rivals| ends(&rivals, now)).unwrap_or_default();
    Forecast::new(now, ends)
}

/// Returns the jobs that share the nodes now; None if there are too many.
fn rivals(books: &Books) -> Option<Vec<Rival>> {
    let mut jobs: BTreeSet<JobId> = books.leases().jobs().take(RIVALS_MAX + 1).collect();
    let met = met_by_some(books);
    let next = |after: Option<Turn>| books.shares().next(after.as_ref(), Some(&met));
    let mut after = None;
    while let Some(turn) = next(after).filter(|_| jobs.len() <= RIVALS_MAX) {
        after = Some(turn);
        if books.farm().job(turn.job).is_some_and(|job| somebody_may(books, job)) {
            jobs.insert(turn.job);
        }
    }
    if jobs.len() > RIVALS_MAX {
        return None;
    }
    let known = jobs.iter().filter_map(|id| books.farm().job(*id));
    Some(known.filter(|job| !job.is_final()).map(|job| Rival::of(books, job)).collect())
}

/// Whether some node may have units of a job now.
fn somebody_may(books: &Books, job: &Job) -> bool {
    books.roster().iter().any(|(id, node)| {
        is_ready(books, *id, node)
            && job.fingerprint().is_none_or(|pinned| pinned == node.fingerprint())
            && usable(books, *id, node, job).next().is_some()
    })
}

/// Lets the jobs work side by side, each with its share, until the last has ended.
fn ends(rivals: &[Rival], now: Moment) -> BTreeMap<JobId, Moment> {
    let mut rests: Vec<Option<f64>> = rivals
        .iter()
        .map(|rival| Some(rival.needs.map_or(f64::INFINITY, |(secs, _)| secs)))
        .collect();
    let (mut ends, mut secs) = (BTreeMap::new(), 0.0);
    for _ in 0..rivals.len() {
        let shares = shares(rivals, &rests);
        let times = rests.iter().zip(&shares).map(|(rest, share)| rest.map(|rest| rest / share));
        let times: Vec<Option<f64>> = times.collect();
        let first = times.iter().enumerate().filter_map(|(at, time)| Some((at, (*time)?)));
        let Some((first, step)) = first.min_by(|one, other| one.1.total_cmp(&other.1)) else {
            break;
        };
        if !step.is_finite() {
            break;
        }
        secs += step;
        for (rest, share) in rests.iter_mut().zip(&shares) {
            *rest = rest.map(|rest| (rest - step * share).max(0.0));
        }
        rests[first] = None;
        let rival = &rivals[first];
        // Beside a job of which nothing is known, nothing is.
        let unknown = rivals.iter().any(|other| other.needs.is_none() && other.meets(rival));
        if let Some((_, last)) = rival.needs.filter(|_| !unknown) {
            ends.insert(rival.job, now.after(span(secs + last)));
        }
    }
    ends
}

/// Returns the share of its nodes that each job has, of those that have not ended. Owners share by
/// their weights and highest priorities, and an owner's jobs by their priorities.
fn shares(rivals: &[Rival], rests: &[Option<f64>]) -> Vec<f64> {
    let open: Vec<&Rival> = rivals
        .iter()
        .zip(rests)
        .filter(|(_, rest)| rest.is_some())
        .map(|(rival, _)| rival)
        .collect();
    let part = |rival: &Rival, beside: &[&Rival]| {
        let own = || beside.iter().filter(|other| other.owner == rival.owner);
        let highest = own().map(|other| other.priority).max().unwrap_or(rival.priority);
        let all: u128 = own().map(|other| weight_of(other.priority)).sum();
        let of_owner = weight_of(highest) as f64 * f64::from(rival.weight);
        of_owner * weight_of(rival.priority) as f64 / (all.max(1) as f64)
    };
    let share = |rival: &Rival| {
        let beside: Vec<&Rival> = open.iter().copied().filter(|other| other.meets(rival)).collect();
        let all: f64 = beside.iter().map(|other| part(other, &beside)).sum();
        part(rival, &beside) / all.max(f64::MIN_POSITIVE)
    };
    rivals.iter().map(|rival| share(rival).clamp(1e-9, 1.0)).collect()
}

/// Returns the seconds that a job needs if it has its nodes for itself, and those that its last
/// units cost beyond that; None if it is not known.
fn alone(books: &Books, job: &Job) -> Option<(f64, f64)> {
    let work = books.queue(job.id())?;
    let (mut team, mut begun) = (Vec::new(), 0.0);
    let mean = job.mean_unit_samples();
    let costs = work.estimates().rates().cost_map(Layout::of(&job.grid()));
    let mut last = f64::INFINITY;
    for id in work.estimates().rates().nodes() {
        let Some((per_sec, devices)) = steady_speed(books, id, job, &costs) else { continue };
        let unit = devices * mean / per_sec;
        last = last.min(unit);
        team.push(Worker { id, per_sec });
        if let Some(node) = books.roster().get(id).filter(|_| books.leases().works_on(id, job.id()))
        {
            let running = busy_for(books, id, node).min(unit) * per_sec / devices;
            begun += running + (devices - 1.0) / 2.0 * mean;
        }
    }
    team.sort_by(|one, other| other.per_sec.total_cmp(&one.per_sec));
    team.truncate(job.spec().max_nodes.map_or(usize::MAX, |most| most as usize));
    let left = secs_with_checks(books, job, &team, (samples_left(books, job, &costs)?, begun));
    left.is_finite().then_some((left, last * LAST_UNITS * frames_in_turn(job)))
}

/// Returns how often a job waits for last units: at the end of each frame that others read.
fn frames_in_turn(job: &Job) -> f64 {
    let counts = job.counts();
    match job.is_chained() {
        true => f64::from(job.frames().len() - counts.frames_done - counts.frames_failed),
        false => 1.0,
    }
}

/// Returns the samples of mean cost per second of a node at a job over many units, and its usable
/// devices. Its newest units alone count where it has become much slower.
fn steady_speed(books: &Books, id: NodeId, job: &Job, costs: &CostMap) -> Option<(f64, f64)> {
    let newest = speed_at(books, id, job)?;
    let node = books.roster().get(id)?;
    let rates = books.queue(job.id())?.estimates().rates();
    // Slow is slow where samples cost little, too.
    let cost = rates.newest_cost(id, costs).max(cost_of_oldest(books, id, job, costs)).max(1.0);
    let now_per_sec = newest.per_sec * cost;
    let steady = rates.steady(id, usable(books, id, node, job), costs).unwrap_or(newest);
    let per_sec = match now_per_sec * SLOWER < steady.per_sec {
        true => now_per_sec,
        false => steady.per_sec,
    };
    // A node says how busy its devices were in the last minute, in which it may have prepared the
    // job; the results say what they did since. Neither is more than is true.
    let said = node.busy().map(f64::from);
    let seen = rates.busy(id, newest.devices, books.now());
    let busy = said.map_or(1.0, |said| said.max(seen.unwrap_or(1.0)).clamp(BUSY_LEAST, 1.0));
    Some((per_sec * busy, newest.devices))
}

/// Returns what a sample costs in the unit of a job for which a node has been at work the longest.
fn cost_of_oldest(books: &Books, id: NodeId, job: &Job, costs: &CostMap) -> f64 {
    let held = books.leases().of_node(id).filter(|(lease, _)| lease.unit.job == job.id());
    let oldest = held.min_by_key(|(_, held)| held.granted).map(|(lease, _)| lease.unit.unit);
    oldest.map_or(1.0, |unit| costs.at(Layout::of(&job.grid()).cell_of(unit)))
}

/// Returns the samples of mean cost that a job has still to do, with what finishing its frames
/// takes; None if it is not known how many.
fn samples_left(books: &Books, job: &Job, costs: &CostMap) -> Option<f64> {
    let counts = job.counts();
    let open = match job.grid().has_rounds() || job.time().is_some() {
        true => {
            // Rounds end when the picture is good: finished frames say when that is.
            let (done, in_done) = (counts.frames_done, job.samples_of_done());
            if done == 0 {
                return None;
            }
            let mean = in_done as f64 / f64::from(done);
            let frames = f64::from(job.frames().len() - done - counts.frames_failed);
            (mean * frames - job.samples_of_unfinished() as f64).max(0.0)
        }
        false => samples_open(job, costs),
    };
    Some(open + finishing_left(books, job)?)
}

/// Returns the samples that are open, by what they cost where they are. Of large frames, evenly
/// spread units stand for all.
fn samples_open(job: &Job, costs: &CostMap) -> f64 {
    let (grid, units) = (job.grid(), job.grid().units());
    let (step, layout) = ((units / UNITS_SEEN_MAX).max(1), Layout::of(&grid));
    let (mut plain, mut weighed) = (0.0, 0.0);
    for (position, _) in job.frames().unfinished().take(FRAMES_SEEN_MAX) {
        let Some(frame) = job.frames().get(position) else { continue };
        let all = (0..units).step_by(step as usize).map(UnitIndex);
        for unit in all.filter(|unit| frame.unit_is_open(*unit, &grid)) {
            let samples = grid.unit_camera_samples(unit) as f64 * f64::from(step);
            plain += samples;
            weighed += samples * costs.at(layout.cell_of(unit));
        }
    }
    // Frames that are untouched have all cells alike.
    let all = job.counts().samples_open as f64;
    (all - plain).max(0.0) + weighed * (all / plain).min(1.0)
}

/// Returns what nodes need to finish a job's frames, in camera samples; None if it is a part of the
/// work and not known.
fn finishing_left(books: &Books, job: &Job) -> Option<f64> {
    let (Some(render), Some(work)) = (job.kind().render(), books.queue(job.id())) else {
        return Some(0.0);
    };
    if !books.roster().nodes().any(|node| node.finishes() && node.session().is_some()) {
        return Some(0.0);
    }
    if !work.estimates().knows_finishing() {
        return (!render.denoise).then_some(0.0);
    }
    let grid = job.grid();
    let pixels: u64 = grid.pieces().map(|unit| grid.finished_pixels(unit)).sum();
    let (counts, frames) = (job.counts(), job.frames().len());
    let rest = frames - counts.frames_done - counts.frames_failed;
    Some(work.estimates().work_of_pixels(pixels) as f64 * f64::from(rest))
}

/// Returns the seconds until a job that waits for its turn should begin: when so many units have
/// ended as jobs are before it. None if that is not known.
pub(crate) fn begins(books: &Books, job: &Job) -> Option<u64> {
    let mut before = 0;
    let mut after = None;
    let met = met_by_some(books);
    let next = |after: Option<Turn>| books.shares().next(after.as_ref(), Some(&met));
    while let Some(turn) = next(after).filter(|turn| turn.job != job.id()) {
        after = Some(turn);
        before += 1;
        if before > RIVALS_MAX {
            return None;
        }
    }
    let mut ends = Vec::new();
    for (id, node) in books.roster().iter() {
        if is_ready(books, *id, node) && usable(books, *id, node, job).next().is_some() {
            let (units, _) = expected(books, *id, None);
            // What a node holds ahead of its devices is given back to others.
            let next =
                units.first().map_or(Some(0.0), |unit| unit.known().map(|secs| secs.max(0.0)));
            ends.push(next?);
        }
    }
    ends.sort_by(f64::total_cmp);
    let rounds = before / ends.len().max(1);
    let nth = ends.get(before % ends.len().max(1))?;
    (rounds == 0).then(|| nth.ceil() as u64)
}
