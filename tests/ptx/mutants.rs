//! The mutation check: how many faults of one instruction the comparison of bits finds.
//!
//! Faults are planted in the text of the shipped image and of the functions' image, one at a time, in instructions that
//! the comparison runs. A fault is found where any compared output differs, a thread faults, or a launch does not end.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::culling;
use crate::device::{Device, SHAPE};
use crate::mutations::{self, Mutation};
use crate::scenes::{self, Case, Noise};
use crate::{bits, units};
use tessera_kernels::cuda::{Kernel, PTX, Plan, SceneImage, Shape};
use tessera_kernels::host::{RayCounts, best_isa};
use tessera_kernels::stages;
use tessera_kernels::unit_tests::{UNIT_TESTS_PTX, unit_functions};
use tessera_layout::UnitParams;
use tessera_ptx::{Limits, Module, Settings};

/// Mutants in every run of CI; `TESSERA_MUTANTS` asks for another number.
const SAMPLE: usize = 30;
/// Share of those that must be found, which is what is reached, so that the comparison cannot grow blind unseen. The aim is
/// 0.95: docs/proof.md.
const FOUND_MIN: f64 = 0.89;
/// The same of any other sample.
const FOUND_MIN_ANY: f64 = 0.8;

fn wanted() -> usize {
    std::env::var("TESSERA_MUTANTS").ok().and_then(|text| text.parse().ok()).unwrap_or(SAMPLE)
}

fn found_min() -> f64 {
    if wanted() == SAMPLE { FOUND_MIN } else { FOUND_MIN_ANY }
}

/// `count` of them, the same for the same seed.
fn sample(mut all: Vec<Mutation>, count: usize) -> Vec<Mutation> {
    let mut noise = Noise(2026);
    let count = count.min(all.len());
    for at in 0..count {
        let other = at + noise.bits() as usize % (all.len() - at);
        all.swap(at, other);
    }
    all.truncate(count);
    all
}

/// Runs `is_found` on every mutant, on all processors; prints those that are not, and the shares by kind.
fn check(
    name: &str,
    source: &str,
    mutants: &[Mutation],
    is_found: impl Fn(&Arc<Module>, u32) -> bool + Sync,
) -> f64 {
    let next = AtomicUsize::new(0);
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let work = || {
        let mut found = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(mutation) = mutants.get(at) else { return found };
            let text = mutations::planted(source, mutation);
            let module = Module::parse(&text).unwrap_or_else(|error| panic!("{mutation:?}: {error}"));
            let found_it = is_found(&Arc::new(module), mutation.line);
            if !found_it {
                let line = source.lines().nth(mutation.line as usize - 1).unwrap_or_default();
                eprintln!("{name}: not found: line {} `{}`: {}", mutation.line, line.trim(), mutation.kind);
            }
            found.push((at, found_it));
        }
    };
    let mut outcomes: Vec<(usize, bool)> = std::thread::scope(|scope| {
        let running: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        running.into_iter().flat_map(|worker| worker.join().expect("a worker failed")).collect()
    });
    outcomes.sort_unstable();
    let mut kinds: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for (at, found) in &outcomes {
        let mutation = &mutants[*at];
        let kind = kinds.entry(mutation.kind).or_default();
        kind.0 += usize::from(*found);
        kind.1 += 1;
    }
    let found = outcomes.iter().filter(|(_, found)| *found).count();
    let share = found as f64 / outcomes.len().max(1) as f64;
    eprintln!("{name}: {found} of {} mutants found ({:.1} %): {kinds:?}", outcomes.len(), 100.0 * share);
    share
}

/// Edges of the pictures that are compared, in pixels: a larger one where a smaller one shows nothing.
const SIZES: [u32; 2] = [8, 40];
/// Depths in which a path in one launch is compared as well, with every AOV, so that what it computes on the way is seen.
const DEPTHS: [u32; 3] = [0, 1, 2];

/// A case with what the host gives.
struct Trial {
    case: Case,
    want: (Vec<i64>, RayCounts),
    /// What each launch of the staged shape leaves, as a hash.
    left: Vec<u64>,
}

fn hash(words: &[u32]) -> u64 {
    let mut hasher = DefaultHasher::new();
    words.hash(&mut hasher);
    hasher.finish()
}

impl Trial {
    fn new(case: Case, shape: Shape) -> Trial {
        let want = bits::on_host(&case, best_isa());
        let mut trial = Trial { case, want, left: Vec::new() };
        if shape == Shape::Staged {
            let left = stages::on_host(&trial.case.scene, &trial.plan(shape));
            trial.left = left.iter().map(|words| hash(words)).collect();
        }
        trial
    }

    fn plan(&self, shape: Shape) -> Plan {
        let plan = Plan::new(&self.case.unit, &SHAPE, 1 << 20).expect("the unit is in range");
        plan.in_shape(shape)
    }

    /// Whether a module gives anything else than the host, at the end or between launches, or does not end.
    fn tells(&self, module: &Arc<Module>, shape: Shape) -> bool {
        let mut device = Device::new(module);
        let unit = &self.case.unit;
        // No path of these scenes takes a tenth of this.
        device.steps_max = u64::from(unit.width * unit.height * unit.sample_count) * 400_000;
        let plan = self.plan(shape);
        if shape == Shape::Compact {
            return device.render(&self.case.scene, &plan).map_or(true, |got| got != self.want);
        }
        let mut left = self.left.iter();
        let look = |_, words: Vec<u32>| left.next() == Some(&hash(&words));
        device.render_watched(&self.case.scene, &plan, look).map_or(true, |same| !same)
    }
}

