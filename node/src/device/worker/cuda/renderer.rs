//! The thread that gives commands to the device. It waits only for its orders. Units of one frame
//! go to the device together, as many as fill it; what fills it alone goes alone. One plan of them
//! is enqueued while another computes and a third is copied back (`waiter.rs`). Scenes are uploaded
//! at the same time.

use super::driver::{Call, Context, Stream, is_out_of_memory, memory};
use super::lane::{Lane, Streams};
use super::module::Modules;
use super::scenes::{SceneFault, Scenes};
use super::task::{Cancelled, Task};
use super::waiter::{Done, Waiting};
use crate::device::worker::Outlet;
use crate::device::worker::message::{Report, UnitError};
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender};
use tessera_kernels::cuda::{DeviceScene, DeviceShape, PATHS_IN_FLIGHT_MIN, Plan, Step};
use tessera_layout::UnitParams;

/// Number of plans in progress at a time: one computes, and one is enqueued or copied back.
pub(super) const LANES: usize = 2;

struct Unit {
    number: u64,
    scene: u64,
    params: UnitParams,
    /// Whether it is computed in stages and waves, whatever its size.
    in_stages: bool,
}

/// A plan that was enqueued on the device.
struct UnderWay {
    /// Its first unit.
    first: u64,
    scene: u64,
    /// Camera samples of its units.
    samples: u64,
    /// Size of its workspace in bytes.
    bytes: u64,
}

/// State of the thread.
pub(super) struct Renderer {
    pub(super) outlet: Outlet,
    pub(super) cancelled: Cancelled,
    pub(super) modules: Modules,
    pub(super) scenes: Scenes,
    pub(super) streams: Streams,
    pub(super) shape: DeviceShape,
    pub(super) lanes: Vec<Lane>,
    pub(super) waiter: Sender<Waiting>,
    /// Most paths of a batch.
    pub(super) paths_max: u32,
    /// Number of paths of a batch that have fitted beside the present scenes.
    pub(super) paths: u32,
    pub(super) state: State,
}

/// State that changes with every task.
#[derive(Default)]
pub(super) struct State {
    /// Units that are not enqueued yet.
    waiting: VecDeque<Unit>,
    /// Enqueued plans. Their scenes must not be removed.
    under_way: Vec<UnderWay>,
    /// The scene that was requested and is not complete yet.
    asked: Option<u64>,
    /// Memory was too short for what is next, and a plan under way will give some back.
    is_short: bool,
}

/// Whether a lane has a plan.
enum Planned {
    Fits,
    /// Not before another plan has ended.
    Later,
    Refused(UnitError),
}

impl Renderer {
    /// Works until there are no more orders, or the driver has failed. After a failure the context
    /// is dead, and the process is useless.
    pub(super) fn run(mut self, context: Context, tasks: &Receiver<Task>) -> Call<()> {
        context.bind()?;
        while let Ok(task) = tasks.recv() {
            self.take(task)?;
            // Units that have come by now are to go together.
            while let Ok(task) = tasks.try_recv() {
                self.take(task)?;
            }
            self.advance()?;
        }
        Ok(())
    }

