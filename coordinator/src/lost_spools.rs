//! Results that the records have and no spool does: their units are rendered again. After a
//! takeover by a machine with another data folder, these are the results of all frames in work.

use crate::spool::{SpoolExtent, SpoolKey};
use crate::store::Changes;
use std::collections::BTreeMap;
use tessera_core::{Core, Input, Moment};
use tessera_protocol::UnitIndex;
use tessera_protocol::status::FrameState;

/// Why the results are gone, for people.
const REASON: &str = "the coordinator that had these results is gone with its disk, or lost them";

/// A spool that the journal has, and the numbers of its objects.
pub type Places = Vec<(SpoolKey, Vec<u32>)>;

/// Returns what the journal has of each spool.
pub fn places_of(extents: &BTreeMap<SpoolKey, SpoolExtent>) -> Places {
    let numbers = |extent: &SpoolExtent| extent.stored.iter().map(|stored| stored.number).collect();
    extents.iter().map(|(key, extent)| (*key, numbers(extent))).collect()
}

/// Leaves the spools that a start goes on with. `continues`: nobody led since the folder's
/// coordinator did. Otherwise what was on a disk is of an older lead, and a frame without it begins
/// anew.
pub fn keep(extents: &mut BTreeMap<SpoolKey, SpoolExtent>, continues: bool) {
    if !continues {
        extents.retain(|_, extent| extent.length == 0);
    }
}

/// Removes the objects of spools that begin anew, so that they are never taken for those after
/// them. None if there are none.
pub fn dropped(before: &Places, kept: &BTreeMap<SpoolKey, SpoolExtent>) -> Option<Changes> {
    let dropped = before.iter().filter(|(key, _)| !kept.contains_key(key));
    let numbers = dropped.flat_map(|(key, numbers)| numbers.iter().map(|number| (*key, *number)));
    let stored: BTreeMap<_, _> = numbers.map(|place| (place, None)).collect();
    (!stored.is_empty()).then(|| Changes { stored, ..Changes::default() })
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
        let mut from = 0;
        while let Some(page) = core.frames(job, from).filter(|page| !page.is_empty()) {
            from += page.len() as u32;
            let open = page.iter().filter(|status| {
                use FrameState::*;
                matches!(status.state, Open { .. } | Resolving | Finishing { .. })
            });
            let keys = open.map(|status| SpoolKey { job, frame: status.frame });
            for key in keys.filter(|key| !extents.contains_key(key)) {
                let mut units = core.committed_units(job, key.frame).unwrap_or_default();
                units.extend(core.parts(job, key.frame).iter().map(|part| part.unit));
                if !units.is_empty() {
                    found.push((key, units));
                }
            }
        }
    }
    found
}
