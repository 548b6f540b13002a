//! Gathers what `tessera diff` reports about two files, for people and for scripts. Decides no exit
//! status.

use super::{Comparison, Encoding, Flip, NonFinite, PIXELS_PER_DEGREE, PictureError, Size};
use super::{compare, flip, read};
use serde::Serialize;
use std::fmt;
use std::path::Path;

/// How to compare.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DiffOptions {
    /// Pixels in a degree of the observer's visual field, for FLIP; finite and in
    /// [`DiffOptions::PIXELS_PER_DEGREE_RANGE`].
    pub pixels_per_degree: f64,
}

impl DiffOptions {
    /// Densities for which FLIP's filters have a useful size: a radius of 1 to 150 pixels.
    pub const PIXELS_PER_DEGREE_RANGE: std::ops::RangeInclusive<f64> = 1.0..=1000.0;
}

impl Default for DiffOptions {
    fn default() -> Self {
        Self { pixels_per_degree: PIXELS_PER_DEGREE }
    }
}

/// Why two files cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum DiffError {
    /// A file, or their sizes.
    #[error(transparent)]
    Picture(#[from] PictureError),
    /// An impossible number of pixels per degree.
    #[error("{0} pixels per degree are not in 1 to 1000; a screen at arm's length has about 67")]
    PixelsPerDegree(f64),
}

/// Two files and how far they are apart. The second is the reference.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The first file, as it was named.
    pub first: String,
    /// The second file, as it was named.
    pub second: String,
    /// What the values of each are about.
    pub encodings: [Encoding; 2],
    /// Numeric differences.
    #[serde(flatten)]
    pub comparison: Comparison,
    /// Perceived difference (FLIP).
    pub flip: Flip,
}

/// Reads two files and compares the first with the second, the reference.
///
/// # Errors
/// If a file is no picture, the sizes differ, or an option makes no sense.
pub fn run(first: &Path, second: &Path, options: &DiffOptions) -> Result<Report, DiffError> {
    if !DiffOptions::PIXELS_PER_DEGREE_RANGE.contains(&options.pixels_per_degree) {
        return Err(DiffError::PixelsPerDegree(options.pixels_per_degree));
    }
    let (a, b) = (read(first)?, read(second)?);
    let comparison = compare(&a, &b)?;
    let flip = match comparison.identical {
        true => Flip { mean: 0.0, max: 0.0, exposures: None },
        false => flip(&a, &b, options.pixels_per_degree)?,
    };
    Ok(Report {
        first: first.display().to_string(),
        second: second.display().to_string(),
        encodings: [a.encoding, b.encoding],
        comparison,
        flip,
    })
}

impl Report {
    /// The pictures are identical, or nearer than the limit that was given.
    ///
    /// A limit forgives no difference that it does not measure: NaN or infinity on only one side,
    /// or another opacity.
    pub fn passes(&self, max_rel_mse: Option<f64>) -> bool {
        let numbers = &self.comparison;
        let is_measured = numbers.excluded_differing == 0 && numbers.differing_alpha == 0;
        numbers.identical || is_measured && max_rel_mse.is_some_and(|max| numbers.rel_mse <= max)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers = &self.comparison;
        let size = Size(numbers.width, numbers.height);
        if numbers.identical {
            writeln!(f, "identical           {size} pixels, bit for bit")?;
            return self.write_non_finite(f);
        }
        let all = u64::from(numbers.width) * u64::from(numbers.height);
        let share = 100.0 * numbers.differing_pixels as f64 / all as f64;
        writeln!(
            f,
            "different           {} of {size} pixels ({share:.3} %)",
            numbers.differing_pixels
        )?;
        if let Some(largest) = &numbers.largest_difference {
            writeln!(
                f,
                "largest difference  {:.6e} in {} at ({}, {}): {} and {}",
                largest.value, largest.channel, largest.x, largest.y, largest.first, largest.second
            )?;
        }
        writeln!(f, "relMSE              {:.6e}", numbers.rel_mse)?;
        writeln!(
            f,
            "FLIP                {:.6} mean, {:.6} at most{}",
            self.flip.mean,
            self.flip.max,
            self.shown()
        )?;
        match numbers.mean_ratio {
            Some(ratio) => writeln!(f, "mean                {:+.4} %", 100.0 * (ratio - 1.0))?,
            None => writeln!(f, "mean                the second picture is black")?,
        }
        if numbers.differing_alpha > 0 {
            writeln!(f, "opacity             differs in {} pixels", numbers.differing_alpha)?;
        }
        self.write_non_finite(f)?;
        if self.encodings[0] != self.encodings[1] {
            writeln!(
                f,
                "note                one file is scene-linear and the other for display: a tone \
                    map differs too"
            )?;
        }
        Ok(())
    }
}

