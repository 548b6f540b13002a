//! The mutation check: how many faults of one instruction the comparison of bits finds.
//!
//! Faults are planted in the text of the shipped image and of the functions' image, one at a time,
//! in instructions that the comparison runs. A fault is found where any compared output differs, a
//! thread faults, or a launch does not end.

mod box_test;
mod dead_results;
mod ignored_signs;
mod light_bounds;
mod mutations;
mod probes;
mod trapped;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use crate::ptx::cases::thin_films::thin_films;
use crate::ptx::cases::{exact_values, last_place, many_lights, wrapped_textures};
use ignored_signs::IgnoredSigns;
use mutations::Mutation;
use probes::{Probe, Stage};
use tessera_kernels::cuda::KernelSet;
use tessera_kernels::unit_tests::{self, UnitFunction, unit_functions};
use tessera_layout::{TexelFormat, UnitParams};
use tessera_ptx::Module;
use tessera_support::builder::whole;
use tessera_support::layers;
use tessera_support::scenes::{self, Case, Noise};
use trapped::watched;

/// Mutants in every run of CI; `TESSERA_MUTANTS` asks for another number, as nightly runs do.
const SAMPLE: usize = 8;
/// Size of the sample that the scenes were made for; CI's is its first part.
const SAMPLE_OF_NIGHTS: usize = 60;
/// Which mutants those are; `TESSERA_MUTANT_SEED` asks for others.
const SEED: u32 = 2026;
/// Share that must be found, of all mutants and of the samples of CI and of nights.
const FOUND_MIN: f64 = 0.95;
/// How often a comparison that finds just that share may fail on a sample that chance chose.
const CHANCE_MAX: f64 = 1e-3;
/// A mutant that changed nothing this often, where it was watched, and never anything, is no fault.
const NO_FAULT_TIMES_MIN: u64 = 10_000;

fn asked<T: std::str::FromStr>(name: &str, usual: T) -> T {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// What became of a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Found,
    Missed,
    /// It rounds what needs no rounding, or changes what a floor takes away: no fault.
    NoFault,
}

/// An image, and what its mutants are tried on: the quickest first.
struct Image {
    name: &'static str,
    source: &'static str,
    sound: Arc<Module>,
    /// Line on which each kernel begins, and its name.
    entries: BTreeMap<u32, String>,
    tiers: Vec<OnceLock<BTreeMap<String, Vec<Probe>>>>,
    /// Tiers that are tried.
    tried: usize,
    make: fn(usize) -> Vec<Probe>,
}

impl Image {
    fn new(
        name: &'static str,
        source: &'static str,
        tiers: usize,
        make: fn(usize) -> Vec<Probe>,
    ) -> Image {
        let lines = (1..).zip(source.lines());
        let entries = lines.filter_map(|(number, line)| {
            let (_, rest) = line.split_once(".entry ")?;
            Some((number, rest.trim_end_matches('(').to_owned()))
        });
        Image {
            name,
            source,
            sound: Arc::new(Module::parse(source).expect("the image can be read")),
            entries: entries.collect(),
            tiers: (0..tiers).map(|_| OnceLock::new()).collect(),
            tried: tiers,
            make,
        }
    }

    /// The probes of a tier, made when they are first asked for, by kernel.
    fn tier(&self, tier: usize) -> &BTreeMap<String, Vec<Probe>> {
        self.tiers[tier].get_or_init(|| {
            let mut probes: BTreeMap<String, Vec<Probe>> = BTreeMap::new();
            for probe in (self.make)(tier) {
                probes.entry(probe.kernel()).or_default().push(probe);
            }
            probes
        })
    }

    /// Everything that runs a line, one after the other.
    fn probes(&self, line: u32) -> impl Iterator<Item = &Probe> {
        let kernel = self.entries.range(..=line).next_back().map_or("", |(_, name)| name.as_str());
        let tiers = 0..self.tried;
        tiers
            .flat_map(move |tier| {
                self.tier(tier).get(kernel).map(Vec::as_slice).unwrap_or_default()
            })
            .filter(move |probe| probe.sound(&self.sound).lines.contains(&line))
    }

