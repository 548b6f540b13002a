//! Whole pictures: the PTX that ships, run by the machine, gives the film and the counts of every
//! host build.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::ptx::cases::{exact_values, last_place, made_up_paths};
use crate::ptx::device::{Device, DeviceError, SHAPE, shipped};
use crate::ptx::features;
use tessera_kernels::cuda::{Kernel, PATHS_IN_FLIGHT_MIN, Plan, SceneImage, Shape};
use tessera_kernels::host::{RayCounts, available_isas, best_isa, render_unit};
use tessera_kernels::stages;
use tessera_ptx::Module;
use tessera_support::scenes::{self, Case};

/// Film sums and counts of a case by one host build.
pub(crate) fn on_host(case: &Case, isa: tessera_kernels::host::Isa) -> (Vec<i64>, RayCounts) {
    let unit = &case.unit;
    let mut film = vec![0; (unit.channels() * unit.width * unit.height) as usize];
    let mut counts = RayCounts::default();
    render_unit(isa, &case.scene, unit, &mut film, &mut counts).expect("the unit is in range");
    (film, counts)
}

/// Both shapes, each with all paths in flight at once and with as few as a plan is made for; and as
/// for known answers, where paths look for the run that they are of.
pub(crate) fn plans(case: &Case) -> Vec<Plan> {
    let shapes = [Shape::Compact, Shape::Staged];
    let paths = [1 << 20, PATHS_IN_FLIGHT_MIN];
    let plan = |shape, paths| {
        Plan::new(&case.unit, &SHAPE, paths).expect("the unit is in range").in_shape(shape)
    };
    let both = shapes.into_iter().flat_map(|shape| paths.map(|paths| plan(shape, paths)));
    both.chain([plan(Shape::Staged, 1 << 20).in_waves()]).collect()
}

/// Runs every plan of every case on a module, and compares with the host's best build: film and
/// counts, and in the staged shape what every launch leaves in the workspace. Says what it did.
pub(crate) fn compare(module: &Arc<Module>, cases: &[Case]) {
    let mut launched = BTreeSet::new();
    for case in cases {
        let want = on_host(case, best_isa());
        assert_eq!(want.1.non_finite, 0, "{}", case.name);
        let mut device = Device::new(module);
        let start = std::time::Instant::now();
        for plan in plans(case) {
            let before = device.machine.free_bytes();
            let got = match plan.shape() {
                Shape::Compact => device.render(&case.scene, &plan),
                Shape::Staged => by_stages(&mut device, case, &plan),
            };
            let got = got.unwrap_or_else(|error| panic!("{}: {error}", case.name));
            let how = format!(
                "{}: {:?}, {} paths in flight",
                case.name,
                plan.shape(),
                plan.paths_in_flight()
            );
            assert_eq!(got.1, want.1, "{how}: counts");
            assert!(got.0 == want.0, "{how}: {} sums differ", differing(&got.0, &want.0));
            assert_eq!(device.machine.free_bytes(), before, "{how}: memory is given back");
        }
        launched.extend(device.launched.iter().copied());
        let unit = &case.unit;
        eprintln!(
            "{}: {} × {} × {} samples, {} triangles: {} M instructions in {:.2} s",
            case.name,
            unit.width,
            unit.height,
            unit.sample_count,
            case.scene.triangles.len(),
            device.steps / 1_000_000,
            start.elapsed().as_secs_f64()
        );
    }
    let is_layered = cases.iter().any(|case| !case.scene.layers.is_empty());
    let has_panes = cases.iter().any(|case| case.scene.pane_count() != 0);
    let of_layers = [Kernel::RenderLayered, Kernel::ShadeLayered];
    let all = Kernel::ALL
        .into_iter()
        .filter(|kernel| is_layered || !of_layers.contains(kernel))
        .filter(|kernel| has_panes || *kernel != Kernel::ShadowPanes);
    assert_eq!(
        launched.into_iter().collect::<Vec<_>>(),
        all.collect::<Vec<_>>(),
        "every kernel takes part"
    );
}

/// Renders stage by stage, and compares what every launch leaves with what the host's stages leave.
fn by_stages(
    device: &mut Device,
    case: &Case,
    plan: &Plan,
) -> Result<(Vec<i64>, RayCounts), DeviceError> {
    let want = stages::on_host(&case.scene, plan);
    let mut at = 0;
    let workspace = device.render_watched(&case.scene, plan, |kernel, got| {
        let different = differing(&got, &want[at]);
        assert!(
            got.len() == want[at].len() && different == 0,
            "{}: launch {at}, {kernel:?}: {different} of {} words differ",
            case.name,
            got.len()
        );
        at += 1;
    })?;
    assert_eq!(at, want.len(), "{}: every launch is compared", case.name);
    let film = workspace[..plan.film_bytes() as usize].chunks_exact(8);
    let film = film.map(|sum| sum.iter().rev().fold(0, |word, byte| word << 8 | i64::from(*byte)));
    let counts = &workspace[plan.counts_offset() as usize..][..plan.counts_bytes() as usize];
    Ok((film.collect(), plan.counts(counts)[0]))
}

fn differing<T: PartialEq>(got: &[T], want: &[T]) -> usize {
    got.iter().zip(want).filter(|(got, want)| got != want).count()
}

#[test]
fn launches_and_films_match_the_host() {
    compare(shipped(), &scenes::all());
}

#[test]
fn last_place_pictures_match_the_host() {
    let exact = exact_values::all().into_iter().chain(last_place::panes_on_texels(5));
    compare(shipped(), &last_place::all().into_iter().chain(exact).collect::<Vec<_>>());
}

#[test]
fn made_up_paths_match_the_host() {
    let plan = made_up_paths::plan(1);
    for case in scenes::all().into_iter().chain(last_place::all()) {
        let image = SceneImage::of(&case.scene);
        let mut device = Device::new(shipped());
        for launch in made_up_paths::launches(&case, &plan, 1) {
            let got = device
                .take(&image, &plan, launch.step, &launch.before)
                .unwrap_or_else(|error| panic!("{}: {:?}: {error}", case.name, launch.kernel));
            let different = differing(&got, &launch.left);
            assert!(
                got.len() == launch.left.len() && different == 0,
                "{}: {:?}: {different} words differ",
                case.name,
                launch.kernel
            );
        }
    }
}

#[test]
fn the_scenes_use_every_feature() {
    let used: BTreeSet<&str> = scenes::all().iter().flat_map(features::of).collect();
    let missing: Vec<&&str> = features::ALL.iter().filter(|name| !used.contains(**name)).collect();
    assert!(missing.is_empty(), "no scene has {missing:?}");
    assert_eq!(used.len(), features::ALL.len(), "a feature that is not in the list");
}

#[test]
fn host_builds_match_each_other() {
    for case in scenes::all() {
        let want = on_host(&case, best_isa());
        let beauty = &want.0[..3 * (case.unit.width * case.unit.height) as usize];
        let lit = beauty.iter().filter(|sum| **sum != 0).count();
        assert!(
            case.name == "dark" || lit * 4 > beauty.len(),
            "{}: the picture is empty",
            case.name
        );
        for isa in available_isas() {
            assert!(on_host(&case, isa) == want, "{}: {isa}", case.name);
        }
    }
}
