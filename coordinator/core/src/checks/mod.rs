//! Verification: which results are rendered again by another node, what comes of two that differ,
//! and what of a node that lied.
//!
//! A check is made before its frame is resolved, by a lease like any other, so that a node cannot
//! tell it from work. Where two results differ, further nodes are asked (see `votes`); where
//! there is none, those that were heard are asked once more. A node that lied gets no work while
//! another one lives, and everything that it did in unfinished frames, and that no other node has
//! rendered alike, is done again. Every wait here has an end: a node tries a check once, and a
//! frame that lacks only checks which nobody can make goes on without them, or fails where results
//! differ.

use crate::action::Action;
use crate::core::Core;
use crate::input::{Arrived, SessionId};
use crate::journal::{Record, Redone};
use crate::nodes::roster::{Node, Presence};
use crate::state::frame::Frame;
use crate::state::job::Place;
use crate::state::votes::{Check, Verdict, Vote};
use crate::timers::Timer;
use tessera_protocol::ids::{Epoch, FrameNumber, JobId, Lease, NodeId, UnitIndex, UnitKey};
use tessera_protocol::node::CoordinatorToNode;

impl Core {
    /// Whether another node is to render a result again that is being committed. The share of a
    /// node falls as it becomes known; where the others hold no more than what they are to check
    /// already, they cannot keep up, and it is not chosen.
    pub(crate) fn is_to_be_checked(&self, id: NodeId, lease: Lease) -> bool {
        let trust = self.farm.trust();
        if self.settings.secret.draw(lease, id) >= trust.share(id, &self.settings) {
            return false;
        }
        if trust.suspect_of(id).is_some() {
            return true;
        }
        let (Some(job), Some(work)) =
            (self.farm.job(lease.unit.job), self.queues.get(&lease.unit.job))
        else {
            return false;
        };
        let pending = work.unchecked_of(id);
        let mut room = 0;
        let others = self.roster.iter().filter(|(other, _)| **other != id);
        others.filter(|(other, node)| self.may_work_at(**other, node, job)).any(|(_, node)| {
            room += node.capacity();
            room > pending
        })
    }

    /// A node may have units of a job now, if it has room.
    pub(crate) fn may_work_at(
        &self,
        id: NodeId,
        node: &Node,
        job: &crate::state::job::Job,
    ) -> bool {
        node.capacity() > 0
            && self.is_ready(id, node)
            && job.fingerprint().is_none_or(|pinned| pinned == node.fingerprint())
            && self.usable(id, node, job).next().is_some()
    }

    /// The check that a unit waits for.
    pub(crate) fn check_of(&self, unit: UnitKey) -> Option<&Check> {
        self.farm.job(unit.job)?.frame(unit.frame)?.check(unit.unit)
    }

    /// A unit that has been committed is to be checked.
    pub(crate) fn open_check(&mut self, unit: UnitKey, maker: NodeId) {
        if let Some((place, work)) = self.open_unit(unit, "a check begins of no open job") {
            work.open_check(place, maker);
            self.offer_job(unit.job);
            self.look_at_checks(unit.job, unit.frame);
        }
    }

    /// The check of a unit has ended; of a unit in parts, that of its next part may begin.
    fn end_check(&mut self, unit: UnitKey) {
        if let Some((place, work)) = self.open_unit(unit, "a check ends of no open job") {
            work.end_check(place);
        }
        if let Some(maker) = self.check_of(unit).map(|check| check.committed().node) {
            self.open_check(unit, maker);
        }
    }

    /// Checks of a frame that nobody makes are looked at later.
    fn look_at_checks(&mut self, job: JobId, frame: FrameNumber) {
        if self.looks.insert((job, frame)) {
            self.timers.set(self.now.after(self.settings.check_wait), Timer::Checks(job, frame));
        }
    }

    /// Whether a node may take a unit: one that is to be checked needs a node that has not been
    /// heard about it.
    pub(crate) fn may_take(&self, id: NodeId, unit: UnitKey) -> bool {
        let Some(check) = self.check_of(unit) else { return true };
        let place = self.farm.job(unit.job).and_then(|job| job.place(unit));
        let work = self.queues.get(&unit.job);
        place
            .zip(work)
            .and_then(|(place, work)| work.redo(place))
            .is_some_and(|redo| redo.suits(id, check))
    }

