//! What of a job may be leased now: a cursor over the units never leased, and the exceptions behind
//! it. Rebuilt at a restart.

use crate::lease::Leases;
use crate::schedule::estimates::Estimates;
use crate::schedule::refusals::Refusals;
use crate::schedule::scouts::Scouts;
use crate::schedule::shortages::Shortage;
use crate::state::job::{Job, Place};
use crate::state::kernel_votes::Blame;
use crate::state::votes::Check;
use crate::time::Moment;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tessera_protocol::ids::{NodeId, UnitIndex};

/// Most returned units that are searched for one that suits a node, before it gets a fresh one or
/// nothing.
const LOOK_MAX: usize = 16;

/// Committed unit that another node must render again.
#[derive(Debug)]
pub(crate) struct Redo {
    /// Node whose result is checked.
    maker: NodeId,
    /// Nodes that had the check and did not finish it.
    tried: BTreeSet<NodeId>,
    /// Whether nodes that were heard are asked once more, because there are no others.
    again: bool,
}

impl Redo {
    /// Whether a node may make the check: it was not asked yet, or all are asked again. About a
    /// user's kernel, nodes are asked a second time as soon as results differ.
    pub(crate) fn suits(&self, id: NodeId, check: &Check, blame: Blame) -> bool {
        let may = match blame {
            Blame::Node => check.heard(id) <= usize::from(self.again),
            Blame::Kernel => check.needs_run_of(id, self.again),
        };
        may && !self.tried.contains(&id)
    }

    /// Number of nodes that did not finish it.
    pub(crate) fn tried(&self) -> usize {
        self.tried.len()
    }

    /// Creates a check that no node has tried.
    pub(crate) fn new(maker: NodeId) -> Self {
        Self { maker, tried: BTreeSet::new(), again: false }
    }

    /// Node whose result is checked.
    pub(crate) fn maker(&self) -> NodeId {
        self.maker
    }
}

/// Open units of an open job that are not leased, and checks.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// Units of a frame that the cursor passes; those from here on finish it. They are ready once
    /// they may be leased, wherever the cursor is.
    units: u32,
    /// Nothing from here on was leased by this process, except scouts, and leases from before a
    /// restart that nodes named.
    cursor: (u32, u32),
    /// Units of the first frame that go ahead.
    scouts: Scouts,
    /// Ready units behind the cursor. Until the given time, preferably not for the node of the
    /// unit's last attempt.
    ready: BTreeMap<Place, Moment>,
    /// Units that wait until the given time, behind the cursor or ahead of it.
    waiting: BTreeMap<Place, Moment>,
    /// Whether any unit of the job was ever leased.
    begun: bool,
    /// Measurements and estimates of the job.
    estimates: Estimates,
    /// What nodes said of the job that they could not begin.
    refusals: Refusals,
    /// Number of copies of each unit that was copied. No more entries than the leases of the job's
    /// end.
    copies: BTreeMap<Place, u8>,
    /// Units that wait, or waited, for an external resource; until they are committed.
    shortages: BTreeMap<Place, Shortage>,
    /// Units to be checked, leased for it or not.
    redos: BTreeMap<Place, Redo>,
    /// Units to be checked that are not leased for it.
    to_check: BTreeSet<Place>,
    /// For each node, the number of its units that are to be checked.
    unchecked: BTreeMap<NodeId, u32>,
}

impl Queue {
    /// Creates the queue of a job whose frames have so many units without finishing units.
    pub(crate) fn new(units: u32, scouts: Scouts) -> Self {
        Self { units, scouts, ..Self::default() }
    }

    /// Whether a finishing unit is ready or waits.
    pub(crate) fn knows_piece(&self, position: u32, unit: UnitIndex) -> bool {
        let place = Place { position, unit };
        self.ready.contains_key(&place) || self.waiting.contains_key(&place)
    }

    /// Ready units behind the cursor. Until the given time, preferably not for the node of the
    /// unit's last attempt.
    pub(crate) fn ready(&self) -> &BTreeMap<Place, Moment> {
        &self.ready
    }

    /// Units that wait until the given time, behind the cursor or ahead of it.
    pub(crate) fn waiting(&self) -> &BTreeMap<Place, Moment> {
        &self.waiting
    }

    /// Whether any unit of the job was ever leased.
    pub(crate) fn begun(&self) -> bool {
        self.begun
    }

