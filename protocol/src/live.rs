//! Live tiles: the mean of what a node has rendered of a tile, as half floats, for people who watch
//! the frame. They are sent as well as may be, kept nowhere, and no picture is made from them.

use crate::ids::{FrameNumber, JobId, Lease};
use crate::limits::{FRAME_EDGE_MAX, OVERSCAN_MAX, SPP_MAX, TILE_EDGE_MAX};
use crate::node::SampleRange;
use crate::tile::TileRect;
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Longest edge of a mean in values. A larger tile is sent with fewer values than it has pixels.
pub const LIVE_EDGE_MAX: u32 = 64;
/// Bytes of a value: R, G and B as half floats.
pub const LIVE_VALUE_BYTES: usize = 6;
/// Most bytes of a mean: 64 × 64 × 3 × 2 are 24 KiB.
pub const LIVE_BYTES_MAX: usize = (LIVE_EDGE_MAX * LIVE_EDGE_MAX) as usize * LIVE_VALUE_BYTES;
/// Longest message with a live tile: the mean, and less than 100 bytes about it.
pub const LIVE_MESSAGE_MAX: usize = LIVE_BYTES_MAX + 128;
/// Most frames and jobs that can be watched at a time: 256 × 32 bytes are 8 KiB for each node.
pub const WATCHED_MAX: usize = 256;

/// What somebody watches: a frame, or all frames of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Watched {
    /// Job that is watched.
    pub job: JobId,
    /// Frame that is watched; None for all of them.
    pub frame: Option<FrameNumber>,
}

impl Watched {
    /// Returns whether a frame is watched by this.
    pub fn has(&self, job: JobId, frame: FrameNumber) -> bool {
        self.job == job && self.frame.is_none_or(|watched| watched == frame)
    }
}

/// The mean of a unit's samples.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveTile {
    /// Lease of the unit.
    pub lease: Lease,
    /// Pixels that it shows.
    pub tile: TileRect,
    /// Samples of each pixel that are in the mean.
    pub samples: SampleRange,
    /// The values, row by row: R, G and B of each, linear, little endian. Each is the mean of a
    /// square of [`live_step`] pixels, or of what the tile has of it.
    pub values: LiveValues,
}

/// Returns the edge in pixels of the squares that a tile's values stand for.
pub fn live_step(tile: &TileRect) -> u32 {
    tile.width.max(tile.height).div_ceil(LIVE_EDGE_MAX).max(1)
}

/// Returns the number of values across and down of a tile.
pub fn live_size(tile: &TileRect) -> (u32, u32) {
    let step = live_step(tile);
    (tile.width.div_ceil(step), tile.height.div_ceil(step))
}

/// Why a live tile is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LiveTileError {
    /// The tile is empty, too large, or outside every frame.
    #[error("a live tile of {width} × {height} pixels at {x}, {y} is out of range")]
    Tile {
        /// Left edge.
        x: u32,
        /// Top edge.
        y: u32,
        /// Width in pixels.
        width: u32,
        /// Height in pixels.
        height: u32,
    },
    /// The samples are none, or too many.
    #[error("a live tile of {count} samples from {first} on is out of range")]
    Samples {
        /// First sample.
        first: u32,
        /// Number of samples.
        count: u32,
    },
    /// The bytes are not those of the tile.
    #[error("a live tile has {found} bytes of values, and its tile needs {needed}")]
    Values {
        /// Bytes that came.
        found: usize,
        /// Bytes that the tile needs.
        needed: usize,
    },
}

impl LiveTile {
    /// Checks that tile and samples are in their ranges and that the values are those of the tile.
    pub fn check(&self) -> Result<(), LiveTileError> {
        let TileRect { x, y, width, height } = self.tile;
        let edge = 1..=TILE_EDGE_MAX;
        let place = FRAME_EDGE_MAX + 2 * OVERSCAN_MAX;
        if !edge.contains(&width) || !edge.contains(&height) || x.max(y) > place {
            return Err(LiveTileError::Tile { x, y, width, height });
        }
        let SampleRange { first, count } = self.samples;
        if count == 0 || first.checked_add(count).is_none_or(|end| end > SPP_MAX) {
            return Err(LiveTileError::Samples { first, count });
        }
        let (across, down) = live_size(&self.tile);
        let needed = (across * down) as usize * LIVE_VALUE_BYTES;
        match self.values.0.len() {
            found if found == needed => Ok(()),
            found => Err(LiveTileError::Values { found, needed }),
        }
    }
}

