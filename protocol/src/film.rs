//! A unit's film on the wire: fixed-point sums, stored by channel, shuffled by byte and compressed
//! with zstd.
//!
//! Layout: `"TSUM"`, u8 format version, u8 channels, u16 width, u16 height, u32 samples (all little
//! endian), then the compressed planes. A sum is an i64 in units of 2^-24. Sums of the same tile
//! are added in any order.

use crate::VersionError;
use crate::limits::{RESULT_BYTES_MAX, SPP_MAX, TILE_EDGE_MAX};

/// Fractional bits of a sum.
pub const FRACTION_BITS: u32 = 24;
/// Most channels of a film: beauty 3, albedo 3, normal 3, depth 1, position 3, coverage 1, half 3,
/// and room for more.
pub const CHANNELS_MAX: u8 = 32;
const MAGIC: [u8; 4] = *b"TSUM";
const VERSION: u8 = 1;
const HEADER_BYTES: usize = 14;

/// Sums of one tile over a number of samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TileSums {
    /// Pixels across, 1 to [`TILE_EDGE_MAX`].
    pub width: u16,
    /// Pixels down, 1 to [`TILE_EDGE_MAX`].
    pub height: u16,
    /// Channels, 1 to [`CHANNELS_MAX`].
    pub channels: u8,
    /// Samples per pixel in the sums.
    pub samples: u32,
    /// `channels × height × width` sums: channel c of pixel (x, y) is at
    /// `(c * height + y) * width + x`.
    pub values: Vec<i64>,
}

/// Why bytes cannot be decoded as a film, or why two films cannot be added.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilmError {
    /// The bytes are not a film, or are cut short.
    #[error("not a tile film")]
    Foreign,
    /// Another build wrote the film in a version that this build does not read.
    #[error(transparent)]
    Version(#[from] VersionError),
    /// Dimensions, channels or samples are out of range.
    #[error("tile film header is out of range: {0}")]
    Header(String),
    /// The planes do not decompress to the header's size.
    #[error("tile film is damaged")]
    Damaged,
    /// Films of different shapes, or with too many samples together, cannot be added.
    #[error("tile films of different shapes or too many samples cannot be added")]
    Shape,
}

impl TileSums {
    /// Creates a film of no samples. All sums are zero.
    pub fn empty(width: u16, height: u16, channels: u8) -> Self {
        let count = usize::from(width) * usize::from(height) * usize::from(channels);
        Self { width, height, channels, samples: 0, values: vec![0; count] }
    }

    /// Adds another film of the same tile. An error leaves this film unchanged.
    pub fn add(&mut self, other: &TileSums) -> Result<(), FilmError> {
        let shape = |film: &TileSums| (film.width, film.height, film.channels, film.values.len());
        let samples = self.samples.checked_add(other.samples).filter(|total| *total <= SPP_MAX);
        let (true, Some(samples)) = (shape(self) == shape(other), samples) else {
            return Err(FilmError::Shape);
        };
        self.samples = samples;
        for (sum, value) in self.values.iter_mut().zip(&other.values) {
            *sum = sum.wrapping_add(*value);
        }
        Ok(())
    }

