//! What decides the kernels' speed, counted where there is no GPU: instructions and live lanes of
//! warps and the memory that they touch, by stage and depth, and what cards need for that at least.
//!
//! `TESSERA_MODEL=1 cargo test --release --test integration ptx::model -- --nocapture` prints the
//! tables of `docs/measurements/model.md`.
#![expect(clippy::print_stdout, reason = "its tables are for people")]

mod cards;

use crate::ptx::device::{Device, shipped};
use crate::render::picture::{checked, file, flatten_with, shared, whole_frame};
use cards::{CARDS, Card, Limit, MEASURED, least};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tessera_kernels::CheckedScene;
use tessera_kernels::cuda::{self, DeviceShape, Kernel, Plan, Queue, SceneImage, Shape, Step};
use tessera_kernels::stages;
use tessera_layout::UnitParams;
use tessera_ptx::Settings;
use tessera_ptx::profile::Profile;
use tessera_scenes::{CameraChoice, EnvironmentSource, FlattenOptions, LoadOptions};

/// Paths that start at once on a full card.
const PATHS: f64 = 262_144.0;
/// Size of the frame, and of the tiles of it that are looked at.
const FRAME: (u32, u32) = (1920, 1080);
const TILE: u32 = 32;
/// Samples of a pixel.
const SAMPLES: u32 = 4;

/// Fewer entries tell more of the launch than of what it does.
const ENTRIES_MIN: u64 = 64;

/// All launches of one kernel at one depth.
pub(crate) struct Stage {
    kernel: Kernel,
    depth: u32,
    /// Paths or rays that they were for.
    entries: u64,
    profile: Profile,
    /// How many times as many there are on a full card.
    scale: f64,
}

impl Stage {
    /// Groups of 32 entries on a full card.
    fn groups(&self) -> f64 {
        self.entries as f64 * self.scale / 32.0
    }

    fn instructions_an_entry(&self) -> f64 {
        self.profile.thread_instructions as f64 / self.entries.max(1) as f64
    }

    fn sectors_an_entry(&self) -> f64 {
        let profile = &self.profile;
        (profile.global.sectors + profile.local.sectors) as f64 / self.entries.max(1) as f64
    }
}

/// Runs units in stages, all together, and counts what warps do. One multiprocessor, so that a warp
/// traces as many rays as on a large card that is just busy.
fn count(scene: &CheckedScene, units: &[UnitParams]) -> Vec<Stage> {
    let mut device = Device::with(shipped(), Settings { profile: true, ..Settings::default() });
    let mut found: BTreeMap<(u32, Kernel), (u64, Profile)> = BTreeMap::new();
    let shape = DeviceShape { multiprocessors: 1, threads_per_multiprocessor: 1024 };
    let plan = Plan::of_units(units, &shape, 1 << 20).expect("the units are in range");
    count_plan(&mut device, scene, &plan.in_shape(Shape::Staged), &mut found);
    let started: u64 = found.get(&(0, Kernel::Generate)).map_or(0, |(paths, _)| *paths);
    let scale = PATHS / started.max(1) as f64;
    let stages = found.into_iter().map(|((depth, kernel), (entries, profile))| Stage {
        kernel,
        depth,
        entries,
        profile,
        scale,
    });
    stages.filter(|stage| stage.entries >= ENTRIES_MIN).collect()
}

fn count_plan(
    device: &mut Device,
    scene: &CheckedScene,
    plan: &Plan,
    found: &mut BTreeMap<(u32, Kernel), (u64, Profile)>,
) {
    let (address, view) = cuda::upload(device, &SceneImage::of(scene)).expect("it fits");
    let workspace = device.allocate(plan.workspace_bytes()).expect("it fits");
    let mut bytes = vec![0; plan.workspace_bytes() as usize];
    let started = u64::from(plan.paths_in_flight());
    for step in plan.steps(&view, workspace) {
        match step {
            Step::Write { address, bytes } => device.upload(address, &bytes).expect("it is there"),
            Step::Zero { address, bytes } => device.zero(address, bytes).expect("it is there"),
            Step::Launch { kernel, grid, block, params } => {
                device.launch(kernel, grid, block, &params).expect("it runs");
                device.download(workspace, &mut bytes).expect("it is there");
                let profiles = device.machine.take_profile(&device.module);
                let profile = profiles.into_values().next().expect("it was counted");
                let depth = stages::offsets(&params).depth;
                let entries = entries(kernel, &params, &bytes, started);
                let (sum, whole) = found.entry((depth, kernel)).or_default();
                *sum += entries;
                whole.add(&profile);
            }
        }
    }
    device.release(workspace);
    device.release(address);
}

