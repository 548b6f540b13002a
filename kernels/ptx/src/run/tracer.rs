//! Follows the threads of a warp while they run, for the profile.

use crate::instruction::{Instruction, Op};
use crate::memory::{SHARED_WINDOW, STACK_WINDOW, offset, window};
use crate::profile::Counters;
use crate::trace::{Access, Run, Space, Trace, space_of};

/// The threads of one warp, and what is known of all warps before.
pub(crate) struct Tracer<'a> {
    pub(crate) counters: &'a mut Counters,
    lanes: Vec<Trace>,
    lane: usize,
    depth: u32,
}

impl<'a> Tracer<'a> {
    pub(crate) fn new(counters: &'a mut Counters) -> Self {
        let lanes = (0..32).map(|_| Trace::default()).collect();
        Tracer { counters, lanes, lane: 0, depth: 0 }
    }

    /// From now on a thread of the warp runs, inside of so many calls.
    pub(crate) fn follow(&mut self, number: u32, depth: usize) {
        self.lane = number as usize % 32;
        self.depth = depth as u32;
    }

    pub(crate) fn ran(&mut self, function: usize, from: usize, to: usize) {
        if from < to {
            let (from, to) = (from as u32, to as u32);
            let run = Run { depth: self.depth, function: function as u32, from, to };
            self.lanes[self.lane].runs.push(run);
        }
    }

    /// Notes an access before it happens; one that faults is noted too.
    pub(crate) fn touches(&mut self, i: &Instruction, r: &[u64]) {
        let Some(space) = space_of(i.op) else { return };
        let address = r[i.a as usize].wrapping_add(i.imm);
        let count = if i.op == Op::Atomic { 1 } else { u32::from(i.count) };
        let bytes = u32::from(i.bits) / 8 * count;
        let is_shared_atomic = i.op == Op::Atomic && i.count == 1;
        let (space, address) = match (space, window(address)) {
            (Space::Global, _) if is_shared_atomic => (Space::Shared, address & 0xFFFF_FFFF),
            (Space::Global, STACK_WINDOW) => (Space::Stack, offset(address)),
            (Space::Global, SHARED_WINDOW) => (Space::Shared, offset(address)),
            (Space::Global, _) => (Space::Global, address),
            _ => (space, address & 0xFFFF_FFFF),
        };
        self.lanes[self.lane].accesses.push(Access { space, address, bytes });
    }

    /// Counts what the threads of the warp have done as the instructions of one warp.
    pub(crate) fn merge(&mut self) {
        self.counters.merge(&self.lanes);
        for lane in &mut self.lanes {
            lane.runs.clear();
            lane.accesses.clear();
        }
    }
}
