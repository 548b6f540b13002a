//! Frames that are sampled in rounds, worked out anew from the description: which units a round
//! has, and what is decided after it. A decision is a number that depends on what the tile's
//! results add up to, so that one that was made of wrong results is another one.

use crate::checks::violation::{Checked, violated};
use crate::coordinator::disk::{Disk, Spooled};
use crate::model::books::{FrameBook, JobBook};
use crate::model::film::{shape_of, sum_of};
use crate::model::ledger::Ledger;
use crate::model::tasks::task_of;
use crate::world::random::mix;
use tessera_core::TileSet;
use tessera_protocol::ids::{FrameNumber, JobId, UnitIndex, UnitKey};
use tessera_protocol::job::{CropSpec, JobKind, JobSpec, RenderSpec};
use tessera_protocol::node::SampleRange;

/// Samples of the first two passes; a pass of a plan's jobs never has so many that it is cut.
const FIRST: u32 = 16;
/// Of a thousand decisions, so many are for another round.
const NOISY: u64 = 550;

/// How the rounds of a frame go.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RoundBook {
    spp: u32,
    pub(crate) round: u32,
    /// By tile, the round after which it ended.
    ended: Vec<Option<u32>>,
    /// Rounds are measured.
    noisy: bool,
    /// The job has a time for its frames.
    timed: bool,
    /// The last round that was ever open, and the one after which there was no time left.
    opened: u32,
    stopped: Option<u32>,
}

/// Samples of a pass; None beyond the last.
pub(crate) fn pass_of(render: &RenderSpec, pass: u32) -> Option<SampleRange> {
    let first = if pass == 0 { 0 } else { FIRST << (pass - 1).min(20) };
    let end = (FIRST << pass.min(20)).min(render.spp);
    (first < render.spp).then(|| SampleRange { first, count: end - first })
}

/// Passes of a tile that has so many samples at most.
pub(crate) fn passes_of(spp: u32) -> u32 {
    (1..).take_while(|pass| FIRST << (pass - 1) < spp).count() as u32 + 1
}

/// Makes some jobs sample in rounds, others render a part of their frames, and others large ones,
/// by a number of their own: the other draws of a plan stay what they are.
pub(crate) fn adapt(spec: &mut JobSpec, id: JobId) {
    let number = mix(id.0.as_u128() as u64 ^ (id.0.as_u128() >> 64) as u64);
    let JobKind::Render(render) = &mut spec.kind else { return };
    if (5..8).contains(&(number % 10)) {
        // Frames that nodes finish: in several bands, or in one.
        let (width, height) = (72 + (number >> 8) as u32 % 30, 64 + (number >> 16) as u32 % 33);
        let tile = if (number >> 24).is_multiple_of(2) { 8 } else { 16 };
        (render.width, render.height, render.tile, render.unit_samples) = (width, height, tile, 0);
        render.denoise = render.spp > 1;
    }
    if number % 10 < 3 {
        (render.tile, render.unit_samples) = (32, 0);
        (render.spp, render.noise) = (32 + (number >> 8) as u32 % 170, Some(0.1));
        // A third of them has a time as well, and a third of those no noise.
        if (number >> 32).is_multiple_of(3) {
            (render.spp, render.time_secs) =
                (64 << ((number >> 40) % 3), Some(1 + (number >> 48) as u32 % 200));
            render.noise = render.noise.filter(|_| !(number >> 16).is_multiple_of(3));
        }
    } else if number % 10 < 5 {
        let (x, y) = ((number >> 8) as u32 % render.width, (number >> 24) as u32 % render.height);
        let (width, height) = (render.width - x, render.height - y);
        let (width, height) = (width.div_ceil(1 + x % 2), height.div_ceil(1 + y % 2));
        render.crop = Some(CropSpec { x, y, width, height });
        render.overscan =
            if (number >> 40).is_multiple_of(3) { (number >> 48) as u32 % 20 } else { 0 };
    }
}

/// A job's frames are sampled in rounds.
pub(crate) fn is_in_rounds(render: &RenderSpec) -> bool {
    render.noise.is_some() || render.time_secs.is_some()
}

impl RoundBook {
    /// None of a job that is not sampled in rounds.
    pub(crate) fn of(kind: &JobKind) -> Option<Self> {
        let render = kind.render().filter(|render| is_in_rounds(render))?;
        let tiles = render.width.div_ceil(32) * render.height.div_ceil(32);
        let (noisy, timed) = (render.noise.is_some(), render.time_secs.is_some());
        let ended = vec![None; tiles as usize];
        Some(Self { spp: render.spp, round: 1, ended, noisy, timed, opened: 1, stopped: None })
    }

    fn passes(&self) -> u32 {
        passes_of(self.spp)
    }

    /// The round of a pass.
    fn round_of(&self, unit: u32) -> u32 {
        (unit % self.passes()).max(1)
    }

    /// The unit is of a round so far.
    pub(crate) fn wants(&self, unit: u32) -> bool {
        let end = self.ended.get((unit / self.passes()) as usize).copied();
        end.is_some_and(|end| self.round_of(unit) <= end.unwrap_or(self.round))
    }

