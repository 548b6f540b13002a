//! Finds the working space of a scene: places its geometry, measures it, and places it again in a
//! space that suits it better. Ordinary scenes are placed once, in the file's own space.

use crate::error::SceneError;
use crate::flatten::flat_geometry::FlatGeometry;
use crate::loaded::{LoadedScene, Moment};
use crate::math::{Vec3, widen};
use crate::node::curve::FrameTime;
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

/// Settles a scene in its working space, and puts that into its nodes. `translations` returns those
/// of nodes in double precision, which a scene that is moved needs.
pub(crate) fn settle(
    scene: &mut LoadedScene,
    choice: SpaceChoice,
    translations: &dyn Fn() -> Result<Vec<Option<Vec3>>, SceneError>,
) -> Result<Settled, SceneError> {
    let mut is_sharp = false;
    let mut enter = |scene: &mut LoadedScene, space: WorkingSpace| {
        scene.parts.forest.space = space;
        if space.is_moved() && !is_sharp {
            scene.parts.forest.sharpen(translations()?);
            is_sharp = true;
        }
        Ok(())
    };
    let tries = match choice {
        SpaceChoice::Measured => PLACED_MAX,
        SpaceChoice::Given(space) if space.is_valid() => {
            enter(scene, space)?;
            1
        }
        SpaceChoice::Given(space) => {
            let problem = format!("the working space {space:?} is no place of finite size");
            return Err(SceneError::Option { problem });
        }
    };
    let mut tried = 0;
    loop {
        let (moment, cameras) = begun(scene)?;
        let space = scene.parts.forest.space;
        let bounds = (widen(moment.geometry.lower), widen(moment.geometry.upper));
        let extent = Extent::of(&space, bounds, &cameras, || median_size(&moment.geometry));
        tried += 1;
        let better = space.improved(&extent);
        if tried >= tries || better == space || moment.geometry.is_empty() {
            return Ok(Settled { moment, extent });
        }
        enter(scene, better)?;
    }
}

/// Returns the geometry of a scene and the places of its cameras at time 0.
fn begun(scene: &LoadedScene) -> Result<(Moment, Vec<Vec3>), SceneError> {
    let stage = scene.stage(FrameTime::START)?;
    let moment = scene.parts.moment(&stage, &scene.textures)?;
    let cameras = stage.values.cameras.iter().map(|camera| stage.worlds[camera.node].offset);
    Ok((moment, cameras.collect()))
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