    /// The result of a lease whose unit is committed already: it is compared, and not kept.
    pub(crate) fn on_redone(&mut self, node: NodeId, session: SessionId, result: &Arrived) {
        let (lease, hash) = (result.lease, result.hash);
        let Lease { unit, epoch } = lease;
        let Some(check) = self.check_of(unit).cloned() else {
            return self.fault("a result is compared and its unit is not to be checked");
        };
        self.leases.end(epoch);
        self.act(Action::DropResult { session, lease });
        // It has been compared, and is not kept; that it was a check, the node learns no sooner
        // than now.
        self.send(session, CoordinatorToNode::Unwanted { lease });
        self.note_result(node, result);
        let verdict = check.verdict(&Vote { node, epoch, hash });
        let redone = Redone { unit: unit.unit, epoch, node, hash };
        self.record(Record::UnitChecked { job: unit.job, frame: unit.frame, redone });
        let goes_on = self.check_of(unit).is_some_and(|now| now.committed() == check.committed());
        let place = self.farm.job(unit.job).and_then(|job| job.place(unit));
        match (goes_on, place, self.queues.get_mut(&unit.job)) {
            // A copy of it goes on, as one more vote.
            (true, Some(place), Some(work)) => {
                work.reopen_check(place, self.leases.is_leased(unit))
            }
            _ => {
                self.stop_copy(unit, epoch);
                self.end_check(unit);
            }
        }
        match verdict {
            Some(verdict) => self.judge(unit, &verdict),
            None if goes_on && self.check_of(unit).is_some_and(Check::is_exhausted) => {
                return self.give_up(unit);
            }
            None => self.offer_job(unit.job),
        }
        self.ask_if_due(unit.job, unit.frame);
    }

    /// Every node that said something else than the truth is found out.
    fn judge(&mut self, unit: UnitKey, verdict: &Verdict) {
        for node in &verdict.guilty {
            let reason = format!("its result of {unit} is not what the others have");
            self.suspect(*node, reason, true);
        }
    }

    /// Nobody can tell which of several results is right: the frame fails, and none of their nodes
    /// is trusted before it has been looked at.
    fn give_up(&mut self, unit: UnitKey) {
        let Some(check) = self.check_of(unit) else {
            return self.fault("a check is given up that is over");
        };
        let nodes = check.nodes();
        let names: Vec<String> =
            nodes.iter().map(|node| format!("`{}`", self.name_of(*node))).collect();
        let names = names.join(" and ");
        for node in nodes {
            let reason = format!(
                "{unit} came out differently on {names}, and nobody could tell which is right"
            );
            self.suspect(node, reason, false);
        }
        let text = format!(
            "unit u{:05} came out differently on {names}, and no other node was there to tell \
             which is right; look \
             at them with `tessera doctor`, or add a node, and submit the frame again",
            unit.unit.0
        );
        self.fail_frame(unit.job, unit.frame, text);
    }

    pub(crate) fn name_of(&self, node: NodeId) -> String {
        let listed = self.roster.get(node).map(|node| node.name());
        let suspect = || Some(self.farm.trust().suspect_of(node)?.name.as_str());
        listed.or_else(suspect).map_or_else(|| node.to_string(), str::to_owned)
    }

    fn suspect(&mut self, node: NodeId, reason: String, guilty: bool) {
        let (name, at) = (self.name_of(node), self.now);
        // A doubt does not take a proof away.
        let guilty = guilty || self.farm.trust().is_guilty(node);
        self.record(Record::NodeSuspected { node, name, at, reason, guilty });
        if guilty {
            self.take_away(node);
        }
        self.redo_all_of(node);
        self.dirty.mark_all();
    }

    /// Everything that a node did in frames that are not finished, and that no other node has
    /// rendered alike, is open again.
    fn redo_all_of(&mut self, node: NodeId) {
        let jobs: Vec<JobId> = self.queues.keys().copied().collect();
        for id in jobs {
            let Some(job) = self.farm.job(id) else {
                self.fault("an open job is unknown");
                continue;
            };
            let unfinished = (0..).zip(job.frames()).filter_map(|(position, frame)| {
                let open = frame.unfinished()?;
                let (units, begun) = (open.unverified_of(node), open.open_parts_of(node));
                let some = !units.is_empty() || !begun.is_empty();
                some.then_some((position, job.number(position)?, units, begun))
            });
            let taken: Vec<(u32, FrameNumber, Vec<UnitIndex>, Vec<UnitIndex>)> =
                unfinished.collect();
            for (position, frame, units, begun) in taken {
                if !begun.is_empty() {
                    self.drop_parts(id, frame, begun);
                }
                if !units.is_empty() {
                    self.open_again(id, position, frame, units);
                }
            }
        }
    }