    /// Measurements and estimates of the job.
    pub(crate) fn estimates(&self) -> &Estimates {
        &self.estimates
    }

    pub(crate) fn estimates_mut(&mut self) -> &mut Estimates {
        &mut self.estimates
    }

    /// What nodes said of the job that they could not begin.
    pub(crate) fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    pub(crate) fn refusals_mut(&mut self) -> &mut Refusals {
        &mut self.refusals
    }

    /// Number of copies of each unit that was copied. No more entries than the leases of the job's
    /// end.
    pub(crate) fn copies(&self) -> &BTreeMap<Place, u8> {
        &self.copies
    }

    /// Units that wait, or waited, for an external resource; until they are committed.
    pub(crate) fn shortages(&self) -> &BTreeMap<Place, Shortage> {
        &self.shortages
    }

    /// Units to be checked that are not leased for it.
    pub(crate) fn to_check(&self) -> &BTreeSet<Place> {
        &self.to_check
    }

    /// Returns the position of the frame at which the cursor is.
    pub(crate) fn reached(&self) -> u32 {
        self.cursor.0
    }

    /// Returns the positions of the units that are kept one by one.
    pub(crate) fn positions(&self) -> impl Iterator<Item = u32> {
        let places = self.ready.keys().chain(self.waiting.keys()).chain(self.redos.keys());
        places.chain(self.shortages.keys()).map(|place| place.position)
    }

    /// Whether some unit is ready again or to be checked; fresh units do not count.
    pub(crate) fn has_exceptions(&self) -> bool {
        !self.ready.is_empty() || !self.to_check.is_empty()
    }

    /// Returns the next unit for a node: a check, then others, each in the order of frames. `avoid`
    /// says whether a place does not suit the node, at least until a time. Removes nothing.
    pub(crate) fn next(
        &mut self,
        id: NodeId,
        job: &Job,
        leases: &Leases,
        avoid: impl Fn(Place, Moment) -> bool,
    ) -> Option<Place> {
        let blame = job.blame();
        let suits = |place: &&Place| {
            let check = job.frames().get(place.position).and_then(|frame| frame.check(place.unit));
            check
                .zip(self.redos.get(*place))
                .is_some_and(|(check, redo)| redo.suits(id, check, blame))
                && !avoid(**place, Moment::default())
        };
        if let Some(place) = self.to_check.iter().take(LOOK_MAX).find(suits) {
            return Some(*place);
        }
        let mut look = self.ready.iter().take(LOOK_MAX);
        if let Some((place, _)) = look.find(|(place, until)| !avoid(**place, **until)) {
            return Some(*place);
        }
        self.scout(job, leases).or_else(|| self.advance(job, leases))
    }

    /// Returns the next unit that goes ahead.
    fn scout(&mut self, job: &Job, leases: &Leases) -> Option<Place> {
        let frame = job.frames().get(0).filter(|_| !job.is_shut(0))?;
        let place = |unit| Place { position: 0, unit: UnitIndex(unit) };
        let waiting = &self.waiting;
        let unit = self.scouts.next(|unit| {
            frame.first_open_unit(unit, &job.grid()) == Some(unit)
                && job.key(place(unit)).is_some_and(|key| !leases.is_leased(key))
                && !waiting.contains_key(&place(unit))
        });
        unit.map(place)
    }

