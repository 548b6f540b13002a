//! The core's invariants, for tests and the simulator: everything that is kept twice says the same,
//! and no unit is lost.

use crate::books::Books;
use crate::nodes::roster::Presence;
use crate::schedule::queue::Queue;
use crate::state::farm::Farm;
use crate::state::farm_waits::Verdict;
use crate::state::frame::Frame;
use crate::state::job::{Job, Place};
use crate::state::register::Entry;
use crate::timers::Timer;
use crate::unit_state::UnitState;
use std::collections::{BTreeMap, BTreeSet};
use tessera_protocol::ids::{NodeId, UnitIndex};
use tessera_protocol::limits::ROWS_MAX;

/// Checks every invariant. An error names the first one that is violated.
pub(crate) fn verify(books: &Books) -> Result<(), String> {
    books.faults().check()?;
    books.leases().check()?;
    books.roster().check()?;
    check_nodes(books)?;
    books.farm().check_usage()?;
    books.farm().check_accounts()?;
    books.check_budgets()?;
    books.check_storage()?;
    check_waits(books)?;
    check_leases(books)?;
    check_shares(books)?;
    let open = books.farm().jobs().filter(|job| !job.is_final()).count();
    if open != books.queues().len() {
        return Err(format!("{open} jobs are open, {} have work", books.queues().len()));
    }
    for (id, work) in books.queues() {
        let job = books.farm().job(*id).filter(|job| !job.is_final());
        let job = job.ok_or_else(|| format!("job {id} has work and is not open"))?;
        job.check_counts()?;
        if job.is_over() {
            return Err(format!("all frames of job {id} have ended, and it has not"));
        }
        check_units(books, job, work)?;
    }
    Ok(())
}

/// Checks that the durable roster and the sessions agree.
fn check_nodes(books: &Books) -> Result<(), String> {
    let (register, roster) = (books.farm().register(), books.roster());
    for (id, node) in roster.iter() {
        let here = register.get(*id).map(Entry::is_here);
        let agree = match node.presence() {
            Presence::Here(_) => here == Some(true),
            // It may have left by itself, and be taken off the list already.
            Presence::Away(_) => true,
            Presence::Lost => here == Some(false),
        };
        if !agree {
            return Err(format!("node {id} is {:?}, on the list: {here:?}", node.presence()));
        }
    }
    let returning = books.now() < books.returning_until();
    let absent = |(id, entry): (&NodeId, &Entry)| entry.is_here() && roster.get(*id).is_none();
    if !returning && register.entries().iter().any(absent) {
        return Err("a node is said to be here, and has not joined".to_owned());
    }
    let gone = register.entries().values().filter(|entry| !entry.is_here()).count();
    match gone <= books.settings().absent_nodes.min(ROWS_MAX) {
        true => Ok(()),
        false => Err(format!("{gone} absent nodes are kept")),
    }
}

/// Checks that every wait that is not over may still end, and that both jobs of it are known.
fn check_waits(books: &Books) -> Result<(), String> {
    books.farm().check_waits()?;
    for (on, id) in books.farm().awaited().waits() {
        let wait = books.farm().job(id).and_then(|job| job.wait_for(on));
        let verdict = wait.map(|wait| books.farm().verdict(&wait.after, wait.missing));
        if verdict != Some(Verdict::Waits) {
            return Err(format!("the wait of job {id} for job {on} goes on, and is {verdict:?}"));
        }
    }
    Ok(())
}

fn check_leases(books: &Books) -> Result<(), String> {
    for (lease, held) in books.leases().iter() {
        let job = books.farm().job(lease.unit.job).filter(|job| !job.is_final());
        let frame = job.and_then(|job| Some((job, job.frame(lease.unit.frame)?)));
        if !frame.is_some_and(|(job, frame)| frame.unit_is_wanted(lease.unit.unit, &job.grid())) {
            return Err(format!("{lease} is held, and its unit is neither open nor to be checked"));
        }
        if books.roster().get(held.node).is_none_or(|node| node.presence() == Presence::Lost) {
            return Err(format!("{lease} is held by a node that is lost"));
        }
        if job.is_some_and(|job| job.paused().is_some()) {
            return Err(format!("{lease} is held, and its job is paused"));
        }
        let position = job.and_then(|job| Some((job, job.position(lease.unit.frame)?)));
        if position.is_some_and(|(job, position)| job.waits_at(position)) {
            return Err(format!("{lease} is held, and its frame waits for another job"));
        }
        if lease.epoch >= books.epochs().next() || lease.epoch >= books.farm().epochs_reserved() {
            return Err(format!("{lease} is held, and its epoch was never reserved"));
        }
    }
    Ok(())
}

/// Checks that every owner has as many leases as are counted.
fn check_shares(books: &Books) -> Result<(), String> {
    let mut leases: BTreeMap<u64, u64> = BTreeMap::new();
    for (lease, _) in books.leases().iter() {
        if let Some(job) = books.farm().job(lease.unit.job) {
            *leases.entry(job.owner_id()).or_default() += 1;
        }
    }
    let at_work = books.shares().at_work();
    let counted: BTreeMap<u64, u64> = at_work.map(|(owner, leases, _)| (owner, leases)).collect();
    match counted == leases {
        true => Ok(()),
        false => Err(format!("owners have the leases {leases:?}, and {counted:?} are counted")),
    }
}

