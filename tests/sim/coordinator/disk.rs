//! The coordinator's disk: what survives a crash. Snapshot and records as bytes, and the frames'
//! spools.

use crate::sim::checks::violation::{Checked, Violation, violated};
use crate::sim::model::film::Film;
use std::collections::BTreeMap;
use tessera_coordinator::spool::SpoolKey;
use tessera_core::{Record, SnapshotPart};
use tessera_protocol::ids::{Epoch, FrameNumber, JobId, Lease, UnitIndex, UnitKey};

/// A result in a spool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spooled {
    pub(crate) unit: UnitIndex,
    pub(crate) epoch: Epoch,
    pub(crate) film: Film,
}

/// Results of frames in work, of one data folder.
pub(crate) type Spools = BTreeMap<(JobId, FrameNumber), Vec<Spooled>>;

/// Everything durable.
#[derive(Debug, Default)]
pub(crate) struct Disk {
    snapshot: Vec<Vec<u8>>,
    /// Records after the snapshot.
    records: Vec<Vec<u8>>,
    /// All records ever, to check snapshots against; a farm has no such thing.
    pub(crate) history: Vec<Record>,
    spools: Spools,
}

impl Disk {
    pub(crate) fn append(&mut self, record: Record) -> Checked {
        self.records
            .push(record.to_bytes().map_err(|error| Violation(format!("record: {error}")))?);
        self.history.push(record);
        Ok(())
    }

    /// A snapshot of the state after all records so far takes their place.
    pub(crate) fn take_snapshot(&mut self, parts: &[SnapshotPart]) -> Checked {
        let bytes: Result<Vec<Vec<u8>>, _> = parts.iter().map(SnapshotPart::to_bytes).collect();
        self.snapshot = bytes.map_err(|error| Violation(format!("snapshot: {error}")))?;
        self.records.clear();
        Ok(())
    }

    /// What a start reads.
    pub(crate) fn load(&self) -> Result<(Vec<SnapshotPart>, Vec<Record>), Violation> {
        let parts: Result<Vec<_>, _> =
            self.snapshot.iter().map(|part| SnapshotPart::from_bytes(part)).collect();
        let records: Result<Vec<_>, _> =
            self.records.iter().map(|record| Record::from_bytes(record)).collect();
        match (parts, records) {
            (Ok(parts), Ok(records)) => Ok((parts, records)),
            (Err(error), _) | (_, Err(error)) => {
                violated(format!("the disk is unreadable: {error}"))
            }
        }
    }

    pub(crate) fn keep(&mut self, lease: Lease, film: Film) {
        let spooled = Spooled { unit: lease.unit.unit, epoch: lease.epoch, film };
        self.spools.entry((lease.unit.job, lease.unit.frame)).or_default().push(spooled);
    }

    pub(crate) fn spool(&self, job: JobId, frame: FrameNumber) -> &[Spooled] {
        self.spools.get(&(job, frame)).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn drop_spool(&mut self, job: JobId, frame: FrameNumber) {
        self.spools.remove(&(job, frame));
    }

    pub(crate) fn drop_spools(&mut self, job: JobId) {
        self.spools.retain(|(of, _), _| *of != job);
    }

    /// A start cuts off what was written and the journal does not know, so that a result of the
    /// same lease may be written again.
    pub(crate) fn cut_spools(&mut self, is_known: impl Fn(Lease) -> bool) {
        self.spools.retain(|(job, frame), spool| {
            let lease = |entry: &Spooled| {
                let unit = UnitKey { job: *job, frame: *frame, unit: entry.unit };
                Lease { unit, epoch: entry.epoch }
            };
            spool.retain(|entry| is_known(lease(entry)));
            !spool.is_empty()
        });
    }

    /// Looks at another folder's spools; gives those of before.
    pub(crate) fn change_spools(&mut self, other: Spools) -> Spools {
        std::mem::replace(&mut self.spools, other)
    }

    /// The frames that have a spool, as a store tells them.
    pub(crate) fn spool_keys(&self) -> BTreeMap<SpoolKey, ()> {
        let key = |(job, frame): &(JobId, FrameNumber)| SpoolKey { job: *job, frame: *frame };
        self.spools.keys().map(|of| (key(of), ())).collect()
    }

    pub(crate) fn spools(&self) -> usize {
        self.spools.len()
    }
}