    /// Parts of open units are not wanted any more. Whoever renders the rest renders too little.
    fn drop_parts(&mut self, job: JobId, frame: FrameNumber, units: Vec<UnitIndex>) {
        let leased = self.revoke_leases(job, frame, &units);
        let below = self.epochs.next();
        self.record(Record::PartsDropped { job, frame, units, below });
        leased.into_iter().for_each(|unit| self.give_back(unit, self.now));
    }

    /// Ends the leases of units; gives the units that were leased.
    fn revoke_leases(
        &mut self,
        job: JobId,
        frame: FrameNumber,
        units: &[UnitIndex],
    ) -> Vec<UnitKey> {
        let mut leased = Vec::new();
        for unit in units.iter().map(|unit| UnitKey { job, frame, unit: *unit }) {
            let epochs: Vec<Epoch> = self.leases.of_unit(unit).collect();
            if !epochs.is_empty() {
                leased.push(unit);
            }
            epochs.into_iter().for_each(|epoch| self.revoke(unit, epoch));
        }
        leased
    }

    /// With the units, what was measured of them is void, and with it all units of later rounds.
    fn open_again(
        &mut self,
        job: JobId,
        position: u32,
        frame: FrameNumber,
        mut units: Vec<UnitIndex>,
    ) {
        let later = self.close_later_rounds(job, frame, &mut units);
        // A check of a part that is under way is about fewer samples than the unit has.
        let unfinished = self.farm.job(job).and_then(|job| job.frame(frame)?.unfinished());
        let in_parts: Vec<UnitIndex> = unfinished.map_or_else(Vec::new, |open| {
            units.iter().copied().filter(|unit| open.parts().has(*unit)).collect()
        });
        self.revoke_leases(job, frame, &in_parts);
        let below = self.epochs.next();
        self.record(Record::UnitsTakenBack { job, frame, units: units.clone(), below });
        // An order to resolve it may be under way: what comes of that is not wanted.
        self.resolves.remove(&(job, frame));
        if let Some(stale) = self.resolving.get_mut(&(job, frame)) {
            *stale = true;
        }
        for unit in &later {
            if let Some(work) = self.queues.get_mut(&job) {
                work.shut(Place { position, unit: *unit });
            }
        }
        units.retain(|unit| later.binary_search(unit).is_err());
        for unit in units {
            let leased = self.leases.is_leased(UnitKey { job, frame, unit });
            let Some(work) = self.queues.get_mut(&job) else {
                return self.fault("units are taken back of no open job");
            };
            let place = Place { position, unit };
            work.end_check(place);
            // A check that is under way has become the unit's own lease, and its copy the unit's.
            if !leased {
                work.give_back(place, self.now);
            }
        }
        self.offer_job(job);
    }

    /// Units of the rounds after those of `units` are not to be rendered now: those of them that
    /// are committed are to be taken back with the others. Gives them all.
    fn close_later_rounds(
        &mut self,
        job: JobId,
        frame: FrameNumber,
        units: &mut Vec<UnitIndex>,
    ) -> Vec<UnitIndex> {
        let unfinished = self.farm.job(job).and_then(|job| job.frame(frame)?.unfinished());
        let Some(open) = unfinished else { return Vec::new() };
        let later = open.units_after(units);
        let is_committed = |unit: &&UnitIndex| open.committed().get(unit.0);
        let begun: Vec<UnitIndex> = later
            .iter()
            .filter(|unit| open.parts().has(**unit) && !is_committed(unit))
            .copied()
            .collect();
        units.extend(later.iter().filter(is_committed));
        units.sort_unstable();
        units.dedup();
        if !begun.is_empty() {
            self.drop_parts(job, frame, begun);
        }
        self.revoke_leases(job, frame, &later);
        later
    }

    /// A lease of a check ended without a result: that node tries it no more.
    pub(crate) fn give_up_check(&mut self, node: NodeId, unit: UnitKey) {
        let leased = self.leases.is_leased(unit);
        if let Some((place, work)) = self.open_unit(unit, "a check fails of no open job") {
            work.fail_check(place, node, leased);
            self.offer_job(unit.job);
        }
    }

