//! What became of each lease that a step may have changed: whether it may have come, may have gone,
//! or is overdue. What steps and inputs say of leases is noted in `mod.rs`.

use super::{Changes, Held, Known, Seen, Watch};
use crate::checks::violation::{Checked, Violation, violated};
use crate::model::books::Books;
use std::collections::{BTreeMap, BTreeSet};
use tessera_core::Core;
use tessera_protocol::ids::{Epoch, FrameNumber, JobId, Lease, NodeId, UnitIndex, UnitKey};

impl Watch {
    /// Takes over what became of every lease that the step or its inputs may have changed.
    pub(super) fn follow(
        &mut self,
        seen: &Seen,
        changes: &Changes,
        core: &Core,
        books: &Books,
    ) -> Checked {
        for unit in self.touched(seen, changes, books) {
            let new: BTreeMap<Lease, NodeId> = core.leases_of(unit).collect();
            let old: Vec<(Lease, Held)> =
                self.held_of(unit).map(|(lease, held)| (*lease, *held)).collect();
            for (lease, held) in old.iter().filter(|(lease, _)| !new.contains_key(lease)) {
                let mut left = old.iter().filter(|(other, _)| other != lease);
                let other_is_known = left.any(|(other, held)| {
                    new.contains_key(other) || self.may_end(*other, held, seen, changes, books)
                });
                let copied = other_is_known || seen.inputs > 1;
                let quietly = copied && self.has_ended(*lease, held, seen);
                if !self.may_end(*lease, held, seen, changes, books) && !quietly {
                    return violated(format!("{lease} of {} has gone for no reason", held.node));
                }
                if self.quiet.contains_key(lease) {
                    self.ended_quietly.insert(held.node);
                }
                let away =
                    self.known.get(&held.node).is_none_or(|known| known.away_since.is_some());
                self.left_alone += u64::from(old.len() == 2 && new.len() == 1 && away);
            }
            let mut held = Vec::new();
            for (lease, node) in &new {
                held.push((*lease, self.judge(*lease, *node, seen, changes, books)?));
            }
            if old.is_empty() && held.iter().any(|(lease, _)| self.is_former(lease.epoch)) {
                self.taken_back += 1;
            }
            self.check_copies(unit, &held)?;
            check_state(unit, &new, core)?;
            self.put(unit, held, books);
        }
        Ok(())
    }

    /// A unit has two leases at most, of two nodes.
    fn check_copies(&self, unit: UnitKey, held: &[(Lease, Held)]) -> Checked {
        let nodes: BTreeSet<NodeId> = held.iter().map(|(_, held)| held.node).collect();
        match held.len() > 2 || nodes.len() < held.len() {
            true => violated(format!("{unit} is leased to {held:?}")),
            false => Ok(()),
        }
    }

    /// Nothing is copied of a job of which a unit waits that nobody has had.
    pub(super) fn check_fresh(&self, changes: &Changes, books: &Books) -> Checked {
        let copies = changes.given.iter().filter(|(_, lease)| self.held_of(lease.unit).count() > 1);
        for job in copies.map(|(_, lease)| lease.unit.job).collect::<BTreeSet<JobId>>() {
            let waits =
                |unit: &UnitKey| !self.short.contains(unit) && self.held_of(*unit).next().is_none();
            if let Some(unit) = books.fresh_units(job).find(waits) {
                return violated(format!("a unit of {job} is copied, and {unit} is fresh"));
            }
        }
        Ok(())
    }

    /// Leases of a unit.
    pub(super) fn held_of(&self, unit: UnitKey) -> impl Iterator<Item = (&Lease, &Held)> {
        let (first, last) =
            (Lease { unit, epoch: Epoch(0) }, Lease { unit, epoch: Epoch(u64::MAX) });
        self.held.range(first..=last)
    }

