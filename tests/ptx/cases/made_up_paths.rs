//! Made-up paths: workspaces to which no picture leads, for one launch each. Rays through corners,
//! along planes and to ends that are exactly what they hit, hits anywhere on any triangle,
//! radiances that a film refuses. Runs nothing on the machine.

use tessera_kernels::CheckedScene;
use tessera_kernels::cuda::{Kernel, Plan, Shape, Step};
use tessera_kernels::stages::{HostStages, Offsets, offsets};
use tessera_layout::{NONE, Triangle, UnitParams};
use tessera_support::builder::{unit, whole};
use tessera_support::scenes::{Case, Noise};

/// Farther than anything is.
const FAR: f32 = 1e30;

/// A launch over made-up paths.
pub(crate) struct Made {
    /// Which step of the plan it is.
    pub(crate) step: usize,
    pub(crate) kernel: Kernel,
    /// The workspace before it.
    pub(crate) before: Vec<u8>,
    /// What the host leaves.
    pub(crate) left: Vec<u32>,
}

/// A unit of 1,024 paths in the staged shape.
pub(crate) fn plan(seed: u32) -> Plan {
    let clamp = if seed.is_multiple_of(2) { 0.4 } else { 0.0 };
    let unit = UnitParams { seed, clamp, aovs: 31, ..whole(32, 16, 2, 3) };
    let plan = Plan::new(&unit, &crate::ptx::device::SHAPE, 1 << 20).expect("the unit is in range");
    plan.in_shape(Shape::Staged)
}

/// Launches of every kernel that reads paths, with what the host leaves of them.
pub(crate) fn launches(case: &Case, plan: &Plan, seed: u32) -> Vec<Made> {
    let mut maker = Maker {
        scene: &case.scene,
        host: HostStages::new(&case.scene, plan),
        noise: Noise(seed.wrapping_mul(0x9e37_79b9)),
    };
    let mut made = Vec::new();
    if !case.scene.triangles.is_empty() {
        let rays: Vec<Ray> = (0..plan.paths_in_flight()).map(|_| maker.ray()).collect();
        made.push(maker.made(Kernel::Extend, 0, |_, at, bytes| put_rays(bytes, at, &rays)));
        let at = maker.find(Kernel::Extend, 0).1;
        let hits = &maker.host.workspace()[at.hit..];
        let ends: Vec<f32> =
            rays.iter().zip(hits.chunks_exact(16)).map(|(_, hit)| float(hit)).collect();
        let rays: Vec<Ray> = rays
            .iter()
            .zip(&ends)
            .enumerate()
            .map(|(slot, (ray, end))| ray.ending(slot, *end))
            .collect();
        made.push(maker.made(Kernel::Extend, 0, |_, at, bytes| put_rays(bytes, at, &rays)));
        let has_panes = case.scene.pane_count() != 0;
        let shadow = if has_panes { Kernel::ShadowPanes } else { Kernel::Shadow };
        made.push(maker.made(shadow, 1, |_, at, bytes| put_shadows(bytes, at, &rays)));
        for depth in [0, 2] {
            made.push(maker.made(Kernel::Shade, depth, put_hits));
            if !case.scene.layers.is_empty() {
                made.push(maker.made(Kernel::ShadeLayered, depth, put_hits));
            }
        }
    }
    made.push(maker.made(Kernel::Finish, 0, put_results));
    made
}

