//! Finishing of frames by nodes, in the books: which units there are for it, what depends on what,
//! and what each makes. Worked out anew from the decision on finishing units.

use crate::checks::violation::{Checked, violated};
use crate::coordinator::disk::Disk;
use crate::model::books::{Books, FrameBook};
use crate::model::ledger::Ledger;
use crate::model::rounds::spooled;
use crate::world::random::mix;
use tessera_core::ResultShape;
use tessera_protocol::ids::{Epoch, FrameNumber, JobId, Lease, NodeId, UnitIndex, UnitKey};
use tessera_protocol::job::{JobKind, RenderSpec};
use tessera_protocol::node::Piece;
use uuid::Uuid;

/// Frames of so many pixels are left to the coordinator.
const LEFT_TO_COORDINATOR: u32 = 64 * 64;
/// Whole tiles of a band, and of one that is denoised. A plan's frames reach no other bound of a
/// band.
const TILES: [u32; 2] = [512, 128];

/// Who finishes a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FinishedBy {
    #[default]
    Unbegun,
    Nodes,
    /// Nodes have tried in vain.
    Coordinator,
}

/// What nodes make to finish a frame.
pub(crate) fn pieces_of(kind: &JobKind) -> Vec<Piece> {
    let Some(render) = kind.render() else { return Vec::new() };
    let (height, rows) = rows_of(render);
    let bands = |first| Piece::Band { first, rows: rows.min(height - first) };
    match height.div_ceil(rows) {
        0 => Vec::new(),
        1 => vec![Piece::Frame { rows: height }],
        _ => (0..height).step_by(rows as usize).map(bands).chain([Piece::Assembly]).collect(),
    }
}

/// Rows of the files, 0 where they are not cut, and of a band.
fn rows_of(render: &RenderSpec) -> (u32, u32) {
    let [x, y, width, height] = render.crop.map_or([0, 0, render.width, render.height], |crop| {
        [crop.x, crop.y, crop.width, crop.height]
    });
    let beyond = render.overscan;
    let (width, height) = (width + 2 * beyond, height + 2 * beyond);
    if width * height <= LEFT_TO_COORDINATOR {
        return (0, 32);
    }
    // Tiles are cut by the frame and by what is asked for.
    let canvas = |start: u32, length: u32, frame: u32| {
        let (before, after) = (beyond.saturating_sub(start), start + length - beyond);
        before + after.max(frame)
    };
    let across = render.tile.min(canvas(x, width, render.width));
    let down = render.tile.min(canvas(y, height, render.height));
    let tiles = TILES[usize::from(render.denoise)];
    (height, (tiles * across * down / width / 32 * 32).max(32))
}

impl FrameBook {
    /// Units that are committed, without those that finish the frame.
    pub(crate) fn sampled(&self) -> usize {
        self.committed.range(..self.units).count()
    }

    /// Nodes finish the frame.
    pub(crate) fn is_by_nodes(&self) -> bool {
        self.finished_by == FinishedBy::Nodes
    }

    /// The last of several: what it reads are the others.
    pub(crate) fn is_assembly(&self, unit: u32) -> bool {
        self.pieces > 1 && unit + 1 == self.units + self.pieces
    }

    /// A unit that finishes the frame may be committed.
    pub(crate) fn wants_piece(&self, unit: u32) -> bool {
        let bands = self.units..self.units + self.pieces - 1;
        let settled =
            |band: u32| self.committed.contains_key(&band) && !self.checks.contains_key(&band);
        let there = unit < self.units + self.pieces;
        self.is_by_nodes() && there && (!self.is_assembly(unit) || bands.into_iter().all(settled))
    }

    /// Everything that its files are made of is there.
    pub(crate) fn is_whole(&self) -> bool {
        let pieces = if self.is_by_nodes() { self.pieces as usize } else { 0 };
        self.committed.len() == self.wanted() as usize + pieces
    }

    /// Pieces that are void with these units.
    pub(crate) fn pieces_after(&self, units: &[UnitIndex]) -> Vec<u32> {
        if !self.is_by_nodes() || units.is_empty() {
            return Vec::new();
        }
        let samples = units.iter().any(|unit| unit.0 < self.units);
        let other = |unit: u32| units.iter().any(|of| of.0 != unit);
        let void = |unit: &u32| samples || self.is_assembly(*unit) && other(*unit);
        (self.units..self.units + self.pieces).filter(void).collect()
    }