    /// Every mutant of an instruction that the first probes run, in an order without pattern; says
    /// which do not count.
    fn mutants(&self) -> Vec<Mutation> {
        let first = self.tier(0).values().flatten();
        let executed = first.flat_map(|probe| &probe.sound(&self.sound).lines).copied().collect();
        let everything =
            mutations::all(self.source, &(1..=self.source.lines().count() as u32).collect());
        let mut mutants = mutations::all(self.source, &executed);
        let in_lines = mutants.len();
        let mut wider = box_test::lines(self.source);
        assert!(!wider.is_empty(), "every image has box tests, and none is recognised");
        wider.extend(light_bounds::lines(self.source));
        mutants.retain(|mutation| !(mutation.is_one_place() && wider.contains(&mutation.line)));
        let of_one_place = in_lines - mutants.len();
        shuffle(&mut mutants);
        let (widening, spare) = (box_test::widening(self.source), box_test::spare(self.source));
        mutants.retain(|mutation| {
            let lets_more_pass = match mutation.kind {
                "other extreme" => widening.contains(&mutation.line),
                "dropped" => spare.contains(&mutation.line),
                _ => false,
            };
            !lets_more_pass
        });
        let of_keeping_more = in_lines - of_one_place - mutants.len();
        let unread = dead_results::lines(self.source);
        mutants.retain(|mutation| !unread.contains(&mutation.line));
        let of_unread = in_lines - of_one_place - of_keeping_more - mutants.len();
        let (unheeded, lines) =
            (IgnoredSigns::of(self.source), self.source.lines().collect::<Vec<_>>());
        mutants.retain(|mutation| !unheeded.hides(mutation, lines[mutation.line as usize - 1]));
        eprintln!(
            "{}: {} lines run; {in_lines} mutants of {} are in them; {of_one_place} change one \
             place of a bound that is wide, \
             {of_keeping_more} let the box test keep more, {of_unread} change what nobody reads \
             and {} what its readers do not heed, and \
             do not count",
            self.name,
            executed.len(),
            everything.len(),
            in_lines - of_one_place - of_keeping_more - of_unread - mutants.len(),
        );
        mutants
    }

    fn outcome(&self, mutation: &Mutation) -> Outcome {
        let parse = |text: &str| {
            Arc::new(Module::parse(text).unwrap_or_else(|error| panic!("{mutation:?}: {error}")))
        };
        let told = |text: String| {
            let mutant = parse(&text);
            self.probes(mutation.line).any(|probe| probe.tells(&self.sound, &mutant).0)
        };
        if told(mutations::planted(self.source, mutation))
            || mutations::dropped_to_zero(self.source, mutation).is_some_and(told)
        {
            return Outcome::Found;
        }
        let Some(watched) = watched(self.source, mutation) else { return Outcome::Missed };
        let mutant = parse(&watched.text);
        let mut steps = 0;
        let differs = self.probes(mutation.line).any(|probe| {
            let (told, more) = probe.tells(&self.sound, &mutant);
            steps += more;
            told
        });
        let is_no_fault = !differs && steps / watched.steps >= NO_FAULT_TIMES_MIN;
        if is_no_fault { Outcome::NoFault } else { Outcome::Missed }
    }

    /// Asserts that enough of the mutants are found. The last `rare` tiers, which take most of the
    /// time, are tried only where the others find too few, or where a number of mutants is asked
    /// for.
    fn check(mut self, rare: usize) {
        let wanted = asked("TESSERA_MUTANTS", SAMPLE);
        let is_known = wanted <= SAMPLE_OF_NIGHTS && asked("TESSERA_MUTANT_SEED", SEED) == SEED;
        let mutants = self.mutants();
        if is_known && std::env::var_os("TESSERA_MUTANTS").is_none() {
            self.tried -= rare;
            let (found, sample) = self.found(&mutants, wanted);
            if found >= least_of_known(sample) {
                return;
            }
            self.tried += rare;
        }
        let (found, sample) = self.found(&mutants, wanted);
        let least = if is_known { least_of_known(sample) } else { least_by_chance(sample) };
        assert!(found >= least, "only {found} of {sample} found, and at least {least} must be");
    }

