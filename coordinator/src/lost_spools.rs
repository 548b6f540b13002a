//! Results that the records have and no spool does: their units are rendered again. After a
//! takeover by a machine with another data folder, these are the results of all frames in work.

use crate::spool::{SpoolExtent, SpoolKey};
use crate::store::Changes;
use std::collections::BTreeMap;
use tessera_core::{Core, Input, Moment};
use tessera_protocol::UnitIndex;

/// Why the results are gone, for people.
const REASON: &str = "the coordinator that had these results is gone with its disk, or lost them";

/// What the journal has of a spool.
pub struct Place {
    key: SpoolKey,
    on_disk: bool,
    /// Numbers of its objects.
    objects: Vec<u32>,
}

/// Returns what the journal has of each spool.
pub fn places_of(extents: &BTreeMap<SpoolKey, SpoolExtent>) -> Vec<Place> {
    let place = |(key, extent): (&SpoolKey, &SpoolExtent)| {
        let objects = extent.stored.iter().map(|stored| stored.number).collect();
        Place { key: *key, on_disk: extent.length > 0, objects }
    };
    extents.iter().map(place).collect()
}

/// Leaves the spools that a start goes on with. `continues`: nobody led since the folder's
/// coordinator did. Otherwise what was on a disk is of an older lead, and a frame without it begins
/// anew.
pub fn keep(extents: &mut BTreeMap<SpoolKey, SpoolExtent>, continues: bool) {
    if !continues {
        extents.retain(|_, extent| extent.length == 0);
    }
}

/// Removes spools that begin anew, so that they are never taken for those after them: neither
/// their objects, nor what was on a disk. None if there are none.
pub fn dropped(before: &[Place], kept: &BTreeMap<SpoolKey, SpoolExtent>) -> Option<Changes> {
    let mut changes = Changes::default();
    for place in before.iter().filter(|place| !kept.contains_key(&place.key)) {
        let numbers = place.objects.iter();
        changes.stored.extend(numbers.map(|number| ((place.key, *number), None)));
        if place.on_disk {
            changes.spools.insert(place.key, None);
        }
    }
    (!changes.stored.is_empty() || !changes.spools.is_empty()).then_some(changes)
}

/// Whether nothing more is made of a frame, unless it is opened again.
pub fn is_over(core: &Core, key: SpoolKey) -> bool {
    match core.job_summary(key.job) {
        None => true,
        Some(summary) => summary.state.is_final() || core.is_frame_over(key.job, key.frame),
    }
}

/// Opens the units again whose results are in no spool, before anything else is done. Returns how
/// many results are gone.
pub fn reopen<E>(core: &mut Core, extents: &BTreeMap<SpoolKey, E>, now: Moment) -> usize {
    let mut gone = 0;
    for (key, units) in lost(core, extents) {
        gone += units.len();
        let (job, frame) = (key.job, key.frame);
        core.handle(Input::ResultsLost { job, frame, units, reason: REASON.into() }, now);
    }
    gone
}

fn lost<E>(core: &Core, extents: &BTreeMap<SpoolKey, E>) -> Vec<(SpoolKey, Vec<UnitIndex>)> {
    let mut found = Vec::new();
    for job in core.job_ids() {
        if core.job_summary(job).is_none_or(|summary| summary.state.is_final()) {
            continue;
        }
        let keys = core.frames_in_work(job).into_iter().map(|frame| SpoolKey { job, frame });
        for key in keys.filter(|key| !extents.contains_key(key)) {
            let mut units = core.committed_units(job, key.frame).unwrap_or_default();
            units.extend(core.parts(job, key.frame).iter().map(|part| part.unit));
            if !units.is_empty() {
                found.push((key, units));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spool::{ResultObject, StoredResults};
    use std::sync::Arc;
    use tessera_protocol::{BlobHash, FrameNumber, JobId, NodeId};
    use uuid::Uuid;

    // promise: P1
    #[test]
    fn nothing_stays_in_the_journal_of_a_disk_that_is_void() {
        let key = |frame| SpoolKey { job: JobId(Uuid::from_u128(1)), frame: FrameNumber(frame) };
        let stored = |number| {
            let node = NodeId(Uuid::from_u128(2));
            let object = ResultObject { node, name: BlobHash([number as u8; 32]), length: 1 };
            Arc::new(StoredResults { number, object, entries: Vec::new() })
        };
        let extent = |length, numbers: &[u32]| {
            let stored = numbers.iter().map(|number| stored(*number)).collect();
            SpoolExtent { stored, ..SpoolExtent::open(length) }
        };
        let all = BTreeMap::from([
            (key(1), extent(64, &[])),
            (key(2), extent(64, &[0, 3])),
            (key(3), extent(0, &[5])),
        ]);
        let before = places_of(&all);
        let mut kept = all.clone();
        keep(&mut kept, true);
        assert!(kept == all && dropped(&before, &kept).is_none());
        keep(&mut kept, false);
        assert_eq!(kept.keys().collect::<Vec<_>>(), [&key(3)]);
        let changes = dropped(&before, &kept).expect("two begin anew");
        assert_eq!(changes.spools, BTreeMap::from([(key(1), None), (key(2), None)]));
        let gone: Vec<_> = changes.stored.into_iter().collect();
        assert_eq!(gone, [((key(2), 0), None), ((key(2), 3), None)]);
    }
}