    fn void_pieces(&mut self, units: &[UnitIndex], below: Epoch) -> Option<u32> {
        let after = self.pieces_after(units);
        for unit in &after {
            let before = self.attempts.get(unit).map_or(below, |(epoch, ..)| *epoch);
            self.attempts.insert(*unit, (before.max(below), NodeId(Uuid::nil()), true));
        }
        if self.is_by_nodes() && units.iter().any(|unit| unit.0 < self.units) {
            self.finished_by = FinishedBy::Unbegun;
        }
        after.into_iter().find(|unit| self.committed.contains_key(unit))
    }
}

impl Books {
    /// The unit finishes its frame: clients do not hear of it.
    pub(crate) fn is_piece(&self, unit: UnitKey) -> bool {
        self.frame(unit).is_some_and(|book| unit.unit.0 >= book.units)
    }

    pub(super) fn begin_finishing(&mut self, job: JobId, frame: FrameNumber) -> Checked {
        let book = self.open_frame(job, frame)?;
        let complete = book.sampled() == book.wanted() as usize && book.is_last_round();
        let new = book.finished_by == FinishedBy::Unbegun && book.pieces > 0;
        if !complete || !book.checks.is_empty() || !new {
            return violated(format!("{job}/{frame} is to be finished by nodes: {book:?}"));
        }
        book.finished_by = FinishedBy::Nodes;
        Ok(())
    }

    /// What nodes have made is dropped.
    pub(super) fn close_finishing(&mut self, job: JobId, frame: FrameNumber) -> Checked {
        let book = self.open_frame(job, frame)?;
        if !book.is_by_nodes() {
            return violated(format!("{job}/{frame} is not finished by nodes, and has not been"));
        }
        book.finished_by = FinishedBy::Coordinator;
        let pieces = book.committed.split_off(&book.units);
        for unit in book.units..book.units + book.pieces {
            book.checks.remove(&unit);
            book.attempts.remove(&unit);
            book.verified.remove(&unit);
            book.undone.remove(&unit);
        }
        let key = |unit| UnitKey { job, frame, unit: UnitIndex(unit) };
        self.settled
            .extend(pieces.into_iter().map(|(unit, (epoch, _))| Lease { unit: key(unit), epoch }));
        Ok(())
    }

    pub(super) fn void_pieces(
        &mut self,
        (job, frame): (JobId, FrameNumber),
        units: &[UnitIndex],
        below: Epoch,
    ) -> Checked {
        match self.open_frame(job, frame)?.void_pieces(units, below) {
            Some(unit) => violated(format!("{job}/{frame} keeps unit {unit}, made of lost ones")),
            None => Ok(()),
        }
    }
}

/// What a unit that finishes a frame makes of what it reads.
pub(crate) fn piece_sum(unit: UnitKey, read: u64) -> u64 {
    mix(read ^ mix(0x51ec_e000 + u64::from(unit.unit.0)))
}

impl Ledger {
    /// What the coordinator gives to a node that finishes a part of a frame: results of the spool,
    /// added up.
    pub(crate) fn read_for(&self, unit: UnitKey, disk: &Disk) -> u64 {
        let Some(book) = self.durable.frame(unit) else { return 0 };
        let spool = disk.spool(unit.job, unit.frame);
        let read: Vec<u32> = match book.is_assembly(unit.unit.0) {
            true => (book.units..book.units + book.pieces - 1).collect(),
            false => book.committed.range(..book.units).map(|(unit, _)| *unit).collect(),
        };
        read.into_iter().map(|unit| spooled(book, unit, spool.clone())).fold(0, u64::wrapping_add)
    }

    /// Every piece of a frame is in the spool, and made of what is there now.
    pub(super) fn check_pieces(
        &self,
        (job, frame): (JobId, FrameNumber),
        book: &FrameBook,
        pieces: &[Piece],
        disk: &Disk,
    ) -> Checked {
        for (unit, piece) in (book.units..).zip(pieces) {
            let key = UnitKey { job, frame, unit: UnitIndex(unit) };
            let Some((epoch, node)) = book.committed.get(&unit) else {
                return violated(format!("{key} finishes its frame, and is not committed"));
            };
            let mut entries = disk.spool(job, frame);
            let Some(entry) = entries.find(|of| of.unit.0 == unit && of.epoch == *epoch) else {
                return violated(format!("{key}@{epoch} is committed, and not in the spool"));
            };
            if entry.film.shape != ResultShape::Finished(*piece) {
                return violated(format!("{key} has {:?}, not {piece:?}", entry.film.shape));
            }
            let blind = self.forgers.contains(node) && !book.verified.contains(&unit);
            if !blind && entry.film.sum != piece_sum(key, self.read_for(key, disk)) {
                return violated(format!("{key} is not made of what is in the spool"));
            }
        }
        Ok(())
    }
}
