//! One thread: its frames, its stack, its calls.

use super::straight::straight;
use super::{Core, Launch, Pause, calls};
use crate::Cause;
use crate::instruction::{CallSite, Function, Instruction, Op, SLOT_FRAME, Special};
use crate::memory::{POISON, get, put};

/// Bytes of a thread's stack at most, as on a GPU.
const STACK_BYTES_MAX: usize = 512 << 10;
/// Calls inside each other at most.
const CALLS_MAX: usize = 4096;
/// Slots of all frames at most.
const SLOTS_MAX: usize = 1 << 22;

/// A call under way.
struct Frame {
    function: u32,
    /// Next instruction.
    at: usize,
    /// First slot.
    slots: usize,
    /// First byte on the stack.
    stack: usize,
    /// The caller's call, for where results go.
    site: u32,
}

/// Where a thread is in its grid.
#[derive(Clone, Copy, Default)]
pub(crate) struct Position {
    pub(crate) block: [u32; 3],
    pub(crate) thread: [u32; 3],
    /// Among the threads of its block.
    pub(crate) number: u32,
}

#[derive(Default)]
pub(crate) struct Thread {
    frames: Vec<Frame>,
    slots: Vec<u64>,
    stack: Vec<u8>,
    pub(crate) position: Position,
}

impl Thread {
    /// Puts the thread before the kernel's first instruction. In one launch, that is always the
    /// same kernel's.
    pub(crate) fn start(&mut self, launch: &Launch<'_>, position: Position) {
        self.position = position;
        self.frames.clear();
        self.stack.clear();
        let image = &launch.loaded.images[launch.function as usize];
        if self.slots.is_empty() {
            self.slots.extend_from_slice(image);
        } else {
            // Of a kernel's thousands of slots, these alone can show what the thread before left.
            self.slots.truncate(image.len());
            for slot in &launch.loaded.module.functions[launch.function as usize].given {
                self.slots[*slot as usize] = image[*slot as usize];
            }
        }
        self.begin(launch, launch.function, 0, 0);
        let count = launch.parameters.len().min(self.stack.len());
        self.stack[..count].copy_from_slice(&launch.parameters[..count]);
    }

    fn push(&mut self, launch: &Launch<'_>, index: u32, site: u32) {
        let slots = self.slots.len();
        self.slots.extend_from_slice(&launch.loaded.images[index as usize]);
        self.begin(launch, index, site, slots);
    }

    /// Begins a function in slots that it has had before, or that hold its image.
    fn begin(&mut self, launch: &Launch<'_>, index: u32, site: u32, slots: usize) {
        let function = &launch.loaded.module.functions[index as usize];
        let stack = self.stack.len();
        self.stack.resize(stack + function.frame_bytes as usize, POISON);
        let frame = &mut self.slots[slots..];
        frame[SLOT_FRAME as usize] = stack as u64;
        for (slot, special) in &function.specials {
            frame[*slot as usize] = u64::from(value(*special, launch, &self.position));
        }
        self.frames.push(Frame { function: index, at: 0, slots, stack, site });
    }

    /// Runs until the thread ends ([`Pause::Exit`]) or waits ([`Pause::Wait`]).
    pub(crate) fn run(&mut self, core: &mut Core<'_>, launch: &Launch<'_>) -> Result<Pause, Cause> {
        if core.steps >= core.pause_at {
            core.check()?;
        }
        loop {
            let depth = self.frames.len();
            let Some(frame) = self.frames.last_mut() else { break };
            let index = frame.function as usize;
            let function = &launch.loaded.module.functions[index];
            let slots = &mut self.slots[frame.slots..];
            let is_watched = !core.executed.is_empty() || core.tracer.is_some();
            let run = if is_watched { straight::<true> } else { straight::<false> };
            if let Some(tracer) = &mut core.tracer {
                tracer.follow(self.position.number, depth);
            }
            match run(core, function, index, slots, &mut self.stack, &mut frame.at)? {
                Pause::Check => core.check()?,
                Pause::Table => {
                    frame.at = table_target(function, frame.at, slots)?;
                    if core.steps >= core.pause_at {
                        core.check()?;
                    }
                }
                Pause::Call(site) => {
                    // Calls can nest for ever without one branch.
                    if core.steps >= core.pause_at {
                        core.check()?;
                    }
                    self.call(core, launch, function, site)?;
                }
                Pause::Return => self.give_back(launch),
                Pause::Exit => self.frames.clear(),
                Pause::Wait => return Ok(Pause::Wait),
            }
        }
        Ok(Pause::Exit)
    }

    fn call(
        &mut self,
        core: &mut Core<'_>,
        launch: &Launch<'_>,
        caller: &Function,
        site: u32,
    ) -> Result<(), Cause> {
        let call = &caller.calls[site as usize];
        let Some(callee) = call.callee else { return self.call_driver(core, call) };
        let function = &launch.loaded.module.functions[callee as usize];
        let fits = self.frames.len() < CALLS_MAX
            && self.slots.len() + function.image.len() <= SLOTS_MAX
            && self.stack.len() + function.frame_bytes as usize <= STACK_BYTES_MAX;
        if !fits {
            return Err(Cause::StackOverflow);
        }
        let from = self.frames.last().map_or(0, |frame| frame.stack);
        self.push(launch, callee, site);
        let to = self.frames.last().map_or(0, |frame| frame.stack);
        for (argument, parameter) in call.arguments.iter().zip(&function.parameters) {
            let start = from + argument.offset as usize;
            self.stack.copy_within(
                start..start + argument.bytes as usize,
                to + parameter.offset as usize,
            );
        }
        Ok(())
    }