    /// Units of all rounds so far.
    pub(crate) fn wanted(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.ended.len() as u32 * self.passes()).filter(|unit| self.wants(*unit))
    }

    /// No round follows.
    pub(crate) fn is_over(&self) -> bool {
        self.round + 1 >= self.passes() || self.ended.iter().all(Option::is_some)
    }

    pub(crate) fn end_round(&mut self, round: u32, going: &TileSet) -> Checked {
        if round != self.round || self.is_over() {
            return violated(format!("round {round} is measured of {self:?}"));
        }
        let (before, none) = (self.ended.clone(), *going == TileSet::default());
        if !self.noisy
            && !none
            && !(0..).zip(&before).all(|(tile, end)| end.is_some() || going.contains(tile))
        {
            return violated(format!("nothing is measured of {self:?}, and some tiles end alone"));
        }
        if self.timed && none {
            if !self.noisy && round < self.opened {
                return violated(format!(
                    "round {round} of {self:?} is the last, and a later one was opened before"
                ));
            }
            self.stopped = Some(round);
        }
        for (tile, end) in (0..).zip(&mut self.ended) {
            match (*end, going.contains(tile)) {
                (Some(_), true) => return violated(format!("tile {tile} goes on, and had ended")),
                (None, false) => *end = Some(round),
                _ => {}
            }
        }
        self.round += u32::from(self.ended.iter().any(Option::is_none));
        self.opened = self.opened.max(self.round);
        Ok(())
    }

    /// The first round of some units.
    pub(crate) fn first_round(&self, units: &[UnitIndex]) -> u32 {
        units.iter().map(|unit| self.round_of(unit.0)).min().unwrap_or(self.round)
    }

    /// The unit is of a round after this one.
    pub(crate) fn is_after(&self, unit: u32, round: u32) -> bool {
        self.round_of(unit) > round
    }

    /// What was decided after this round and later ones is void.
    pub(crate) fn rewind(&mut self, round: u32) {
        self.round = self.round.min(round);
        self.stopped = self.stopped.filter(|stopped| *stopped < round);
        self.ended
            .iter_mut()
            .filter(|end| end.is_some_and(|end| end >= round))
            .for_each(|end| *end = None);
    }
}

/// What is decided of a tile whose results add up to this.
pub(crate) fn is_noisy(sum: u64, round: u32) -> bool {
    mix(sum ^ mix(u64::from(round))) % 1000 < NOISY
}

impl Ledger {
    /// What a frame's spool says of its newest round.
    pub(crate) fn noisy_tiles(
        &self,
        job: JobId,
        frame: FrameNumber,
        disk: &Disk,
    ) -> (u32, TileSet) {
        let book = self.durable.jobs.get(&job).and_then(|book| book.frames.get(&frame));
        let Some((book, rounds)) = book.and_then(|book| Some((book, book.rounds.as_ref()?))) else {
            return (1, TileSet::default());
        };
        let noisy = (0..rounds.ended.len() as u32).filter(|tile| {
            let units = (tile * rounds.passes()..(tile + 1) * rounds.passes())
                .filter(|unit| rounds.wants(*unit));
            let sum = units.map(|unit| spooled(book, unit, disk.spool(job, frame)));
            is_noisy(sum.fold(0, u64::wrapping_add), rounds.round)
        });
        (rounds.round, noisy.collect())
    }

    /// What was decided of a complete frame is what true results decide; of tiles of which somebody
    /// saw to it that the results are true.
    pub(crate) fn check_rounds(
        &self,
        (id, number): (JobId, FrameNumber),
        job: &JobBook,
        frame: &FrameBook,
    ) -> Checked {
        let (Some(rounds), Some(pinned)) = (&frame.rounds, job.pinned) else { return Ok(()) };
        if !rounds.is_over() {
            return violated(format!("{id}/{number} is to be resolved before its last round"));
        }
        let truth = |unit: u32| {
            let key = UnitKey { job: id, frame: number, unit: UnitIndex(unit) };
            let shape = task_of(job.kind(), key).and_then(|task| shape_of(job.kind(), task));
            shape.map_or(0, |shape| sum_of(key, pinned, shape))
        };
        for tile in 0..rounds.ended.len() as u32 {
            let first = tile * rounds.passes();
            let units = first..first + rounds.passes();
            if units.clone().any(|unit| self.may_be_wrong(frame, unit)) {
                continue;
            }
            // Of a frame that had no more time, all that was still to go on ended with that.
            let last = rounds.stopped.map_or(rounds.passes() - 1, |stopped| stopped);
            let decided = (1..last).find(|round| {
                let so_far = units.clone().filter(|unit| !rounds.is_after(*unit, *round));
                rounds.noisy && !is_noisy(so_far.map(truth).fold(0, u64::wrapping_add), *round)
            });
            let decided = decided.or(rounds.stopped);
            if rounds.ended[tile as usize] != decided {
                return violated(format!(
                    "tile {tile} of {id}/{number} ended after {:?}, and true results say \
                        {decided:?}",
                    rounds.ended[tile as usize]
                ));
            }
        }
        Ok(())
    }

    /// Somebody who forges made some of a unit, and nobody rendered it alike.
    fn may_be_wrong(&self, frame: &FrameBook, unit: u32) -> bool {
        match frame.parts.get(&unit) {
            Some(parts) => {
                parts.iter().any(|part| self.forgers.contains(&part.node) && !part.alike)
            }
            None => {
                let maker = frame.committed.get(&unit).map(|(_, node)| node);
                maker.is_some_and(|node| self.forgers.contains(node))
                    && !frame.verified.contains(&unit)
            }
        }
    }
}

/// What the results of a unit in the spool add up to; 0 where they have been taken back meanwhile.
pub(super) fn spooled<'a>(
    book: &FrameBook,
    unit: u32,
    mut spool: impl Iterator<Item = &'a Spooled>,
) -> u64 {
    let whole = book.committed.get(&unit).map(|(epoch, _)| *epoch);
    let parts = book.parts.get(&unit).into_iter().flatten().map(|part| part.epoch);
    let epochs: Vec<_> =
        if book.parts.contains_key(&unit) { parts.collect() } else { whole.into_iter().collect() };
    let films =
        spool.by_ref().filter(|entry| entry.unit.0 == unit && epochs.contains(&entry.epoch));
    films.map(|entry| entry.film.sum).fold(0, u64::wrapping_add)
}
