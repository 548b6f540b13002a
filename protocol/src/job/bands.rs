//! How a frame is finished in units: cut into bands of rows of its files. Depends on the options
//! alone, so that every build cuts a job alike.

use super::{FormatSpec, RenderSpec};

/// A frame of at most so many pixels (64 × 64) has no finishing units: the coordinator finishes it
/// in less time than the messages of a unit take.
pub const FINISH_PIXELS_MIN: u64 = 1 << 12;
/// Pixels of a band that is denoised: a quarter of a 1080p frame, some seconds of a CPU.
const DENOISED_PIXELS: u64 = 1 << 19;
/// Pixels of a band that is not denoised: two 1080p frames, about a second of a CPU.
const PLAIN_PIXELS: u64 = 1 << 22;
/// Whole tiles that a denoised band has at most, so that it reads a bounded number of films.
const DENOISED_TILES: u64 = 128;
/// The same of a band that is not denoised. A 1080p frame in tiles of 64 pixels is one band.
const PLAIN_TILES: u64 = 512;
/// Bytes of what is made of a band, without compression. It fits into a result, also where it does
/// not compress.
const BYTES: u64 = 56 << 20;
/// Most bytes of the rows of all display formats of a frame, without compression: one unit makes
/// these files whole. The coordinator finishes frames with more; 16 megapixels are 48 MB of PNG.
const SHOWN_BYTES_MAX: u64 = 64 << 20;
/// Bands hold multiples of so many rows. EXR files compress at most so many together.
const ROWS: u32 = 32;

/// The bands of a frame, from the top.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bands {
    /// Rows of the frame's files; 0 if it is not cut.
    height: u32,
    /// Rows of a band; the last may have fewer.
    rows: u32,
}

impl Bands {
    /// Cuts the frames of a job.
    ///
    /// With `t` the pixels of a whole tile and `b` the bytes of a pixel, a band has as many rows as
    /// hold `min(2^22, 512 t, 56 MiB / b)` pixels, or `min(2^19, 128 t, 56 MiB / b)` if it is
    /// denoised, rounded down to a multiple of 32.
    pub fn of(spec: &RenderSpec) -> Self {
        let window = spec.data_window();
        let shown = window.pixels().saturating_mul(shown_bytes(spec));
        if window.pixels() <= FINISH_PIXELS_MIN || shown > SHOWN_BYTES_MAX {
            return Self { height: 0, rows: ROWS };
        }
        let (wanted, tiles) = match spec.denoise {
            true => (DENOISED_PIXELS, DENOISED_TILES),
            false => (PLAIN_PIXELS, PLAIN_TILES),
        };
        let tiles = tiles * spec.tiles().tile_pixels_max();
        let pixels = wanted.min(tiles).min(BYTES / pixel_bytes(spec));
        let rows = pixels / u64::from(window.width().max(1));
        let rows = u32::try_from(rows).unwrap_or(u32::MAX) / ROWS * ROWS;
        Self { height: window.height(), rows: rows.max(ROWS) }
    }

    /// Returns the number of rows of the frame's files; 0 if it is not cut.
    pub fn height(&self) -> u32 {
        self.height
    }

    /// Returns the number of bands; 0 if nodes do not finish the frame.
    pub fn count(&self) -> u32 {
        self.height.div_ceil(self.rows)
    }

    /// Returns the number of finishing units: the bands, and the assembly of several.
    pub fn units(&self) -> u32 {
        self.count() + u32::from(self.count() > 1)
    }

    /// Returns the first row and the number of rows of a band; None beyond the last.
    pub fn band(&self, index: u32) -> Option<(u32, u32)> {
        let first = index.checked_mul(self.rows).filter(|first| *first < self.height)?;
        Some((first, self.rows.min(self.height - first)))
    }
}

/// Bytes of a pixel in what is made of a band, at most: the layers, and 12 for the pixels that are
/// handed on or the rows of a PNG. The noisy picture of a denoised frame takes the place of the
/// plane of halves, if there is one.
fn pixel_bytes(spec: &RenderSpec) -> u64 {
    let noisy = if spec.denoise && !spec.has_half() { 3 } else { 0 };
    let samples = u64::from(spec.has_rounds());
    4 * (u64::from(spec.channels()) + 3 + noisy + samples)
}

