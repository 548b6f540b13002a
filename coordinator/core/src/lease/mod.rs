//! Leases: who may render which unit, and until when. Does not choose nodes (see `schedule`) and
//! is not durable: a restart forgets leases, and nodes name them when they come back. A unit has
//! one lease, or two where one is a copy (see `schedule::copies`).

mod at_work;
pub(crate) mod secret;
mod time_shares;

use crate::lease::at_work::AtWork;
use crate::lease::secret::MARK_BITS;
use crate::lease::time_shares::TimeShares;
use crate::settings::Settings;
use crate::time::Moment;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::time::Duration;
use tessera_protocol::cost::Worth;
use tessera_protocol::ids::{Epoch, FrameNumber, JobId, Lease, NodeId, UnitIndex, UnitKey};
use tessera_protocol::node::Progress;

/// One current lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) unit: UnitKey,
    pub(crate) node: NodeId,
    pub(crate) granted: Moment,
    /// Time at which it ends unless it is renewed.
    pub(crate) until: Moment,
    /// Progress of its unit; None until a device has reported some.
    pub(crate) progress: Option<Reached>,
    /// Device time in microseconds that its job and owner were charged for it.
    pub(crate) charged: u64,
    /// What that time would cost at the price of when it was granted.
    pub(crate) expected: Worth,
    /// Whether it was granted to check a result. Such a lease is not bound by the job's nodes.
    pub(crate) check: bool,
    /// Whether its unit finishes a frame.
    piece: bool,
    /// Reading of the time shares when it was granted, if the frame's time is counted.
    counted_from: Option<u64>,
}

/// Progress of a unit as its node reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reached {
    /// Index of the device that works on it.
    pub(crate) device: u8,
    /// Finished samples per pixel, or indices.
    pub(crate) done: u64,
    /// Time at which this progress was first reported.
    pub(crate) since: Moment,
}

/// What is known of a lease when it is granted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grant {
    pub(crate) lease: Lease,
    pub(crate) node: NodeId,
    /// Whether the frame's time is counted.
    pub(crate) counted: bool,
    /// See [`Held::charged`].
    pub(crate) charged: u64,
    /// See [`Held::expected`].
    pub(crate) expected: Worth,
    /// See [`Held::check`].
    pub(crate) check: bool,
    /// Whether the unit finishes a frame.
    pub(crate) piece: bool,
}

/// All leases, with their indices.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    held: BTreeMap<Epoch, Held>,
    by_unit: BTreeSet<(UnitKey, Epoch)>,
    /// Units with two leases.
    copied: BTreeSet<UnitKey>,
    by_node: BTreeMap<NodeId, BTreeSet<Epoch>>,
    /// Leases of jobs on nodes, but not those that check results.
    at_work: AtWork,
    /// Number of finishing units that each node holds.
    pieces: BTreeMap<NodeId, u32>,
    deadlines: BTreeSet<(Moment, Epoch)>,
    shares: TimeShares,
}

impl Leases {
    /// Advances the clock: elapsed time is charged to the leases held during it.
    pub(crate) fn pass(&mut self, now: Moment) {
        self.shares.pass(now, self.held.len());
    }

    /// Grants a lease. The epoch must be new, and the unit may have at most one lease, of another
    /// node.
    pub(crate) fn grant(&mut self, grant: Grant, now: Moment, settings: &Settings) {
        let Grant { lease, node, counted, charged, expected, check, piece } = grant;
        let until = now.after(settings.lease.min(settings.lease_longest));
        let counted_from = counted.then(|| self.shares.reading());
        let (unit, progress) = (lease.unit, None);
        let granted = now;
        let held = Held {
            unit,
            node,
            granted,
            until,
            progress,
            charged,
            expected,
            check,
            piece,
            counted_from,
        };
        if piece {
            *self.pieces.entry(node).or_default() += 1;
        }
        self.held.insert(lease.epoch, held);
        if self.is_leased(lease.unit) {
            self.copied.insert(lease.unit);
        }
        self.by_unit.insert((lease.unit, lease.epoch));
        self.by_node.entry(node).or_default().insert(lease.epoch);
        if !check {
            self.at_work.add(lease.unit.job, node);
        }
        self.deadlines.insert((until, lease.epoch));
    }