    /// Goes through the checks of a frame that nobody is making.
    pub(crate) fn on_checks_due(&mut self, id: JobId, number: FrameNumber) {
        self.looks.remove(&(id, number));
        let Some(job) = self.farm.job(id).filter(|job| !job.is_final()) else { return };
        let Some(Frame::Open(open)) = job.frame(number) else { return };
        if job.paused().is_some() {
            // Nobody is to make them now, so nothing is said by nobody making them.
            if !open.checks().is_empty() {
                self.look_at_checks(id, number);
            }
            return;
        }
        let last = open.has_all(&job.grid());
        let units: Vec<UnitIndex> = open.checks().keys().copied().collect();
        for unit in units {
            let unit = UnitKey { job: id, frame: number, unit };
            if !self.move_check_on(unit, last) {
                return;
            }
        }
        let waits = self.farm.job(id).and_then(|job| job.frame(number)?.unfinished());
        if waits.is_some_and(|open| !open.checks().is_empty()) {
            self.look_at_checks(id, number);
        }
        self.ask_if_due(id, number);
    }

    /// Sees to it that a check ends; false where its frame has ended with it. `last`: its frame
    /// waits for nothing but checks.
    fn move_check_on(&mut self, unit: UnitKey, last: bool) -> bool {
        let Some(check) = self.check_of(unit).filter(|_| !self.leases.is_leased(unit)) else {
            return true;
        };
        let disputed = check.is_disputed();
        if self.somebody_may_take(unit) {
            return true;
        }
        if disputed {
            // Whoever was heard is heard once more: one that contradicts itself lies.
            let redo = self.open_unit(unit, "a check is open of no open job");
            if redo.is_some_and(|(place, work)| work.ask_again(place)) {
                self.offer_job(unit.job);
                return true;
            }
            if last {
                self.give_up(unit);
                return false;
            }
        } else if last {
            self.record(Record::CheckWaived { job: unit.job, frame: unit.frame, unit: unit.unit });
            self.end_check(unit);
        }
        true
    }

    fn somebody_may_take(&self, unit: UnitKey) -> bool {
        let Some(job) = self.farm.job(unit.job) else { return false };
        let tried = job
            .place(unit)
            .zip(self.queues.get(&unit.job))
            .and_then(|(place, work)| work.redo(place));
        if tried.is_some_and(|redo| redo.tried() >= usize::from(self.settings.attempts)) {
            return false;
        }
        let mut nodes = self.roster.iter();
        nodes.any(|(id, node)| self.may_take(*id, unit) && self.may_work_at(*id, node, job))
    }

    /// A node that lied gets no work while another one lives that may have some.
    pub(crate) fn is_barred(&self, id: NodeId) -> bool {
        let trust = self.farm.trust();
        let may_work = |(other, node): (&NodeId, &Node)| {
            *other != id
                && node.presence() != Presence::Lost
                && !node.leaving()
                && node.devices().iter().any(crate::nodes::devices::is_ready)
                && !self.farm.is_drained(*other)
                && !trust.is_guilty(*other)
        };
        trust.is_guilty(id) && self.roster.iter().any(may_work)
    }

    /// An operator trusts a node again.
    pub(crate) fn release_node(&mut self, node: NodeId) {
        if self.farm.trust().suspect_of(node).is_some() {
            self.record(Record::NodeReleased { node });
        }
        if let Some(known) = self.roster.get_mut(node) {
            known.forgive();
        }
        self.dirty.mark_all();
    }

    /// Takes up the checks of a job after a restart.
    pub(crate) fn take_up_checks(&mut self, id: JobId) {
        let Some(job) = self.farm.job(id) else {
            return self.fault("an open job is unknown");
        };
        let open = (0..).zip(job.frames()).filter_map(|(position, frame)| {
            let number = job.number(position)?;
            frame.unfinished().map(|open| (number, open))
        });
        let checks: Vec<(UnitKey, NodeId)> = open
            .flat_map(|(frame, open)| {
                let key = move |unit| UnitKey { job: id, frame, unit };
                open.checks().iter().map(move |(unit, check)| (key(*unit), check.committed().node))
            })
            .collect();
        for (unit, maker) in checks {
            self.open_check(unit, maker);
        }
    }
}
