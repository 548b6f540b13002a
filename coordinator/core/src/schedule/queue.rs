//! What of a job may be leased now: a cursor over the units never leased, and the exceptions behind
//! it. Rebuilt at a restart.

use crate::lease::Leases;
use crate::schedule::estimates::Estimates;
use crate::schedule::shortages::Shortage;
use crate::state::job::{Job, Place};
use crate::state::votes::Check;
use crate::time::Moment;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tessera_protocol::ids::{NodeId, UnitIndex};

/// Returned units looked at for one that suits a node, before it gets nothing or a fresh one.
const LOOK_MAX: usize = 16;

/// A committed unit that is to be rendered again.
#[derive(Debug)]
pub(crate) struct Redo {
    /// Whose result is checked.
    maker: NodeId,
    /// Nodes that had it and did not end it.
    tried: BTreeSet<NodeId>,
    /// Nodes that were heard are asked once more, for want of others.
    again: bool,
}

impl Redo {
    /// A node may make the check: it is asked for the first time, or all are asked again.
    pub(crate) fn suits(&self, id: NodeId, check: &Check) -> bool {
        let heard_max = usize::from(self.again);
        check.heard(id) <= heard_max && !self.tried.contains(&id)
    }

    /// Nodes that did not end it.
    pub(crate) fn tried(&self) -> usize {
        self.tried.len()
    }

    /// Nobody has tried it in vain.
    pub(crate) fn new(maker: NodeId) -> Self {
        Self { maker, tried: BTreeSet::new(), again: false }
    }

    /// Whose result is checked.
    pub(crate) fn maker(&self) -> NodeId {
        self.maker
    }
}

/// Open units of an open job that are not leased, and checks.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// Everything from here on was never leased by this process, unless a node brought the lease
    /// from before a restart.
    cursor: (u32, u32),
    /// Behind the cursor, ready. Until the given time, preferably not for the node of the unit's
    /// last attempt.
    ready: BTreeMap<Place, Moment>,
    /// Waiting until then, behind the cursor or ahead of it.
    waiting: BTreeMap<Place, Moment>,
    /// Something of it has been leased.
    begun: bool,
    /// What is measured and guessed of the job.
    estimates: Estimates,
    /// Units that were copied, and how often. No more than the leases of the job's end.
    copies: BTreeMap<Place, u8>,
    /// Units that wait, or waited, for what is not theirs; until they are committed.
    shortages: BTreeMap<Place, Shortage>,
    /// Units to be checked, leased for that or not.
    redos: BTreeMap<Place, Redo>,
    /// Those that are not leased.
    to_check: BTreeSet<Place>,
    /// How many units to be checked each node has made.
    unchecked: BTreeMap<NodeId, u32>,
}

impl Queue {
    /// Behind the cursor, ready. Until the given time, preferably not for the node of the unit's
    /// last attempt.
    pub(crate) fn ready(&self) -> &BTreeMap<Place, Moment> {
        &self.ready
    }

    /// Waiting until then, behind the cursor or ahead of it.
    pub(crate) fn waiting(&self) -> &BTreeMap<Place, Moment> {
        &self.waiting
    }

    /// Something of it has been leased.
    pub(crate) fn begun(&self) -> bool {
        self.begun
    }

    /// What is measured and guessed of the job.
    pub(crate) fn estimates(&self) -> &Estimates {
        &self.estimates
    }

    pub(crate) fn estimates_mut(&mut self) -> &mut Estimates {
        &mut self.estimates
    }

    /// Units that were copied, and how often. No more than the leases of the job's end.
    pub(crate) fn copies(&self) -> &BTreeMap<Place, u8> {
        &self.copies
    }

    /// Units that wait, or waited, for what is not theirs; until they are committed.
    pub(crate) fn shortages(&self) -> &BTreeMap<Place, Shortage> {
        &self.shortages
    }

    /// Those that are not leased.
    pub(crate) fn to_check(&self) -> &BTreeSet<Place> {
        &self.to_check
    }

    /// Some unit is ready again, or to be checked; fresh ones do not count.
    pub(crate) fn has_exceptions(&self) -> bool {
        !self.ready.is_empty() || !self.to_check.is_empty()
    }

    /// The next unit for a node: a check, then others, each in the order of frames. `avoid` says
    /// whether a place does not suit it. Takes nothing away.
    pub(crate) fn next(
        &mut self,
        id: NodeId,
        job: &Job,
        leases: &Leases,
        mut avoid: impl FnMut(Place, Moment) -> bool,
    ) -> Option<Place> {
        let suits = |place: &&Place| {
            let check =
                job.frames().get(place.position as usize).and_then(|frame| frame.check(place.unit));
            check.zip(self.redos.get(*place)).is_some_and(|(check, redo)| redo.suits(id, check))
        };
        if let Some(place) = self.to_check.iter().take(LOOK_MAX).find(suits) {
            return Some(*place);
        }
        let mut look = self.ready.iter().take(LOOK_MAX);
        if let Some((place, _)) = look.find(|(place, until)| !avoid(**place, **until)) {
            return Some(*place);
        }
        self.advance(job, leases)
    }

    /// Moves the cursor over everything that cannot be leased, and gives what it then stands at.
    fn advance(&mut self, job: &Job, leases: &Leases) -> Option<Place> {
        while let Some(frame) = job.frames().get(self.cursor.0 as usize) {
            if job.is_shut(self.cursor.0) {
                return None;
            }
            match frame.first_open_unit(self.cursor.1, &job.grid()) {
                None => self.cursor = (self.cursor.0 + 1, 0),
                Some(unit) => {
                    self.cursor.1 = unit;
                    let place = Place { position: self.cursor.0, unit: UnitIndex(unit) };
                    let leased = job.key(place).is_none_or(|key| leases.is_leased(key));
                    if !leased && !self.waiting.contains_key(&place) {
                        return Some(place);
                    }
                    self.cursor.1 += 1;
                }
            }
        }
        None
    }