    /// Ends a lease and returns it; None if it is not held.
    pub(crate) fn end(&mut self, epoch: Epoch) -> Option<Held> {
        let held = self.held.remove(&epoch)?;
        if let Some(began) = held.counted_from {
            self.shares.add(held.unit.job, held.unit.frame, began);
        }
        self.by_unit.remove(&(held.unit, epoch));
        // The unit had two leases; one is left.
        self.copied.remove(&held.unit);
        if held.piece {
            let left = self.pieces.remove(&held.node).unwrap_or_default().saturating_sub(1);
            if left > 0 {
                self.pieces.insert(held.node, left);
            }
        }
        self.deadlines.remove(&(held.until, epoch));
        if !held.check {
            self.at_work.remove(held.unit.job, held.node);
        }
        if let Some(of_node) = self.by_node.get_mut(&held.node) {
            of_node.remove(&epoch);
            if of_node.is_empty() {
                self.by_node.remove(&held.node);
            }
        }
        Some(held)
    }

    /// Returns the number of finishing units that a node holds.
    pub(crate) fn pieces_of(&self, node: NodeId) -> u32 {
        self.pieces.get(&node).copied().unwrap_or_default()
    }

    /// Returns the farm's time, in milliseconds, that ended leases of a frame have used, if it is
    /// counted.
    pub(crate) fn millis_of(&self, job: JobId, frame: FrameNumber) -> u64 {
        self.shares.millis_of(job, frame)
    }

    /// Starts counting the time of a frame from zero.
    pub(crate) fn forget_time(&mut self, job: JobId, frame: FrameNumber) {
        self.shares.forget(job, frame);
    }

    /// Drops the times of a job's frames.
    pub(crate) fn forget_times(&mut self, job: JobId) {
        self.shares.forget_job(job);
    }

    /// Extends a lease, but never beyond its longest duration.
    pub(crate) fn renew(&mut self, epoch: Epoch, now: Moment, settings: &Settings) {
        if let Some(held) = self.held.get(&epoch) {
            let until = now.after(settings.lease).min(held.granted.after(settings.lease_longest));
            self.set_until(epoch, until);
        }
    }

    /// Notes the progress that a node reports of a unit. Less progress than before is ignored.
    pub(crate) fn note_progress(&mut self, node: NodeId, told: &Progress, now: Moment) {
        let Progress { lease, device, done } = *told;
        let held = self
            .held
            .get_mut(&lease.epoch)
            .filter(|held| held.unit == lease.unit && held.node == node);
        if let Some(held) =
            held.filter(|held| held.progress.is_none_or(|before| before.done < done))
        {
            held.progress = Some(Reached { device, done, since: now });
        }
    }

    /// Lets all leases of a node end at this time, unless they are renewed or reach their longest
    /// duration before.
    pub(crate) fn hold_until(&mut self, node: NodeId, until: Moment, settings: &Settings) {
        for epoch in self.epochs_of(node) {
            if let Some(held) = self.held.get(&epoch) {
                let longest = held.granted.after(settings.lease_longest);
                self.set_until(epoch, until.min(longest));
            }
        }
    }

    /// A deadline moves only here, so that the index stays true.
    fn set_until(&mut self, epoch: Epoch, until: Moment) {
        if let Some(held) = self.held.get_mut(&epoch) {
            self.deadlines.remove(&(held.until, epoch));
            held.until = until;
            self.deadlines.insert((until, epoch));
        }
    }

    /// The lease with exactly this unit and epoch, if it is held.
    pub(crate) fn get(&self, lease: Lease) -> Option<&Held> {
        self.held.get(&lease.epoch).filter(|held| held.unit == lease.unit)
    }

    pub(crate) fn get_by_epoch(&self, epoch: Epoch) -> Option<&Held> {
        self.held.get(&epoch)
    }