/// Bytes of values, at most [`LIVE_BYTES_MAX`]. They cross the wire as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveValues(pub Vec<u8>);

impl Serialize for LiveValues {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for LiveValues {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(Bytes)
    }
}

/// Reads values. It takes no more than the limit, whatever a length says.
struct Bytes;

impl Bytes {
    fn bounded<E: Error>(length: usize) -> Result<(), E> {
        match length <= LIVE_BYTES_MAX {
            true => Ok(()),
            false => Err(E::invalid_length(length, &"at most 24 KiB of values")),
        }
    }
}

impl<'de> Visitor<'de> for Bytes {
    type Value = LiveValues;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the values of a live tile")
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<LiveValues, E> {
        Self::bounded(bytes.len())?;
        Ok(LiveValues(bytes.to_vec()))
    }

    fn visit_byte_buf<E: Error>(self, bytes: Vec<u8>) -> Result<LiveValues, E> {
        Self::bounded(bytes.len())?;
        Ok(LiveValues(bytes))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut bytes: A) -> Result<LiveValues, A::Error> {
        let mut values = Vec::new();
        while let Some(byte) = bytes.next_element()? {
            Self::bounded(values.len() + 1)?;
            values.push(byte);
        }
        Ok(LiveValues(values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{Epoch, UnitIndex, UnitKey};

    fn tile(width: u32, height: u32, bytes: usize) -> LiveTile {
        let unit = UnitKey { job: JobId::default(), frame: FrameNumber(3), unit: UnitIndex(1) };
        LiveTile {
            lease: Lease { unit, epoch: Epoch(9) },
            tile: TileRect { x: 64, y: 0, width, height },
            samples: SampleRange { first: 16, count: 8 },
            values: LiveValues(vec![0; bytes]),
        }
    }

    #[test]
    fn a_tile_of_any_size_has_at_most_24_kib_of_values() {
        for (width, height, across, down) in
            [(1, 1, 1, 1), (64, 64, 64, 64), (65, 64, 33, 32), (512, 512, 64, 64), (512, 8, 64, 1)]
        {
            let bytes = across * down * LIVE_VALUE_BYTES;
            assert!(bytes <= LIVE_BYTES_MAX);
            let good = tile(width, height, bytes);
            assert_eq!(good.check(), Ok(()), "{width} × {height}");
            let encoded = crate::encode(&good).expect("it is short");
            assert!(encoded.len() <= LIVE_MESSAGE_MAX, "{}", encoded.len());
            assert_eq!(crate::decode::<LiveTile>(&encoded).expect("it is whole"), good);
        }
    }

    // promise: P8
    #[test]
    fn live_tiles_out_of_range_are_refused() {
        let values = |found| LiveTileError::Values { found, needed: LIVE_BYTES_MAX };
        for found in [0, LIVE_BYTES_MAX - 6, LIVE_BYTES_MAX + 6] {
            assert_eq!(tile(64, 64, found).check(), Err(values(found)));
        }
        for (width, height) in [(0, 1), (1, 0), (513, 1), (1, u32::MAX)] {
            let refused = tile(width, height, 6).check();
            assert!(matches!(refused, Err(LiveTileError::Tile { .. })), "{refused:?}");
        }
        for (first, count) in [(0, 0), (SPP_MAX, 1), (u32::MAX, 2), (0, SPP_MAX + 1)] {
            let refused =
                LiveTile { samples: SampleRange { first, count }, ..tile(1, 1, 6) }.check();
            assert_eq!(refused, Err(LiveTileError::Samples { first, count }));
        }
        let long = crate::encode(&tile(64, 64, LIVE_BYTES_MAX + 1)).expect("it is short");
        assert!(crate::decode::<LiveTile>(&long).is_err(), "it is not even read");
    }

    #[test]
    fn a_job_is_watched_with_all_its_frames() {
        let (job, other) = (JobId::new(), JobId::new());
        let one = Watched { job, frame: Some(FrameNumber(2)) };
        assert!(one.has(job, FrameNumber(2)) && !one.has(job, FrameNumber(3)));
        let all = Watched { job, frame: None };
        assert!(all.has(job, FrameNumber(3)) && !all.has(other, FrameNumber(3)));
    }
}
