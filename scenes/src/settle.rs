//! Finds the working space of a scene: places its geometry, measures it, and places it again in a
//! space that suits it better. Ordinary scenes are placed once, in the file's own space.

use crate::error::SceneError;
use crate::flatten::flat_geometry::FlatGeometry;
use crate::loaded::{Moment, OwnedParts};
use crate::math::{Vec3, widen};
use crate::working_space::{Extent, SpaceChoice, WorkingSpace};

/// Times that a scene is placed at most: moved, moved again as its size is known, and scaled.
const PLACED_MAX: u32 = 4;

/// A scene's geometry in its working space.
pub(crate) struct Settled {
    /// Geometry at time 0.
    pub(crate) moment: Moment,
    /// What it measures there.
    pub(crate) extent: Extent,
}

/// Returns the geometry of a scene and the places of its cameras at time 0.
pub(crate) type Place<'a> = &'a dyn Fn(&OwnedParts) -> Result<(Moment, Vec<Vec3>), SceneError>;

/// Settles a scene in its working space, and puts that into `parts`. `translations` returns those
/// of nodes in double precision, which a scene that is moved needs.
pub(crate) fn settle(
    parts: &mut OwnedParts,
    choice: SpaceChoice,
    translations: &dyn Fn() -> Result<Vec<Option<Vec3>>, SceneError>,
    place: Place<'_>,
) -> Result<Settled, SceneError> {
    let mut is_sharp = false;
    let mut enter = |parts: &mut OwnedParts, space: WorkingSpace| {
        parts.forest.space = space;
        if space.is_moved() && !is_sharp {
            parts.forest.sharpen(translations()?);
            is_sharp = true;
        }
        Ok(())
    };
    let tries = match choice {
        SpaceChoice::Measured => PLACED_MAX,
        SpaceChoice::Given(space) if space.is_valid() => {
            enter(parts, space)?;
            1
        }
        SpaceChoice::Given(space) => {
            let problem = format!("the working space {space:?} is no place of finite size");
            return Err(SceneError::Option { problem });
        }
    };
    let mut tried = 0;
    loop {
        let (moment, cameras) = place(parts)?;
        let space = parts.forest.space;
        let bounds = (widen(moment.geometry.lower), widen(moment.geometry.upper));
        let extent = Extent::of(&space, bounds, &cameras, || median_size(&moment.geometry));
        tried += 1;
        let better = space.improved(&extent);
        if tried >= tries || better == space || moment.geometry.is_empty() {
            return Ok(Settled { moment, extent });
        }
        enter(parts, better)?;
    }
}

/// Returns the median of the longest edges of the boxes of triangles and instances.
fn median_size(geometry: &FlatGeometry) -> f64 {
    let longest = |[lower, upper]: [[f32; 3]; 2]| {
        (0..3).map(|axis| upper[axis] - lower[axis]).fold(0.0f32, f32::max)
    };
    let mut sizes: Vec<f32> = geometry.boxes_of_things().map(longest).collect();
    let middle = sizes.len() / 2;
    if sizes.is_empty() {
        return 0.0;
    }
    f64::from(*sizes.select_nth_unstable_by(middle, f32::total_cmp).1)
}