    /// The leases of a unit: none, one, or two, the older first.
    pub(crate) fn of_unit(&self, unit: UnitKey) -> impl Iterator<Item = Epoch> + '_ {
        self.by_unit.range((unit, Epoch(0))..=(unit, Epoch(u64::MAX))).map(|(_, epoch)| *epoch)
    }

    pub(crate) fn is_leased(&self, unit: UnitKey) -> bool {
        self.of_unit(unit).next().is_some()
    }

    /// The unit has two leases.
    pub(crate) fn is_copied(&self, unit: UnitKey) -> bool {
        self.copied.contains(&unit)
    }

    /// Returns the number of leased units; a unit with two leases counts once.
    pub(crate) fn count(&self) -> usize {
        self.by_unit.len() - self.copied.len()
    }

    /// Units of a job that are leased.
    pub(crate) fn count_in(&self, job: JobId) -> usize {
        self.of_job(job).count() - self.copied_in(job)
    }

    /// Units of a job that have two leases.
    pub(crate) fn copied_in(&self, job: JobId) -> usize {
        let (first, last) = (FrameNumber(0), FrameNumber(u32::MAX));
        self.copied.range(first_of(job, first)..=last_of(job, last)).count()
    }

    /// Number of nodes that have leases of a job, but not to check results.
    pub(crate) fn nodes_of(&self, job: JobId) -> usize {
        self.at_work.nodes(job)
    }

    /// Whether a node has a lease of a job, but not to check a result.
    pub(crate) fn works_on(&self, node: NodeId, job: JobId) -> bool {
        self.at_work.works(job, node)
    }

    pub(crate) fn count_of(&self, node: NodeId) -> u32 {
        self.by_node.get(&node).map_or(0, |epochs| epochs.len() as u32)
    }

    /// Nodes that have leases.
    pub(crate) fn holders(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.by_node.keys().copied()
    }

    /// Leases of a node, in the order in which they were given.
    pub(crate) fn of_node(&self, node: NodeId) -> impl Iterator<Item = (Lease, &Held)> + '_ {
        let epochs = self.by_node.get(&node).into_iter().flatten();
        epochs.filter_map(|epoch| {
            let held = self.held.get(epoch)?;
            Some((Lease { unit: held.unit, epoch: *epoch }, held))
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.held.len()
    }

    pub(crate) fn epochs_of(&self, node: NodeId) -> Vec<Epoch> {
        self.by_node.get(&node).into_iter().flatten().copied().collect()
    }

    /// Jobs that have leases.
    pub(crate) fn jobs(&self) -> impl Iterator<Item = JobId> + '_ {
        let mut last = None;
        std::iter::from_fn(move || {
            let after = match last {
                None => Bound::Unbounded,
                Some(job) => {
                    Bound::Excluded((last_of(job, FrameNumber(u32::MAX)), Epoch(u64::MAX)))
                }
            };
            last = self.by_unit.range((after, Bound::Unbounded)).next().map(|(unit, _)| unit.job);
            last
        })
    }

    /// Leases of a job, in the order of its units.
    pub(crate) fn of_job(&self, job: JobId) -> impl Iterator<Item = (UnitKey, Epoch)> + '_ {
        self.between(job, FrameNumber(0), FrameNumber(u32::MAX))
    }

    /// Leases of a frame, in the order of its units.
    pub(crate) fn of_frame(
        &self,
        job: JobId,
        frame: FrameNumber,
    ) -> impl Iterator<Item = (UnitKey, Epoch)> + '_ {
        self.between(job, frame, frame)
    }

    fn between(
        &self,
        job: JobId,
        first: FrameNumber,
        last: FrameNumber,
    ) -> impl Iterator<Item = (UnitKey, Epoch)> + '_ {
        let (first, last) = (first_of(job, first), last_of(job, last));
        self.by_unit.range((first, Epoch(0))..=(last, Epoch(u64::MAX))).copied()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Lease, &Held)> + '_ {
        self.held.iter().map(|(epoch, held)| (Lease { unit: held.unit, epoch: *epoch }, held))
    }

    /// Returns the next deadline and the epoch of its lease.
    pub(crate) fn first_deadline(&self) -> Option<(Moment, Epoch)> {
        self.deadlines.first().copied()
    }

    /// Checks that the indices agree with the leases.
    pub(crate) fn check(&self) -> Result<(), String> {
        let by_node: usize = self.by_node.values().map(BTreeSet::len).sum();
        let lengths = [self.by_unit.len(), by_node, self.deadlines.len()];
        if lengths.iter().any(|length| *length != self.held.len()) {
            return Err(format!(
                "{} leases are held, the indices have {lengths:?}",
                self.held.len()
            ));
        }
        let at_work = self.held.values().filter(|held| !held.check);
        if AtWork::of(at_work.map(|held| (held.unit.job, held.node))) != self.at_work {
            return Err(format!("leases of jobs on nodes are counted as {:?}", self.at_work));
        }
        for (epoch, held) in &self.held {
            let indexed = self.by_unit.contains(&(held.unit, *epoch))
                && self.by_node.get(&held.node).is_some_and(|epochs| epochs.contains(epoch))
                && self.deadlines.contains(&(held.until, *epoch));
            if !indexed {
                return Err(format!("lease {}@{epoch} is not in every index", held.unit));
            }
            let others = self.of_unit(held.unit).filter(|other| other != epoch);
            let others: Vec<NodeId> =
                others.filter_map(|other| self.held.get(&other)).map(|other| other.node).collect();
            if others.len() > 1 || others.contains(&held.node) {
                return Err(format!("{} has too many leases, or two of one node", held.unit));
            }
            if self.copied.contains(&held.unit) == others.is_empty() {
                return Err(format!(
                    "{} has {} leases, and is counted otherwise",
                    held.unit,
                    1 + others.len()
                ));
            }
        }
        match self.copied.iter().find(|unit| !self.is_leased(**unit)) {
            Some(unit) => Err(format!("{unit} has no lease, and is counted with two")),
            None => Ok(()),
        }
    }
}

