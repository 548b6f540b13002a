//! What of a job may be leased now: a cursor over the units never leased, and the exceptions behind it. Rebuilt at a restart.

use crate::finish::Pace;
use crate::job::{Job, Place};
use crate::lease::Leases;
use crate::memory::Measured;
use crate::moment::Moment;
use crate::rates::Rates;
use std::collections::BTreeMap;
use tessera_protocol::ids::UnitIndex;

/// Returned units looked at for one that suits a node, before it gets nothing or a fresh one.
const LOOK_MAX: usize = 16;

/// Open units of an open job that are not leased.
#[derive(Debug, Default)]
pub(crate) struct Work {
    /// Everything from here on was never leased by this process, unless a node brought the lease from before a restart.
    cursor: (u32, u32),
    /// Behind the cursor, ready. Until the given time, preferably not for the node of the unit's last attempt.
    pub(crate) ready: BTreeMap<Place, Moment>,
    /// Waiting until then, behind the cursor or ahead of it.
    pub(crate) waiting: BTreeMap<Place, Moment>,
    /// Since when younger jobs have been preferred.
    pub(crate) passed_over_since: Option<Moment>,
    /// Something of it has been leased.
    pub(crate) begun: bool,
    /// How fast nodes are at it.
    pub(crate) rates: Rates,
    /// How all nodes together are getting on; None where they are few.
    pub(crate) pace: Option<Pace>,
    /// What memory it takes.
    pub(crate) measured: Measured,
    /// Units are withheld from slow nodes until then; None: none was yet.
    pub(crate) withheld_until: Option<Moment>,
    /// Units that were moved to faster nodes, and how often. No more than the leases of the job's end.
    pub(crate) moves: BTreeMap<Place, u8>,
}

impl Work {
    /// The next unit for a node, in the order of frames. `avoid` says whether a place does not suit it. Takes nothing away.
    pub(crate) fn next(
        &mut self,
        job: &Job,
        leases: &Leases,
        mut avoid: impl FnMut(Place, Moment) -> bool,
    ) -> Option<Place> {
        let mut look = self.ready.iter().take(LOOK_MAX);
        if let Some((place, _)) = look.find(|(place, until)| !avoid(**place, **until)) {
            return Some(*place);
        }
        self.advance(job, leases)
    }

    /// Moves the cursor over everything that cannot be leased, and gives what it then stands at.
    fn advance(&mut self, job: &Job, leases: &Leases) -> Option<Place> {
        let units = job.grid.units();
        while let Some(frame) = job.frames().get(self.cursor.0 as usize) {
            if job.is_shut(self.cursor.0) {
                return None;
            }
            match frame.first_open_unit(self.cursor.1, units) {
                None => self.cursor = (self.cursor.0 + 1, 0),
                Some(unit) => {
                    self.cursor.1 = unit;
                    let place = Place { position: self.cursor.0, unit: UnitIndex(unit) };
                    let leased = job.key(place).is_none_or(|key| leases.of_unit(key).is_some());
                    if !leased && !self.waiting.contains_key(&place) {
                        return Some(place);
                    }
                    self.cursor.1 += 1;
                }
            }
        }
        None
    }

    /// Nothing to lease now, for whomever.
    pub(crate) fn is_empty(&mut self, job: &Job, leases: &Leases) -> bool {
        self.ready.is_empty() && self.advance(job, leases).is_none()
    }

    /// A unit is leased or committed now.
    pub(crate) fn take(&mut self, place: Place) {
        self.ready.remove(&place);
        self.waiting.remove(&place);
        if self.cursor == (place.position, place.unit.0) {
            self.cursor.1 += 1;
        }
    }

    /// A unit is open again, and ready.
    pub(crate) fn give_back(&mut self, place: Place, avoid_until: Moment) {
        if self.is_behind(place) {
            self.ready.insert(place, avoid_until);
        }
    }

    /// A unit is open again, but not before `until`.
    pub(crate) fn put_off(&mut self, place: Place, until: Moment) {
        self.waiting.insert(place, until);
    }

    /// The wait of a unit is over. False if it does not wait, or waits longer.
    pub(crate) fn wake(&mut self, place: Place, now: Moment, avoid_until: Moment) -> bool {
        if self.waiting.get(&place).is_none_or(|until| *until > now) {
            return false;
        }
        self.waiting.remove(&place);
        self.give_back(place, avoid_until);
        true
    }

    /// The cursor has passed it, so that only the exceptions know of it.
    pub(crate) fn is_behind(&self, place: Place) -> bool {
        (place.position, place.unit.0) < self.cursor
    }

    /// All units of a frame are off.
    pub(crate) fn drop_frame(&mut self, position: u32) {
        self.ready.retain(|place, _| place.position != position);
        self.waiting.retain(|place, _| place.position != position);
    }
}
