//! What nodes have finished of a frame so far: which of its finishing units may be committed, and
//! which are void with others. Data only; `frames::finish` decides.

use crate::splitter::Split;
use crate::state::finishing::Finishing;
use crate::state::frame::OpenFrame;
use tessera_protocol::ids::{Epoch, NodeId, UnitIndex};
use tessera_protocol::node::Piece;

impl OpenFrame {
    pub(crate) fn finishing(&self) -> Finishing {
        self.finishing
    }

    /// Whether nodes finish the frame.
    pub(crate) fn is_finished_by_nodes(&self) -> bool {
        self.finishing == Finishing::ByNodes
    }

    /// Whether a finishing unit may be leased or is committed: bands from the beginning on, the
    /// assembly once all bands are committed and none is to be checked.
    pub(super) fn has_piece(&self, piece: Piece, split: &Split) -> bool {
        let is_settled =
            |band: u32| self.committed.get(band) && !self.checks.contains_key(&UnitIndex(band));
        self.is_finished_by_nodes() && (piece != Piece::Assembly || split.bands().all(is_settled))
    }

    /// Returns the number of committed units that are sampled.
    pub(crate) fn sampled(&self, split: &Split) -> u32 {
        self.committed.ones_below(split.units())
    }

    /// Whether every finishing unit that may be committed is.
    pub(super) fn has_all_pieces(&self, split: &Split) -> bool {
        !self.is_finished_by_nodes()
            || split.pieces().all(|unit| self.committed.get(unit.0) || !self.has(unit, split))
    }

    /// Returns the finishing units that depend on these units.
    pub(super) fn pieces_after(&self, units: &[UnitIndex], split: &Split) -> Vec<UnitIndex> {
        if !self.is_finished_by_nodes() || units.is_empty() {
            return Vec::new();
        }
        match units.iter().all(|unit| split.is_finishing(*unit)) {
            true => {
                let assembly = split.assembly().into_iter();
                assembly.filter(|assembly| units.iter().any(|unit| unit != assembly)).collect()
            }
            false => split.pieces().collect(),
        }
    }

    /// Voids what depends on units that were taken back: results of leases below an epoch are
    /// refused. False if some of it is still committed.
    pub(super) fn void_pieces(&mut self, taken: &[UnitIndex], below: Epoch, split: &Split) -> bool {
        let after = self.pieces_after(taken, split);
        for unit in &after {
            self.disown(*unit, below, NodeId(Default::default()));
        }
        if taken.iter().any(|unit| !split.is_finishing(*unit)) && self.is_finished_by_nodes() {
            self.finishing = Finishing::Unbegun;
        }
        after.iter().all(|unit| !self.committed.get(unit.0))
    }

    /// Lets nodes finish the frame. False if that has been decided before.
    pub(super) fn begin_finishing(&mut self) -> bool {
        let is_new = self.finishing == Finishing::Unbegun;
        self.finishing = Finishing::ByNodes;
        is_new
    }

    /// Lets the coordinator finish the frame, and drops what nodes have made of it. False if nodes
    /// did not finish it.
    pub(super) fn close_finishing(&mut self, split: &Split) -> bool {
        let was = std::mem::replace(&mut self.finishing, Finishing::ByCoordinator);
        for unit in split.pieces() {
            self.committed.clear(unit.0);
            self.verified.clear(unit.0);
            self.committed_by.clear(unit);
            self.checks.remove(&unit);
            self.troubled.remove(&unit);
        }
        was == Finishing::ByNodes
    }

    /// Whether what is said of finishing units agrees with the frame: they are committed only
    /// where nodes finish it, and that has begun only where all samples are in.
    pub(super) fn is_finishing_sound(&self, split: &Split) -> bool {
        match self.finishing {
            Finishing::ByNodes => self.sampled(split) == self.units(split),
            _ => self.committed.ones() == self.sampled(split),
        }
    }
}
