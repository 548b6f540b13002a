//! What a group of commits changes of the spools, for the journal: extents on the disk, and objects
//! elsewhere, each of which is written once.

use super::Changes;
use crate::spool::{SpoolExtent, SpoolKey};
use std::collections::BTreeMap;

/// Adds the changes from the `known` extents to those after the group, and the end of the finished
/// spools.
pub fn add(
    changes: &mut Changes,
    known: &BTreeMap<SpoolKey, SpoolExtent>,
    (extents, finished): (&BTreeMap<SpoolKey, SpoolExtent>, &[SpoolKey]),
) {
    for (key, extent) in extents {
        let before = known.get(key);
        let on_disk = |extent: &SpoolExtent| (extent.length, extent.sealed.len());
        if before.map_or((0, 0), on_disk) != on_disk(extent) {
            changes.spools.insert(*key, Some(extent.clone()));
        }
        let first = before.map_or(0, SpoolExtent::next_number);
        let new = extent.stored.iter().filter(|stored| stored.number >= first);
        changes.stored.extend(new.map(|stored| ((*key, stored.number), Some(stored.clone()))));
    }
    for key in finished {
        let all = known.get(key).into_iter().chain(extents.get(key));
        let stored = all.flat_map(|extent| &extent.stored);
        changes.stored.extend(stored.map(|stored| ((*key, stored.number), None)));
        changes.spools.insert(*key, None);
    }
}
