//! The thread of a CUDA device for compute jobs. It has a separate worker process, which runs one
//! chunk at a time with the time limit of its job. A kernel that fails ends only that process. The
//! device is then tested before it renders again.

use super::child::{Child, Heard};
use super::command::WorkerCommand;
use super::event::Event;
use super::output::Output;
use super::shared::Shared;
use crate::compute::{PreparedCompute, Source, Writable, bind, builtin_values};
use crate::device::worker::message::{Order, Report, UnitError, Written};
use crate::device::worker::{FoundDevice, Refusal};
use crate::device::{CancelToken, DeviceError, DeviceUnit, UnitOutput, Whose, Work};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tessera_kernels::compute::{Builtin, ptx};
use tessera_protocol::ComputeSpec;
use tessera_protocol::compute::{Block, Layout, OutputArray};
use tessera_transport::error::chain;

/// Time between two checks for a cancel.
const TICK: Duration = Duration::from_millis(20);
/// Time to open the device, to compile or load a program, and to take the inputs.
const PREPARE: Duration = Duration::from_secs(300);
/// Additional time for the transfers of a chunk to the device and back.
const SLACK: Duration = Duration::from_secs(5);
/// Time for the rendering worker to free memory. The driver waits for the present work of the
/// device.
const GIVE_UP: Duration = Duration::from_secs(30);
/// Time without a unit after which a worker ends, which frees its device memory for other work.
const IDLE: Duration = Duration::from_secs(10);

/// The driver's name of a failed assertion.
const ASSERT: &str = "CUDA_ERROR_ASSERT";

/// Message to the thread.
pub(super) enum ToLane {
    Unit(DeviceUnit),
    /// Rendering needs the worker's memory: end the worker after its present chunk.
    LetGo,
}

/// The way to the thread. It is closed before the thread is waited for.
pub(super) struct Door {
    units: Mutex<Option<Sender<ToLane>>>,
    /// Units that were given to the thread and have not ended.
    under_way: AtomicUsize,
    /// When rendering last asked for the worker's memory.
    let_go: Mutex<Option<Instant>>,
    /// Whether the worker has a user's data.
    is_users: AtomicBool,
}

