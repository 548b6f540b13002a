//! A tile as messages name it.

use serde::{Deserialize, Serialize};

/// A rectangle of pixels with half-open bounds. Its place is counted from the top left pixel of the
/// frame; in a job whose overscan reaches beyond the frame, from that of the overscan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TileRect {
    /// Left edge, in pixels.
    pub x: u32,
    /// Top edge, in pixels.
    pub y: u32,
    /// Width in pixels, >= 1.
    pub width: u32,
    /// Height in pixels, >= 1.
    pub height: u32,
}
