//! Cameras: the file's cameras, a camera that the user places, and a camera that shows the bounds.
//! Does not sample rays.

pub(crate) mod framing;

use crate::choice::Choice;
use crate::document::Document;
use crate::document::files::split;
use crate::document::source::Source;
use crate::error::SceneError;
use crate::math::{Affine, Vec3, add, cross, dot, length, normalize, scale, sub, widen};
use crate::node::{self, Forest};
use crate::options::{Aperture, Blades, CameraChoice, FlattenOptions, Focus, Lens, Limits};
use crate::working_space::WorkingSpace;
use gltf::json::camera::Type;
use gltf::json::validation::Checked;
use std::path::Path;
use tessera_layout::{BLADES_MAX, BLADES_MIN, Camera, CameraKind};

/// Vertical field of view of the camera that shows the bounds, in radians (40 degrees).
const FRAMING_VFOV: f64 = 0.698_131_700_797_731_8;
/// Angle by which that camera looks down, in radians (15 degrees). It is on the +Z side, to which
/// glTF models face.
const FRAMING_PITCH: f64 = 0.261_799_387_799_149_4;
/// Distance factor that leaves a margin around the bounding sphere.
const FRAMING_MARGIN: f64 = 1.05;

/// How a camera projects.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Projection {
    /// Vertical field of view in radians.
    Perspective { vfov: f64, near: f32, far: f32 },
    /// Half the height in metres.
    Orthographic { half_height: f64, near: f32, far: f32 },
}

impl Projection {
    /// Returns the projection with the lengths of a working space.
    fn within(self, space: &WorkingSpace) -> Self {
        match self {
            Self::Perspective { vfov, near, far } => {
                Self::Perspective { vfov, near: space.length(near), far: space.length(far) }
            }
            Self::Orthographic { half_height, near, far } => Self::Orthographic {
                half_height: half_height * space.factor(),
                near: space.length(near),
                far: space.length(far),
            },
        }
    }
}

/// A camera of the file.
#[derive(Clone, Debug)]
pub(crate) struct FileCamera {
    pub(crate) name: String,
    pub(crate) projection: Projection,
    /// Width over height of its picture, where the file says it.
    pub(crate) aspect: Option<f64>,
}

/// A camera of the scene that can be chosen.
#[derive(Clone, Debug)]
pub(crate) struct ShownCamera {
    /// Name of the camera, or of its node.
    pub(crate) name: String,
    pub(crate) node_name: String,
    pub(crate) node: usize,
    pub(crate) projection: Projection,
    /// Width over height of its picture, where the file says it.
    pub(crate) aspect: Option<f64>,
}

/// Reads the file's cameras.
pub(crate) fn read_all(document: &Document) -> Result<Vec<FileCamera>, SceneError> {
    let cameras = document.root.cameras.iter().enumerate();
    cameras
        .map(|(index, json)| {
            let path = format!("cameras[{index}]");
            let projection = match (&json.type_, &json.perspective, &json.orthographic) {
                (Checked::Valid(Type::Perspective), Some(p), _) => Projection::Perspective {
                    vfov: p.yfov.into(),
                    near: p.znear,
                    far: p.zfar.unwrap_or(f32::INFINITY),
                },
                (Checked::Valid(Type::Orthographic), _, Some(o)) => Projection::Orthographic {
                    half_height: f64::from(o.ymag).abs(),
                    near: o.znear,
                    far: o.zfar,
                },
                _ => {
                    return Err(document
                        .invalid(path, "has neither a perspective nor an orthographic part"));
                }
            };
            check(projection).map_err(|problem| document.invalid(path, problem))?;
            let aspect = match (&json.perspective, &json.orthographic) {
                (Some(p), _) => p.aspect_ratio.map(f64::from),
                (_, Some(o)) => Some(f64::from(o.xmag).abs() / f64::from(o.ymag).abs()),
                _ => None,
            };
            let aspect = aspect.filter(|aspect| aspect.is_finite() && *aspect > 0.0);
            let name = json.name.clone().unwrap_or_default();
            Ok(FileCamera { name, projection, aspect })
        })
        .collect()
}

