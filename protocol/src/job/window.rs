//! Rectangles of pixels of a frame. Owns no meaning of them.

use serde::{Deserialize, Serialize};

/// Part of a frame, as the user asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CropSpec {
    /// Left edge in pixels, inclusive.
    pub x: u32,
    /// Top edge in pixels, inclusive.
    pub y: u32,
    /// Width in pixels, >= 1. The crop lies within the frame.
    pub width: u32,
    /// Height in pixels, >= 1. The crop lies within the frame.
    pub height: u32,
}

impl std::fmt::Display for CropSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{},{},{}x{}", self.x, self.y, self.width, self.height)
    }
}

/// Rectangle of pixels, half-open. (0, 0) is the frame's top left pixel. Pixels left of the frame
/// and above it have negative numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Left edge, inclusive.
    pub left: i32,
    /// Top edge, inclusive.
    pub top: i32,
    /// Right edge, exclusive.
    pub right: i32,
    /// Bottom edge, exclusive.
    pub bottom: i32,
}

impl Window {
    /// Returns the width in pixels; 0 for a window that ends before it begins.
    pub fn width(&self) -> u32 {
        self.right.saturating_sub(self.left).max(0).unsigned_abs()
    }

    /// Returns the height in pixels; 0 for a window that ends before it begins.
    pub fn height(&self) -> u32 {
        self.bottom.saturating_sub(self.top).max(0).unsigned_abs()
    }

    /// Returns the number of pixels.
    pub fn pixels(&self) -> u64 {
        u64::from(self.width()) * u64::from(self.height())
    }

    /// Returns whether all pixels of another window are in this one.
    pub fn contains(&self, other: &Self) -> bool {
        self.cut(other) == *other
    }

    /// Returns the part that is also in another window.
    pub fn cut(&self, other: &Self) -> Self {
        Self {
            left: self.left.max(other.left),
            top: self.top.max(other.top),
            right: self.right.min(other.right),
            bottom: self.bottom.min(other.bottom),
        }
    }

    /// Returns the window with its places counted from the top left pixel of another one.
    pub fn from(&self, origin: &Self) -> Self {
        Self {
            left: self.left.saturating_sub(origin.left),
            top: self.top.saturating_sub(origin.top),
            right: self.right.saturating_sub(origin.left),
            bottom: self.bottom.saturating_sub(origin.top),
        }
    }

    /// Returns the smallest window with the pixels of both.
    pub(super) fn around(&self, other: &Self) -> Self {
        Self {
            left: self.left.min(other.left),
            top: self.top.min(other.top),
            right: self.right.max(other.right),
            bottom: self.bottom.max(other.bottom),
        }
    }

    /// Returns the window with so many more pixels on every side.
    pub fn grown(&self, pixels: u32) -> Self {
        let pixels = length(pixels);
        Self {
            left: self.left.saturating_sub(pixels),
            top: self.top.saturating_sub(pixels),
            right: self.right.saturating_add(pixels),
            bottom: self.bottom.saturating_add(pixels),
        }
    }
}

/// Returns a length as a coordinate. Checked specs have none that is too large.
pub(super) fn length(pixels: u32) -> i32 {
    i32::try_from(pixels).unwrap_or(i32::MAX)
}