    /// Encodes the film for the wire.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES + self.values.len() * 4);
        bytes.extend_from_slice(&MAGIC);
        bytes.push(VERSION);
        bytes.push(self.channels);
        bytes.extend_from_slice(&self.width.to_le_bytes());
        bytes.extend_from_slice(&self.height.to_le_bytes());
        bytes.extend_from_slice(&self.samples.to_le_bytes());
        let planes = zstd::bulk::compress(&shuffle(&self.values), 1)
            .expect("zstd compresses any bytes into a buffer that it sizes itself");
        bytes.extend_from_slice(&planes);
        bytes
    }

    /// Decodes a film. Allocates no more than the header's checked dimensions need.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, FilmError> {
        let header = bytes.first_chunk::<HEADER_BYTES>().ok_or(FilmError::Foreign)?;
        if header[..4] != MAGIC || bytes.len() > RESULT_BYTES_MAX {
            return Err(FilmError::Foreign);
        }
        VersionError::check("film", header[4].into(), (VERSION.into(), VERSION.into()))?;
        let channels = header[5];
        let width = u16::from_le_bytes([header[6], header[7]]);
        let height = u16::from_le_bytes([header[8], header[9]]);
        let samples = u32::from_le_bytes([header[10], header[11], header[12], header[13]]);
        let edge = 1..=TILE_EDGE_MAX;
        let good = edge.contains(&u32::from(width))
            && edge.contains(&u32::from(height))
            && (1..=CHANNELS_MAX).contains(&channels)
            && samples <= SPP_MAX;
        if !good {
            return Err(FilmError::Header(format!(
                "{width} × {height}, {channels} channels, {samples} samples"
            )));
        }
        let count = usize::from(width) * usize::from(height) * usize::from(channels);
        let planes = zstd::bulk::decompress(&bytes[HEADER_BYTES..], count * 8)
            .map_err(|_| FilmError::Damaged)?;
        if planes.len() != count * 8 {
            return Err(FilmError::Damaged);
        }
        Ok(Self { width, height, channels, samples, values: unshuffle(&planes) })
    }
}

/// Puts byte 0 of all values first, then byte 1 of all values, and so on. Similar bytes become
/// neighbours and compress better.
fn shuffle(values: &[i64]) -> Vec<u8> {
    let mut planes = vec![0; values.len() * 8];
    for (byte, plane) in planes.chunks_exact_mut(values.len().max(1)).enumerate() {
        for (target, value) in plane.iter_mut().zip(values) {
            *target = (value >> (8 * byte)) as u8;
        }
    }
    planes
}

fn unshuffle(planes: &[u8]) -> Vec<i64> {
    let count = planes.len() / 8;
    let mut values = vec![0i64; count];
    for (byte, plane) in planes.chunks_exact(count.max(1)).enumerate() {
        for (value, source) in values.iter_mut().zip(plane) {
            *value |= i64::from(*source) << (8 * byte);
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    fn film(seed: i64) -> TileSums {
        let mut film = TileSums::empty(5, 3, 4);
        film.samples = 2;
        for (index, value) in film.values.iter_mut().enumerate() {
            *value = (index as i64 - 20).wrapping_mul(0x0123_4567_89ab_cdef).wrapping_mul(seed);
        }
        film
    }

    #[test]
    fn a_film_survives_the_wire() {
        let film = film(7);
        assert_eq!(TileSums::from_bytes(&film.to_bytes()), Ok(film));
    }

    #[test]
    fn films_add_in_any_order() {
        let (mut a, mut b) = (film(3), film(5));
        a.add(&film(5)).unwrap();
        b.add(&film(3)).unwrap();
        assert_eq!(a, b);
        assert_eq!(a.samples, 4);
    }

    #[test]
    fn a_film_of_another_shape_is_not_added() {
        let mut target = film(1);
        assert_eq!(target.add(&TileSums::empty(3, 5, 4)), Err(FilmError::Shape));
        assert_eq!(target, film(1));
    }

    #[test]
    fn damage_is_seen() {
        let bytes = film(9).to_bytes();
        assert_eq!(TileSums::from_bytes(&bytes[..10]), Err(FilmError::Foreign));
        assert_eq!(TileSums::from_bytes(&bytes[..bytes.len() - 1]), Err(FilmError::Damaged));
        let mut huge = bytes.clone();
        huge[6..10].copy_from_slice(&[0xff; 4]);
        assert!(matches!(TileSums::from_bytes(&huge), Err(FilmError::Header(_))));
        let mut other = bytes;
        other[8] = 2;
        assert_eq!(TileSums::from_bytes(&other), Err(FilmError::Damaged));
    }
}
