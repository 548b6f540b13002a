//! Which known answers a device has given, and which it owes. A pure state machine: knows no
//! process and no clock.

use crate::device::known_answer::Kind;
use std::collections::{BTreeMap, BTreeSet};

/// Known answers of one worker.
#[derive(Default)]
pub(super) struct Proof {
    /// Kinds that are to be asked, whatever is held.
    owed: BTreeSet<Kind>,
    /// Kinds whose answer this worker has given.
    given: BTreeSet<Kind>,
    /// Tests that the worker has, by their numbers.
    open: BTreeMap<u64, Kind>,
    /// Number of the first test of those that were asked together, if none of them was taken back.
    first: Option<u64>,
}

impl Proof {
    /// A worker is new: it has given nothing, and owes the answers of all that it has loaded.
    pub(super) fn begin(&mut self) {
        *self = Self { owed: Kind::of_set(false).into(), ..Self::default() };
    }

    /// Whether units of this kind may be given to the worker: it has given every answer of the set
    /// of kernels that computes them.
    pub(super) fn covers(&self, kind: Kind) -> bool {
        Kind::of_set(kind.scene.instances).iter().all(|kind| self.given.contains(kind))
    }

    /// Whether units may be given at all.
    pub(super) fn serves(&self) -> bool {
        Kind::of_set(false).iter().all(|kind| self.given.contains(kind))
    }

    /// A unit of this kind waits: the worker owes every answer of its set of kernels.
    pub(super) fn owe(&mut self, kind: Kind) {
        if !self.covers(kind) {
            self.owed.extend(Kind::of_set(kind.scene.instances));
        }
    }

    /// The device may have been harmed: it owes again what it has given.
    pub(super) fn doubt(&mut self) {
        self.owed.extend(&self.given);
    }

    /// Whether the worker owes an answer.
    pub(super) fn is_owed(&self) -> bool {
        !self.owed.is_empty()
    }

    /// Takes the kinds to ask now: those that are owed, and those of the work that waits for it.
    pub(super) fn take_owed(&mut self, work: impl Iterator<Item = Kind>) -> BTreeSet<Kind> {
        let mut kinds = std::mem::take(&mut self.owed);
        kinds.extend(work);
        kinds
    }

    /// A test was given to the worker. Tests that are asked together have consecutive numbers.
    pub(super) fn asked(&mut self, test: u64, kind: Kind) {
        if self.open.is_empty() {
            self.first = Some(test);
        }
        self.open.insert(test, kind);
    }

    /// A test could not be done now; it is owed again. Nothing is released by those that were
    /// asked with it.
    pub(super) fn take_back(&mut self, test: u64) {
        self.owed.extend(self.open.remove(&test));
        self.first = None;
    }

    /// Whether the worker is asked about kernels of which it has not given every answer yet.
    pub(super) fn asks_anew(&self) -> bool {
        self.open.values().any(|kind| !self.covers(*kind))
    }

    /// Returns the kind of a test.
    pub(super) fn kind_of(&self, test: u64) -> Option<Kind> {
        self.open.get(&test).copied()
    }

    /// The answer to a test was right. With the last of those that were asked together, returns
    /// the number of the first: what was computed before it is proven.
    pub(super) fn right(&mut self, test: u64) -> Option<u64> {
        self.given.extend(self.open.remove(&test));
        if self.open.is_empty() { self.first.take() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: bool = false;
    const INSTANCES: bool = true;

    /// A worker that is asked what it owes, from a number on.
    fn ask(proof: &mut Proof, first: u64) -> u64 {
        let kinds = proof.take_owed(std::iter::empty());
        let end = first + kinds.len() as u64;
        for (test, kind) in (first..).zip(kinds) {
            proof.asked(test, kind);
        }
        end
    }

    #[test]
    fn a_worker_serves_when_it_has_given_every_answer_of_a_set() {
        let mut proof = Proof::default();
        proof.begin();
        assert_eq!((ask(&mut proof, 1), proof.is_owed()), (5, false));
        for test in 1..4 {
            assert_eq!((proof.right(test), proof.serves()), (None, false));
        }
        assert_eq!((proof.right(4), proof.serves()), (Some(1), true));
        let [plain, instances] = [PLAIN, INSTANCES].map(|set| Kind::of_set(set)[0]);
        assert!(proof.covers(plain) && !proof.covers(instances));
        proof.owe(plain);
        assert!(!proof.is_owed());
        assert!(!proof.asks_anew());
        proof.owe(instances);
        assert_eq!(ask(&mut proof, 9), 13);
        assert!(proof.asks_anew());
        let released: Vec<_> = (9..13).map(|test| proof.right(test)).collect();
        assert_eq!(released, [None, None, None, Some(9)]);
        assert!(proof.covers(instances));
        proof.doubt();
        assert_eq!(ask(&mut proof, 20), 28);
        assert!(!proof.asks_anew(), "it has given them all before");
    }

    #[test]
    fn a_test_that_is_taken_back_releases_nothing_and_is_owed() {
        let mut proof = Proof::default();
        proof.begin();
        ask(&mut proof, 1);
        proof.take_back(2);
        assert_eq!([1, 3, 4].map(|test| proof.right(test)), [None; 3]);
        assert!(proof.is_owed() && !proof.serves());
        assert_eq!(ask(&mut proof, 7), 8);
        assert_eq!((proof.right(7), proof.serves()), (Some(7), true));
    }

    #[test]
    fn the_kinds_of_held_work_are_asked_for() {
        let mut proof = Proof::default();
        let staged = Kind::of_set(INSTANCES)[1];
        let kinds = proof.take_owed([staged, staged].into_iter());
        assert_eq!(kinds, BTreeSet::from([staged]));
    }
}