/// Returns the cameras of the scene to show, in the order of its nodes.
pub(crate) fn shown(document: &Document, forest: &Forest) -> Result<Vec<ShownCamera>, SceneError> {
    let cameras = read_all(document)?;
    let shown = forest.in_scene.iter().filter_map(|&index| {
        let node = &forest.nodes[index];
        let camera = &cameras[node.camera?];
        Some(ShownCamera {
            name: if camera.name.is_empty() { node.name.clone() } else { camera.name.clone() },
            node_name: node.name.clone(),
            node: index,
            projection: camera.projection,
            aspect: camera.aspect,
        })
    });
    Ok(shown.collect())
}

fn check(projection: Projection) -> Result<(), String> {
    let (near, far) = match projection {
        Projection::Perspective { vfov, near, far } => {
            if !(vfov > 0.0 && vfov < std::f64::consts::PI) {
                return Err(format!("yfov {vfov} is not in (0, pi) radians"));
            }
            (near, far)
        }
        Projection::Orthographic { half_height, near, far } => {
            if !(half_height > 0.0 && half_height.is_finite()) {
                return Err(format!("ymag {half_height} is not a finite number other than 0"));
            }
            (near, far)
        }
    };
    if near.is_finite() && near >= 0.0 && far > near {
        Ok(())
    } else {
        Err(format!("znear {near} and zfar {far} must be 0 <= znear < zfar"))
    }
}

/// Returns the camera of a frame, in a scene with the bounds `lower` and `upper`. Nodes and
/// bounds are in the working space; options are not.
pub(crate) fn resolve(
    (shown, worlds): (&[ShownCamera], &[Affine]),
    options: &FlattenOptions,
    bounds: (Vec3, Vec3),
    space: &WorkingSpace,
) -> Result<Camera, SceneError> {
    let wrong = |problem: String| SceneError::Camera { problem };
    if options.width == 0 || options.height == 0 {
        return Err(wrong(format!("a frame of {}x{} has no pixel", options.width, options.height)));
    }
    let (place, projection) = match (find(shown, &options.camera)?, &options.camera) {
        (Some(camera), _) => (worlds[camera.node], camera.projection.within(space)),
        (None, CameraChoice::LookAt { eye, target, up, vfov_degrees }) => {
            let vfov = f64::from(*vfov_degrees) * (std::f64::consts::PI / 180.0);
            let projection = Projection::Perspective { vfov, near: 0.0, far: f32::INFINITY };
            check(projection).map_err(wrong)?;
            let place = look_at(space.point(*eye), space.point(*target), widen(*up));
            (place.map_err(wrong)?, projection)
        }
        (None, _) => frame_bounds(bounds, f64::from(options.width) / f64::from(options.height)),
    };
    assemble(&place, projection, options, space).map_err(wrong)
}

/// Finds the chosen camera of the scene. None if the choice is none of its cameras.
fn find<'a>(
    shown: &'a [ShownCamera],
    choice: &CameraChoice,
) -> Result<Option<&'a ShownCamera>, SceneError> {
    let (found, what) = match choice {
        CameraChoice::Default => return Ok(shown.first()),
        CameraChoice::LookAt { .. } => return Ok(None),
        CameraChoice::Index(index) => (shown.get(*index as usize), format!("camera {index}")),
        CameraChoice::Named(name) => {
            let matches = |camera: &&ShownCamera| camera.name == *name || camera.node_name == *name;
            (shown.iter().find(matches), format!("camera named {name:?}"))
        }
    };
    let problem = || format!("there is no {what}; {}", list(shown));
    found.map(Some).ok_or_else(|| SceneError::Camera { problem: problem() })
}

/// Finds the chosen camera in the chosen scene of the file at `path`. Returns width over height of
/// its picture, where the file says it. Reads only the JSON.
///
/// # Errors
/// [`SceneError::Camera`] if there is no such camera, and every other error of reading the JSON.
pub fn camera_aspect(
    path: &Path,
    scene: Option<&Choice>,
    choice: &CameraChoice,
) -> Result<Option<f64>, SceneError> {
    let limits = Limits::default();
    let (dir, name) = split(path)?;
    let mut document = Document::open_json(&Source::new(dir, name, &limits)?)?;
    document.choose_scene(scene)?;
    let forest = node::read_without_instances(&document)?;
    Ok(find(&shown(&document, &forest)?, choice)?.and_then(|camera| camera.aspect))
}