/// The trials of a shape, the quickest first.
fn trials(shape: Shape) -> Vec<Trial> {
    let mut cases: Vec<Case> = Vec::new();
    for size in SIZES {
        cases.extend(scenes::sized(size));
        if shape == Shape::Compact && size == SIZES[1] {
            for depth in DEPTHS {
                cases.extend(
                    scenes::sized(size)
                        .into_iter()
                        .map(|case| Case { unit: UnitParams { depth, aovs: 15, ..case.unit }, ..case }),
                );
            }
        }
    }
    cases.into_iter().map(|case| Trial::new(case, shape)).collect()
}

#[test]
fn faults_in_the_shipped_image_are_found() {
    let module = Arc::new(Module::parse(PTX).expect("the image can be read"));
    let mut covering = Device::with(&module, Settings { coverage: true, ..Settings::default() });
    let [compact, staged] = [Shape::Compact, Shape::Staged].map(trials);
    for (shape, trials) in [(Shape::Compact, &compact), (Shape::Staged, &staged)] {
        for trial in trials.iter().filter(|trial| trial.case.unit.frame_width == SIZES[0]) {
            let got = covering.render(&trial.case.scene, &trial.plan(shape)).expect("the image is sound");
            assert!(got == trial.want, "{}", trial.case.name);
        }
    }
    let executed = covering.machine.executed_lines(&covering.module);
    let everything = mutations::all(PTX, &(1..=PTX.lines().count() as u32).collect());
    let mut mutants = mutations::all(PTX, &executed);
    let in_lines = mutants.len();
    let culling = culling::lines(PTX);
    mutants.retain(|mutation| !(mutation.is_one_place() && culling.contains(&mutation.line)));
    eprintln!(
        "{} lines run; {in_lines} mutants of {} are in them; {} change one place of the box test and do not count",
        executed.len(),
        everything.len(),
        in_lines - mutants.len()
    );
    let mutants = sample(mutants, wanted());
    let entries = entries(PTX);
    let is_found = |module: &Arc<Module>, line: u32| {
        let kernel = kernel_at(&entries, line);
        let is_compact = kernel == Kernel::RenderPaths.name();
        let (shape, trials) = if is_compact { (Shape::Compact, &compact) } else { (Shape::Staged, &staged) };
        trials.iter().any(|trial| trial.tells(module, shape))
    };
    let share = check("tessera.ptx", PTX, &mutants, is_found);
    assert!(share >= found_min(), "only {:.1} % found", 100.0 * share);
}

/// Inputs of a function for each scene: more where fewer show nothing.
const INPUTS: [usize; 2] = [512, 40_000];

#[test]
fn faults_in_single_functions_are_found() {
    let module = Arc::new(Module::parse(UNIT_TESTS_PTX).expect("the image can be read"));
    let cases = units::looked_at();
    let images: Vec<SceneImage> = cases.iter().map(|case| SceneImage::of(&case.scene)).collect();
    let mut covering = Device::with(&module, Settings { coverage: true, ..Settings::default() });
    for function in unit_functions() {
        let inputs = function.make_inputs(INPUTS[1], 77);
        for (case, image) in cases.iter().zip(&images) {
            let want = function.run_on_host(&case.scene, &inputs);
            let got = units::on_machine(&mut covering, &function, image, &inputs, &Limits::default());
            assert_eq!(got.expect("the image is sound"), want, "{}", function.name);
        }
    }
    let executed = covering.machine.executed_lines(&covering.module);
    let mut mutants = mutations::all(UNIT_TESTS_PTX, &executed);
    let culling = culling::lines(UNIT_TESTS_PTX);
    mutants.retain(|mutation| !(mutation.is_one_place() && culling.contains(&mutation.line)));
    let mutants = sample(mutants, wanted());
    let (entries, functions) = (entries(UNIT_TESTS_PTX), unit_functions());
    let is_found = |module: &Arc<Module>, line: u32| {
        let name = kernel_at(&entries, line);
        let function = functions.iter().find(|function| function.kernel() == name);
        let function = function.expect("every kernel is a function");
        INPUTS.into_iter().any(|count| {
            let inputs = function.make_inputs(count, count as u32);
            let limits = Limits { steps: 100_000 * count as u64, cancel: None };
            cases.iter().zip(&images).any(|(case, image)| {
                let mut device = Device::new(module);
                let got = units::on_machine(&mut device, function, image, &inputs, &limits);
                got.map_or(true, |got| got != function.run_on_host(&case.scene, &inputs))
            })
        })
    };
    let share = check("unit-tests.ptx", UNIT_TESTS_PTX, &mutants, is_found);
    assert!(share >= found_min(), "only {:.1} % found", 100.0 * share);
}

/// The kernel that a line belongs to.
fn kernel_at(entries: &BTreeMap<u32, String>, line: u32) -> &str {
    entries.range(..=line).next_back().map_or("", |(_, name)| name.as_str())
}

/// Line on which each kernel begins, and its name.
fn entries(source: &str) -> BTreeMap<u32, String> {
    let lines = (1..).zip(source.lines());
    let starts = lines.filter_map(|(number, line)| {
        let (_, rest) = line.split_once(".entry ")?;
        Some((number, rest.trim_end_matches('(').to_owned()))
    });
    starts.collect()
}
