//! A unit's film on the wire: fixed-point sums, stored by channel, shuffled by byte and compressed
//! with zstd.
//!
//! Layout: `"TSUM"`, u8 format version, u8 channels, u16 width, u16 height, u32 samples (all little
//! endian), then the compressed planes. A sum is an i64 in units of 2^-24. Sums of the same tile
//! are added in any order.

use crate::VersionError;
use crate::limits::{RESULT_BYTES_MAX, SPP_MAX, TILE_EDGE_MAX};
use std::cell::RefCell;

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
        let FilmHead { width, height, channels, samples } = FilmHead::of(bytes)?;
        let values = decompressed(bytes, unshuffle)?;
        Ok(Self { width, height, channels, samples, values })
    }
}

/// What a film says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilmHead {
    /// Pixels across, 1 to [`TILE_EDGE_MAX`].
    pub width: u16,
    /// Pixels down, 1 to [`TILE_EDGE_MAX`].
    pub height: u16,
    /// Channels, 1 to [`CHANNELS_MAX`].
    pub channels: u8,
    /// Samples per pixel.
    pub samples: u32,
}

impl FilmHead {
    /// Reads the header of a film, and looks at nothing else.
    pub fn of(bytes: &[u8]) -> Result<Self, FilmError> {
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
        match good {
            true => Ok(Self { width, height, channels, samples }),
            false => Err(FilmError::Header(format!(
                "{width} × {height}, {channels} channels, {samples} samples"
            ))),
        }
    }

    /// Checks that a film can be decoded, without making its sums.
    pub fn checked(bytes: &[u8]) -> Result<Self, FilmError> {
        let head = Self::of(bytes)?;
        decompressed(bytes, |_| ())?;
        Ok(head)
    }

    /// Returns the bytes of the sums.
    pub fn sums_bytes(&self) -> usize {
        usize::from(self.width) * usize::from(self.height) * usize::from(self.channels) * 8
    }
}

/// Bytes of a decoder's buffer that a thread keeps.
const KEPT_BYTES: usize = 1 << 20;

thread_local! {
    /// A decoder and its buffer, which most films fit. Making them takes as long as small films do.
    static DECODER: RefCell<Option<(zstd::bulk::Decompressor<'static>, Vec<u8>)>> =
        const { RefCell::new(None) };
}

/// Decompresses the planes of a film whose header is good, and uses them.
fn decompressed<T>(bytes: &[u8], used: impl FnOnce(&[u8]) -> T) -> Result<T, FilmError> {
    let length = FilmHead::of(bytes)?.sums_bytes();
    DECODER.with_borrow_mut(|kept| {
        let (mut decoder, mut planes) = match kept.take() {
            Some(kept) => kept,
            None => (zstd::bulk::Decompressor::new().map_err(|_| FilmError::Damaged)?, Vec::new()),
        };
        planes.clear();
        planes.reserve_exact(length);
        let found = decoder.decompress_to_buffer(&bytes[HEADER_BYTES..], &mut planes);
        let whole = found.is_ok_and(|found| found == length) && planes.len() == length;
        let result = if whole { Ok(used(&planes)) } else { Err(FilmError::Damaged) };
        planes.truncate(0);
        planes.shrink_to(KEPT_BYTES);
        *kept = Some((decoder, planes));
        result
    })
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
    let plane = |byte: usize| &planes[byte * count..][..count];
    let [a, b, c, d] = [0, 1, 2, 3].map(plane);
    let [e, f, g, h] = [4, 5, 6, 7].map(plane);
    let value = |at: usize| [a[at], b[at], c[at], d[at], e[at], f[at], g[at], h[at]];
    (0..count).map(|at| i64::from_le_bytes(value(at))).collect()
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

    #[test]
    fn a_check_says_what_decoding_says() {
        let good = film(9).to_bytes();
        let mut samples = vec![good.clone(), good[..10].to_vec(), good[..good.len() - 1].to_vec()];
        for at in 0..good.len() {
            let mut other = good.clone();
            other[at] ^= 0x11;
            samples.push(other);
        }
        for bytes in samples {
            let decoded = TileSums::from_bytes(&bytes).map(|film| {
                let TileSums { width, height, channels, samples, .. } = film;
                FilmHead { width, height, channels, samples }
            });
            assert_eq!(FilmHead::checked(&bytes), decoded, "{bytes:?}");
        }
        // A large film leaves no large buffer to its thread, and the next one is read as well.
        let large = TileSums::empty(512, 512, 4);
        assert_eq!(TileSums::from_bytes(&large.to_bytes()), Ok(large));
        assert_eq!(TileSums::from_bytes(&good), Ok(film(9)));
    }
}