    /// Units whose leases may be others now.
    fn touched(&self, seen: &Seen, changes: &Changes, books: &Books) -> BTreeSet<UnitKey> {
        let named = seen.named.iter().chain(&changes.given).map(|(_, lease)| lease);
        let ended = changes.ended.iter().chain(&seen.returned).chain(&seen.failed);
        let joined = seen
            .joined
            .iter()
            .chain(&books.suspects)
            .filter_map(|node| self.by_node.get(node))
            .flatten();
        let mut units: BTreeSet<UnitKey> =
            named.chain(ended).chain(joined).map(|lease| lease.unit).collect();
        units.extend(
            self.quiet.iter().filter(|(_, due)| **due <= self.now).map(|(lease, _)| lease.unit),
        );
        for job in changes.pinned.iter().chain(&changes.shut) {
            units.extend(self.held_in(*job).map(|lease| lease.unit));
        }
        units
    }

    /// Leases of a job.
    pub(super) fn held_in(&self, job: JobId) -> impl Iterator<Item = &Lease> {
        let first = UnitKey { job, frame: FrameNumber(0), unit: UnitIndex(0) };
        let last = UnitKey { job, frame: FrameNumber(u32::MAX), unit: UnitIndex(u32::MAX) };
        let (first, last) =
            (Lease { unit: first, epoch: Epoch(0) }, Lease { unit: last, epoch: Epoch(u64::MAX) });
        self.held.range(first..=last).map(|(lease, _)| lease)
    }

    fn put(&mut self, unit: UnitKey, new: Vec<(Lease, Held)>, books: &Books) {
        let old: Vec<Lease> = self.held_of(unit).map(|(lease, _)| *lease).collect();
        for lease in old {
            self.quiet.remove(&lease);
            let node = self.held.remove(&lease).map(|old| old.node);
            if let Some((node, leases)) =
                node.and_then(|node| Some((node, self.by_node.get_mut(&node)?)))
            {
                leases.remove(&lease);
                if leases.is_empty() {
                    self.by_node.remove(&node);
                }
            }
        }
        let is_quiet = new.len() > 1 || books.is_to_be_checked(unit);
        for (lease, held) in new {
            if is_quiet {
                let away =
                    self.known.get(&held.node).is_none_or(|known| known.away_since.is_some());
                self.quiet.insert(lease, if away { 0 } else { self.due(&held) - held.earlier });
            }
            self.by_node.entry(held.node).or_default().insert(lease);
            self.held.insert(lease, held);
        }
    }

    /// The core's leases are those that the steps so far explain, all of them, and none is overdue.
    /// `fed`: the core has just been handed something, so that it had the chance to end what is
    /// due.
    pub(crate) fn compare(&self, core: &Core, books: &Books, fed: bool) -> Checked {
        let mut count = 0;
        for (lease, node) in core.leases() {
            count += 1;
            let Some(held) = self.held.get(&lease).filter(|held| held.node == node) else {
                return violated(format!("{lease} is held by {node}, and no step says why"));
            };
            if !books.is_wanted(lease.unit) || books.is_paused(lease.unit.job) {
                return violated(format!(
                    "{lease} is held, and its unit is not wanted, or its job is paused"
                ));
            }
            if fed {
                self.check_due(lease, held)?;
            }
        }
        let gone = |(lease, _): &(&Lease, &Held)| {
            core.leases_of(lease.unit).all(|(held, _)| held != **lease)
        };
        match self.held.iter().find(gone) {
            Some((lease, held)) => {
                violated(format!("{lease} of {} has gone, and no step says why", held.node))
            }
            None if count != self.held.len() => violated(format!(
                "the core holds {count} leases, the steps explain {}",
                self.held.len()
            )),
            None => Ok(()),
        }
    }

    fn judge(
        &self,
        lease: Lease,
        node: NodeId,
        seen: &Seen,
        changes: &Changes,
        books: &Books,
    ) -> Result<Held, Violation> {
        let earlier = self.now - seen.since.min(self.now);
        let fresh = Held { node, granted: self.now, renewed: self.now, earlier };
        if !books.is_wanted(lease.unit) || books.is_paused(lease.unit.job) {
            return violated(format!(
                "{lease} is held, and its unit is not wanted, or its job is paused"
            ));
        }
        let named = seen.named.contains(&(node, lease));
        let before = self.held.get(&lease).filter(|held| held.node == node);
        let Some(before) = before else {
            return match named || changes.given.contains(&(node, lease)) {
                true => Ok(fresh),
                false => violated(format!(
                    "{lease} is held by {node}, which was never told and never said so"
                )),
            };
        };
        // It may end and be taken up again within one step, when a node returns at the end of its
        // grace.
        if named && changes.ended.contains(&lease) {
            return Ok(fresh);
        }
        if named {
            return Ok(Held { renewed: self.now, earlier: earlier.max(before.earlier), ..*before });
        }
        // Nothing ends while the core is handed nothing.
        if seen.inputs > 0 {
            self.check_due(lease, before)?;
        }
        Ok(*before)
    }

