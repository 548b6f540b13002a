//! Results without pixels: a number that depends on unit and fingerprint alone, as the same-bits
//! law says, and adds up as films do.

use crate::world::random::mix;
use tessera_core::{Arrived, FilmShape, ResultShape};
use tessera_protocol::ids::{BlobHash, Fingerprint, Lease, UnitKey};
use tessera_protocol::job::JobKind;
use tessera_protocol::node::{Piece, SampleRange, Task, TileRect};

/// The sums of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Film {
    pub(crate) sum: u64,
    pub(crate) shape: ResultShape,
}

/// What a unit renders to; of a film, the sum of its samples.
pub(crate) fn sum_of(unit: UnitKey, fingerprint: Fingerprint, shape: ResultShape) -> u64 {
    let job = unit.job.0.as_u128();
    let place = u64::from(unit.frame.0) << 32 | u64::from(unit.unit.0);
    let whole =
        mix(mix(job as u64 ^ (job >> 64) as u64) ^ mix(place) ^ u64::from(fingerprint.0[0]));
    match shape {
        ResultShape::Film(film) => {
            let samples = film.first..film.first.saturating_add(film.samples);
            samples.fold(0, |sum, sample| sum.wrapping_add(mix(whole ^ mix(u64::from(sample)))))
        }
        ResultShape::Chunk(_) | ResultShape::Finished(_) => whole,
    }
}

/// What the result of a unit looks like; None where the task is not of such a job.
pub(crate) fn shape_of(kind: &JobKind, task: Task) -> Option<ResultShape> {
    match (kind, task) {
        (JobKind::Render(render), Task::Tile { tile, samples }) => {
            Some(film_of(tile, samples, render.channels()))
        }
        (JobKind::Compute(compute), Task::Chunk { count, .. }) => {
            Some(ResultShape::Chunk(compute.chunk_shape(count)))
        }
        (JobKind::Render(_), Task::Finish(finish)) => Some(ResultShape::Finished(finish.piece)),
        _ => None,
    }
}

/// The film of a tile.
pub(crate) fn film_of(tile: TileRect, samples: SampleRange, channels: u8) -> ResultShape {
    let TileRect { width, height, .. } = tile;
    ResultShape::Film(FilmShape {
        width,
        height,
        channels,
        first: samples.first,
        samples: samples.count,
    })
}

/// A shape that looks well and is wrong.
pub(crate) fn other_shape(shape: ResultShape) -> ResultShape {
    match shape {
        // Not other samples: some of them would be a part.
        ResultShape::Film(film) => ResultShape::Film(FilmShape { width: film.width + 1, ..film }),
        ResultShape::Chunk(mut chunk) => {
            chunk.bytes += 1;
            ResultShape::Chunk(chunk)
        }
        ResultShape::Finished(Piece::Assembly) => ResultShape::Finished(Piece::Frame { rows: 1 }),
        ResultShape::Finished(_) => ResultShape::Finished(Piece::Assembly),
    }
}

/// The name of a result with these sums.
pub(crate) fn hash_of(sum: u64) -> BlobHash {
    let mut hash = [0; 32];
    hash[..8].copy_from_slice(&sum.to_le_bytes());
    BlobHash(hash)
}

impl Film {
    /// None where the task is not of such a job.
    pub(crate) fn of(
        unit: UnitKey,
        fingerprint: Fingerprint,
        kind: &JobKind,
        task: Task,
    ) -> Option<Self> {
        let shape = shape_of(kind, task)?;
        Some(Self { sum: sum_of(unit, fingerprint, shape), shape })
    }

    /// How it arrives.
    pub(crate) fn arrived(&self, lease: Lease) -> Arrived {
        Arrived {
            lease,
            hash: hash_of(self.sum),
            shape: self.shape,
            device: 0,
            device_micros: 1000,
            waited_micros: 0,
            device_bytes: 0,
        }
    }
}
