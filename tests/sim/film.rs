//! Results without pixels: a number that depends on unit and fingerprint alone, as the same-bits law says, and adds up as films do.

use crate::random::mix;
use tessera_core::{Arrived, FilmShape};
use tessera_protocol::ids::{BlobHash, Fingerprint, Lease, UnitKey};
use tessera_protocol::job::RenderSpec;
use tessera_protocol::node::{SampleRange, TileRect};

/// The sums of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Film {
    pub(crate) sum: u64,
    pub(crate) shape: FilmShape,
}

/// What a unit renders to.
pub(crate) fn sum_of(unit: UnitKey, fingerprint: Fingerprint) -> u64 {
    let job = unit.job.0.as_u128();
    let place = u64::from(unit.frame.0) << 32 | u64::from(unit.unit.0);
    mix(mix(job as u64 ^ (job >> 64) as u64) ^ mix(place) ^ u64::from(fingerprint.0[0]))
}

/// What the film of a unit looks like.
pub(crate) fn shape_of(render: &RenderSpec, tile: TileRect, samples: SampleRange) -> FilmShape {
    let TileRect { width, height, .. } = tile;
    FilmShape { width, height, channels: render.channels(), samples: samples.count }
}

impl Film {
    pub(crate) fn of(
        unit: UnitKey,
        fingerprint: Fingerprint,
        render: &RenderSpec,
        tile: TileRect,
        samples: SampleRange,
    ) -> Self {
        Self { sum: sum_of(unit, fingerprint), shape: shape_of(render, tile, samples) }
    }

    /// How it arrives.
    pub(crate) fn arrived(&self, lease: Lease) -> Arrived {
        let mut hash = [0; 32];
        hash[..8].copy_from_slice(&self.sum.to_le_bytes());
        Arrived {
            lease,
            hash: BlobHash(hash),
            shape: self.shape,
            device: 0,
            device_micros: 1000,
            device_bytes: 0,
        }
    }
}