fn list(shown: &[ShownCamera]) -> String {
    if shown.is_empty() {
        return "the scene shows none, so leave --camera out or place one with --eye and --target"
            .into();
    }
    let names: Vec<String> = shown
        .iter()
        .take(16)
        .enumerate()
        .map(|(i, camera)| format!("{i} {:?}", camera.name))
        .collect();
    format!("the scene shows {}: {}", shown.len(), names.join(", "))
}

fn look_at(eye: Vec3, target: Vec3, up: Vec3) -> Result<Affine, String> {
    let back = normalize(sub(eye, target)).ok_or("--eye and --target are the same place")?;
    let right = normalize(cross(up, back)).filter(|_| length(cross(up, back)) > 1e-9 * length(up));
    let right = right.ok_or("--up points along the view; give another")?;
    Ok(from_axes(right, cross(back, right), back, eye))
}

fn from_axes(x: Vec3, y: Vec3, z: Vec3, offset: Vec3) -> Affine {
    Affine { linear: std::array::from_fn(|row| [x[row], y[row], z[row]]), offset }
}

/// Returns a camera at the front (+Z), slightly above, so far away that the whole bounding sphere
/// is visible.
fn frame_bounds((lower, upper): (Vec3, Vec3), aspect: f64) -> (Affine, Projection) {
    let center = scale(add(lower, upper), 0.5);
    let radius = match 0.5 * length(sub(upper, lower)) {
        radius if radius > 0.0 => radius,
        _ => 1.0,
    };
    let half_height = libm::tan(0.5 * FRAMING_VFOV);
    let half_angle = libm::atan(half_height * aspect.min(1.0));
    let distance = FRAMING_MARGIN * radius / libm::sin(half_angle);
    let back = [0.0, libm::sin(FRAMING_PITCH), libm::cos(FRAMING_PITCH)];
    let right = [1.0, 0.0, 0.0];
    let eye = add(center, scale(back, distance));
    let projection = Projection::Perspective { vfov: FRAMING_VFOV, near: 0.0, far: f32::INFINITY };
    (from_axes(right, cross(back, right), back, eye), projection)
}

fn assemble(
    place: &Affine,
    projection: Projection,
    options: &FlattenOptions,
    space: &WorkingSpace,
) -> Result<Camera, String> {
    let aspect = f64::from(options.width) / f64::from(options.height);
    // Nodes can scale and shear. A camera keeps its view axis, then its up axis, and the handedness
    // of its right axis.
    let flat = "its node's transform squeezes it flat";
    let back = normalize(place.column(2)).ok_or(flat)?;
    let up = place.column(1);
    let up = normalize(sub(up, scale(back, dot(up, back)))).ok_or(flat)?;
    let right = scale(cross(up, back), if place.determinant() < 0.0 { -1.0 } else { 1.0 });
    let (kind, half_height, near, far) = match projection {
        Projection::Perspective { vfov, near, far } => {
            (CameraKind::Perspective, libm::tan(0.5 * vfov), near, far)
        }
        Projection::Orthographic { half_height, near, far } => {
            (CameraKind::Orthographic, half_height, near, far)
        }
    };
    let lens = options.lens.filter(|_| kind == CameraKind::Perspective);
    let p = place.offset;
    let row = |r: usize| [right[r], up[r], back[r], p[r]].map(|value| value as f32);
    let rows: [[f32; 4]; 3] = [row(0), row(1), row(2)];
    let world_from_camera = std::array::from_fn(|i| rows[i / 4][i % 4]);
    let camera = Camera {
        world_from_camera,
        kind: kind as u32,
        half_width: (half_height * aspect) as f32,
        half_height: half_height as f32,
        lens_radius: lens.map_or(0.0, |lens| space.length(lens_radius(lens, half_height, aspect))),
        focus_distance: lens.map_or(Ok(1.0), |lens| focus_distance(lens.focus, p, back, space))?,
        near,
        far,
        blades: 0,
        blade_turn: 0.0,
        blade_apothem: 0.0,
        blade_half_side: 0.0,
        // Of the option in whole frames.
        shift_x: 2.0 * options.shift[0],
        shift_y: 2.0 * options.shift[1],
        reserved: [0; 3],
    };
    let camera = match lens.and_then(|lens| lens.blades) {
        Some(blades) => with_blades(camera, blades)?,
        None => camera,
    };
    let sane = |value: f32| value.is_finite() && value >= 0.0;
    if !camera.world_from_camera.iter().all(|value| value.is_finite()) {
        return Err("it stands at a place that is not finite".into());
    }
    if !(sane(camera.lens_radius) && sane(camera.focus_distance) && camera.focus_distance > 0.0) {
        return Err("lens radius and focus distance must be finite and above 0".into());
    }
    if !(camera.shift_x.is_finite() && camera.shift_y.is_finite()) {
        return Err("its shift is not finite".into());
    }
    if !(camera.half_width.is_finite() && camera.half_width > 0.0 && camera.half_height > 0.0) {
        return Err("its picture has no finite size".into());
    }
    Ok(camera)
}