/// Checks that exactly the units to be checked are known as such, and are leased or ready.
fn check_checks(books: &Books, job: &Job, work: &Queue) -> Result<(), String> {
    let mut count = 0;
    for (position, open) in job.frames().unfinished() {
        for unit in open.checks().keys() {
            count += 1;
            let place = Place { position, unit: *unit };
            let key = job
                .key(place)
                .ok_or_else(|| format!("job {} has no frame {position}", job.id()))?;
            let leased = books.leases().is_leased(key);
            if work.redo(place).is_none() || leased == work.to_check().contains(&place) {
                return Err(format!(
                    "{key} is to be checked; leased: {leased}, {:?}",
                    work.redo(place)
                ));
            }
            if !books.looks().is_planned(key.job, key.frame) {
                return Err(format!("{key} is to be checked, but no look at it is planned"));
            }
        }
    }
    let redos = work.redos().count();
    let mut nodes: Vec<_> = work.redos().map(|(_, redo)| redo.maker()).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let unchecked: u32 = nodes.iter().map(|node| work.unchecked_of(*node)).sum();
    match redos == count && unchecked as usize == count && work.to_check().len() <= count {
        true => Ok(()),
        false => Err(format!(
            "{count} units are to be checked, {redos} are known, {unchecked} have a node"
        )),
    }
}

/// Checks that a look is planned at every frame that nodes finish.
fn check_finishing(books: &Books, job: &Job) -> Result<(), String> {
    for (position, open) in job.frames().unfinished() {
        let Some(frame) = job.number(position).filter(|_| open.is_finished_by_nodes()) else {
            continue;
        };
        let is_open = matches!(job.frames().get(position), Some(Frame::Open(_)));
        if is_open && !books.finish_looks().is_planned(job.id(), frame) {
            return Err(format!(
                "{}/{frame} is finished by nodes, and no look is planned",
                job.id()
            ));
        }
    }
    Ok(())
}

/// Returns the frames whose units may differ from those of other frames. To the rest nothing has
/// happened, and nothing of them was leased: one of them stands for all.
fn positions_to_check(books: &Books, job: &Job, work: &Queue) -> BTreeSet<u32> {
    let (frames, reached) = (job.frames(), work.reached());
    let leases = books.leases().of_job(job.id());
    let leased = leases.filter_map(|(unit, _)| job.position(unit.frame));
    let behind = (0..frames.len()).take_while(|position| *position <= reached);
    let behind = behind.filter(|position| !frames.done().contains(*position));
    let begun = frames.begun().map(|(position, _)| position);
    let mut some: BTreeSet<u32> =
        behind.chain(work.positions()).chain(begun).chain(leased).collect();
    let is_other = |position: &u32| {
        let frame = frames.get(*position);
        matches!(frame, Some(Frame::Untouched)) && !some.contains(position)
    };
    let other = (0..frames.len()).skip(reached as usize).find(is_other);
    some.extend(other);
    // Of frames that may go ahead of others, one stands for all.
    some.extend(job.next_free(reached).filter(|position| *position < frames.len()));
    some
}

/// Checks that every unit has one state, that a timer wakes each waiting unit, and that a job with
/// units to lease is offered.
fn check_units(books: &Books, job: &Job, work: &Queue) -> Result<(), String> {
    check_checks(books, job, work)?;
    check_finishing(books, job)?;
    let units = books.units_of(job);
    let mut leasable = !work.to_check().is_empty();
    for position in positions_to_check(books, job, work) {
        for unit in 0..job.grid().all_units() {
            let place = Place { position, unit: UnitIndex(unit) };
            match units.state_of(place)? {
                UnitState::Open => leasable = true,
                UnitState::Waiting { until }
                    if !books.timers().contains(until, Timer::Unit(job.id(), place)) =>
                {
                    return Err(format!(
                        "unit {unit} of frame {position} of job {} waits, and nothing wakes it",
                        job.id()
                    ));
                }
                _ => {}
            }
        }
    }
    if books.is_held_back(job) || job.is_waiting() {
        return match books.is_offered(job) {
            true => Err(format!("job {} is held back or waits, and is offered", job.id())),
            false => Ok(()),
        };
    }
    match leasable && !books.is_offered(job) {
        true => Err(format!("job {} has something to lease and is not offered", job.id())),
        false => Ok(()),
    }
}

/// Says how two durable states differ; None if they are equal.
pub(crate) fn durable_difference(one: &Farm, other: &Farm) -> Option<String> {
    if one == other {
        return None;
    }
    for job in one.jobs() {
        if other.job(job.id()) != Some(job) {
            return Some(format!("job {} differs", job.id()));
        }
    }
    Some("jobs, reserved epochs, nodes or recent commits differ".to_owned())
}
