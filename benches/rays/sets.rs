//! The rays of a path tracer, by kind: from the camera (coherent), after one and two diffuse
//! bounces, all bounces shuffled (nothing alike), and from surfaces to the sky.

use tessera_kernels::CheckedScene;
use tessera_kernels::host::best_isa;
use tessera_kernels::rays::{Ray, trace_closest};
use tessera_layout::NONE;

/// Rays of a kind.
pub(crate) struct RaySet {
    pub(crate) name: &'static str,
    pub(crate) rays: Vec<Ray>,
}

/// A counter made random (the mixer of "splitmix64", Steele, Lea and Flood, "Fast Splittable
/// Pseudorandom Number Generators", OOPSLA 2014).
struct Random(u64);

impl Random {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ value >> 31
    }

    /// In [0, 1).
    fn unit(&mut self) -> f32 {
        (self.bits() >> 40) as f32 / 16_777_216.0
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.bits() as usize % (last + 1));
        }
    }
}

/// The sets of a scene, seen by its camera in a frame of this size.
pub(crate) fn ray_sets(scene: &CheckedScene, size: (u32, u32)) -> Vec<RaySet> {
    let mut random = Random(1);
    let camera = camera_rays(scene, size, &mut random);
    let (first, mut sky) = bounced(scene, &camera, &mut random);
    let (second, more_sky) = bounced(scene, &first, &mut random);
    let (third, _) = bounced(scene, &second, &mut random);
    sky.extend(more_sky);
    let mut shuffled = [first.as_slice(), &second, &third].concat();
    random.shuffle(&mut shuffled);
    let sets = [
        ("camera", camera),
        ("bounce 1", first),
        ("bounce 2", second),
        ("shuffled", shuffled),
        ("sky", sky),
    ];
    sets.into_iter().map(|(name, rays)| RaySet { name, rays }).collect()
}

fn camera_rays(scene: &CheckedScene, (width, height): (u32, u32), random: &mut Random) -> Vec<Ray> {
    let camera = &scene.camera;
    let m = camera.world_from_camera;
    let column = |at: usize| [m[at], m[at + 4], m[at + 8]];
    let (right, up, back, origin) = (column(0), column(1), column(2), column(3));
    let mut rays = Vec::with_capacity((width * height) as usize);
    for y in 0..height {
        for x in 0..width {
            let across =
                (2.0 * (x as f32 + random.unit()) / width as f32 - 1.0) * camera.half_width;
            let upward =
                (1.0 - 2.0 * (y as f32 + random.unit()) / height as f32) * camera.half_height;
            let direction = std::array::from_fn(|k| across * right[k] + upward * up[k] - back[k]);
            rays.push(Ray { origin, direction: unit(direction), t_max: f32::INFINITY });
        }
    }
    rays
}

/// Where rays hit: one diffuse bounce, and one ray to somewhere above.
fn bounced(scene: &CheckedScene, rays: &[Ray], random: &mut Random) -> (Vec<Ray>, Vec<Ray>) {
    let hits = trace_closest(best_isa(), scene, rays).expect("this processor's own instructions");
    let (mut bounces, mut sky) = (Vec::new(), Vec::new());
    for (ray, hit) in rays.iter().zip(hits).filter(|(_, hit)| hit.triangle != NONE) {
        let triangle = &scene.triangles[hit.triangle as usize];
        let [a, b] = [triangle.v1, triangle.v2].map(|corner| difference(corner, triangle.v0));
        let mut normal = unit(cross(a, b));
        if !normal[0].is_finite() {
            continue;
        }
        if dot(normal, ray.direction) > 0.0 {
            normal = normal.map(|n| -n);
        }
        let origin: [f32; 3] =
            std::array::from_fn(|k| ray.origin[k] + hit.t * ray.direction[k] + 1e-4 * normal[k]);
        let bounce = |direction| Ray { origin, direction, t_max: f32::INFINITY };
        bounces.push(bounce(cosine_around(normal, random)));
        let [x, y, z] = cosine_around(normal, random);
        sky.push(bounce(unit([x, y.abs() + 0.3, z])));
    }
    (bounces, sky)
}

/// A direction about a normal, by the cosine.
fn cosine_around(normal: [f32; 3], random: &mut Random) -> [f32; 3] {
    let (radius_squared, angle) = (random.unit(), random.unit() * std::f32::consts::TAU);
    let helper = if normal[0].abs() < 0.5 { [1.0, 0.0, 0.0] } else { [0.0, 1.0, 0.0] };
    let tangent = unit(cross(normal, helper));
    let other = cross(normal, tangent);
    let (radius, height) = (radius_squared.sqrt(), (1.0 - radius_squared).sqrt());
    let (across, along) = (radius * angle.cos(), radius * angle.sin());
    unit(std::array::from_fn(|k| across * tangent[k] + along * other[k] + height * normal[k]))
}

fn difference(a: [f32; 3], b: [f32; 3]) -> [f32; 3] {
    std::array::from_fn(|k| a[k] - b[k])
}

fn dot(a: [f32; 3], b: [f32; 3]) -> f32 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn cross(a: [f32; 3], b: [f32; 3]) -> [f32; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

fn unit(a: [f32; 3]) -> [f32; 3] {
    let length = dot(a, a).sqrt();
    a.map(|k| k / length)
}