    /// Calls a function that the module only declares.
    fn call_driver(&mut self, core: &mut Core<'_>, call: &CallSite) -> Result<(), Cause> {
        let frame = self.frames.last().map_or(0, |frame| frame.stack);
        let argument = |at: usize, bytes: u32| {
            let place = call.arguments.get(at).filter(|place| place.bytes == bytes);
            let start = frame + place.ok_or(Cause::Unsupported)?.offset as usize;
            self.stack.get(start..start + bytes as usize).map(get).ok_or(Cause::Unsupported)
        };
        let view = calls::View { memory: core.memory, shared: &core.shared, stack: &self.stack };
        match call.name.as_str() {
            "vprintf" => {
                let given = (argument(0, 8)?, argument(1, 8)?);
                let (text, count) = calls::printed(view, given)?;
                core.output.print(text);
                if let Some(result) = call.results.first() {
                    let start = frame + result.offset as usize;
                    put(&mut self.stack[start..start + result.bytes as usize], count.into());
                }
                Ok(())
            }
            "__assertfail" => {
                let line = argument(2, 4)? as u32;
                let given = (argument(0, 8)?, argument(1, 8)?, line, argument(3, 8)?);
                let place = (self.position.block, self.position.thread);
                let text = calls::failed_assertion(view, given, place);
                core.output.assertion.get_or_insert(text);
                Err(Cause::Asserted)
            }
            _ => Err(Cause::Unsupported),
        }
    }

    /// Ends a call: its results go to where the caller wants them.
    fn give_back(&mut self, launch: &Launch<'_>) {
        let Some(done) = self.frames.pop() else { return };
        if let Some(caller) = self.frames.last() {
            let functions = &launch.loaded.module.functions;
            let call = &functions[caller.function as usize].calls[done.site as usize];
            let results = &functions[done.function as usize].results;
            for (wanted, result) in call.results.iter().zip(results) {
                let start = done.stack + result.offset as usize;
                self.stack.copy_within(
                    start..start + result.bytes as usize,
                    caller.stack + wanted.offset as usize,
                );
            }
        }
        // The next thread takes over the slots of the kernel itself.
        if !self.frames.is_empty() {
            self.slots.truncate(done.slots);
        }
        self.stack.truncate(done.stack);
    }

    /// The instruction that the thread is in: the one before the next. Its function, its number
    /// there.
    pub(crate) fn place(&self) -> Option<(u32, usize)> {
        self.frames.last().map(|frame| (frame.function, frame.at.saturating_sub(1)))
    }

    /// The instruction that the thread waits at.
    pub(crate) fn waiting_at<'a>(
        &self,
        launch: &'a Launch<'_>,
    ) -> Option<(&'a Function, &'a Instruction)> {
        let (function, at) = self.place()?;
        let function = &launch.loaded.module.functions[function as usize];
        Some((function, function.code.get(at)?))
    }

    pub(crate) fn get(&self, slot: u32) -> u64 {
        self.frames.last().map_or(0, |frame| self.slots[frame.slots + slot as usize])
    }

    pub(crate) fn set(&mut self, slot: u32, value: u64) {
        if let Some(frame) = self.frames.last() {
            self.slots[frame.slots + slot as usize] = value;
        }
    }
}

/// Where a branch by table goes, which stands before `at`.
fn table_target(function: &Function, at: usize, slots: &[u64]) -> Result<usize, Cause> {
    match function.code.get(at.wrapping_sub(1)) {
        Some(Instruction { op: Op::BranchTable, a, b, d, .. }) => {
            let choice = slots[*a as usize];
            if choice >= u64::from(*b) {
                return Err(Cause::Trapped);
            }
            Ok(function.lists[*d as usize + choice as usize] as usize)
        }
        _ => Err(Cause::Unsupported),
    }
}

fn value(special: Special, launch: &Launch<'_>, position: &Position) -> u32 {
    let axis = |axes: [u32; 3], at: u8| axes.get(usize::from(at)).copied().unwrap_or(0);
    let lane = position.number % 32;
    let count: u32 = launch.threads.iter().product();
    match special {
        Special::Thread(at) => axis(position.thread, at),
        Special::Block(at) => axis(position.block, at),
        Special::Threads(at) => axis(launch.threads, at),
        Special::Blocks(at) => axis(launch.blocks, at),
        Special::Lane => lane,
        Special::Warp => position.number / 32,
        Special::Warps => count.div_ceil(32),
        Special::LanesEqual => 1 << lane,
        Special::LanesBelow => (1 << lane) - 1,
        Special::LanesUpTo => u32::MAX >> (31 - lane),
        Special::LanesAbove => !(u32::MAX >> (31 - lane)),
        Special::LanesFrom => !((1 << lane) - 1),
        Special::SharedBytes => launch.shared_dynamic,
    }
}
