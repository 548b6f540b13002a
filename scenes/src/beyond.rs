//! Warnings of what cannot be seen in a scene: what is beyond single precision even in its working
//! space, or that there is nothing. Moves nothing.

use crate::loaded::OwnedParts;
use crate::math::{Vec3, length, narrow, sub, widen};
use crate::mesh::Mesh;
use crate::report::warning::Warnings;
use crate::settle::Settled;
use std::collections::BTreeSet;

/// How many times its size a mesh must be away from its own origin to be looked at.
const SHAPE_DISTANCE: f64 = 4.0;
/// Steps of single precision in which an edge still has its direction.
const EDGE_STEPS_MIN: f64 = 64.0;
/// Share of a mesh's triangles that may be shorter.
const ROUNDED_SHARE: f64 = 0.125;
/// How many times a scene's size a camera may be away.
const CAMERA_DISTANCE_MAX: f64 = 131_072.0;
/// Distance in metres from the place about which a scene is rendered, from which things must not be
/// small: rays start half a metre off a surface there.
const FAR: f64 = 32_768.0;
/// How many times its size a thing may be away from there.
const THING_DISTANCE_MAX: f64 = 2048.0;

/// Adds a warning for each kind of thing that is beyond, with the first of them. `shown` are the
/// nodes that may be visible.
pub(crate) fn warn(
    (parts, shown): (&OwnedParts, &[usize]),
    settled: &Settled,
    warnings: &mut Warnings,
) {
    if settled.moment.geometry.is_empty() {
        warnings.add("the scene has no triangle; only the environment will be seen");
    }
    warnings.extend(far_shapes(parts, shown));
    warnings.extend(far_cameras(settled));
    if settled.extent.cameras.is_empty() {
        warnings.extend(far_things(parts, settled));
    }
}

/// Meshes whose vertices are far from the mesh's own origin, so that the file holds few digits of
/// their shapes.
fn far_shapes(parts: &OwnedParts, shown: &[usize]) -> Option<String> {
    let shown = shown.iter().filter_map(|node| parts.forest.nodes[*node].mesh);
    let meshes: BTreeSet<usize> = shown.collect();
    let far = |mesh: &usize| is_rounded(&parts.meshes[*mesh]);
    let (mesh, reach) = meshes.iter().find_map(|mesh| Some((mesh, far(mesh)?)))?;
    let step = ulp(reach);
    Some(format!(
        "the vertices of meshes[{mesh}] are up to {reach:.3e} from the mesh's own origin, where \
            single precision has steps of {step:.1e}, which bends its shapes; export it about its \
            own origin, and let its node's translation hold the distance"
    ))
}

/// Returns the largest coordinate of a mesh whose shapes are bent by rounding.
fn is_rounded(mesh: &Mesh) -> Option<f64> {
    let geometries = || mesh.surfaces.iter().map(|surface| &*surface.geometry);
    let (mut lower, mut upper) = ([f32::INFINITY; 3], [f32::NEG_INFINITY; 3]);
    for position in geometries().flat_map(|geometry| &geometry.positions) {
        lower = std::array::from_fn(|axis| lower[axis].min(position[axis]));
        upper = std::array::from_fn(|axis| upper[axis].max(position[axis]));
    }
    let (lower, upper) = (widen(lower), widen(upper));
    let reach = largest(lower).max(largest(upper));
    if reach <= SHAPE_DISTANCE * largest(sub(upper, lower)) {
        return None;
    }
    let (mut all, mut rounded) = (0u64, 0u64);
    for geometry in geometries() {
        for corners in &geometry.triangles {
            let [a, b, c] = corners.map(|corner| widen(geometry.positions[corner as usize]));
            let edge = largest(sub(b, a)).max(largest(sub(c, a)));
            all += u64::from(edge > 0.0);
            rounded += u64::from(edge > 0.0 && edge < EDGE_STEPS_MIN * ulp(largest(a)));
        }
    }
    (rounded as f64 > ROUNDED_SHARE * all as f64).then_some(reach)
}

fn largest(v: Vec3) -> f64 {
    v.iter().fold(0.0, |largest, c| c.abs().max(largest))
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
    if settled.extent.reach <= FAR {
        return None;
    }
    let metres = 1.0 / parts.forest.space.factor();
    let is_far = |[lower, upper]: &[[f32; 3]; 2]| {
        let (lower, upper) = (widen(*lower), widen(*upper));
        let reach = largest(lower).max(largest(upper));
        reach * metres > FAR && reach > THING_DISTANCE_MAX * largest(sub(upper, lower))
    };
    let count = settled.moment.geometry.boxes_of_things().filter(is_far).count();
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