    /// An open unit can be leased now.
    pub(crate) fn has_fresh(&mut self, job: &Job, leases: &Leases) -> bool {
        !self.ready.is_empty() || self.advance(job, leases).is_some()
    }

    /// A unit is leased now, or its check is.
    pub(crate) fn lease(&mut self, place: Place) {
        self.take(place);
        self.begun = true;
        self.estimates.note_served();
    }

    /// A unit is committed now.
    pub(crate) fn commit(&mut self, place: Place) {
        self.take(place);
        self.copies.remove(&place);
        self.shortages.remove(&place);
    }

    fn take(&mut self, place: Place) {
        self.ready.remove(&place);
        self.waiting.remove(&place);
        self.to_check.remove(&place);
        if self.cursor == (place.position, place.unit.0) {
            self.cursor.1 += 1;
        }
    }

    /// A unit is open again, or still to be checked, and ready.
    pub(crate) fn give_back(&mut self, place: Place, avoid_until: Moment) {
        if self.redos.contains_key(&place) {
            self.to_check.insert(place);
        } else if self.is_behind(place) {
            self.ready.insert(place, avoid_until);
        }
    }

    /// A unit is open again, but not before `until`.
    pub(crate) fn put_off(&mut self, place: Place, until: Moment) {
        self.ready.remove(&place);
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

    /// All units of frames from a position on that are open and in nobody's hands are to be found
    /// anew.
    pub(crate) fn rewind(&mut self, position: u32) {
        self.cursor = self.cursor.min((position, 0));
        let cursor = self.cursor;
        self.ready.retain(|place, _| (place.position, place.unit.0) < cursor);
    }

    /// All units of a frame are off.
    pub(crate) fn drop_frame(&mut self, position: u32) {
        self.ready.retain(|place, _| place.position != position);
        self.waiting.retain(|place, _| place.position != position);
        self.shortages.retain(|place, _| place.position != position);
        let checks: Vec<Place> =
            self.redos.keys().filter(|place| place.position == position).copied().collect();
        checks.into_iter().for_each(|place| self.end_check(place));
    }

    /// A unit is wanted no more, for now.
    pub(crate) fn shut(&mut self, place: Place) {
        self.end_check(place);
        self.ready.remove(&place);
        self.waiting.remove(&place);
        self.shortages.remove(&place);
    }

    /// A unit is to be checked.
    pub(crate) fn open_check(&mut self, place: Place, maker: NodeId) {
        if self.redos.insert(place, Redo::new(maker)).is_none() {
            *self.unchecked.entry(maker).or_default() += 1;
        }
        self.to_check.insert(place);
    }

    /// The results so far differ: whoever tried in vain may try again, since more depends on it
    /// now. `leased`: somebody is at it.
    pub(crate) fn reopen_check(&mut self, place: Place, leased: bool) {
        if let Some(redo) = self.redos.get_mut(&place) {
            redo.tried.clear();
            if !leased {
                self.to_check.insert(place);
            }
        }
    }

    /// A node did not end a check. `leased`: another is at it.
    pub(crate) fn fail_check(&mut self, place: Place, node: NodeId, leased: bool) {
        if let Some(redo) = self.redos.get_mut(&place) {
            redo.tried.insert(node);
            if !leased {
                self.to_check.insert(place);
            }
        }
    }

    /// Nodes that were heard may be asked once more; false where they may already.
    pub(crate) fn ask_again(&mut self, place: Place) -> bool {
        self.redos.get_mut(&place).is_some_and(|redo| !std::mem::replace(&mut redo.again, true))
    }

    /// A unit is not to be checked any more.
    pub(crate) fn end_check(&mut self, place: Place) {
        self.to_check.remove(&place);
        self.copies.remove(&place);
        let Some(redo) = self.redos.remove(&place) else { return };
        if let Some(unchecked) = self.unchecked.get_mut(&redo.maker) {
            *unchecked -= 1;
            if *unchecked == 0 {
                self.unchecked.remove(&redo.maker);
            }
        }
    }

    pub(crate) fn redo(&self, place: Place) -> Option<&Redo> {
        self.redos.get(&place)
    }

    /// Units to be checked, leased for that or not.
    pub(crate) fn redos(&self) -> impl Iterator<Item = (&Place, &Redo)> {
        self.redos.iter()
    }

    /// Something of the job has been leased: by this process or one before.
    pub(crate) fn note_begun(&mut self) {
        self.begun = true;
    }

    /// A unit lacks something on a node. Returns how often it was so, and since how long.
    pub(crate) fn note_shortage(
        &mut self,
        place: Place,
        node: NodeId,
        reason: String,
        now: Moment,
    ) -> (u32, Duration) {
        let shortage = self.shortages.entry(place).or_insert_with(|| Shortage::new(now));
        shortage.note(node, reason, now)
    }

    /// A unit is copied once more.
    pub(crate) fn count_copy(&mut self, place: Place) {
        *self.copies.entry(place).or_default() += 1;
    }

    /// Units of a node that are to be checked.
    pub(crate) fn unchecked_of(&self, node: NodeId) -> u32 {
        self.unchecked.get(&node).copied().unwrap_or(0)
    }
}