impl Report {
    fn shown(&self) -> String {
        self.flip.exposures.map_or(String::new(), |exposures| {
            let (start, stop) = (exposures.start, exposures.stop);
            format!(" ({} exposures from {start:+.2} to {stop:+.2} stops)", exposures.count)
        })
    }

    fn write_non_finite(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers = &self.comparison;
        let mut write = |which: &str, found: &NonFinite| match found.first_at {
            None => Ok(()),
            Some([x, y]) => writeln!(
                f,
                "not finite          {which}: {} pixels with NaN, {} with infinity, the first at \
                    ({x}, {y})",
                found.nan_pixels, found.infinite_pixels
            ),
        };
        write("first", &numbers.first_non_finite)?;
        write("second", &numbers.second_non_finite)?;
        if numbers.excluded_differing > 0 {
            let count = numbers.excluded_differing;
            writeln!(
                f,
                "                    {count} of these pixels differ, and relMSE and the mean do \
                    not show it"
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use exr::prelude::write_rgb_file;
    use std::path::PathBuf;

    fn files(
        second: impl Fn(usize, usize) -> (f32, f32, f32) + Sync,
    ) -> (tempfile::TempDir, [PathBuf; 2]) {
        let folder = tempfile::tempdir().unwrap();
        let paths = ["a.exr", "b.exr"].map(|name| folder.path().join(name));
        write_rgb_file(&paths[0], 8, 4, |x, y| (x as f32, y as f32, 0.5)).unwrap();
        write_rgb_file(&paths[1], 8, 4, second).unwrap();
        (folder, paths)
    }

    fn report(second: impl Fn(usize, usize) -> (f32, f32, f32) + Sync) -> Report {
        let (_folder, [a, b]) = files(second);
        run(&a, &b, &DiffOptions::default()).unwrap()
    }

    #[test]
    fn identical_files_pass_without_a_limit() {
        let report = report(|x, y| (x as f32, y as f32, 0.5));
        assert!(report.passes(None) && report.comparison.identical && report.flip.mean == 0.0);
        assert_eq!(report.to_string(), "identical           8x4 pixels, bit for bit\n");
    }

    #[test]
    fn different_files_pass_only_under_their_limit() {
        let report = report(|x, y| (x as f32, y as f32, if (x, y) == (3, 2) { 0.25 } else { 0.5 }));
        assert!(!report.passes(None) && !report.passes(Some(1e-9)) && report.passes(Some(0.01)));
        let text = report.to_string();
        for part in [
            "1 of 8x4 pixels",
            "2.5",
            "in B at (3, 2): 0.5 and 0.25",
            "relMSE",
            "FLIP",
            "exposures",
        ] {
            assert!(text.contains(part), "{text}");
        }
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!((&json["identical"], &json["differing_pixels"]), (&false.into(), &1.into()));
        assert_eq!(json["largest_difference"]["channel"], "B");
        assert!(json["flip"]["mean"].is_f64() && json["rel_mse"].is_f64());
        assert_eq!(json["encodings"][0], "scene");
    }

    #[test]
    fn a_nan_on_one_side_passes_no_limit() {
        let report =
            report(|x, y| (if (x, y) == (1, 1) { f32::NAN } else { x as f32 }, y as f32, 0.5));
        assert!(!report.passes(Some(1.0)) && report.comparison.rel_mse == 0.0);
        let text = report.to_string();
        assert!(text.contains("second: 1 pixels with NaN") && text.contains("(1, 1)"), "{text}");
    }

    #[test]
    fn incomparable_files_are_an_error() {
        let (folder, [a, _]) = files(|_, _| (0.0, 0.0, 0.0));
        let small = folder.path().join("small.exr");
        write_rgb_file(&small, 2, 2, |_, _| (0.0f32, 0.0f32, 0.0f32)).unwrap();
        let error = run(&a, &small, &DiffOptions::default()).unwrap_err().to_string();
        assert!(error.contains("8x4") && error.contains("2x2"), "{error}");
        for pixels_per_degree in [0.0, f64::NAN, 1e9] {
            let error = run(&a, &a, &DiffOptions { pixels_per_degree }).unwrap_err();
            assert!(matches!(error, DiffError::PixelsPerDegree(_)));
        }
    }
}