    /// Tries mutants in order until as many have counted as are asked for; prints those that are
    /// not found. How many are found, and have counted.
    fn found(&self, mutants: &[Mutation], wanted: usize) -> (usize, usize) {
        let mut outcomes: Vec<(usize, Outcome)> = Vec::new();
        let counted = |outcomes: &[(usize, Outcome)]| {
            outcomes.iter().filter(|(_, outcome)| *outcome != Outcome::NoFault).count()
        };
        while counted(&outcomes) < wanted && outcomes.len() < mutants.len() {
            let more = wanted - counted(&outcomes);
            let range = outcomes.len()..(outcomes.len() + more).min(mutants.len());
            outcomes.extend(self.try_all(mutants, range));
        }
        let mut kinds: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for (at, outcome) in outcomes.iter().filter(|(_, outcome)| *outcome != Outcome::NoFault) {
            let kind = kinds.entry(mutants[*at].kind).or_default();
            kind.0 += usize::from(*outcome == Outcome::Found);
            kind.1 += 1;
        }
        let found = outcomes.iter().filter(|(_, outcome)| *outcome == Outcome::Found).count();
        let sample = counted(&outcomes);
        eprintln!(
            "{}: {found} of {sample} mutants found by {} of {} tiers ({:.1} %; at least {} of \
             a known sample must be, {} of others), {} more are no \
             faults: {kinds:?}",
            self.name,
            self.tried,
            self.tiers.len(),
            100.0 * found as f64 / sample.max(1) as f64,
            least_of_known(sample),
            least_by_chance(sample),
            outcomes.len() - sample
        );
        (found, sample)
    }

    /// What becomes of some mutants, on all processors.
    fn try_all(
        &self,
        mutants: &[Mutation],
        range: std::ops::Range<usize>,
    ) -> Vec<(usize, Outcome)> {
        let next = AtomicUsize::new(range.start);
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        let work = || {
            let mut outcomes = Vec::new();
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                if at >= range.end {
                    return outcomes;
                }
                let outcome = self.outcome(&mutants[at]);
                if outcome != Outcome::Found {
                    let Mutation { line, kind, .. } = &mutants[at];
                    let text = self.source.lines().nth(*line as usize - 1).unwrap_or_default();
                    eprintln!("{}: {outcome:?}: line {line} `{}`: {kind}", self.name, text.trim());
                }
                outcomes.push((at, outcome));
            }
        };
        std::thread::scope(|scope| {
            let running: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
            running.into_iter().flat_map(|worker| worker.join().expect("a worker failed")).collect()
        })
    }
}

/// The least number that must be found of the sample of nights or of its first part.
fn least_of_known(sample: usize) -> usize {
    (FOUND_MIN * sample as f64).floor() as usize
}

/// The least number of another sample that must be found: a comparison that finds [`FOUND_MIN`] of
/// all mutants finds fewer with a chance of at most [`CHANCE_MAX`], by the binomial distribution.
fn least_by_chance(sample: usize) -> usize {
    // Logarithms, because the chance that none of thousands is missed is no float.
    let odds = (1.0 - FOUND_MIN) / FOUND_MIN;
    let mut term = sample as f64 * FOUND_MIN.ln();
    let mut at_most = 0.0;
    for missed in 0..sample {
        at_most += term.exp();
        if at_most >= 1.0 - CHANCE_MAX {
            return sample - missed;
        }
        term += (odds * (sample - missed) as f64 / (missed + 1) as f64).ln();
    }
    0
}

