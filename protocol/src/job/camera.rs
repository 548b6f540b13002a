//! Camera and lens of a render job. Owns no other part of a picture.

use super::error::{SpecError, wrong};
use crate::limits::*;
use serde::{Deserialize, Serialize};

/// Camera of a render job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum CameraSpec {
    /// The scene's first camera. If the scene has none, a camera that shows its bounds.
    Default,
    /// A camera of the scene, by its name.
    Named(String),
    /// A camera of the scene, by its position among the cameras.
    Index(u32),
    /// A camera that the user places.
    LookAt(Box<LookAtSpec>),
}

/// A camera that the user places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LookAtSpec {
    /// Position of the camera, in metres.
    pub eye: [f32; 3],
    /// Point that the camera looks at, in metres.
    pub target: [f32; 3],
    /// Direction that is up in the picture.
    pub up: [f32; 3],
    /// Vertical field of view, degrees in (0, 180).
    pub vfov_degrees: f32,
    /// What single precision leaves of `eye`, to be added in double precision.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub eye_rest: [f32; 3],
    /// What single precision leaves of `target`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub target_rest: [f32; 3],
}

/// Thin lens of a perspective camera.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LensSpec {
    /// Size of the opening.
    pub aperture: ApertureSpec,
    /// Distance that is in focus.
    pub focus: FocusSpec,
    /// Blades of the aperture; None is a round aperture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blades: Option<BladesSpec>,
    /// Width of the sensor along the longer edge of the picture in millimetres, > 0, for an
    /// f-number. None is 35 mm film, 24 mm high.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sensor_width_mm: Option<f32>,
}

/// A lens opening that is a regular polygon. Its corners lie on the circle of a round opening.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BladesSpec {
    /// Number of corners, [`BLADES_MIN`] to [`BLADES_MAX`].
    pub count: u8,
    /// Rotation of the opening in degrees, counter-clockwise as seen from behind the camera. At 0
    /// one corner is at the top.
    pub rotation_degrees: f32,
}

/// Size of a lens opening.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ApertureSpec {
    /// Radius in metres, > 0.
    Radius(f32),
    /// f-number, > 0: focal length over diameter. The focal length is that of a sensor 24 mm high
    /// with the camera's field of view.
    FStop(f32),
}

/// Plane that a lens shows in focus. It is perpendicular to the view axis.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FocusSpec {
    /// The plane at this distance along the view axis, in metres, > 0.
    Distance(f32),
    /// The plane through this point of the world, in metres. The point must be in front of the
    /// camera in every frame.
    Point([f32; 3]),
}

impl CameraSpec {
    /// Checks that numbers are in their ranges and that a name is not empty or too long.
    pub(super) fn check(&self) -> Result<(), SpecError> {
        let finite = |v: &[f32; 3]| v.iter().all(|c| c.is_finite());
        if let Self::LookAt(look) = self {
            let LookAtSpec { eye, target, up, vfov_degrees, eye_rest, target_rest } = &**look;
            if ![eye, target, up, eye_rest, target_rest].into_iter().all(finite) {
                return wrong("eye, target, up", "a coordinate is not finite");
            }
            if eye == target && eye_rest == target_rest {
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
    /// Checks that every number is in its range.
    pub(super) fn check(&self) -> Result<(), SpecError> {
        let (field, value) = match self.aperture {
            ApertureSpec::Radius(radius) => ("lens-radius", radius),
            ApertureSpec::FStop(number) => ("f-stop", number),
        };
        if !is_positive(value) {
            return wrong(field, format!("{value} is not a finite number above 0"));
        }
        if let Some(width) = self.sensor_width_mm.filter(|width| !is_positive(*width)) {
            return wrong("sensor-width", format!("{width} is not a finite number above 0"));
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

fn is_zero(rest: &[f32; 3]) -> bool {
    *rest == [0.0; 3]
}

fn is_positive(value: f32) -> bool {
    value.is_finite() && value > 0.0
}
