//! What a node may say that is not true: of old epochs, of epochs never issued, of leases that are
//! not its own.

use crate::faults::Fault;
use crate::model::film::{Film, sum_of};
use crate::model::finishing::piece_sum;
use crate::model::parts::{cut, size_of};
use crate::world::World;
use crate::world::events::Parcel;
use tessera_core::{FilmShape, ResultShape};
use tessera_protocol::ids::{Epoch, JobId, Lease, UnitIndex};
use tessera_protocol::node::{Failure, Heartbeat, NodeToCoordinator};

/// Leases of others that a lie is about are among this many of the newest.
const RECENT: usize = 60;

impl World {
    /// Leases that other nodes have or had lately.
    pub(crate) fn leases_of_others(&mut self, node: usize, count: usize) -> Vec<Lease> {
        let id = self.nodes[node].plan.id;
        let recent =
            self.ledger.leases.iter().rev().take(RECENT).filter(|(_, holder)| *holder != id);
        let recent: Vec<Lease> = recent.map(|(lease, _)| *lease).collect();
        (0..count).filter_map(|_| self.random.pick(&recent)).collect()
    }

    /// Leases that nobody ever had: units and epochs of others, mixed.
    pub(crate) fn mixed_leases(&mut self, node: usize, count: usize) -> Vec<Lease> {
        let (units, epochs) =
            (self.leases_of_others(node, count), self.leases_of_others(node, count));
        units
            .iter()
            .zip(&epochs)
            .map(|(unit, epoch)| Lease { epoch: epoch.epoch, ..*unit })
            .collect()
    }

    /// An opportunity for each kind of lie.
    pub(crate) fn lie(&mut self, node: usize, heartbeat: &mut Heartbeat) {
        if self.chance(Fault::FalseBeat) {
            heartbeat.leases.extend(self.leases_of_others(node, 5));
        }
        if self.chance(Fault::StaleEpoch) {
            let past = std::mem::take(&mut self.nodes[node].past);
            let old = self.random.pick(&past);
            self.nodes[node].past = past;
            self.claim(node, old, |lease| lease);
        }
        let other = self.leases_of_others(node, 1).first().copied();
        if self.chance(Fault::UnissuedEpoch) {
            // The next marks, or the next leases.
            let ahead = self.random.between(1, 2_000) << [0, 24][self.random.index(2)];
            self.claim(node, other, |lease| Lease { epoch: Epoch(lease.epoch.0 + ahead), ..lease });
        }
        if self.chance(Fault::ForeignLease) {
            self.claim(node, other, |lease| lease);
        }
        if self.chance(Fault::BorrowedEpoch) {
            let mixed = self.mixed_leases(node, 1).first().copied();
            self.claim(node, mixed, |lease| lease);
        }
        if self.chance(Fault::UnknownUnit) {
            self.claim(node, other, |mut lease| {
                lease.unit.unit = UnitIndex(lease.unit.unit.0 + 10_000);
                lease
            });
        }
        if self.chance(Fault::UnknownJob) {
            self.claim(node, other, |mut lease| {
                lease.unit.job = JobId(uuid::Uuid::from_u128(7));
                lease
            });
        }
        let Some(lease) = other else { return };
        if self.chance(Fault::FalseFailure) {
            self.control(
                node,
                NodeToCoordinator::Failed { lease, failure: Failure::Device("a lie".to_owned()) },
            );
        }
        if self.chance(Fault::FalseReturn) {
            self.control(node, NodeToCoordinator::Returned { leases: vec![lease] });
        }
        let link = self.nodes[node].process.as_ref().and_then(|process| process.link);
        if let Some(link) = link
            && self.chance(Fault::FalseDamage)
        {
            self.send_up(link, Parcel::Damaged(lease), 0);
        }
    }

    /// Sends a result that looks well, under a lease that is not the node's.
    fn claim(&mut self, node: usize, lease: Option<Lease>, change: impl FnOnce(Lease) -> Lease) {
        let link = self.nodes[node].process.as_ref().and_then(|process| process.link);
        let (Some(lease), Some(link)) = (lease, link) else { return };
        let fingerprint = self.nodes[node].fingerprint;
        let kind = self.ledger.durable.jobs.get(&lease.unit.job).map(|job| job.kind().clone());
        let claimed = change(lease);
        let film = kind.and_then(|kind| {
            let task = crate::model::tasks::task_of(&kind, lease.unit)?;
            let some = self.random.permille(200) && size_of(task) > 1;
            let task = if some { cut(task, 0, 1) } else { task };
            Film::of(claimed.unit, fingerprint, &kind, task)
        });
        let film = film.unwrap_or_else(|| {
            let shape = ResultShape::Film(FilmShape {
                width: 8,
                height: 8,
                channels: 3,
                first: 0,
                samples: 1,
            });
            Film { sum: sum_of(claimed.unit, fingerprint, shape), shape }
        });
        let film = match film.shape {
            // The lease may be the node's own and good after all; then this is what it would make.
            ResultShape::Finished(_) => {
                let read = self.ledger.read_for(claimed.unit, &self.disk);
                Film { sum: piece_sum(claimed.unit, read), ..film }
            }
            ResultShape::Film(_) | ResultShape::Chunk(_) => film,
        };
        self.send_up(link, Parcel::Result(claimed, film), 0);
    }
}