    fn take(&mut self, task: Task) -> Call<()> {
        match task {
            Task::Render { unit, scene, params, in_stages } => {
                self.state.waiting.push_back(Unit { number: unit, scene, params, in_stages });
            }
            Task::Free { mut lane, units } => {
                // A workspace that leaves too little for others is made anew, as large as fits.
                if self.state.is_short || self.paths < self.paths_max {
                    lane.shrink();
                }
                self.state.is_short = false;
                self.lanes.push(lane);
                self.state.under_way.retain(|plan| !units.contains(&plan.first));
                units.iter().for_each(|unit| self.cancelled.forget(*unit));
            }
            Task::GiveUp => {
                let in_use = self.in_use(u64::MAX);
                while self.scenes.give_up_one(&in_use) {}
                self.shrink_free_lanes();
                self.outlet.send(&Report::GaveUp, &[]);
            }
            Task::NoScene { scene, problem } => {
                self.scenes.give_up(scene);
                self.refuse_scene(scene, &UnitError::Refused(problem));
            }
            Task::Scene { scene, bytes, view, parts } => {
                // Load the kernels before memory is taken and a unit's time runs.
                if let Some(view) = DeviceScene::from_bytes(&view) {
                    self.modules.of(view.kernel_set())?;
                }
                let in_use = self.in_use(scene);
                self.paths = self.paths_max;
                let begun = loop {
                    match self.scenes.begin(scene, bytes, &view, (&parts, &in_use)) {
                        // Free an unused workspace for the scene, since a plan can be made smaller.
                        Err(SceneFault::OutOfMemory) if self.shrink_free_lanes() => {}
                        other => break other,
                    }
                };
                match begun {
                    Ok(parts) => self.outlet.send(&Report::NeedParts { scene, parts }, &[]),
                    // It is asked for again then.
                    Err(SceneFault::OutOfMemory) if !self.state.under_way.is_empty() => {
                        self.scenes.give_up(scene);
                        self.has_answer(scene);
                        self.state.is_short = true;
                    }
                    Err(fault) => self.on_scene(scene, bytes, Err(fault))?,
                }
            }
            Task::SceneBytes { scene, offset, last, bytes } => {
                let filled = self.scenes.fill(scene, offset, &bytes, last);
                self.on_scene(scene, bytes.len() as u64, filled)?;
                if last {
                    self.has_answer(scene);
                }
            }
        }
        Ok(())
    }

    fn on_scene(&mut self, scene: u64, bytes: u64, result: Result<(), SceneFault>) -> Call<()> {
        let error = match result {
            Ok(()) => return Ok(()),
            Err(SceneFault::Driver(error)) => return Err(error),
            Err(SceneFault::OutOfMemory) => {
                UnitError::OutOfMemory { needed: bytes, available: memory()?.0 }
            }
            Err(SceneFault::Malformed(what)) => {
                UnitError::Refused(format!("the scene came damaged: {what}"))
            }
        };
        self.scenes.give_up(scene);
        self.refuse_scene(scene, &error);
        Ok(())
    }

    fn has_answer(&mut self, scene: u64) {
        self.state.asked.take_if(|asked| *asked == scene);
    }

    /// Ends all units that wait for a scene.
    fn refuse_scene(&mut self, scene: u64, error: &UnitError) {
        self.has_answer(scene);
        let (gone, kept) = self.state.waiting.drain(..).partition(|unit| unit.scene == scene);
        self.state.waiting = kept;
        let gone: VecDeque<Unit> = gone;
        for unit in gone {
            self.outlet.send(&Report::Failed { unit: unit.number, error: error.clone() }, &[]);
            self.cancelled.forget(unit.number);
        }
    }

    /// Returns the scenes that must not be removed for `scene`: those of units that are enqueued or
    /// will be soon.
    fn in_use(&self, scene: u64) -> Vec<u64> {
        let waiting = self.state.waiting.iter().map(|unit| unit.scene);
        waiting
            .chain(self.state.under_way.iter().map(|other| other.scene))
            .filter(|of| *of != scene)
            .collect()
    }