#[test]
fn the_least_share_follows_the_binomial_distribution() {
    // Summed in fractions.
    for (sample, least) in [(1, 0), (30, 24), (120, 106), (160, 142), (320, 291), (2_000, 1_869)] {
        assert_eq!(least_by_chance(sample), least, "{sample}");
    }
}

/// Brings the mutants into an order without pattern, the same for the same seed.
fn shuffle(mutants: &mut [Mutation]) {
    let mut noise = Noise(asked("TESSERA_MUTANT_SEED", SEED));
    for at in 0..mutants.len() {
        let other = at + noise.bits() as usize % (mutants.len() - at);
        mutants.swap(at, other);
    }
}

/// The picture by paths in one launch, and every launch in stages.
fn both_shapes(case: &Case) -> Vec<Probe> {
    let stage = Stage::new(case);
    let mut probes = vec![Probe::picture(&stage, case)];
    probes.extend(Probe::stages(&stage, case));
    probes
}

/// Probes of one tier: small pictures, then pictures in which the last place decides, then larger
/// pictures, then the rare ones.
fn probes_of_pictures(tier: usize) -> Vec<Probe> {
    match tier {
        0 => scenes::sized(8).iter().flat_map(both_shapes).collect(),
        1 => probes_of_last_places(),
        2 => probes_of_larger_pictures(),
        3 => rare_probes(7..11, 16..20, rare_layers()),
        _ => rare_probes(11..23, 20..32, rare_films()),
    }
}

/// Paths with made-up states, by each seed.
fn made_up(cases: &[Case], seeds: std::ops::Range<u32>) -> Vec<Probe> {
    let of_case = |case: &Case| {
        let stage = Stage::new(case);
        seeds.clone().flat_map(|seed| Probe::made_up(&stage, case, seed)).collect::<Vec<_>>()
    };
    cases.iter().flat_map(of_case).collect()
}

/// Pictures in which the last place of a number decides, and made-up paths.
fn probes_of_last_places() -> Vec<Probe> {
    let cases = last_place::all();
    let mut probes: Vec<Probe> = cases.iter().flat_map(both_shapes).collect();
    let exact = exact_values::all();
    probes.extend(exact.iter().chain([&exact_values::overflowing()]).flat_map(both_shapes));
    probes.extend(last_place::panes_on_texels(5).iter().flat_map(both_shapes));
    probes.extend(scenes::coated(8, 3).iter().flat_map(both_shapes));
    probes.extend(uniform_wardrobes(8).iter().chain([&thin_films(8)]).flat_map(both_shapes));
    probes.extend(many_lights::all(8).iter().flat_map(both_shapes));
    probes.extend(made_up(&scenes::sized(8), 1..2));
    probes.extend(made_up(&scenes::coated(8, 3), 1..2));
    probes.extend(made_up(&cases, 1..2));
    probes
}

/// Larger pictures. Some are cut off early, so that what a path computes on the way is seen.
fn probes_of_larger_pictures() -> Vec<Probe> {
    let cut = |depth| {
        let cases = scenes::sized(24).into_iter();
        cases.map(move |case| Case { unit: UnitParams { depth, aovs: 15, ..case.unit }, ..case })
    };
    let cases: Vec<Case> = [0, 1, 2]
        .into_iter()
        .flat_map(cut)
        .chain(scenes::sized(24))
        .chain(scenes::coated(24, 3))
        .chain(uniform_wardrobes(24))
        .chain([thin_films(24)])
        .chain(many_lights::all(24))
        .collect();
    let panes = [171, 1_009].into_iter().flat_map(last_place::panes_of_pixels);
    let mut probes: Vec<Probe> =
        cases.into_iter().chain(panes).flat_map(|case| both_shapes(&case)).collect();
    probes.extend(made_up(&scenes::sized(8), 2..6));
    probes
}

