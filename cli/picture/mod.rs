//! Pictures for comparison, and the errors of reading them. `read` reads files; `compare` and
//! `flip` compute differences.

mod compare;
mod exr_file;
mod flip;
mod jpeg_file;
mod png_file;
mod read;
mod report;

pub use compare::{Comparison, LargestDifference, NonFinite, compare, relative_mse};
pub use flip::{Exposures, Flip, PIXELS_PER_DEGREE, flip};
pub use read::read;
pub use report::{DiffError, DiffOptions, Report, run};

use std::path::PathBuf;
use tessera_protocol::limits::{FRAME_EDGE_MAX, FRAME_PIXELS_MAX};

/// What the values of a picture are about; decides how people see a difference (see [`flip()`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Encoding {
    /// Light of a scene, without an upper end.
    Scene,
    /// What a display shows, within [0, 1].
    Display,
}

/// A picture of linear Rec. 709 colours, rows from the top, pixels from the left.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// Pixels across, at least 1.
    pub width: u32,
    /// Pixels down, at least 1.
    pub height: u32,
    /// Exactly width × height colours.
    pub pixels: Vec<[f32; 3]>,
    /// Opacities, one per pixel; None if all of them are 1.
    pub alpha: Option<Vec<f32>>,
    /// What the values are about.
    pub encoding: Encoding,
}

/// Why there is no picture, or nothing to say about two.
#[derive(Debug, thiserror::Error)]
pub enum PictureError {
    /// The file cannot be read.
    #[error("cannot read `{path}`")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The file is no picture that can be compared.
    #[error("`{path}`: {problem}")]
    File {
        /// The file.
        path: PathBuf,
        /// Description of the fault, with advice.
        problem: String,
    },
    /// Two sizes.
    #[error(
        "the first picture has {first} pixels, the second {second}; only pictures of one size can \
            be compared"
    )]
    Sizes {
        /// Width and height of the first.
        first: Size,
        /// Width and height of the second.
        second: Size,
    },
}

/// Width and height, for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub u32, pub u32);

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}x{}", self.0, self.1)
    }
}

impl Picture {
    /// Width and height.
    pub fn size(&self) -> Size {
        Size(self.width, self.height)
    }
}

/// The size of a picture, if it is one that a frame can have; the error says what is wrong and what
/// to do.
fn check_size(width: u64, height: u64) -> Result<(u32, u32), String> {
    let edges = 1..=u64::from(FRAME_EDGE_MAX);
    if edges.contains(&width) && edges.contains(&height) && width * height <= FRAME_PIXELS_MAX {
        return Ok((width as u32, height as u32));
    }
    Err(format!(
        "{width}x{height} pixels have an edge that is not in 1 to {FRAME_EDGE_MAX}, or are more \
            than {FRAME_PIXELS_MAX}; resize it"
    ))
}

/// Opacities worth keeping.
fn unless_opaque(alpha: Vec<f32>) -> Option<Vec<f32>> {
    if alpha.iter().all(|value| *value == 1.0) { None } else { Some(alpha) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_has_the_size_of_a_frame() {
        assert_eq!(check_size(1, 32_768), Ok((1, 32_768)));
        for (width, height) in [(0, 1), (1, 0), (1, 32_769), (20_000, 20_000), (u64::MAX, u64::MAX)]
        {
            assert!(check_size(width, height).is_err(), "{width}x{height}");
        }
    }
}
