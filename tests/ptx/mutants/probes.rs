//! What a mutant is tried on: pictures, single launches of stages, calls of single functions, each
//! with what the host gives. Knows which instructions each of them runs, so that a mutant is tried
//! only where it is met.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, OnceLock};

use crate::ptx::cases::made_up_paths;
use crate::ptx::device::{Device, DeviceError, SHAPE};
use crate::ptx::{functions, pictures};
use tessera_kernels::CheckedScene;
use tessera_kernels::cuda::{Kernel, Plan, SceneImage, Shape, Step};
use tessera_kernels::host::{RayCounts, best_isa};
use tessera_kernels::stages::HostStages;
use tessera_kernels::unit_tests::UnitFunction;
use tessera_ptx::{Limits, Module, Settings};
use tessera_support::scenes::Case;

/// How much longer than the sound kernel a mutant may run before it counts as one that does not
/// end.
const STEPS_FACTOR: u64 = 20;

/// A scene, laid out once.
pub(super) struct Stage {
    pub(super) name: &'static str,
    image: SceneImage,
    scene: CheckedScene,
}

impl Stage {
    pub(super) fn new(case: &Case) -> Arc<Stage> {
        let image = SceneImage::of(&case.scene);
        Arc::new(Stage { name: case.name, image, scene: case.scene.clone() })
    }

    /// Some of its materials have layers.
    pub(super) fn has_layers(&self) -> bool {
        !self.scene.layers.is_empty()
    }
}

/// What is compared.
enum Part {
    /// A picture by paths in one launch: film and counts.
    Picture { plan: Plan, want: (Vec<i64>, RayCounts) },
    /// One launch of a plan: a hash of the workspace's words.
    Launch { plan: Arc<Plan>, step: usize, kernel: Kernel, before: Vec<u8>, left: u64 },
    /// Calls of a function with inputs of a seed: every word.
    Calls { function: UnitFunction, count: usize, seed: u32 },
}

/// What the sound module does on it.
pub(super) struct Sound {
    pub(super) lines: BTreeSet<u32>,
    steps: u64,
}

pub(super) struct Probe {
    stage: Arc<Stage>,
    part: Part,
    sound: OnceLock<Sound>,
}

fn hash(words: &[u32]) -> u64 {
    let mut hasher = DefaultHasher::new();
    words.hash(&mut hasher);
    hasher.finish()
}

impl Probe {
    fn new(stage: &Arc<Stage>, part: Part) -> Probe {
        Probe { stage: Arc::clone(stage), part, sound: OnceLock::new() }
    }

    /// A picture by paths in one launch.
    pub(super) fn picture(stage: &Arc<Stage>, case: &Case) -> Probe {
        let plan = Plan::new(&case.unit, &SHAPE, 1 << 20).expect("the unit is in range");
        let want = pictures::on_host(case, best_isa());
        Probe::new(stage, Part::Picture { plan: plan.in_shape(Shape::Compact), want })
    }

    /// Every launch of a picture in stages.
    pub(super) fn stages(stage: &Arc<Stage>, case: &Case) -> Vec<Probe> {
        let plan = Plan::new(&case.unit, &SHAPE, 1 << 20).expect("the unit is in range");
        let plan = Arc::new(plan.in_shape(Shape::Staged));
        let mut host = HostStages::new(&case.scene, &plan);
        let mut probes = Vec::new();
        for (step, what) in host.steps().iter().enumerate() {
            let before = host.workspace().to_vec();
            if let (Step::Launch { kernel, .. }, Some(left)) = (what, host.take(what)) {
                let (plan, left) = (Arc::clone(&plan), hash(&left));
                probes.push(Probe::new(
                    stage,
                    Part::Launch { plan, step, kernel: *kernel, before, left },
                ));
            }
        }
        probes
    }

    /// Launches over made-up paths.
    pub(super) fn made_up(stage: &Arc<Stage>, case: &Case, seed: u32) -> Vec<Probe> {
        let plan = Arc::new(made_up_paths::plan(seed));
        let launches = made_up_paths::launches(case, &plan, seed).into_iter();
        let probe = |made: made_up_paths::Made| {
            let (plan, left) = (Arc::clone(&plan), hash(&made.left));
            let (step, kernel, before) = (made.step, made.kernel, made.before);
            Probe::new(stage, Part::Launch { plan, step, kernel, before, left })
        };
        launches.map(probe).collect()
    }

    /// Calls of a function.
    pub(super) fn calls(
        stage: &Arc<Stage>,
        function: UnitFunction,
        count: usize,
        seed: u32,
    ) -> Probe {
        Probe::new(stage, Part::Calls { function, count, seed })
    }

    /// The kernel that it runs.
    pub(super) fn kernel(&self) -> String {
        match &self.part {
            Part::Picture { .. } if self.stage.scene.layers.is_empty() => {
                Kernel::RenderPaths.name().to_owned()
            }
            Part::Picture { .. } => Kernel::RenderLayered.name().to_owned(),
            Part::Launch { kernel, .. } => kernel.name().to_owned(),
            Part::Calls { function, .. } => function.kernel(),
        }
    }

    /// Whether a device gives what the host gives.
    fn is_same(&self, device: &mut Device) -> Result<bool, DeviceError> {
        let image = &self.stage.image;
        Ok(match &self.part {
            Part::Picture { plan, want } => device.render_image(image, plan)? == *want,
            Part::Launch { plan, step, before, left, .. } => {
                hash(&device.take(image, plan, *step, before)?) == *left
            }
            Part::Calls { function, count, seed } => {
                let inputs = function.make_inputs(*count, *seed);
                let limits = Limits { steps: device.steps_max, ..Limits::default() };
                let got = functions::on_machine(device, function, image, &inputs, &limits)?;
                got == function.run_on_host(&self.stage.scene, &inputs)
            }
        })
    }

    /// What the sound module does on it, which is what the host does.
    pub(super) fn sound(&self, module: &Arc<Module>) -> &Sound {
        self.sound.get_or_init(|| {
            let settings = Settings { coverage: true, ..Settings::default() };
            let mut device = Device::with(module, settings);
            let same = self.is_same(&mut device);
            assert!(matches!(same, Ok(true)), "{}: {}: {same:?}", self.stage.name, self.kernel());
            Sound { lines: device.machine.executed_lines(&device.module), steps: device.steps }
        })
    }

    /// Whether a mutant gives anything else than the host, faults or does not end; and the
    /// instructions that it took more than the sound module.
    pub(super) fn tells(&self, sound: &Arc<Module>, mutant: &Arc<Module>) -> (bool, u64) {
        let usual = self.sound(sound).steps;
        let mut device = Device::new(mutant);
        device.steps_max = STEPS_FACTOR * usual + 100_000;
        let told = !matches!(self.is_same(&mut device), Ok(true));
        (told, device.steps.saturating_sub(usual))
    }
}
