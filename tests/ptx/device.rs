//! The interpreter as a device of the kernels: a queue that does at once what it is told.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, OnceLock};

use tessera_kernels::CheckedScene;
use tessera_kernels::cuda::{self, DeviceShape, Kernel, KernelSet, Plan, Queue, SceneImage, Step};
use tessera_kernels::host::RayCounts;
use tessera_kernels::stages;
use tessera_ptx::{Fault, Limits, LoadedModule, Machine, MemoryError, Module, Settings};

/// What goes wrong on the interpreter.
#[derive(Debug)]
pub(crate) enum DeviceError {
    Memory(MemoryError),
    Fault(Fault),
}

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceError::Memory(error) => error.fmt(f),
            DeviceError::Fault(fault) => fault.fmt(f),
        }
    }
}

impl From<MemoryError> for DeviceError {
    fn from(error: MemoryError) -> DeviceError {
        DeviceError::Memory(error)
    }
}

impl From<Fault> for DeviceError {
    fn from(fault: Fault) -> DeviceError {
        DeviceError::Fault(fault)
    }
}

/// A machine with one module in it.
pub(crate) struct Device {
    pub(crate) machine: Machine,
    pub(crate) module: LoadedModule,
    /// Instructions run so far.
    pub(crate) steps: u64,
    /// Instructions of one launch at most.
    pub(crate) steps_max: u64,
    /// Kernels run so far.
    pub(crate) launched: BTreeSet<Kernel>,
}

impl Device {
    pub(crate) fn new(module: &Arc<Module>) -> Device {
        Device::with(module, Settings::default())
    }

    pub(crate) fn with(module: &Arc<Module>, settings: Settings) -> Device {
        let mut machine = Machine::new(settings);
        let module = machine.load(module).expect("the tables fit");
        Device { machine, module, steps: 0, steps_max: u64::MAX, launched: BTreeSet::new() }
    }

    /// A unit in the staged shape; `look` is given what each launch leaves. The workspace at the
    /// end.
    pub(crate) fn render_watched(
        &mut self,
        scene: &CheckedScene,
        plan: &Plan,
        mut look: impl FnMut(Kernel, Vec<u32>),
    ) -> Result<Vec<u8>, DeviceError> {
        let image = SceneImage::of(scene);
        let (address, view) = cuda::upload(self, &image)?;
        let workspace = self.allocate(plan.workspace_bytes())?;
        let mut bytes = vec![0; plan.workspace_bytes() as usize];
        for step in plan.steps(&view, workspace) {
            match step {
                Step::Write { address, bytes } => self.upload(address, &bytes)?,
                Step::Zero { address, bytes } => self.zero(address, bytes)?,
                Step::Launch { kernel, grid, block, params } => {
                    self.launch(kernel, grid, block, &params)?;
                    self.download(workspace, &mut bytes)?;
                    look(kernel, stages::left_by(kernel, &params, &bytes));
                }
            }
        }
        self.release(workspace);
        self.release(address);
        Ok(bytes)
    }

    /// One step of a plan over a workspace that is given; what it leaves.
    pub(crate) fn take(
        &mut self,
        image: &SceneImage,
        plan: &Plan,
        step: usize,
        before: &[u8],
    ) -> Result<Vec<u32>, DeviceError> {
        let (address, view) = cuda::upload(self, image)?;
        let workspace = self.allocate(plan.workspace_bytes())?;
        self.upload(workspace, before)?;
        let Some(Step::Launch { kernel, grid, block, params }) =
            plan.steps(&view, workspace).nth(step)
        else {
            return Ok(Vec::new());
        };
        self.launch(kernel, grid, block, &params)?;
        let mut bytes = vec![0; before.len()];
        self.download(workspace, &mut bytes)?;
        self.release(workspace);
        self.release(address);
        Ok(stages::left_by(kernel, &params, &bytes))
    }

    /// A unit from start to end: film sums and counts.
    pub(crate) fn render(
        &mut self,
        scene: &CheckedScene,
        plan: &Plan,
    ) -> Result<(Vec<i64>, RayCounts), DeviceError> {
        self.render_image(&SceneImage::of(scene), plan)
    }

    /// The same of a scene that is laid out.
    pub(crate) fn render_image(
        &mut self,
        image: &SceneImage,
        plan: &Plan,
    ) -> Result<(Vec<i64>, RayCounts), DeviceError> {
        let (address, view) = cuda::upload(self, image)?;
        let result = cuda::render_unit(self, &view, plan);
        self.release(address);
        result
    }
}

impl Queue for Device {
    type Error = DeviceError;

    fn allocate(&mut self, bytes: u64) -> Result<u64, DeviceError> {
        Ok(self.machine.allocate(bytes)?)
    }

    fn release(&mut self, address: u64) {
        self.machine.free(address).expect("it was allocated");
    }

    fn upload(&mut self, address: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        Ok(self.machine.write(address, bytes)?)
    }

    fn zero(&mut self, address: u64, bytes: u64) -> Result<(), DeviceError> {
        Ok(self.machine.fill(address, 0, bytes)?)
    }

    fn launch(
        &mut self,
        kernel: Kernel,
        grid: u32,
        block: u32,
        params: &[u8],
    ) -> Result<(), DeviceError> {
        let limits = Limits { steps: self.steps_max, ..Limits::default() };
        let (grid, block) = ([grid, 1, 1], [block, 1, 1]);
        let stats =
            self.machine.launch(&self.module, kernel.name(), grid, block, 0, params, &limits)?;
        self.steps += stats.steps;
        self.launched.insert(kernel);
        Ok(())
    }

    fn download(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        Ok(self.machine.read(address, bytes)?)
    }
}

/// The PTX that ships for scenes without instances, read once.
pub(crate) fn shipped() -> &'static Arc<Module> {
    static MODULE: OnceLock<Arc<Module>> = OnceLock::new();
    MODULE.get_or_init(|| read(KernelSet::Plain))
}

/// The same for scenes with instances.
pub(crate) fn shipped_for_instances() -> &'static Arc<Module> {
    static MODULE: OnceLock<Arc<Module>> = OnceLock::new();
    MODULE.get_or_init(|| read(KernelSet::Instances))
}

fn read(set: KernelSet) -> Arc<Module> {
    Arc::new(Module::parse(set.ptx()).expect("the shipped PTX can be read"))
}

/// A small device, on which a plan has few paths in flight.
pub(crate) const SHAPE: DeviceShape =
    DeviceShape { multiprocessors: 2, threads_per_multiprocessor: 1024 };