/// Height in metres of the sensor for f-numbers, which is that of 35 mm film.
const SENSOR_HEIGHT: f64 = 0.024;

/// Returns the radius of a lens in metres. `half_height` is half the height of the view at distance
/// 1, and `aspect` its width over its height.
fn lens_radius(lens: Lens, half_height: f64, aspect: f64) -> f32 {
    match lens.aperture {
        Aperture::Radius(radius) => radius,
        Aperture::FStop(number) => {
            let (sensor, half_view) = match lens.sensor_width {
                Some(width) => (width.into(), half_height * aspect.max(1.0)),
                None => (SENSOR_HEIGHT, half_height),
            };
            let focal_length = 0.5 * sensor / half_view;
            (0.5 * focal_length / f64::from(number)) as f32
        }
    }
}

/// Returns the camera with a lens that is a polygon in the circle of the round lens.
fn with_blades(camera: Camera, blades: Blades) -> Result<Camera, String> {
    let Blades { count, rotation_degrees } = blades;
    if !(BLADES_MIN..=BLADES_MAX).contains(&count) {
        return Err(format!("a lens of {count} blades has not {BLADES_MIN} to {BLADES_MAX}"));
    }
    if !rotation_degrees.is_finite() {
        return Err("the turn of its blades is not finite".into());
    }
    // Whole turns are removed first, while that is exact.
    let turn = f64::from(rotation_degrees) % 360.0 / 360.0 + 0.25;
    let half = std::f64::consts::PI / f64::from(count);
    Ok(Camera {
        blades: count,
        blade_turn: turn as f32,
        blade_apothem: libm::cos(half) as f32,
        blade_half_side: libm::sin(half) as f32,
        ..camera
    })
}

/// Returns the distance along the view axis from the camera to the plane of focus, in the
/// working space.
fn focus_distance(
    focus: Focus,
    place: Vec3,
    back: Vec3,
    space: &WorkingSpace,
) -> Result<f32, String> {
    match focus {
        Focus::Distance(distance) => Ok(space.length(distance)),
        Focus::Point(point) => {
            let distance = -dot(sub(space.point(point), place), back);
            let [x, y, z] = point;
            match distance > 0.0 {
                true => Ok(distance as f32),
                false => Err(format!("the focus point ({x}, {y}, {z}) is not in front of it")),
            }
        }
    }
}

/// Returns the largest magnitude of a coordinate from which a camera's rays start, in metres. It is
/// rounded up to a power of two, so that a small movement of the camera does not change anything
/// that depends on it. Rays of overscan start further out and do not count: hits within the frame
/// must not depend on it. Parallel rays that hit something start beside it, so near the bounds.
pub(crate) fn origin_bound(camera: &Camera) -> f32 {
    let m = &camera.world_from_camera;
    let place = [m[3], m[7], m[11]].iter().fold(0.0f32, |largest, c| largest.max(c.abs()));
    let spread = if camera.kind == CameraKind::Orthographic as u32 {
        camera.half_width * (1.0 + camera.shift_x.abs())
            + camera.half_height * (1.0 + camera.shift_y.abs())
    } else {
        camera.lens_radius
    };
    let bound = f64::from(place) + f64::from(spread) + f64::from(camera.near);
    let mut power = 1.0f64;
    while power < bound && power < f64::from(f32::MAX) / 4.0 {
        power *= 2.0;
    }
    power as f32
}