fn float(bytes: &[u8]) -> f32 {
    f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

fn put(bytes: &mut [u8], at: usize, index: usize, values: [f32; 4]) {
    for (place, value) in bytes[at + 16 * index..][..16].chunks_exact_mut(4).zip(values) {
        place.copy_from_slice(&value.to_le_bytes());
    }
}

fn put_word(bytes: &mut [u8], at: usize, index: usize, word: u32) {
    bytes[at + 4 * index..][..4].copy_from_slice(&word.to_le_bytes());
}

struct Ray {
    origin: [f32; 3],
    direction: [f32; 3],
    end: f32,
}

impl Ray {
    /// The same ray with its end at a hit, just before it, somewhere else, or nowhere.
    fn ending(&self, slot: usize, hit: f32) -> Ray {
        let end = [hit, hit.next_down(), FAR, 0.7 * hit][slot % 4];
        Ray { end: if end > 0.0 { end } else { FAR }, ..*self }
    }
}

fn put_rays(bytes: &mut [u8], at: &Offsets, rays: &[Ray]) {
    put_word(bytes, at.lengths, 0, rays.len() as u32);
    for (slot, ray) in rays.iter().enumerate() {
        let ([x, y, z], [dx, dy, dz]) = (ray.origin, ray.direction);
        put(bytes, at.origin, slot, [x, y, z, ray.end]);
        put(bytes, at.direction, slot, [dx, dy, dz, 0.5]);
    }
}

fn put_shadows(bytes: &mut [u8], at: &Offsets, rays: &[Ray]) {
    put_rays(bytes, at, rays);
    put_word(bytes, at.lengths, 1, rays.len() as u32);
    for (slot, ray) in rays.iter().enumerate() {
        let [dx, dy, dz] = ray.direction;
        put(bytes, at.shadow_direction, slot, [dx, dy, dz, ray.end]);
        let share = slot as f32 * 0.01;
        put(
            bytes,
            at.shadow_radiance,
            slot,
            [1.0 + share, 2.0 - share, 0.3, f32::from_bits(slot as u32)],
        );
        put(bytes, at.radiance, slot, [share, 0.1, 0.7, 0.0]);
    }
}

/// Hits of every triangle, inside, on edges and in corners, seen from anywhere.
fn put_hits(maker: &mut Maker<'_>, at: &Offsets, bytes: &mut [u8]) {
    let count = at.capacity as usize;
    put_word(bytes, at.lengths, 0, at.capacity);
    let triangles = maker.scene.triangles.len() as u32;
    let count_of_media = maker.scene.media.len() as u32;
    let noise = &mut maker.noise;
    for slot in 0..count {
        if at.depth > 0 {
            put_word(bytes, at.queue, slot, slot as u32);
        }
        let triangle =
            if noise.bits().is_multiple_of(16) { NONE } else { noise.bits() % triangles };
        let [_, u, v] = place(noise);
        put(bytes, at.hit, slot, [noise.between(0.01, 5.0), f32::from_bits(triangle), u, v]);
        let [x, y, z] = noise.point(2.0);
        put(bytes, at.origin, slot, [x, y, z, FAR]);
        let [x, y, z] = direction(noise);
        let pdf = if noise.bits().is_multiple_of(8) { 0.0 } else { noise.between(0.0, 5.0) };
        put(bytes, at.direction, slot, [x, y, z, pdf]);
        let scale = [1.0, 1.0, 1.0, 1.5, 1e-3, 1e-12, 0.2, 0.0][noise.bits() as usize % 8];
        let [r, g, b] = [noise.unit(), noise.unit(), noise.unit()].map(|share| share * scale);
        put(bytes, at.throughput, slot, [r, g, b, noise.unit()]);
        let [r, g, b] = [noise.unit(), noise.unit(), noise.unit()];
        let media = match count_of_media {
            0 => 0,
            count => {
                [0, noise.bits() % count, ((noise.bits() % count) << 8) | (noise.bits() % count)]
                    [slot % 3]
            }
        };
        put(bytes, at.radiance, slot, [r, g, b, f32::from_bits(media)]);
    }
}

/// Radiances of all magnitudes and signs, some of which no film takes, and first surfaces.
fn put_results(maker: &mut Maker<'_>, at: &Offsets, bytes: &mut [u8]) {
    let noise = &mut maker.noise;
    let special = [
        0.0,
        -0.0,
        f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        1e9,
        -1e9,
        262_144.0,
        3.0e-8,
        -3.0e-8,
    ];
    for slot in 0..at.capacity as usize {
        let mut value = || match noise.bits() % 16 {
            0 => special[noise.bits() as usize % special.len()],
            1 => noise.between(-2e-7, 2e-7),
            2 => noise.between(-3e5, 3e5),
            _ => noise.between(-0.5, 2.0),
        };
        let radiance = [value(), value(), value(), 0.0];
        put(bytes, at.radiance, slot, radiance);
        for part in 0..3 {
            let first = [value(), value(), value(), value()];
            put(
                bytes,
                at.first,
                part * at.capacity as usize + slot,
                first.map(|v| if v.is_nan() { 0.5 } else { v }),
            );
        }
    }
}

/// Weights of a triangle's corners: inside, on an edge, or a corner itself.
fn place(noise: &mut Noise) -> [f32; 3] {
    let (a, b) = (noise.unit(), noise.unit());
    let (u, v) = if a + b > 1.0 { (1.0 - a, 1.0 - b) } else { (a, b) };
    match noise.bits() % 12 {
        0 => [1.0, 0.0, 0.0],
        1 => [0.0, 1.0, 0.0],
        2 => [1.0 - a, 0.0, a],
        3 => [1.0 - a, a, 0.0],
        4 => [0.0, 1.0 - a, a],
        _ => [1.0 - u - v, u, v],
    }
}

fn direction(noise: &mut Noise) -> [f32; 3] {
    loop {
        let candidate = noise.point(1.0);
        if candidate.iter().map(|v| v * v).sum::<f32>() > 0.01 {
            return unit(candidate);
        }
    }
}

fn on_triangle(triangle: &Triangle, weights: [f32; 3]) -> [f32; 3] {
    let [a, b, c] = weights;
    std::array::from_fn(|axis| {
        a * triangle.v0[axis] + b * triangle.v1[axis] + c * triangle.v2[axis]
    })
}

struct Maker<'a> {
    scene: &'a CheckedScene,
    host: HostStages,
    noise: Noise,
}

