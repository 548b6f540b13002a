//! Running decoded instructions: threads, blocks, grids. Knows no text.

mod access;
mod block;
mod calls;
mod double;
mod float;
mod half;
mod integer;
mod rare;
mod straight;
mod thread;
mod tracer;
mod warp;

use std::sync::atomic::{AtomicBool, Ordering};

use crate::instruction::Instruction;
use crate::memory::Memory;
use crate::{Cause, LoadedModule, Settings};

pub(crate) use block::{Stopped, grid};
pub(crate) use calls::Output;
pub(crate) use tracer::Tracer;

/// Steps between two looks at the cancel flag.
const STEPS_BETWEEN_CHECKS: u64 = 1 << 16;

/// What a launch asks for, checked.
pub(crate) struct Launch<'a> {
    pub(crate) loaded: &'a LoadedModule,
    /// Index of the kernel's function.
    pub(crate) function: u32,
    pub(crate) blocks: [u32; 3],
    /// Block of a row that runs first, modulo their number.
    pub(crate) first_block: u32,
    pub(crate) threads: [u32; 3],
    /// Of a block: what the module declares, then what the launch adds.
    pub(crate) shared_bytes: usize,
    /// First byte of what the launch adds.
    pub(crate) shared_dynamic: u32,
    pub(crate) parameters: &'a [u8],
}

/// What all threads of a launch share.
pub(crate) struct Core<'a> {
    pub(crate) memory: &'a mut Memory,
    pub(crate) shared: Vec<u8>,
    /// What threads printed.
    pub(crate) output: &'a mut Output,
    pub(crate) settings: Settings,
    /// Instructions run.
    pub(crate) steps: u64,
    /// At this many the thread pauses.
    pub(crate) pause_at: u64,
    pub(crate) steps_max: u64,
    pub(crate) cancel: Option<&'a AtomicBool>,
    /// For each function, which instructions ran; empty where nobody asks.
    pub(crate) executed: &'a mut [Vec<bool>],
    /// Where somebody asks what warps do.
    pub(crate) tracer: Option<Tracer<'a>>,
}

impl Core<'_> {
    /// Notes an instruction that is about to run.
    fn watch(&mut self, i: &Instruction, function: usize, at: usize, r: &[u64]) {
        if let Some(executed) = self.executed.get_mut(function) {
            executed[at] = true;
        }
        if let Some(tracer) = &mut self.tracer {
            tracer.touches(i, r);
        }
    }

    /// Notes instructions that ran one after the other.
    fn note_run(&mut self, function: usize, from: usize, to: usize) {
        if let Some(tracer) = &mut self.tracer {
            tracer.ran(function, from, to);
        }
    }

    /// The threads of one warp have ended, or all of them wait.
    fn end_warp(&mut self) {
        if let Some(tracer) = &mut self.tracer {
            tracer.merge();
        }
    }

    /// Ends a launch that is cancelled or has used up its steps; else lets it run on for a while.
    pub(crate) fn check(&mut self) -> Result<(), Cause> {
        if self.steps >= self.steps_max {
            return Err(Cause::StepLimit(self.steps_max));
        }
        if self.cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed)) {
            return Err(Cause::Cancelled);
        }
        self.pause_at = self.steps.saturating_add(STEPS_BETWEEN_CHECKS).min(self.steps_max);
        Ok(())
    }
}

/// Why a thread gives way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pause {
    /// Time to look at the limits.
    Check,
    /// Index of the call's site.
    Call(u32),
    /// At the branch by table before the next instruction.
    Table,
    Return,
    Exit,
    /// At the instruction before the next one, for other threads.
    Wait,
}

/// What an instruction leads to.
pub(crate) enum Next {
    /// A result for its destination.
    Value(u64),
    /// Nothing more.
    Done,
    Pause(Pause),
}