    /// Enqueues the units that the device can take, and requests the missing scenes.
    fn advance(&mut self) -> Call<()> {
        if self.state.is_short {
            return Ok(());
        }
        // One after another, so that the next can have parts of the one that comes. They would
        // share the pipe anyway.
        if self.state.asked.is_none()
            && let Some(unit) =
                self.state.waiting.iter().find(|unit| self.scenes.find(unit.scene).is_none())
        {
            self.state.asked = Some(unit.scene);
            self.outlet.send(&Report::NeedScene { scene: unit.scene }, &[]);
        }
        while let Some(unit) = self.state.waiting.front() {
            let (number, scene) = (unit.number, unit.scene);
            if self.cancelled.has(number) {
                self.state.waiting.pop_front();
                self.cancelled.forget(number);
                self.outlet.send(&Report::Cancelled { unit: number }, &[]);
                continue;
            }
            if self.scenes.find(scene).is_none() {
                return Ok(());
            }
            let Some(lane) = self.lanes.pop() else { return Ok(()) };
            let units = self.take_together();
            self.tell(units, lane)?;
            if self.state.is_short {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Returns how many paths the next plan may have: what keeps the device busy, or half of what
    /// the worker has now, up to a whole batch. So one plan computes, one as large is enqueued, and
    /// the units of a third are on their way, however many units there are.
    fn paths_together(&self) -> u32 {
        let under_way: u64 = self.state.under_way.iter().map(|plan| plan.samples).sum();
        let waiting: u64 = self.state.waiting.iter().map(|unit| samples_of(&unit.params)).sum();
        let half = u32::try_from(under_way.saturating_add(waiting) / 2).unwrap_or(u32::MAX);
        half.max(self.shape.paths_in_flight()).min(self.paths)
    }

    /// Takes the first unit that waits, and those that fill a batch with it. What is given first
    /// begins first; a unit that begins with one before it never waits longer for that.
    fn take_together(&mut self) -> Vec<Unit> {
        let most = self.paths_together();
        let Some(first) = self.state.waiting.pop_front() else { return Vec::new() };
        let (scene, alone) = (first.scene, first.in_stages);
        let mut params = vec![first.params];
        let mut units = vec![first];
        let mut rest = VecDeque::new();
        for unit in self.state.waiting.drain(..) {
            let fits = !alone
                && !unit.in_stages
                && unit.scene == scene
                && !self.cancelled.has(unit.number)
                && Plan::takes(&params, &unit.params, most);
            if fits {
                params.push(unit.params);
                units.push(unit);
            } else {
                rest.push_back(unit);
            }
        }
        self.state.waiting = rest;
        units
    }

    /// Enqueues the kernels of units of one scene on a lane.
    fn tell(&mut self, mut units: Vec<Unit>, mut lane: Lane) -> Call<()> {
        let Some((first, scene)) = units.first().map(|unit| (unit.number, unit.scene)) else {
            self.lanes.push(lane);
            return Ok(());
        };
        self.state.under_way.push(UnderWay { first, scene, samples: 0, bytes: 0 });
        let planned = self.plan(&mut units, &mut lane)?;
        let numbers: Vec<u64> = units.iter().map(|unit| unit.number).collect();
        match planned {
            Planned::Fits => {}
            Planned::Later => {
                self.state.under_way.pop();
                self.lanes.push(lane);
                units.into_iter().rev().for_each(|unit| self.state.waiting.push_front(unit));
                return Ok(());
            }
            Planned::Refused(error) => {
                for unit in &numbers {
                    self.outlet.send(&Report::Failed { unit: *unit, error: error.clone() }, &[]);
                }
                return self.take(Task::Free { lane, units: numbers });
            }
        }
        if let Some(told) = self.state.under_way.last_mut() {
            told.bytes = lane.bytes();
            told.samples = units.iter().map(|unit| samples_of(&unit.params)).sum();
        }
        let (free_bytes, held_bytes) = (memory()?.0, self.held_bytes());
        for unit in &numbers {
            self.outlet.send(&Report::Started { unit: *unit, free_bytes, held_bytes }, &[]);
        }
        let Some(resident) = self.scenes.find(scene) else {
            // The scene was there a moment ago, and scenes in use are not removed.
            return self.take(Task::Free { lane, units: numbers });
        };
        self.streams.compute.wait_for(resident.ready)?;
        let view = resident.view;
        let least = |unit: &Unit| resident.bytes + least_bytes(&unit.params, &self.shape);
        let device_bytes = units.iter().map(least).collect();
        let (module, cancelled) = (self.modules.of(view.kernel_set())?, &self.cancelled);
        let launch = |stream: Stream, step: &Step| match step {
            Step::Write { address, bytes } => stream.write(*address, bytes),
            Step::Zero { address, bytes } => stream.zero(*address, *bytes),
            Step::Launch { kernel, grid, block, params } => {
                stream.launch(module.function(*kernel)?, *grid, *block, params)
            }
        };
        let stop = || numbers.iter().all(|unit| cancelled.has(*unit));
        let whole = lane.tell(&view, self.streams, launch, stop)?;
        let done = if whole { Done::Sums } else { Done::Cancelled };
        // The waiter ends only with the process.
        let _ = self.waiter.send(Waiting { lane, units: numbers, device_bytes, done });
        Ok(())
    }

    /// Fits a lane to a plan of the units. If memory is short, the paths in flight are first halved
    /// down to those that keep the device busy. Then unused scenes are freed, and the workspaces of
    /// other lanes. After that half of the units go back, down to one. What does not fit beside
    /// another plan waits for its end; alone, the paths in flight are halved repeatedly, down to
    /// the least number.
    fn plan(&mut self, units: &mut Vec<Unit>, lane: &mut Lane) -> Call<Planned> {
        let in_use: Vec<u64> = self.in_use(u64::MAX);
        let mut paths = self.paths.max(PATHS_IN_FLIGHT_MIN);
        loop {
            let params: Vec<UnitParams> = units.iter().map(|unit| unit.params).collect();
            let in_stages = units.iter().any(|unit| unit.in_stages);
            let plan = match Plan::of_units(&params, &self.shape, paths) {
                Ok(plan) if in_stages => plan.in_waves(),
                Ok(plan) => plan,
                Err(error) => return Ok(Planned::Refused(UnitError::Refused(error.to_string()))),
            };
            match lane.fit(&plan) {
                Ok(()) => {
                    self.paths = paths;
                    return Ok(Planned::Fits);
                }
                Err(error) if !is_out_of_memory(&error) => return Err(error),
                Err(_) if plan.paths_in_flight() > self.shape.paths_in_flight() => {
                    paths = (plan.paths_in_flight() / 2).max(self.shape.paths_in_flight());
                }
                Err(_) if self.scenes.give_up_one(&in_use) || self.shrink_free_lanes() => {}
                Err(_) if units.len() > 1 => {
                    let back = units.split_off(units.len().div_ceil(2));
                    back.into_iter().rev().for_each(|unit| self.state.waiting.push_front(unit));
                }
                Err(_) if self.state.under_way.len() > 1 => {
                    self.paths = self.shape.paths_in_flight().min(self.paths_max);
                    self.state.is_short = true;
                    return Ok(Planned::Later);
                }
                Err(_) if plan.paths_in_flight() > PATHS_IN_FLIGHT_MIN => {
                    paths = (plan.paths_in_flight() / 2).max(PATHS_IN_FLIGHT_MIN);
                    eprintln!("device memory is short: {paths} paths in flight from now on");
                }
                Err(_) => {
                    let scene = units.first().and_then(|unit| self.scenes.find(unit.scene));
                    let scene = scene.map_or(0, |resident| resident.bytes);
                    let available = scene + memory()?.0;
                    let needed = scene + plan.workspace_bytes();
                    return Ok(Planned::Refused(UnitError::OutOfMemory { needed, available }));
                }
            }
        }
    }

    /// Returns the memory that another unit could have, because every scene and workspace is freed
    /// or reused sooner or later.
    fn held_bytes(&self) -> u64 {
        let free: u64 = self.lanes.iter().map(Lane::bytes).sum();
        let under_way: u64 = self.state.under_way.iter().map(|unit| unit.bytes).sum();
        self.scenes.bytes() + free + under_way
    }

    fn shrink_free_lanes(&mut self) -> bool {
        let shrunk =
            self.lanes.iter_mut().map(|lane| lane.shrink()).filter(|shrunk| *shrunk).count();
        shrunk > 0
    }
}

fn samples_of(params: &UnitParams) -> u64 {
    u64::from(params.width) * u64::from(params.height) * u64::from(params.sample_count)
}

/// Returns the size of the smallest workspace in which the unit can be rendered, in bytes.
fn least_bytes(params: &UnitParams, shape: &DeviceShape) -> u64 {
    Plan::new(params, shape, PATHS_IN_FLIGHT_MIN).map_or(0, |plan| plan.workspace_bytes())
}
