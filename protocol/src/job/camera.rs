//! Which camera a job's frames are seen through, and its lens. Owns no other part of a picture.

use super::{SpecError, wrong};
use crate::limits::*;
use serde::{Deserialize, Serialize};

/// Which camera.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum CameraSpec {
    /// The scene's first, or one that frames the bounds where it has none.
    Default,
    /// By name.
    Named(String),
    /// By position among the scene's cameras.
    Index(u32),
    /// Placed by hand.
    LookAt {
        /// Where it stands, metres.
        eye: [f32; 3],
        /// What it looks at.
        target: [f32; 3],
        /// Which way is up.
        up: [f32; 3],
        /// Vertical field of view, degrees in (0, 180).
        vfov_degrees: f32,
    },
}

/// Thin lens over a perspective camera.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LensSpec {
    /// How wide it is open.
    pub aperture: ApertureSpec,
    /// What is sharp.
    pub focus: FocusSpec,
    /// The blades that it is closed by; None for a round one.
    pub blades: Option<BladesSpec>,
}

/// A lens that is a regular polygon, its corners on the circle of a round one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BladesSpec {
    /// Corners, [`BLADES_MIN`] to [`BLADES_MAX`].
    pub count: u8,
    /// Turn of the lens in degrees, counter-clockwise seen from behind the camera; at 0 a corner is
    /// at the top.
    pub rotation_degrees: f32,
}

/// How wide a lens is open.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ApertureSpec {
    /// Radius in metres, > 0.
    Radius(f32),
    /// f-number, > 0, of a lens with the camera's field of view before a sensor 24 mm high: its
    /// focal length over its diameter.
    FStop(f32),
}

/// What a lens shows sharp: a plane across the view axis.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FocusSpec {
    /// So far along the view axis, metres, > 0.
    Distance(f32),
    /// Through this point of the world, metres, in front of the camera of every frame.
    Point([f32; 3]),
}

impl CameraSpec {
    /// Whether it can see: numbers in their ranges, a name that is one.
    pub(super) fn check(&self) -> Result<(), SpecError> {
        let finite = |v: &[f32; 3]| v.iter().all(|c| c.is_finite());
        if let Self::LookAt { eye, target, up, vfov_degrees } = self {
            if !finite(eye) || !finite(target) || !finite(up) {
                return wrong("eye, target, up", "a coordinate is not finite");
            }
            if eye == target {
                return wrong("eye, target", "the camera stands on its target");
            }
            if !(*vfov_degrees > 0.0 && *vfov_degrees < 180.0) {
                return wrong("vfov", format!("{vfov_degrees} is not in (0, 180) degrees"));
            }
        }
        if let Self::Named(name) = self
            && (name.is_empty() || name.len() > NAME_MAX)
        {
            return wrong(
                "camera",
                format!("a name of {} bytes is not in 1 to {NAME_MAX}", name.len()),
            );
        }
        Ok(())
    }
}

impl LensSpec {
    /// Whether every number is in its range.
    pub(super) fn check(&self) -> Result<(), SpecError> {
        let (field, value) = match self.aperture {
            ApertureSpec::Radius(radius) => ("lens-radius", radius),
            ApertureSpec::FStop(number) => ("f-stop", number),
        };
        if !is_positive(value) {
            return wrong(field, format!("{value} is not a finite number above 0"));
        }
        if let Some(blades) = self.blades {
            if !(BLADES_MIN..=BLADES_MAX).contains(&blades.count) {
                let problem = format!(
                    "{} is not 0, for a round lens, or {BLADES_MIN} to {BLADES_MAX}, the corners \
                        of one that is not",
                    blades.count
                );
                return wrong("blades", problem);
            }
            if !blades.rotation_degrees.is_finite() {
                return wrong("blade-rotation", "not a finite number");
            }
        }
        match self.focus {
            FocusSpec::Distance(distance) if !is_positive(distance) => {
                wrong("focus-distance", format!("{distance} is not a finite number above 0"))
            }
            FocusSpec::Point(point) if !point.iter().all(|value| value.is_finite()) => {
                wrong("focus-point", "not finite numbers")
            }
            _ => Ok(()),
        }
    }
}

fn is_positive(value: f32) -> bool {
    value.is_finite() && value > 0.0
}
