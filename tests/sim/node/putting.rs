//! What a node does with results where they are kept in a bucket: it puts them, those of a frame
//! together, and then says so. Where it cannot, it sends the bytes.

use crate::checks::violation::Checked;
use crate::coordinator::bucket::{frame_of, object_of};
use crate::faults::Fault;
use crate::faults::planted::Planted;
use crate::model::film::Film;
use crate::situations::sometimes;
use crate::world::World;
use crate::world::events::{LinkId, NodeEvent, Parcel};
use tessera_protocol::ids::Lease;

/// A node that could not put an object tries none for so long, milliseconds.
const REST: u64 = 5_000;
/// Results of one object at most.
const TOGETHER: usize = 4;

impl World {
    /// Offers all results of the outbox in a new session.
    pub(super) fn offer_all(&mut self, node: usize) -> Checked {
        let outbox: Vec<Lease> = self.nodes[node].outbox.keys().copied().collect();
        if self.bucket.is_none() {
            return outbox.into_iter().try_for_each(|lease| self.offer(node, lease));
        }
        let mut of_frames = outbox.chunk_by(|one, next| frame_of(*one) == frame_of(*next));
        let of_frames: Vec<Vec<Lease>> = of_frames
            .by_ref()
            .flat_map(|frame| frame.chunks(TOGETHER).map(<[Lease]>::to_vec))
            .collect();
        of_frames.into_iter().try_for_each(|leases| self.store(node, &leases))
    }

    /// Whether a node puts its results itself.
    pub(super) fn stores(&self, node: usize) -> bool {
        self.bucket.is_some() && self.nodes[node].no_bucket_until <= self.now
    }

    /// Puts results of one frame that are in the outbox, or begins to.
    pub(super) fn store(&mut self, node: usize, leases: &[Lease]) -> Checked {
        let Some(link) = self.nodes[node].process.as_ref().and_then(|process| process.link) else {
            return Ok(());
        };
        if !self.stores(node) {
            return leases.iter().try_for_each(|lease| self.offer(node, *lease));
        }
        if !self.is_bucket_there() {
            self.nodes[node].no_bucket_until = self.now + REST;
            sometimes!(self, PutInVain);
            return leases.iter().try_for_each(|lease| self.offer(node, *lease));
        }
        match self.may_hand_in(link, leases) {
            None => {
                let soon = self.random.between(10, 200);
                self.wait_for_put(node, link, soon, NodeEvent::PutAgain(link, leases.to_vec()));
                return Ok(());
            }
            // It is told so of each, before anything else happens.
            Some(false) => {
                let results = self.in_outbox(node, leases);
                if !self.refuse_offer(link, results)? {
                    let later = self.random.between(500, 5_000);
                    self.wait_for_put(
                        node,
                        link,
                        later,
                        NodeEvent::PutAgain(link, leases.to_vec()),
                    );
                }
                return Ok(());
            }
            Some(true) => {}
        }
        let lease_millis = self.plan.settings.lease.as_millis() as u64;
        let early = self.planted.as_ref().is_some_and(Planted::says_stored_early);
        if early || self.chance(Fault::PutSlow) {
            let slow = self.random.between(500, lease_millis + 5_000);
            self.wait_for_put(node, link, slow, NodeEvent::Put(link, leases.to_vec()));
            return match early {
                true => self.say_stored(node, link, self.in_outbox(node, leases)),
                false => Ok(()),
            };
        }
        self.put_and_say(node, link, leases)
    }

    fn wait_for_put(&mut self, node: usize, link: LinkId, millis: u64, event: NodeEvent) {
        if let Some(link) = self.links.links.get_mut(&link) {
            link.up += 1;
        }
        self.node_after(node, millis, event);
    }

    /// The bytes of results are there, or they are to be put again.
    pub(super) fn on_put(
        &mut self,
        node: usize,
        (link, leases): (LinkId, Vec<Lease>),
        again: bool,
    ) -> Checked {
        if let Some(link) = self.links.links.get_mut(&link) {
            link.up -= 1;
        }
        if self.nodes[node].process.as_ref().is_none_or(|process| process.link != Some(link)) {
            // The next session has offered them.
            return Ok(());
        }
        let has = |lease: &Lease| self.nodes[node].outbox.contains_key(lease);
        let leases: Vec<Lease> = leases.into_iter().filter(has).collect();
        match again || !self.is_bucket_there() {
            true if leases.is_empty() => Ok(()),
            true => self.store(node, &leases),
            false => self.put_and_say(node, link, &leases),
        }
    }

    fn put_and_say(&mut self, node: usize, link: LinkId, leases: &[Lease]) -> Checked {
        let results = self.in_outbox(node, leases);
        let Some((first, _)) = results.first() else { return Ok(()) };
        let object = object_of(self.nodes[node].plan.id, &results);
        self.put((frame_of(*first), object), &results)?;
        if self.chance(Fault::PutUnanswered) {
            let later = self.random.between(500, 5_000);
            self.wait_for_put(node, link, later, NodeEvent::PutAgain(link, leases.to_vec()));
            return Ok(());
        }
        self.say_stored(node, link, results)
    }

    fn in_outbox(&self, node: usize, leases: &[Lease]) -> Vec<(Lease, Film)> {
        let film = |lease: &Lease| Some((*lease, *self.nodes[node].outbox.get(lease)?));
        leases.iter().filter_map(film).collect()
    }

    /// Says of results that they are stored, if there are any.
    fn say_stored(&mut self, node: usize, link: LinkId, results: Vec<(Lease, Film)>) -> Checked {
        if results.is_empty() {
            return Ok(());
        }
        let lease_millis = self.plan.settings.lease.as_millis() as u64;
        let slow = if self.chance(Fault::ResultSlow) { lease_millis } else { 0 };
        let slow = slow + self.random.between(1, 300);
        let object = object_of(self.nodes[node].plan.id, &results);
        if self.chance(Fault::ResultRepeated) {
            let again = slow + self.random.between(1, 5_000);
            self.send_up(link, Parcel::Stored(results.clone(), object), again);
        }
        self.send_up(link, Parcel::Stored(results, object), slow);
        Ok(())
    }

    /// Whether the coordinator at the other end would take one of the results; None before the
    /// session begins.
    fn may_hand_in(&self, link: LinkId, leases: &[Lease]) -> Option<bool> {
        let link = self.links.links.get(&link)?;
        let session = link.session?;
        let core = self.core_of(link.incarnation);
        Some(core.is_some_and(|core| core.may_hand_in(session, leases)))
    }
}
