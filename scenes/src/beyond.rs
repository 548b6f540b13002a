//! Warnings of what is beyond single precision in a scene even in its working space. Moves nothing.

use crate::loaded::OwnedParts;
use crate::math::{length, narrow, sub, widen};
use crate::mesh::geometry::Geometry;
use crate::report::warning::Warnings;
use crate::settle::Settled;

/// How many times its size a shape may be away from its mesh's own origin: its corners are rounded
/// to a thousandth of it there.
const SHAPE_DISTANCE_MAX: f64 = 8192.0;
/// How many times a scene's size a camera may be away.
const CAMERA_DISTANCE_MAX: f64 = 131_072.0;
/// Distance from the origin of the working space, in its own units, from which things must not be
/// small: rays start half of one off a surface there.
const FAR: f64 = 32_768.0;
/// How many times its size a thing may be away from there.
const THING_DISTANCE_MAX: f64 = 2048.0;

/// Adds a warning for each kind of thing that is beyond, with the first of them.
pub(crate) fn warn(parts: &OwnedParts, settled: &Settled, warnings: &mut Warnings) {
    warnings.extend(far_shapes(parts));
    warnings.extend(far_cameras(settled));
    if settled.extent.cameras.is_empty() {
        warnings.extend(far_things(parts, settled));
    }
}

/// Shapes whose corners the file has far from their mesh's own origin, so that it holds few digits
/// of them.
fn far_shapes(parts: &OwnedParts) -> Option<String> {
    let nodes = parts.forest.shown.iter().filter_map(|node| parts.forest.nodes[*node].mesh);
    let meshes: std::collections::BTreeSet<usize> = nodes.collect();
    let far = meshes.into_iter().find_map(|mesh| {
        let mut geometries = parts.meshes[mesh].surfaces.iter().map(|surface| &*surface.geometry);
        let (reach, size) = geometries.find_map(|geometry| {
            let (reach, size) = reach_and_size(geometry);
            (size > 0.0 && reach > SHAPE_DISTANCE_MAX * size).then_some((reach, size))
        })?;
        Some((mesh, reach, size))
    });
    let (mesh, reach, size) = far?;
    let step = ulp(reach);
    Some(format!(
        "meshes[{mesh}] has a shape {size:.3e} across whose vertices are {reach:.3e} from the \
            mesh's own origin, where they are rounded to {step:.1e}; export it about its own \
            origin, and let its node's translation hold the distance"
    ))
}

/// Returns the largest coordinate of a shape, and the longest edge of its box.
fn reach_and_size(geometry: &Geometry) -> (f64, f64) {
    let (mut lower, mut upper) = ([f32::INFINITY; 3], [f32::NEG_INFINITY; 3]);
    for position in &geometry.positions {
        lower = std::array::from_fn(|axis| lower[axis].min(position[axis]));
        upper = std::array::from_fn(|axis| upper[axis].max(position[axis]));
    }
    let corners = lower.iter().chain(&upper);
    let reach = corners.fold(0.0f64, |reach, c| reach.max(f64::from(*c).abs()));
    let size = sub(widen(upper), widen(lower)).iter().fold(0.0f64, |size, c| size.max(*c));
    (reach, size)
}

/// Returns the distance from one number of single precision to the next.
fn ulp(value: f64) -> f64 {
    let value = value as f32;
    f64::from(value.next_up()) - f64::from(value)
}

/// Cameras that see things with fewer digits than they need.
fn far_cameras(settled: &Settled) -> Option<String> {
    let extent = &settled.extent;
    let far = extent.cameras.iter().zip(0..).find(|(place, _)| {
        extent.is_far_inside(**place)
            || extent.size > 0.0 && length(**place) > CAMERA_DISTANCE_MAX * extent.size
    });
    let (place, index) = far?;
    Some(format!(
        "camera {index} is {:.3e} m from the place about which the scene is rendered, where single \
            precision holds steps of {:.1e} m; what it sees may lose its contact shadows and \
            shapes; split the scene",
        length(*place),
        ulp(length(*place)),
    ))
}

/// Things that are small and far from the place about which the scene is rendered.
fn far_things(parts: &OwnedParts, settled: &Settled) -> Option<String> {
    if settled.extent.reach * parts.forest.space.factor() <= FAR {
        return None;
    }
    let geometry = &settled.moment.geometry;
    let is_far = |lower: [f32; 3], upper: [f32; 3]| {
        let (lower, upper) = (widen(lower), widen(upper));
        let reach = lower.iter().chain(&upper).fold(0.0f64, |reach, c| reach.max(c.abs()));
        let size = sub(upper, lower).iter().fold(0.0f64, |size, c| size.max(*c));
        reach > FAR && reach > THING_DISTANCE_MAX * size
    };
    let triangles = geometry.triangles.iter().filter(|triangle| {
        let corners = [triangle.v0, triangle.v1, triangle.v2];
        let fold = |pick: fn(f32, f32) -> f32| {
            std::array::from_fn(|k| pick(pick(corners[0][k], corners[1][k]), corners[2][k]))
        };
        is_far(fold(f32::min), fold(f32::max))
    });
    let boxes = geometry.boxes.iter().filter(|[lower, upper]| is_far(*lower, *upper));
    let count = triangles.count() + boxes.count();
    let [x, y, z] = narrow(parts.forest.space.origin);
    (count > 0).then(|| {
        format!(
            "{count} triangles and instances are small and up to {:.3e} m from ({x}, {y}, {z}), \
                about which the scene is rendered; seen from near, they may lose their contact \
                shadows and shapes; split the scene",
            settled.extent.reach,
        )
    })
}
