//! Results that the records have and no spool does: their units are rendered again. After a
//! takeover by a machine with another data folder, these are the results of all frames in work.

use crate::spool::SpoolKey;
use std::collections::BTreeMap;
use tessera_core::{Core, Input, Moment};
use tessera_protocol::UnitIndex;
use tessera_protocol::status::FrameState;

/// Why the results are gone, for people.
const REASON: &str = "the coordinator that had these results is gone with its disk, or lost them";

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