/// Paths or shadow rays that a launch was for.
fn entries(kernel: Kernel, params: &[u8], workspace: &[u8], started: u64) -> u64 {
    let offsets = stages::offsets(params);
    let length = |at: usize| {
        let word = &workspace[offsets.lengths + 4 * at..][..4];
        u64::from(u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
    };
    match kernel {
        Kernel::Shadow | Kernel::ShadowPanes => length(1),
        Kernel::Generate | Kernel::Finish => started,
        _ if offsets.depth == 0 => started,
        _ => length(0),
    }
}

/// Four tiles about the middle of a frame.
fn tiles(depth: u32) -> Vec<UnitParams> {
    let frame = whole_frame(FRAME.0, FRAME.1, SAMPLES, depth);
    let places = [(3, 3), (5, 3), (3, 5), (5, 5)];
    let tile = |(x, y): (u32, u32)| UnitParams {
        x: (FRAME.0 * x / 8 / TILE * TILE) as i32,
        y: (FRAME.1 * y / 8 / TILE * TILE) as i32,
        width: TILE,
        height: TILE,
        ..frame
    };
    places.map(tile).into()
}

/// A scene of the table, if its file is there.
fn scene(name: &str) -> Option<CheckedScene> {
    let mut view = FlattenOptions::still(FRAME.0, FRAME.1);
    let mut options = LoadOptions::default();
    let path: PathBuf = match name.ends_with(".glb") {
        true => shared(name)?,
        false => file("scenes/library").join(name),
    };
    if name.starts_with("Sponza") {
        view.camera = CameraChoice::LookAt {
            eye: [-9.0, 1.5, 0.0],
            target: [5.0, 3.0, 0.5],
            up: [0.0, 1.0, 0.0],
            vfov_degrees: 45.0,
        };
    }
    if name.ends_with(".glb") {
        options.environment = EnvironmentSource::Constant([0.6, 0.7, 0.8]);
    }
    Some(checked(flatten_with(Path::new(&path), None, options, &view)))
}

const SCENES: [&str; 6] = [
    "cornell-box.gltf",
    "many-lights.gltf",
    "material-row.gltf",
    "spinning-cube.gltf",
    "DamagedHelmet.glb",
    "Sponza.glb",
];

#[test]
fn warps_are_counted_by_stage_and_depth() {
    let scene = scene("cornell-box.gltf").expect("it is in the repository");
    let unit = UnitParams { width: 16, height: 8, ..tiles(2)[0] };
    let stages = count(&scene, &[unit]);
    let of = |kernel, depth| stages.iter().find(|of| (of.kernel, of.depth) == (kernel, depth));
    let first = of(Kernel::Extend, 0).expect("rays are traced");
    let later = of(Kernel::Extend, 1).expect("paths go on");
    assert_eq!(first.entries, 512);
    assert!(later.entries <= 512 && later.entries > 256, "{}", later.entries);
    for stage in &stages {
        let lanes = stage.profile.live_lanes();
        assert!(lanes > 0.0 && lanes <= 32.0, "{:?}: {lanes}", stage.kernel);
    }
    // Rays of a camera are neighbours, and those after a hit are not.
    assert!(first.profile.live_lanes() > 1.2 * later.profile.live_lanes());
    // A card with more of everything is never slower.
    for stage in &stages {
        let [t4, .., h100, _] = CARDS.each_ref().map(|card| least(stage, card).0);
        assert!(h100 > 0.0 && h100 <= t4, "{:?}: {h100} and {t4} µs", stage.kernel);
    }
}

#[test]
fn lanes_whose_rays_have_ended_get_others() {
    let scene = scene("material-row.gltf").expect("it is in the repository");
    let stages = count(&scene, &tiles(2));
    // Rays that part: without others in their place, 5.4 and 5.1 lanes of 32 were at work.
    for (kernel, depth) in [(Kernel::Extend, 1), (Kernel::Shadow, 1)] {
        let of = stages.iter().find(|of| (of.kernel, of.depth) == (kernel, depth));
        let lanes = of.map_or(0.0, |of| of.profile.live_lanes());
        assert!(lanes > 12.0, "{kernel:?}, {depth}: {lanes}");
    }
}

#[test]
fn tables_of_the_model() {
    if std::env::var_os("TESSERA_MODEL").is_none() {
        return;
    }
    for name in SCENES {
        let Some(scene) = scene(name) else { continue };
        let stages = count(&scene, &tiles(5));
        println!("\n### {name}\n");
        print_stages(&stages);
        print_cards(&stages);
    }
    print_beside_measured();
}

/// What Nsight Compute found on an H200 for the second tile of Sponza's hall, with 64 samples a
/// pixel and the kernels before rays took the place of others (`docs/measurements/gpu.md`): live
/// lanes, and µs.
const MEASURED_LAUNCHES: [(Kernel, u32, f64, f64); 9] = [
    (Kernel::Extend, 0, 30.6, 170.0),
    (Kernel::Shade, 0, 30.3, 65.0),
    (Kernel::Shadow, 0, 7.6, 177.0),
    (Kernel::Extend, 1, 9.3, 439.0),
    (Kernel::Shade, 1, 28.9, 75.0),
    (Kernel::Shadow, 1, 6.3, 210.0),
    (Kernel::Extend, 2, 8.6, 130.0),
    (Kernel::Shade, 2, 29.3, 29.0),
    (Kernel::Shadow, 2, 6.5, 80.0),
];

fn print_beside_measured() {
    let Some(scene) = scene("Sponza.glb") else { return };
    let tile = UnitParams { x: 64, y: 0, width: 64, height: 64, ..tiles(5)[0] };
    let stages = count(&scene, &[tile]);
    println!(
        "\n| stage, depth | lanes, measured before | µs | lanes now, counted | µs, by the model |"
    );
    println!("|---|---|---|---|---|");
    for (kernel, depth, lanes, us) in MEASURED_LAUNCHES {
        let of = |stage: &&Stage| (stage.kernel, stage.depth) == (kernel, depth);
        let Some(stage) = stages.iter().find(of) else { continue };
        let (least, counted) = (least(stage, &MEASURED).0, stage.profile.live_lanes());
        println!("| {kernel:?}, {depth} | {lanes} | {us:.0} | {counted:.1} | {least:.0} |");
    }
}

fn print_stages(stages: &[Stage]) {
    println!(
        "| stage, depth | entries, % | instructions each | live lanes | sectors each | H200, µs |"
    );
    println!("|---|---|---|---|---|---|");
    for stage in stages {
        let share = 100.0 * stage.entries as f64 * stage.scale / PATHS;
        let (micros, limit) = least(stage, &MEASURED);
        println!(
            "| {:?}, {} | {share:.0} | {:.0} | {:.1} | {:.1} | {micros:.0} ({limit:?}) |",
            stage.kernel,
            stage.depth,
            stage.instructions_an_entry(),
            stage.profile.live_lanes(),
            stage.sectors_an_entry(),
        );
    }
}

/// Of the time of all launches together, what holds each card up.
fn print_cards(stages: &[Stage]) {
    println!("\n| card | µs a batch | Msamples/s, not measured | limits, share of the time |");
    println!("|---|---|---|---|");
    for card in &CARDS {
        let (all, shares) = together(stages, card);
        let shares: Vec<String> = shares
            .iter()
            .filter(|(_, micros)| *micros > 0.005 * all)
            .map(|(limit, micros)| format!("{limit:?} {:.0} %", 100.0 * micros / all))
            .collect();
        println!("| {} | {all:.0} | {:.0} | {} |", card.name, PATHS / all, shares.join(", "));
    }
}

fn together(stages: &[Stage], card: &Card) -> (f64, Vec<(Limit, f64)>) {
    let limits = [Limit::Issue, Limit::Latency, Limit::L1, Limit::Memory];
    let times: Vec<(f64, Limit)> = stages.iter().map(|stage| least(stage, card)).collect();
    let of = |limit: Limit| times.iter().filter(|(_, why)| *why == limit).map(|(us, _)| us).sum();
    (times.iter().map(|(us, _)| us).sum(), limits.map(|limit| (limit, of(limit))).into())
}
