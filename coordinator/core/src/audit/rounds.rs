//! Records of the rounds that frames are sampled in.

use super::ledger::Ledger;
use crate::state::rounds::TileSet;
use tessera_protocol::ids::{FrameNumber, JobId, UnitIndex};

/// Facts about the end of a round.
pub(super) struct Measurement<'a> {
    pub(super) round: u32,
    /// Share of the farm's time that the frame has used, in milliseconds.
    pub(super) spent_millis: u64,
    /// Tiles that the next round is for.
    pub(super) going: &'a TileSet,
}

impl Ledger {
    /// Voids the measurements of a frame of which units were taken back, and what was finished of
    /// them.
    pub(super) fn rewind(&mut self, id: JobId, frame: FrameNumber, units: &[UnitIndex]) {
        self.void_pieces(id, frame, units);
        let Some(entry) = self.jobs.get_mut(&id) else { return };
        let grid = entry.grid;
        let Some(rounds) = entry.rounds(frame) else { return };
        let sampled = units.iter().filter(|unit| !grid.is_finishing(**unit));
        let Some(round) = sampled.map(|unit| rounds.round_of(*unit)).min() else { return };
        rounds.rewind(round);
        let rounds = rounds.clone();
        if entry.committed.get(&frame).is_some_and(|units| rounds.check(units).is_err()) {
            self.problem(format!(
                "{id}/{frame} goes back to round {round}, and keeps units of later ones"
            ));
        }
    }

    fn void_pieces(&mut self, id: JobId, frame: FrameNumber, units: &[UnitIndex]) {
        let Some(entry) = self.jobs.get_mut(&id).filter(|entry| entry.is_by_nodes(frame)) else {
            return;
        };
        let grid = entry.grid;
        let samples = units.iter().any(|unit| !grid.is_finishing(*unit));
        if samples {
            entry.finished_by.remove(&frame);
        }
        let void = |unit: &UnitIndex| samples || grid.assembly() == Some(*unit);
        let kept = entry.committed.get(&frame);
        if kept.is_some_and(|kept| grid.pieces().filter(void).any(|unit| kept.get(unit.0))) {
            self.problem(format!("{id}/{frame} keeps what was finished of units taken back"));
        }
    }

    pub(super) fn measure(&mut self, id: JobId, frame: FrameNumber, measured: Measurement<'_>) {
        let Measurement { round, spent_millis, going } = measured;
        let Some(entry) = self.open(id, "a round") else { return };
        let (committed, units, unchecked) = entry.standing(frame);
        let ended = entry.done.contains(&frame) || entry.failed.contains(&frame);
        if committed != units || unchecked > 0 || ended {
            let text = format!(
                "{id}/{frame}: round {round} is measured with {committed} of {units} units, \
                    {unchecked} to be checked"
            );
            return self.problem(text);
        }
        let measured = match entry.rounds(frame) {
            Some(rounds) if spent_millis < rounds.spent_millis() => {
                Err(format!("the time that it has had shrinks from {} ms", rounds.spent_millis()))
            }
            Some(rounds) => {
                rounds.end_round(round, going).map(|()| rounds.note_spent(spent_millis))
            }
            None => Err("a round is measured of a frame without rounds".to_owned()),
        };
        if let Err(problem) = measured {
            self.problem(format!("{id}/{frame}: {problem}"));
        }
    }
}
