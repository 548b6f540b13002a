//! What the journal says of where results lie, and what a process knows of it: decided by the
//! coordinator's own rules (`spool`, `store::spool_changes`, `lost_spools`), in its own bytes.

use crate::checks::violation::{Checked, Violation, violated};
use crate::coordinator::Pending;
use crate::coordinator::bucket::{Kept, frame_of, header_of};
use crate::situations::sometimes;
use crate::world::World;
use std::collections::{BTreeMap, BTreeSet};
use tessera_coordinator::lost_spools;
use tessera_coordinator::spool::{
    SpoolBody, SpoolEntry, SpoolExtent, SpoolKey, add_objects, objects_in, unknown_objects,
};
use tessera_coordinator::store::{Changes, Loaded, spool_changes};
use tessera_core::Core;
use tessera_protocol::ids::{Epoch, FrameNumber, JobId, UnitIndex};

/// Spools by their frames. On a disk, a result counts as one byte.
pub(crate) type Extents = BTreeMap<SpoolKey, SpoolExtent>;

/// Values of the journal that are written or removed, by their keys.
pub(crate) type Values = Vec<(Vec<u8>, Option<Vec<u8>>)>;

/// The values of the journal about spools.
#[derive(Debug, Default)]
pub(crate) struct Places(BTreeMap<Vec<u8>, Vec<u8>>);

impl Places {
    pub(crate) fn apply(&mut self, values: Values) {
        for (key, value) in values {
            match value {
                Some(value) => drop(self.0.insert(key, value)),
                None => drop(self.0.remove(&key)),
            }
        }
    }

    /// What a start reads.
    fn load(&self) -> Result<Extents, Violation> {
        let mut loaded = Loaded::default();
        for (key, value) in &self.0 {
            let taken = loaded.take(key, value.clone());
            taken.map_err(|error| Violation(format!("a place of results: {error}")))?;
        }
        Ok(loaded.spools)
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }
}

/// What a step changes of where results lie, for the journal. The process knows it from now on.
pub(crate) fn place(known: &mut Extents, pending: &mut Pending) {
    let (mut extents, mut group) = (Extents::new(), Vec::new());
    for kept in &pending.results {
        let key = frame_of(kept.lease);
        match kept.sent.stored {
            None => {
                let before = || known.get(&key).cloned().unwrap_or_default();
                extents.entry(key).or_insert_with(before).length += 1;
            }
            Some((object, offset)) => {
                let body = SpoolBody::Stored(object, offset);
                group.push(SpoolEntry { key, header: header_of(kept), body });
            }
        }
    }
    add_objects(&mut extents, known, &group);
    let mut changes = Changes::default();
    spool_changes::add(&mut changes, known, (&extents, &pending.finished));
    known.extend(extents);
    pending.leaving = objects_in(&pending.finished, known);
    pending.finished.iter().for_each(|key| drop(known.remove(key)));
    pending.places = changes.values().collect();
}

impl World {
    /// A process that begins reads where results are; gives what it goes on with. `continues`: its
    /// disk is the one that the newest results went to.
    pub(super) fn open_places(
        &mut self,
        core: &Core,
        continues: bool,
    ) -> Result<Extents, Violation> {
        let mut extents = self.disk.places.load()?;
        let before = lost_spools::places_of(&extents);
        lost_spools::keep(&mut extents, continues);
        let short = |(key, extent): (&SpoolKey, &SpoolExtent)| {
            (extent.length > self.disk.on_disk(*key) as u64).then_some(*key)
        };
        let short: Vec<SpoolKey> = extents.iter().filter_map(short).collect();
        if let Some(key) = short.first() {
            return violated(format!("the disk lacks results of {key} that the journal has"));
        }
        self.disk.cut_to(&extents);
        if let Some(changes) = lost_spools::dropped(&before, &extents) {
            if let Some(leaders) = &mut self.leaders {
                let results = &self.ledger.durable;
                let gone = changes.spools.keys().map(|key| (*key, results.results_of(*key)));
                leaders.dropped.extend(gone);
            }
            self.disk.places.apply(changes.values().collect());
        }
        if let Some(bucket) = self.bucket.as_ref().filter(|_| self.is_bucket_there()) {
            let in_work = |key| !lost_spools::is_over(core, key);
            let unknown = unknown_objects(bucket.objects(), &extents, in_work);
            self.forget_objects(unknown);
        }
        Ok(extents)
    }

    /// Of frames in work, only those begin anew that had results on the disk of another place. Of
    /// the others everything is there.
    pub(super) fn check_begun_anew(
        &mut self,
        known: &Extents,
        former: Option<&BTreeSet<SpoolKey>>,
    ) -> Checked {
        let (mut anew, mut kept) = (0, 0);
        for key in self.ledger.durable.with_results() {
            if known.contains_key(&key) {
                kept += usize::from(known[&key].length == 0);
                let there: BTreeSet<(UnitIndex, Epoch)> =
                    self.disk.spool(key.job, key.frame).map(|of| (of.unit, of.epoch)).collect();
                let results = self.ledger.durable.results_of(key);
                if let Some((unit, epoch)) = results.difference(&there).next() {
                    return violated(format!("u{}@{epoch} of {key} is nowhere", unit.0));
                }
                continue;
            }
            anew += 1;
            let dropped = self.leaders.as_ref().and_then(|all| all.dropped.get(&key));
            let noted = dropped.is_some_and(|gone| *gone == self.ledger.durable.results_of(key));
            if !noted && former.is_none_or(|former| !former.contains(&key)) {
                return violated(format!(
                    "{key} is rendered again, and its results were in the bucket"
                ));
            }
        }
        sometimes!(self, TakeoverFromBucket, former.is_some() && kept > 0 && anew == 0);
        Ok(())
    }

    /// Spools of frames that are over, which a crash kept from being removed.
    pub(super) fn ended_places(core: &Core, known: &Extents) -> Vec<SpoolKey> {
        known.keys().filter(|key| lost_spools::is_over(core, **key)).copied().collect()
    }

    /// A frame is over, or all of a job. With a bucket, what it had goes with the next commit.
    pub(super) fn drop_results(&mut self, job: JobId, frame: Option<FrameNumber>) {
        if self.bucket.is_none() {
            return match frame {
                Some(frame) => self.disk.drop_spool(job, frame),
                None => self.disk.drop_spools(job),
            };
        }
        let Some(process) = &mut self.shell.process else { return };
        let told = |key: &SpoolKey| process.pending.iter().any(|of| of.finished.contains(key));
        let over = |key: &&SpoolKey| {
            key.job == job && frame.is_none_or(|frame| key.frame == frame) && !told(key)
        };
        let finished: Vec<SpoolKey> = process.known.keys().filter(over).copied().collect();
        if !finished.is_empty() {
            process.pending.push_back(Pending { finished, ..Pending::default() });
        }
    }

    /// What was removed from the journal is deleted.
    pub(super) fn delete_places(&mut self, pending: &mut Pending) {
        pending.finished.iter().for_each(|key| self.disk.drop_spool(key.job, key.frame));
        self.forget_objects(std::mem::take(&mut pending.leaving));
    }

    /// An object was put before the journal has it.
    pub(super) fn check_put(&self, kept: &Kept) -> Checked {
        let (Some(bucket), Some((object, _))) = (&self.bucket, kept.sent.stored) else {
            return Ok(());
        };
        match bucket.has(frame_of(kept.lease), object) {
            true => Ok(()),
            false => violated(format!("{} is committed, and its result is nowhere", kept.lease)),
        }
    }
}