impl Door {
    fn sender(&self) -> Option<Sender<ToLane>> {
        self.units.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns whether rendering has asked for the worker's memory so recently.
    pub(super) fn is_short_of_memory(&self, within: Duration) -> bool {
        let asked = *self.let_go.lock().unwrap_or_else(PoisonError::into_inner);
        asked.is_some_and(|at| at.elapsed() < within)
    }

    /// Notes that rendering needs the worker's memory.
    fn note_let_go(&self) {
        *self.let_go.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// Returns whether the thread has no unit, and no worker that keeps a user's program and inputs
    /// for the next one.
    pub(super) fn is_idle(&self) -> bool {
        self.under_way.load(Ordering::Acquire) == 0 && !self.is_users.load(Ordering::Acquire)
    }

    pub(super) fn submit(self: &Arc<Self>, unit: DeviceUnit) {
        let (door, ended) = (self.clone(), unit.finish);
        self.under_way.fetch_add(1, Ordering::AcqRel);
        let finish = Box::new(move |result| {
            door.under_way.fetch_sub(1, Ordering::AcqRel);
            ended(result);
        });
        let unit = ToLane::Unit(DeviceUnit { finish, ..unit });
        let unsent = match self.sender() {
            Some(units) => units.send(unit).err().map(|unsent| unsent.0),
            None => Some(unit),
        };
        if let Some(ToLane::Unit(unit)) = unsent {
            (unit.finish)(Err(DeviceError::Cancelled));
        }
    }
}

/// The thread and the way to it.
pub(super) struct ComputeLane {
    door: Arc<Door>,
    thread: Option<JoinHandle<()>>,
}

impl ComputeLane {
    /// Starts the thread. The first unit starts its worker.
    pub(super) fn new(
        command: WorkerCommand,
        device: FoundDevice,
        (shared, supervisor): (Arc<Shared>, Sender<Event>),
    ) -> std::io::Result<Self> {
        let (units, received) = channel();
        let name = format!("{} compute", shared.info().slot);
        let door = Arc::new(Door {
            units: Mutex::new(Some(units)),
            under_way: AtomicUsize::new(0),
            let_go: Mutex::new(None),
            is_users: AtomicBool::new(false),
        });
        let (own, worker, whose) = (door.clone(), None, Whose::Unknown);
        let lane = Lane { command, device, shared, supervisor, door: own, worker, whose };
        let thread = std::thread::Builder::new().name(name).spawn(move || lane.run(&received))?;
        Ok(Self { door, thread: Some(thread) })
    }

    pub(super) fn submit(&self, unit: DeviceUnit) {
        self.door.submit(unit);
    }

    /// Returns the way to the thread.
    pub(super) fn door(&self) -> Arc<Door> {
        self.door.clone()
    }

    /// Returns the channel to the thread, for the part that shares the device. It must be dropped
    /// before this value.
    pub(super) fn way(&self) -> Option<Sender<ToLane>> {
        self.door.sender()
    }
}

impl Drop for ComputeLane {
    fn drop(&mut self) {
        drop(self.door.units.lock().unwrap_or_else(PoisonError::into_inner).take());
        if let Some(thread) = self.thread.take() {
            // The owner of the device cancels its present unit.
            let _ = thread.join();
        }
    }
}

struct Lane {
    command: WorkerCommand,
    device: FoundDevice,
    shared: Arc<Shared>,
    supervisor: Sender<Event>,
    door: Arc<Door>,
    worker: Option<Worker>,
    /// Whose data the worker has.
    whose: Whose,
}

/// A worker process that serves compute jobs.
struct Worker {
    child: Child,
    heard: Receiver<Heard>,
    output: Output,
    /// The loaded job, and the threads of a block.
    loaded: Option<(u64, Block)>,
    /// The built-in kernel that is loaded, and the threads of a block.
    builtin: Option<(&'static Builtin, Block)>,
}

impl Lane {
    fn run(mut self, units: &Receiver<ToLane>) {
        while let Some(DeviceUnit { work, cancel, finish }) = self.next(units) {
            let Work::Compute { job, whose, first, count, text } = work else {
                finish(Err(DeviceError::Failed("this lane computes".into())));
                continue;
            };
            // The host has it sooner than this lane, once others wait.
            if whose == Whose::Frames && self.door.under_way.load(Ordering::Acquire) > 1 {
                finish(Err(DeviceError::Cancelled));
                continue;
            }
            self.admit(whose);
            let mut result = match self.shared.is_ready() && cancel.begin() {
                true => self.compute(&job, (first, count), &cancel),
                false => Err(DeviceError::Cancelled),
            };
            // For what the host can do as well, nothing is taken from rendering.
            if let Err(DeviceError::OutOfMemory { .. }) = result
                && whose != Whose::Frames
            {
                self.end_worker();
                self.make_renderer_give_up();
                result = self.compute(&job, (first, count), &cancel);
            }
            // Before its end, so that it is told while the unit is still leased.
            if let Some(said) = self.worker.as_mut().map(|worker| worker.output.take())
                && !said.is_empty()
            {
                text(said);
            }
            if let Err(error) = &result {
                self.after(error);
            }
            if self.worker.is_none() {
                // It may have been announced.
                self.end_worker();
            }
            finish(result);
        }
    }

    /// Returns the next unit; None once the device is closed.
    fn next(&mut self, told: &Receiver<ToLane>) -> Option<DeviceUnit> {
        loop {
            let next = match self.worker {
                Some(_) => told.recv_timeout(IDLE),
                None => told.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match next {
                Ok(ToLane::Unit(unit)) => return Some(unit),
                Ok(ToLane::LetGo) => {
                    self.door.note_let_go();
                    self.end_worker();
                }
                Err(RecvTimeoutError::Timeout) => self.end_worker(),
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
    }

    /// Ends a worker that has served another owner. What its kernels left in the device's memory,
    /// in shared memory and in registers is out of reach of other processes: the driver clears it.
    fn admit(&mut self, whose: Whose) {
        let is_same = whose != Whose::Unknown && self.whose == whose;
        if !is_same {
            self.end_worker();
        }
        self.whose = whose;
        self.door.is_users.store(whose != Whose::Frames, Ordering::Release);
    }

    /// Ends the worker. Its end is announced, so that others can ask for its memory.
    fn end_worker(&mut self) {
        if let Some(mut worker) = self.worker.take() {
            worker.output.look();
            worker.child.end();
        }
        self.shared.compute_holds(0);
        self.door.is_users.store(false, Ordering::Release);
    }

    /// Waits until the rendering worker has given up the scenes that none of its units uses. It
    /// gets them again when they are needed.
    fn make_renderer_give_up(&self) {
        let (gave_up, heard) = channel();
        // If the device is closed, or its worker has ended, no answer will come.
        if self.supervisor.send(Event::GiveUp(gave_up)).is_ok() {
            let _ = heard.recv_timeout(GIVE_UP);
        }
    }

    /// Ends a worker whose unit did not end well, except after a refused program. A worker that ran
    /// out of memory also ends, to free what it has.
    fn after(&mut self, error: &DeviceError) {
        match error {
            DeviceError::Program(_) | DeviceError::NoCompiler(_) | DeviceError::Unable(_) => {}
            DeviceError::Kernel(_) => {
                self.end_worker();
                // The receiver is gone once the device is closed.
                let _ = self.supervisor.send(Event::Doubt);
            }
            _ => self.end_worker(),
        }
    }

    /// Starts a worker if there is none.
    fn have_worker(
        &mut self,
        job: &PreparedCompute,
        cancel: &CancelToken,
    ) -> Result<(), DeviceError> {
        if self.worker.is_none() {
            // Its context takes memory before anything else does.
            self.shared.compute_holds(job.input_bytes().max(1));
            self.worker = Some(self.start(cancel)?);
        }
        Ok(())
    }

    fn compute(
        &mut self,
        job: &Arc<PreparedCompute>,
        (first, count): (u64, u32),
        cancel: &CancelToken,
    ) -> Result<UnitOutput, DeviceError> {
        self.have_worker(job, cancel)?;
        let Some(worker) = &mut self.worker else { return Err(DeviceError::Cancelled) };
        worker.output.begin();
        let layout = job.spec.value_layout(count);
        let bytes = layout.bytes;
        let block = match worker.loaded {
            Some((id, block)) if id == job.id => block,
            _ => {
                let buffers = if job.spec.steps > 1 { 2 } else { 1 };
                self.shared.compute_holds(job.input_bytes().saturating_add(bytes * buffers));
                worker.load(job, cancel)?
            }
        };
        let params = job.chunk(first, count).to_bytes().to_vec();
        let (grid, written) = (job.spec.grid(block, count), written(&job.spec, &layout));
        worker.child.order(Order::Chunk { params, grid, written, bytes });
        let kernel = job.spec.program.name().to_owned();
        match worker.wait(PREPARE, cancel)? {
            (Report::Begun, _) => {}
            (report, _) => return Err(refused(&kernel, report)),
        }
        let limit = Duration::from_secs(job.spec.time_limit_secs.into());
        if job.spec.needs_cuda() {
            self.shared.on_user_kernel(Instant::now());
        }
        let heard = worker.hear(limit + SLACK, cancel);
        if job.spec.needs_cuda() {
            self.shared.on_user_kernel(Instant::now());
        }
        match heard {
            Ok((Report::Values { device_nanos, device_bytes }, values))
                if values.len() as u64 == bytes =>
            {
                let time = Duration::from_nanos(device_nanos);
                if time > limit {
                    return Err(overtime(&kernel, &job.spec));
                }
                // The host's lane counts the time of a pass, for which it waits.
                if self.whose != Whose::Frames {
                    self.shared.computed(time);
                }
                Ok(UnitOutput::of_chunk(job.result((first, count), values), time, device_bytes))
            }
            Ok((Report::Broken(error), _)) => {
                worker.output.look();
                let fault = match (error.name.as_str(), worker.output.assertion()) {
                    (ASSERT, Some(assertion)) => format!("{assertion} ({ASSERT})"),
                    (name, _) => meaning(name).unwrap_or(name).to_owned(),
                };
                Err(DeviceError::Kernel(format!(
                    "kernel `{kernel}` failed at indices {first} to {}: {fault}",
                    first + u64::from(count) - 1
                )))
            }
            Ok((report, _)) => Err(refused(&kernel, report)),
            Err(Silence::Late) => Err(overtime(&kernel, &job.spec)),
            Err(Silence::Cancelled) => Err(DeviceError::Cancelled),
            Err(Silence::Gone(reason)) => {
                Err(DeviceError::Kernel(format!("kernel `{kernel}` crashed its process: {reason}")))
            }
        }
    }

    /// Starts a worker and has it open the device.
    fn start(&self, cancel: &CancelToken) -> Result<Worker, DeviceError> {
        let (sender, heard) = channel();
        let slot = self.shared.info().slot;
        let tell = move |heard| {
            // The messages of an abandoned worker are dropped.
            let _ = sender.send(heard);
        };
        let visible = self.device.by_uuid.then_some(self.device.uuid.as_str());
        let started = Child::start_with_output(&self.command, visible, &slot, tell);
        let (child, output) = started
            .map_err(|error| DeviceError::Worker(format!("cannot start a worker: {error}")))?;
        child
            .order(Order::Compute { ordinal: self.device.ordinal, uuid: self.device.uuid.clone() });
        let mut worker = Worker { child, heard, output, loaded: None, builtin: None };
        loop {
            match worker.wait(PREPARE, cancel)? {
                (Report::Opened(_), _) => return Ok(worker),
                // The worker that renders has it. Other nodes may be able to.
                (Report::Refused(refusal @ Refusal::InUse(_)), _) => {
                    return Err(DeviceError::Unable(refusal.to_string()));
                }
                (Report::Refused(refusal), _) => {
                    return Err(DeviceError::Worker(refusal.to_string()));
                }
                // The rendering worker has already reported the confinement.
                _ => {}
            }
        }
    }
}

/// Why no message came.
enum Silence {
    Late,
    Cancelled,
    Gone(String),
}

impl Worker {
    /// Returns the next report. If none comes, the worker has failed.
    fn wait(
        &mut self,
        within: Duration,
        cancel: &CancelToken,
    ) -> Result<(Report, Vec<u8>), DeviceError> {
        self.hear(within, cancel).map_err(|silence| match silence {
            Silence::Late => {
                DeviceError::Worker(format!("no answer within {} s", within.as_secs()))
            }
            Silence::Cancelled => DeviceError::Cancelled,
            Silence::Gone(reason) => DeviceError::Worker(reason),
        })
    }

    fn hear(
        &mut self,
        within: Duration,
        cancel: &CancelToken,
    ) -> Result<(Report, Vec<u8>), Silence> {
        let until = Instant::now() + within;
        loop {
            // A worker whose pipe is full waits.
            self.output.look();
            match self.heard.recv_timeout(TICK) {
                Ok(Heard::Report(report, payload)) => return Ok((report, payload)),
                Ok(Heard::Gone(reason)) => {
                    return Err(Silence::Gone(format!("{reason} ({})", self.child.how_it_ended())));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Silence::Gone("its pipe is closed".into()));
                }
                Err(RecvTimeoutError::Timeout) if cancel.is_cancelled() => {
                    return Err(Silence::Cancelled);
                }
                Err(RecvTimeoutError::Timeout) if Instant::now() >= until => {
                    return Err(Silence::Late);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Loads a job's program and inputs on the device. Returns the threads of a block.
    fn load(
        &mut self,
        job: &Arc<PreparedCompute>,
        cancel: &CancelToken,
    ) -> Result<Block, DeviceError> {
        self.loaded = None;
        let name = job.spec.program.name();
        let unfit = |error| DeviceError::Program(format!("kernel `{name}`: {}", chain(&error)));
        if let Some((kernel, block)) = self.builtin
            && matches!(&job.source, Source::Builtin(wanted) if *wanted == kernel)
        {
            // It keeps nothing from one frame to the next.
            let values = builtin_values(name, &job.spec).map_err(unfit)?;
            self.child.order(Order::OtherInputs);
            self.send_values(values);
            self.child.send_inputs(job.clone());
            self.loaded = Some((job.id, block));
            return Ok(block);
        }
        self.builtin = None;
        let ptx: Arc<str> = match &job.source {
            Source::Builtin(_) => ptx().into(),
            Source::Ptx(ptx) => ptx.clone(),
            Source::Cuda(source, headers) => {
                for header in headers.iter() {
                    let order = Order::Header { name: header.name.clone() };
                    self.child.order_with(order, header.text.as_bytes().to_vec());
                }
                let order = Order::Compile { name: name.to_owned() };
                self.child.order_with(order, source.as_bytes().to_vec());
                match self.wait(PREPARE, cancel)? {
                    (Report::Compiled { log }, ptx) => {
                        self.output.keep_log(&log);
                        String::from_utf8_lossy(&ptx).into()
                    }
                    (report, _) => return Err(refused(name, report)),
                }
            }
        };
        let bound = bind(&ptx, &job.spec);
        let bound = bound.map_err(unfit)?;
        let (Block { x, y, z }, shared_bytes) = (bound.block, bound.shared_bytes);
        let order = Order::Program { entry: bound.entry, block: [x, y, z], shared_bytes };
        self.child.order_with(order, ptx.as_bytes().to_vec());
        match self.wait(PREPARE, cancel)? {
            (Report::Loaded, _) => {}
            (report, _) => return Err(refused(name, report)),
        }
        self.send_values(bound.values);
        for output in &job.spec.outputs {
            let (name, channels) = (output.name.clone(), output.channels.into());
            let element = output.element.number();
            self.child.order(Order::Output { name, element, channels });
        }
        self.child.send_inputs(job.clone());
        for Writable { name, is_zero } in bound.writable {
            self.child.order(Order::Restore { name, is_zero });
        }
        self.loaded = Some((job.id, bound.block));
        if let Source::Builtin(kernel) = &job.source {
            self.builtin = Some((kernel, bound.block));
        }
        Ok(bound.block)
    }

    fn send_values(&self, values: Vec<(String, Vec<u8>)>) {
        for (name, value) in values {
            self.child.order_with(Order::Variable { name }, value);
        }
    }
}

/// Returns where the values of each output go, and which array one of them becomes in the next
/// step.
fn written(spec: &ComputeSpec, layout: &Layout) -> Vec<Written> {
    let fed = spec.fed_output();
    let outputs = spec.written();
    let places = outputs.iter().zip(&layout.parts).enumerate();
    let one = |(place, (output, (offset, bytes))): (usize, (&OutputArray, &(u64, u64)))| Written {
        name: output.name.clone(),
        offset: *offset,
        bytes: *bytes,
        feed: spec.feed.clone().filter(|_| fed == Some(place)),
    };
    places.map(one).collect()
}

fn overtime(kernel: &str, spec: &ComputeSpec) -> DeviceError {
    let (work, less) = match spec.steps {
        0 | 1 => (String::new(), "shorten its chunks (--chunk)".to_owned()),
        steps => (format!(" its {steps} steps"), "give a frame fewer (--steps)".to_owned()),
    };
    DeviceError::Kernel(format!(
        "kernel `{kernel}` did not end{work} within {} s and was stopped; {less} or allow more \
            (--time-limit)",
        spec.time_limit_secs
    ))
}

/// Converts an unexpected answer to an error.
fn refused(kernel: &str, report: Report) -> DeviceError {
    match report {
        Report::Unusable(UnitError::OutOfMemory { needed, available }) => {
            DeviceError::OutOfMemory { needed, available }
        }
        Report::Unusable(UnitError::Refused(problem)) => {
            DeviceError::Program(format!("kernel `{kernel}`: {problem}"))
        }
        // Another node may be able to take the unit.
        Report::Unable(problem) => {
            DeviceError::Unable(format!("kernel `{kernel}` does not run here: {problem}"))
        }
        Report::NoCompiler(problem) => {
            DeviceError::NoCompiler(format!("cannot compile kernel `{kernel}` here: {problem}"))
        }
        Report::Broken(error) => DeviceError::Worker(error.to_string()),
        other => DeviceError::Worker(format!("the worker sent an invalid answer: {other:?}")),
    }
}

/// Explains the driver's name of an error in a kernel.
fn meaning(name: &str) -> Option<&'static str> {
    Some(match name {
        "CUDA_ERROR_ILLEGAL_ADDRESS" => {
            "it read or wrote outside of its memory (CUDA_ERROR_ILLEGAL_ADDRESS)"
        }
        "CUDA_ERROR_MISALIGNED_ADDRESS" => {
            "it used a misaligned address (CUDA_ERROR_MISALIGNED_ADDRESS)"
        }
        ASSERT => "an assertion in it failed (CUDA_ERROR_ASSERT)",
        "CUDA_ERROR_ILLEGAL_INSTRUCTION" => {
            "it trapped (CUDA_ERROR_ILLEGAL_INSTRUCTION), as tessera_load does where the array \
                holds another type, and tessera_store where the output does"
        }
        "CUDA_ERROR_LAUNCH_FAILED" => {
            "it failed or trapped (CUDA_ERROR_LAUNCH_FAILED), as tessera_load does where the \
                array holds another type, and tessera_store where the output does"
        }
        "CUDA_ERROR_LAUNCH_TIMEOUT" => {
            "the driver stopped it for its time (CUDA_ERROR_LAUNCH_TIMEOUT)"
        }
        _ => return None,
    })
}