    /// Moves the cursor over everything that cannot be leased, and returns its place.
    fn advance(&mut self, job: &Job, leases: &Leases) -> Option<Place> {
        while let Some(frame) = job.frames().get(self.cursor.0) {
            if job.lacks_feed(self.cursor.0) {
                return None;
            }
            // Frames that wait for another job are passed over, and looked for again later.
            let free = job.next_free(self.cursor.0)?;
            if free > self.cursor.0 {
                self.cursor = (free, 0);
                continue;
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

    /// Whether an open unit can be leased now.
    pub(crate) fn has_fresh(&mut self, job: &Job, leases: &Leases) -> bool {
        !self.ready.is_empty() || self.advance(job, leases).is_some()
    }

    /// Notes that a unit or its check was leased.
    pub(crate) fn lease(&mut self, place: Place) {
        self.take(place);
        self.begun = true;
        self.estimates.note_served();
    }

    /// Notes that a unit was committed.
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

    /// Makes a unit, or its check, ready again.
    pub(crate) fn give_back(&mut self, place: Place, avoid_until: Moment) {
        if self.redos.contains_key(&place) {
            self.to_check.insert(place);
        } else if self.is_behind(place) {
            self.ready.insert(place, avoid_until);
        }
    }

    /// Makes a unit wait until `until`.
    pub(crate) fn put_off(&mut self, place: Place, until: Moment) {
        self.ready.remove(&place);
        self.waiting.insert(place, until);
    }

    /// Ends the wait of a unit. False if it does not wait, or waits longer.
    pub(crate) fn wake(&mut self, place: Place, now: Moment, avoid_until: Moment) -> bool {
        if self.waiting.get(&place).is_none_or(|until| *until > now) {
            return false;
        }
        self.waiting.remove(&place);
        self.give_back(place, avoid_until);
        true
    }

    /// Whether the cursor has passed the unit, or does not look for it, so that only the exceptions
    /// know of it.
    pub(crate) fn is_behind(&self, place: Place) -> bool {
        place.unit.0 >= self.units || (place.position, place.unit.0) < self.cursor
    }

    /// Moves the cursor back, to find all open and unleased units of frames from a position on
    /// again.
    pub(crate) fn rewind(&mut self, position: u32) {
        self.cursor = self.cursor.min((position, 0));
        let mut ready = std::mem::take(&mut self.ready);
        ready.retain(|place, _| self.is_behind(*place));
        self.ready = ready;
    }

    /// Removes all units of a frame.
    pub(crate) fn drop_frame(&mut self, position: u32) {
        self.ready.retain(|place, _| place.position != position);
        self.waiting.retain(|place, _| place.position != position);
        self.shortages.retain(|place, _| place.position != position);
        let checks: Vec<Place> =
            self.redos.keys().filter(|place| place.position == position).copied().collect();
        checks.into_iter().for_each(|place| self.end_check(place));
    }

    /// Removes a unit that is not wanted for now.
    pub(crate) fn shut(&mut self, place: Place) {
        self.end_check(place);
        self.ready.remove(&place);
        self.waiting.remove(&place);
        self.shortages.remove(&place);
    }

    /// Adds the check of a unit.
    pub(crate) fn open_check(&mut self, place: Place, maker: NodeId) {
        if self.redos.insert(place, Redo::new(maker)).is_none() {
            *self.unchecked.entry(maker).or_default() += 1;
        }
        self.to_check.insert(place);
    }

    /// The results so far differ. Nodes that tried the check in vain may try again, because more
    /// depends on it now. `leased`: whether a node is making it.
    pub(crate) fn reopen_check(&mut self, place: Place, leased: bool) {
        if let Some(redo) = self.redos.get_mut(&place) {
            redo.tried.clear();
            if !leased {
                self.to_check.insert(place);
            }
        }
    }

    /// A node did not finish a check. `leased`: whether another node is making it.
    pub(crate) fn fail_check(&mut self, place: Place, node: NodeId, leased: bool) {
        if let Some(redo) = self.redos.get_mut(&place) {
            redo.tried.insert(node);
            if !leased {
                self.to_check.insert(place);
            }
        }
    }

    /// Lets nodes that were heard be asked once more; false if they may be already.
    pub(crate) fn ask_again(&mut self, place: Place) -> bool {
        self.redos.get_mut(&place).is_some_and(|redo| !std::mem::replace(&mut redo.again, true))
    }

    /// Removes the check of a unit.
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

    /// Units to be checked, leased for it or not.
    pub(crate) fn redos(&self) -> impl Iterator<Item = (&Place, &Redo)> {
        self.redos.iter()
    }

    /// Notes that a unit of the job was leased, by this process or a former one.
    pub(crate) fn note_begun(&mut self) {
        self.begun = true;
    }

    /// Notes a shortage of a unit on a node. Returns how often it happened, and for how long so
    /// far.
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

    /// Counts one more copy of a unit.
    pub(crate) fn count_copy(&mut self, place: Place) {
        *self.copies.entry(place).or_default() += 1;
    }

    /// Returns the number of a node's units that are to be checked.
    pub(crate) fn unchecked_of(&self, node: NodeId) -> u32 {
        self.unchecked.get(&node).copied().unwrap_or(0)
    }
}