fn picture(case: &Case) -> Probe {
    Probe::picture(&Stage::new(case), case)
}

/// Code that rarely runs, run more often: pictures by many seeds and by lights on one way.
fn rare_probes(
    seeds: std::ops::Range<u32>,
    ways: std::ops::Range<u32>,
    others: Vec<Probe>,
) -> Vec<Probe> {
    let larger = seeds.flat_map(|seed| {
        let cases =
            scenes::sized(40).into_iter().chain(scenes::coated(40, 3)).chain(last_place::all());
        cases.map(move |case| Case { unit: UnitParams { seed, aovs: 15, ..case.unit }, ..case })
    });
    let mut probes: Vec<Probe> = larger.map(|case| picture(&case)).collect();
    let one_way = many_lights::one_way(ways, 24).into_iter();
    probes.extend(one_way.flat_map(|case| both_shapes(&case)));
    probes.extend(others);
    probes
}

/// Large pictures of layers, wrapped textures and thin films.
fn rare_layers() -> Vec<Probe> {
    let layered = scenes::sized(48).into_iter().filter(|case| !case.scene.layers.is_empty());
    let large: Vec<Case> =
        layered.chain(wrapped_textures::all(64)).chain([thin_films(64)]).collect();
    large.iter().flat_map(both_shapes).collect()
}

/// A very large picture of thin films, and many made-up paths.
fn rare_films() -> Vec<Probe> {
    let cases: Vec<Case> = scenes::sized(8).into_iter().chain(scenes::coated(8, 3)).collect();
    let mut probes = vec![picture(&thin_films(160))];
    probes.extend(made_up(&cases, 6..18));
    probes
}

/// Wardrobes with textures of one format, each format in turn, so that every layer's texture is
/// read in every way.
fn uniform_wardrobes(size: u32) -> Vec<Case> {
    let formats = [TexelFormat::Rgba8Srgb, TexelFormat::Rgba8Linear, TexelFormat::Rgba16Linear];
    let unit = UnitParams { aovs: 15, ..whole(size, size, 3, 4) };
    let case = |format| Case {
        name: "wardrobe, one format",
        scene: layers::wardrobe_of([format; 3]),
        unit,
    };
    formats.map(case).into()
}

/// Functions that walk a whole hierarchy or shade a hit: they are called less often.
const HEAVY: [&str; 4] = ["closest", "any", "shade", "shade_layered"];

/// Calls over every scene: some hundred, some thousand, some ten thousand or more.
fn probes_of_functions(tier: usize) -> Vec<Probe> {
    let cases: Vec<Case> = scenes::sized(8)
        .into_iter()
        .chain(last_place::all())
        // An unlit material among them.
        .chain(scenes::coated(8, 1))
        .chain(many_lights::all(8))
        .chain(many_lights::one_way(11..16, 8))
        .chain(wrapped_textures::all(8))
        .collect();
    let stages: Vec<Arc<Stage>> = cases.iter().map(Stage::new).collect();
    let calls = |function: UnitFunction| {
        let is_layered = function.name == "shade_layered";
        let count = match HEAVY.contains(&function.name) {
            _ if is_layered => [512, 8_000, 120_000],
            true => [512, 4_000, 60_000],
            false => [512, 5_000, 120_000],
        }[tier];
        let seeds = 100 * tier as u32..;
        let calls = seeds.zip(&stages).filter(move |(_, stage)| !is_layered || stage.has_layers());
        calls.map(move |(seed, stage)| Probe::calls(stage, function, count, seed))
    };
    unit_functions().into_iter().flat_map(calls).collect()
}

#[test]
fn faults_in_the_shipped_image_are_found() {
    Image::new("tessera.ptx", KernelSet::Plain.ptx(), 5, probes_of_pictures).check(2);
}

#[test]
fn faults_in_single_functions_are_found() {
    Image::new("unit-tests.ptx", unit_tests::ptx(), 3, probes_of_functions).check(1);
}