impl Maker<'_> {
    fn point(&mut self) -> [f32; 3] {
        let triangle =
            self.scene.triangles[self.noise.bits() as usize % self.scene.triangles.len()];
        on_triangle(&triangle, place(&mut self.noise))
    }

    /// From one surface, or from anywhere, to another; some along an axis or within a plane of two.
    fn ray(&mut self) -> Ray {
        let target = self.point();
        let from =
            if self.noise.bits().is_multiple_of(2) { self.point() } else { self.noise.point(4.0) };
        let mut origin = from;
        let along = self.noise.bits() as usize % 3;
        let zero = if self.noise.bits().is_multiple_of(2) { 0.0 } else { -0.0f32 };
        let mut towards: [f32; 3] = std::array::from_fn(|axis| target[axis] - origin[axis]);
        match self.noise.bits() % 8 {
            0 => (towards[along], origin[along]) = (zero, target[along]),
            1 => {
                origin = target;
                origin[along] = from[along];
                towards = [zero; 3];
                towards[along] = target[along] - origin[along];
            }
            _ => {}
        }
        let length = towards.iter().map(|v| v * v).sum::<f32>().sqrt();
        let direction = if length > 1e-6 { towards.map(|v| v / length) } else { [zero, 1.0, zero] };
        Ray { origin, direction, end: FAR }
    }

    /// The step that launches a kernel at a depth.
    fn find(&mut self, wanted: Kernel, depth: u32) -> (usize, Offsets) {
        let steps = self.host.steps();
        let found = steps.iter().enumerate().find_map(|(step, what)| match what {
            Step::Launch { kernel, params, .. } if *kernel == wanted => {
                let at = offsets(params);
                (at.depth == depth).then_some((step, at))
            }
            _ => None,
        });
        found.expect("the plan has such a launch")
    }

    fn made(
        &mut self,
        kernel: Kernel,
        depth: u32,
        fill: impl FnOnce(&mut Self, &Offsets, &mut [u8]),
    ) -> Made {
        let (step, at) = self.find(kernel, depth);
        let steps = self.host.steps();
        for told in steps.iter().filter(|step| !matches!(step, Step::Launch { .. })) {
            self.host.take(told);
        }
        let mut before = self.host.workspace().to_vec();
        for word in before[at.keys..][..8 * at.capacity as usize].chunks_exact_mut(4) {
            word.copy_from_slice(&self.noise.bits().to_le_bytes());
        }
        fill(self, &at, &mut before);
        self.host.workspace().copy_from_slice(&before);
        let left = self.host.take(&steps[step]).expect("it is a launch");
        Made { step, kernel, before, left }
    }
}