    /// A lease that nobody has renewed ends; so does one that lasts too long, and one whose node is
    /// gone.
    fn check_due(&self, lease: Lease, held: &Held) -> Checked {
        let Some(known) = self.known.get(&held.node) else {
            return violated(format!("{lease} is held by {}, which never joined", held.node));
        };
        let until = self.until(known, held);
        match until <= self.now {
            true => violated(format!(
                "{lease} is held by {} at {}, and was due at {until} (away since {:?})",
                held.node, self.now, known.away_since
            )),
            false => Ok(()),
        }
    }

    /// When a lease ends at the latest, if nothing more is heard of it.
    fn until(&self, known: &Known, held: &Held) -> u64 {
        match known.away_since {
            Some(since) => self.longest(held).min(since + self.settings.grace.as_millis() as u64),
            None => self.due(held),
        }
    }

    /// A lease may be due now, for all that is known of when it was granted and renewed.
    pub(super) fn may_be_due(&self, held: &Held) -> bool {
        let known = self.known.get(&held.node);
        known.is_none_or(|known| self.until(known, held) - held.earlier <= self.now)
    }

    /// When a lease ends of a node that is here, if nothing more is heard of it.
    fn due(&self, held: &Held) -> u64 {
        self.longest(held).min(held.renewed + self.settings.lease.as_millis() as u64)
    }

    /// When a lease ends whatever is heard of it.
    fn longest(&self, held: &Held) -> u64 {
        held.granted + self.settings.lease_longest.as_millis() as u64
    }

    fn may_end(
        &self,
        lease: Lease,
        held: &Held,
        seen: &Seen,
        changes: &Changes,
        books: &Books,
    ) -> bool {
        let node = held.node;
        let checked = books.is_to_be_checked(lease.unit) || changes.checked.contains(&lease.unit);
        changes.ended.contains(&lease)
            // The end of a check is no attempt of its unit, so that no record tells of it.
            || (checked && self.has_ended(lease, held, seen))
            || (books.takes_no_part(lease.unit) && seen.failed.contains(&lease))
            || books.suspects.contains(&node)
            || !books.is_wanted(lease.unit)
            || seen.joined.contains(&node)
            || seen.returned.contains(&lease)
            || changes.pinned.contains(&lease.unit.job)
            || changes.paused.contains(&lease.unit.job)
    }

    /// A lease may have ended without a result.
    fn has_ended(&self, lease: Lease, held: &Held, seen: &Seen) -> bool {
        seen.inputs > 1 || seen.failed.contains(&lease) || self.may_be_due(held)
    }

    /// Nobody is given more than it asked for.
    pub(super) fn check_capacity(&self, changes: &Changes) -> Checked {
        for (node, lease) in &changes.given {
            let capacity = self.known.get(node).map_or(0, |known| known.capacity);
            let held = self.held_by(*node).map_or(0, |leases| leases.len() as u32);
            if held > capacity {
                return violated(format!(
                    "{lease} makes {held} leases of {node}, which wants {capacity}"
                ));
            }
        }
        Ok(())
    }
}

/// The state of a unit names the nodes that hold its leases, and no others.
fn check_state(unit: UnitKey, held: &BTreeMap<Lease, NodeId>, core: &Core) -> Checked {
    let state = match core.state_of(unit) {
        Ok(state) => state,
        // A peer may name a lease of a unit that does not exist, or no longer.
        Err(_) if held.is_empty() => return Ok(()),
        Err(problem) => return Err(Violation(problem)),
    };
    match held.values().copied().eq(state.holders()) {
        true => Ok(()),
        false => violated(format!("{unit} is held as {held:?}, and its state is {state:?}")),
    }
}
