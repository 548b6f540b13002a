//! The coordinator's disk: what survives a crash. Snapshot and records as bytes, and the frames'
//! spools.

use crate::checks::violation::{Checked, Violation, violated};
use crate::coordinator::bucket::{Kept, Sent};
use crate::coordinator::places::{Extents, Places};
use crate::model::film::Film;
use std::collections::{BTreeMap, BTreeSet};
use tessera_coordinator::spool::{ResultObject, SpoolKey};
use tessera_core::{Record, SnapshotPart};
use tessera_protocol::ids::{BlobHash, Epoch, FrameNumber, JobId, Lease, UnitIndex, UnitKey};

/// A result in a spool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spooled {
    pub(crate) unit: UnitIndex,
    pub(crate) epoch: Epoch,
    pub(crate) film: Film,
    /// What has it in the bucket; None if it is on the disk.
    pub(crate) object: Option<ResultObject>,
}

impl Spooled {
    pub(crate) fn lease(&self, frame: SpoolKey) -> Lease {
        let unit = UnitKey { job: frame.job, frame: frame.frame, unit: self.unit };
        Lease { unit, epoch: self.epoch }
    }
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
    /// Results in the bucket, as the journal has them.
    objects: Spools,
    /// Names of all objects that the journal ever had.
    were_objects: BTreeSet<BlobHash>,
    /// Where results lie, for the journal, if the farm has a bucket.
    pub(crate) places: Places,
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

    pub(crate) fn keep(&mut self, kept: &Kept) {
        let Kept { lease, sent: Sent { film, stored } } = *kept;
        let object = stored.map(|(object, _)| object);
        let spools = match object {
            Some(_) => &mut self.objects,
            None => &mut self.spools,
        };
        self.were_objects.extend(object.map(|object| object.name));
        let spooled = Spooled { unit: lease.unit.unit, epoch: lease.epoch, film, object };
        spools.entry((lease.unit.job, lease.unit.frame)).or_default().push(spooled);
    }

    /// Results of a frame, on the disk and in the bucket.
    pub(crate) fn spool(
        &self,
        job: JobId,
        frame: FrameNumber,
    ) -> impl Iterator<Item = &Spooled> + Clone {
        let here = self.spools.get(&(job, frame)).map_or(&[][..], Vec::as_slice);
        here.iter().chain(self.objects_of(job, frame))
    }

    /// Results of a frame in the bucket.
    pub(crate) fn objects_of(&self, job: JobId, frame: FrameNumber) -> &[Spooled] {
        self.objects.get(&(job, frame)).map_or(&[], Vec::as_slice)
    }

    /// The journal has, or had, an object of this name.
    pub(crate) fn was_object(&self, name: BlobHash) -> bool {
        self.were_objects.contains(&name)
    }

    pub(crate) fn drop_spool(&mut self, job: JobId, frame: FrameNumber) {
        self.spools.remove(&(job, frame));
    }

    /// The journal has no object of a frame any more.
    pub(crate) fn drop_objects(&mut self, key: SpoolKey) {
        self.objects.remove(&(key.job, key.frame));
    }

    /// Number of a frame's results on the disk.
    pub(crate) fn on_disk(&self, key: SpoolKey) -> usize {
        self.spools.get(&(key.job, key.frame)).map_or(0, Vec::len)
    }

    /// A start cuts off what the journal does not have.
    pub(crate) fn cut_to(&mut self, extents: &Extents) {
        let extent = |(job, frame): &(JobId, FrameNumber)| {
            extents.get(&SpoolKey { job: *job, frame: *frame })
        };
        self.spools.retain(|of, spool| {
            spool.truncate(extent(of).map_or(0, |extent| extent.length) as usize);
            !spool.is_empty()
        });
        self.objects.retain(|of, _| extent(of).is_some());
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
        self.spools.len() + self.objects.len() + self.places.count()
    }
}
