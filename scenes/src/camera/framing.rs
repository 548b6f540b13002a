//! The view of a placed camera: the bounds over the whole animation, so that the camera of a film
//! does not move.

use crate::error::SceneError;
use crate::flatten::flat_geometry::FlatGeometry;
use crate::loaded::LoadedScene;
use crate::math::{Vec3, widen};
use crate::node::curve::FrameTime;
use crate::options::CameraChoice;
use std::sync::Arc;

/// Number of moments that are examined, including both ends. Between two of them, objects reach
/// only a little further.
const MOMENTS: u32 = 16;

impl LoadedScene {
    /// Returns the bounds that a camera placed for `choice` shows. `now` is the geometry of the
    /// frame.
    pub(crate) fn framed_bounds(
        &self,
        now: &FlatGeometry,
        choice: &CameraChoice,
    ) -> Result<(Vec3, Vec3), SceneError> {
        let is_placed = self.first.cameras.is_empty() && *choice == CameraChoice::Default;
        if (self.still.is_some() && self.moving.is_none()) || !is_placed {
            return Ok((widen(now.lower), widen(now.upper)));
        }
        if let Some(bounds) = self.film_bounds.get() {
            return Ok(*bounds);
        }
        let length = self
            .clips
            .iter()
            .filter(|clip| clip.played)
            .map(|clip| clip.length)
            .fold(0.0, f64::max);
        let mut bounds = ([f64::INFINITY; 3], [f64::NEG_INFINITY; 3]);
        for moment in 0..MOMENTS {
            let secs = length * f64::from(moment) / f64::from(MOMENTS - 1);
            let stage = self.stage(FrameTime { secs, frame_secs: 0.0 })?;
            let moment = match self.still_moment(&stage.values) {
                Some(still) => Arc::clone(still),
                None => Arc::new(self.parts.moment(&stage, &self.textures)?),
            };
            let geometry = &moment.geometry;
            if geometry.is_empty() {
                continue;
            }
            for axis in 0..3 {
                bounds.0[axis] = bounds.0[axis].min(geometry.lower[axis].into());
                bounds.1[axis] = bounds.1[axis].max(geometry.upper[axis].into());
            }
        }
        if bounds.0[0] > bounds.1[0] {
            bounds = (widen(now.lower), widen(now.upper));
        }
        // If another thread was faster, it found the same bounds.
        Ok(*self.film_bounds.get_or_init(|| bounds))
    }
}
