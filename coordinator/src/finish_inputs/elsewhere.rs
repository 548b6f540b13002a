//! Where a node gets what a finishing unit reads, if all of it is in a store that the node can
//! reach: addresses of objects, and the places of the results in them.

use super::{Entry, InputsError, InputsOrder, chosen};
use crate::spool::{
    AddressFor, ResultObject, ResultStore, SpoolExtent, SpoolIndex, SpoolKey, SpoolReader,
    StoredResults,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use tessera_protocol::Addresses;
use tessera_protocol::stream::{InputsReply, StoredPart};

/// Most objects whose addresses are given. What has more comes from the coordinator.
const OBJECTS_MAX: usize = 4096;
/// Most parts of an answer: 60 bytes each, in a message of at most 8 MiB.
const PARTS_MAX: usize = 64 << 10;

/// Returns the answer for an order; None if something is on the disk, or the node cannot reach the
/// store.
pub(crate) fn of(
    order: &InputsOrder,
    spools: &dyn SpoolReader,
    here: bool,
) -> Result<Option<InputsReply>, InputsError> {
    let Some(store) = spools.elsewhere().filter(|_| order.extent.length == 0) else {
        return Ok(None);
    };
    let index = SpoolIndex::read(spools, order.key, &order.extent)?;
    let chosen = chosen(order, &index)?;
    let placed = Placed::of((order.key, &order.extent), chosen, (&*store, here));
    Ok(placed.map(|Placed { addresses, parts }| InputsReply::Elsewhere { addresses, parts }))
}

/// Results in a store, and the addresses of their objects.
pub(crate) struct Placed {
    pub(crate) addresses: Addresses,
    pub(crate) parts: Vec<StoredPart>,
}

impl Placed {
    /// Finds results, each with its place. None if they are too many, if one is on the disk, or if
    /// the node cannot reach the store.
    pub(crate) fn of(
        (key, extent): (SpoolKey, &SpoolExtent),
        chosen: Vec<(u32, Entry)>,
        (store, here): (&dyn ResultStore, bool),
    ) -> Option<Self> {
        if chosen.len() > PARTS_MAX {
            return None;
        }
        let mut objects = Objects::new(&extent.stored);
        let mut parts = Vec::with_capacity(chosen.len());
        for (place, (header, at)) in chosen {
            let (object, offset) = objects.at(at)?;
            let (length, hash) = (header.length, header.hash);
            parts.push(StoredPart { place, object, offset, length, hash });
        }
        if objects.used.len() > OBJECTS_MAX {
            return None;
        }
        let signed =
            |object: &ResultObject| store.address(key, *object, (AddressFor::Reading, here));
        let addresses = objects.used.iter().map(signed).collect::<Option<Vec<String>>>()?;
        Some(Self { addresses: Addresses::new(&addresses), parts })
    }
}

/// Objects of a spool, by the positions of their first bytes, and those that are read.
struct Objects {
    starts: Vec<(u64, ResultObject)>,
    used: Vec<ResultObject>,
    numbers: BTreeMap<usize, u32>,
}

impl Objects {
    fn new(stored: &[Arc<StoredResults>]) -> Self {
        let mut start = 0;
        let starts = stored.iter().map(|one| {
            let at = start;
            start += u64::from(one.object.length);
            (at, one.object)
        });
        Self { starts: starts.collect(), used: Vec::new(), numbers: BTreeMap::new() }
    }

    /// Returns the number of the object that has this byte of the spool, and its place in it.
    fn at(&mut self, at: u64) -> Option<(u32, u32)> {
        let index = self.starts.partition_point(|(start, _)| *start <= at).checked_sub(1)?;
        let (start, object) = *self.starts.get(index)?;
        let used = &mut self.used;
        let number = *self.numbers.entry(index).or_insert_with(|| {
            used.push(object);
            used.len() as u32 - 1
        });
        Some((number, u32::try_from(at - start).ok()?))
    }
}