fn first_of(job: JobId, frame: FrameNumber) -> UnitKey {
    UnitKey { job, frame, unit: UnitIndex(0) }
}

fn last_of(job: JobId, frame: FrameNumber) -> UnitKey {
    UnitKey { job, frame, unit: UnitIndex(u32::MAX) }
}

/// Allocates epochs. Each is used once, also across restarts, because a block is reserved in the
/// journal before its first use.
///
/// An epoch is a count of the farm's leases and, below it, the mark of this lease
/// ([`crate::Secret`]): epochs grow, and no node can guess an epoch of another node. 2^40 leases
/// are 35 years of a thousand a second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Epochs {
    /// Count of the next epoch.
    next: u64,
    /// Epochs below this were allocated or skipped before this process started.
    start: Epoch,
}

impl Epochs {
    /// Continues above every epoch that was reserved.
    pub(crate) fn new(reserved: Epoch) -> Self {
        // The count 0 is never used, so that a default epoch is no lease.
        let next = reserved.0.div_ceil(1 << MARK_BITS).max(1);
        Self { next, start: Epoch(next << MARK_BITS) }
    }

    /// Returns the count of the next epoch, and the reservation that must be recorded first if
    /// `reserved` does not cover it.
    pub(crate) fn take(&mut self, reserved: Epoch, block: u64) -> (u64, Option<Epoch>) {
        let count = self.next;
        self.next += 1;
        let reserve = (self.next << MARK_BITS > reserved.0)
            .then(|| Epoch((count + block.max(1)) << MARK_BITS));
        (count, reserve)
    }

    /// Whether the epoch may have been allocated by a former process.
    pub(crate) fn is_of_former_process(&self, epoch: Epoch) -> bool {
        epoch.0 > 0 && epoch < self.start
    }

    /// Returns the first epoch above all allocated ones.
    pub(crate) fn next(&self) -> Epoch {
        Epoch(self.next << MARK_BITS)
    }
}

/// Returns the wait before a failed attempt is repeated: doubles with each failure, up to
/// `backoff_longest`.
pub(crate) fn backoff(failures: u32, settings: &Settings) -> Duration {
    let factor = 1u32 << failures.saturating_sub(1).min(16);
    settings.backoff.saturating_mul(factor).min(settings.backoff_longest)
}