/// Bytes of a pixel in the rows of all display formats, with alpha where there may be one.
fn shown_bytes(spec: &RenderSpec) -> u64 {
    let values = if spec.transparent { 4 } else { 3 };
    let of = |format: &FormatSpec| match format {
        FormatSpec::Exr => 0,
        FormatSpec::Jpeg => 3,
        FormatSpec::Png => values,
        FormatSpec::Png16 => 2 * values,
    };
    spec.formats.iter().map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bands(width: u32, height: u32, change: impl FnOnce(&mut RenderSpec)) -> Vec<(u32, u32)> {
        let mut spec = RenderSpec { width, height, tile: 64, spp: 2, ..RenderSpec::default() };
        change(&mut spec);
        let bands = Bands::of(&spec);
        assert_eq!(bands.band(bands.count()), None);
        (0..bands.count()).filter_map(|index| bands.band(index)).collect()
    }

    #[test]
    fn bands_are_multiples_of_32_rows() {
        let denoised = bands(1920, 1080, |spec| spec.denoise = true);
        assert_eq!(denoised, [(0, 256), (256, 256), (512, 256), (768, 256), (1024, 56)]);
        // 512 tiles of 4,096 pixels are 1,092 rows, and of 1,024 pixels 273.
        assert_eq!(bands(1920, 1080, |_| {}), [(0, 1080)]);
        assert_eq!(bands(1920, 1080, |spec| spec.tile = 32), denoised);
        let large = |spec: &mut RenderSpec| spec.tile = 512;
        assert_eq!(bands(3840, 2160, large), [(0, 608), (608, 608), (1216, 608), (1824, 336)]);
        // One row of tiles at least.
        assert_eq!(bands(32_768, 40, |_| {}), [(0, 32), (32, 8)]);
    }

    #[test]
    fn a_small_frame_is_not_cut() {
        assert!(bands(64, 64, |_| {}).is_empty());
        assert_eq!(bands(65, 64, |_| {}), [(0, 64)]);
    }

    #[test]
    fn a_frame_whose_shown_files_may_be_too_long_is_not_cut() {
        let count = |width, height, format, transparent| {
            let of = |spec: &mut RenderSpec| {
                spec.formats = vec![FormatSpec::Exr, format];
                spec.transparent = transparent;
            };
            bands(width, height, of).len()
        };
        assert!(count(5632, 3168, FormatSpec::Png, false) > 1);
        assert_eq!(count(7680, 4320, FormatSpec::Png, false), 0);
        assert_eq!(count(5632, 3168, FormatSpec::Png, true), 0);
        assert_eq!(count(4096, 3072, FormatSpec::Png16, false), 0);
        let exr = |spec: &mut RenderSpec| spec.formats = vec![FormatSpec::Exr];
        assert!(bands(7680, 4320, exr).len() > 1);
    }

    #[test]
    fn several_bands_are_assembled() {
        let units = |height, rows| Bands { height, rows }.units();
        assert_eq!([units(0, 32), units(32, 32), units(33, 32), units(96, 32)], [0, 1, 3, 4]);
    }

    #[test]
    fn a_band_with_many_layers_fits_into_a_result() {
        use super::super::AovSpec::*;
        let spec = |denoise| RenderSpec {
            width: 1920,
            height: 1080,
            tile: 512,
            spp: 2,
            aovs: vec![Albedo, Normal, Depth, Position],
            denoise,
            ..RenderSpec::default()
        };
        let bytes = |spec: &RenderSpec| {
            let (_, rows) = Bands::of(spec).band(0).unwrap();
            assert!(rows < 1080);
            u64::from(rows) * 1920 * pixel_bytes(spec)
        };
        assert!(bytes(&spec(false)) <= BYTES && bytes(&spec(true)) <= BYTES);
    }
}
