//! What decides a kernel's speed, counted: instructions that warps issue and how many of their
//! threads each is for, and the parts of memory that they touch. Counts, no times.
//!
//! Threads run one after the other here. As a warp they are counted afterwards: of the threads that
//! are deepest in calls, those at the first instruction go on together, until others stand at the
//! same one. So threads that part meet again behind a loop or a branch, as compilers arrange it
//! (min-PC reconvergence: Collange, "Stack-less SIMT reconvergence at low cost", 2011, 3.1). A
//! compiler that puts blocks in another order lets them meet elsewhere.

use crate::instruction::Instruction;
use crate::module::Module;
use crate::trace::{Access, Space, Trace, space_of};
use std::collections::{BTreeMap, HashSet};

/// Bytes that one transaction moves.
pub const SECTOR_BYTES: u64 = 32;
/// Bytes of a line of caches, four sectors.
pub const LINE_BYTES: u64 = 128;

/// Accesses to one kind of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Instructions of warps.
    pub accesses: u64,
    /// Bytes that threads asked for.
    pub bytes: u64,
    /// Transactions of [`SECTOR_BYTES`]: of each instruction, the different ones of its threads.
    pub sectors: u64,
    /// Lines of [`LINE_BYTES`]: of each instruction, the different ones of its threads.
    pub lines: u64,
}

impl Traffic {
    fn add(&mut self, other: &Traffic) {
        self.accesses += other.accesses;
        self.bytes += other.bytes;
        self.sectors += other.sectors;
        self.lines += other.lines;
    }
}

/// What warps did at one line of PTX.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineProfile {
    /// Times that a warp issued it.
    pub warp_instructions: u64,
    /// Threads that it was issued for, all times together: at most 32 each.
    pub thread_instructions: u64,
    /// Memory that it touched, of whichever kind.
    pub traffic: Traffic,
}

/// What the launches of one kernel did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// Launches.
    pub launches: u64,
    /// Instructions of PTX that warps issued.
    pub warp_instructions: u64,
    /// Threads that they were issued for, at most 32 each.
    pub thread_instructions: u64,
    /// Global and constant memory.
    pub global: Traffic,
    /// Local memory. Words of neighbouring threads are neighbours there, as on a GPU.
    pub local: Traffic,
    /// Shared memory; sectors and lines mean nothing there.
    pub shared: Traffic,
    /// Different lines of global memory, of [`LINE_BYTES`], in each launch: what must be moved once
    /// even if caches were without bounds.
    pub lines_touched: u64,
    /// By line of the module's text, from 1 on.
    pub by_line: BTreeMap<u32, LineProfile>,
}

impl Profile {
    /// Adds what other launches of the same kernel did.
    pub fn add(&mut self, other: &Profile) {
        self.launches += other.launches;
        self.warp_instructions += other.warp_instructions;
        self.thread_instructions += other.thread_instructions;
        self.global.add(&other.global);
        self.local.add(&other.local);
        self.shared.add(&other.shared);
        self.lines_touched += other.lines_touched;
        for (line, of) in &other.by_line {
            let sum = self.by_line.entry(*line).or_default();
            sum.warp_instructions += of.warp_instructions;
            sum.thread_instructions += of.thread_instructions;
            sum.traffic.add(&of.traffic);
        }
    }

    /// Threads of the 32 that instructions were issued for, on average; 0 where nothing ran.
    pub fn live_lanes(&self) -> f64 {
        match self.warp_instructions {
            0 => 0.0,
            issued => self.thread_instructions as f64 / issued as f64,
        }
    }
}

/// Where a thread of a warp is in what it did.
#[derive(Clone, Copy, Default)]
struct Cursor {
    run: usize,
    at: u32,
    access: usize,
}

/// What must be known of an instruction to count it.
#[derive(Clone, Copy, Debug)]
struct Kind {
    /// Memory that it accesses, if any.
    space: Option<Space>,
    /// It is the first of its statement: one line of text may be decoded to several.
    begins: bool,
}

/// Instructions of a function by their number: all of each, and its traffic by kind of memory.
type Counts = Vec<(LineProfile, [Traffic; 3])>;

/// Counts of one kernel of a module while launches are under way.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    launches: u64,
    functions: Vec<Counts>,
    /// Of the instructions of each function.
    kinds: Vec<Vec<Kind>>,
    /// Of the instruction that is being counted.
    access: WarpAccess,
    touched: HashSet<u64>,
    lines_touched: u64,
}

impl Counters {
    pub(crate) fn new(module: &Module) -> Counters {
        let counts = |code: &[Instruction]| vec![Default::default(); code.len()];
        let functions = module.functions.iter().map(|function| counts(&function.code)).collect();
        let kinds = module.functions.iter().map(|function| {
            let first = |at: usize| at == 0 || function.lines[at] != function.lines[at - 1];
            let kind =
                |(at, i): (usize, &Instruction)| Kind { space: space_of(i.op), begins: first(at) };
            function.code.iter().enumerate().map(kind).collect()
        });
        let kinds = kinds.collect();
        Counters { functions, kinds, ..Counters::default() }
    }

    /// A launch has ended.
    pub(crate) fn end_launch(&mut self) {
        self.launches += 1;
        self.lines_touched += self.touched.len() as u64;
        self.touched.clear();
    }

    /// Counts what the threads of one warp did.
    pub(crate) fn merge(&mut self, lanes: &[Trace]) {
        let mut cursors = vec![Cursor::default(); lanes.len()];
        for (cursor, lane) in cursors.iter_mut().zip(lanes) {
            cursor.at = lane.runs.first().map_or(0, |run| run.from);
        }
        let mut together = Vec::with_capacity(lanes.len());
        while let Some((function, from, to)) = next_block(lanes, &cursors, &mut together) {
            for at in from..to {
                self.issue(function, at, lanes, &mut cursors, &together);
            }
            for lane in &together {
                let cursor = &mut cursors[*lane];
                cursor.at = to;
                if to == lanes[*lane].runs[cursor.run].to {
                    cursor.run += 1;
                    cursor.at = lanes[*lane].runs.get(cursor.run).map_or(0, |run| run.from);
                }
            }
        }
    }

    /// Some threads of a warp run one instruction.
    fn issue(
        &mut self,
        function: u32,
        at: u32,
        lanes: &[Trace],
        cursors: &mut [Cursor],
        together: &[usize],
    ) {
        let (function, at) = (function as usize, at as usize);
        let kind = self.kinds[function][at];
        let (counts, traffic) = &mut self.functions[function][at];
        if kind.begins {
            counts.warp_instructions += 1;
            counts.thread_instructions += together.len() as u64;
        }
        if kind.space.is_none() {
            return;
        }
        let warp = &mut self.access;
        warp.clear();
        for lane in together {
            let cursor = &mut cursors[*lane];
            if let Some(access) = lanes[*lane].accesses.get(cursor.access) {
                cursor.access += 1;
                warp.add(*lane, access);
            }
        }
        for (sum, of) in traffic.iter_mut().zip(warp.traffic()) {
            counts.traffic.add(&of);
            sum.add(&of);
        }
        // Sorted by now.
        let mut last = None;
        for line in warp.global.iter().map(|sector| sector * SECTOR_BYTES / LINE_BYTES) {
            if last.replace(line) != Some(line) {
                self.touched.insert(line);
            }
        }
    }

    /// The counts so far, told by lines of the text.
    pub(crate) fn told(&self, module: &Module) -> Profile {
        let mut profile = Profile {
            launches: self.launches,
            lines_touched: self.lines_touched,
            ..Profile::default()
        };
        for (function, counts) in module.functions.iter().zip(&self.functions) {
            for (line, (counts, traffic)) in function.lines.iter().zip(counts) {
                if counts.warp_instructions == 0 && counts.traffic.accesses == 0 {
                    continue;
                }
                profile.warp_instructions += counts.warp_instructions;
                profile.thread_instructions += counts.thread_instructions;
                profile.global.add(&traffic[0]);
                profile.local.add(&traffic[1]);
                profile.shared.add(&traffic[2]);
                let of = profile.by_line.entry(*line).or_default();
                of.warp_instructions += counts.warp_instructions;
                of.thread_instructions += counts.thread_instructions;
                of.traffic.add(&counts.traffic);
            }
        }
        profile
    }
}

/// Which threads run next, and from where to where in which function; none at the end.
fn next_block(
    lanes: &[Trace],
    cursors: &[Cursor],
    together: &mut Vec<usize>,
) -> Option<(u32, u32, u32)> {
    let place = |lane: usize| {
        let run = lanes[lane].runs.get(cursors[lane].run)?;
        Some((std::cmp::Reverse(run.depth), run.function, cursors[lane].at))
    };
    let first = (0..lanes.len()).filter_map(place).min()?;
    together.clear();
    let mut to = u32::MAX;
    for lane in 0..lanes.len() {
        match place(lane) {
            Some(at) if at == first => {
                together.push(lane);
                to = to.min(lanes[lane].runs[cursors[lane].run].to);
            }
            // Where others wait, those who come by take them along.
            Some((depth, function, at)) if (depth, function) == (first.0, first.1) => {
                to = to.min(at);
            }
            _ => {}
        }
    }
    Some((first.1, first.2, to))
}

/// What one instruction of a warp touches.
#[derive(Debug, Default)]
struct WarpAccess {
    /// Sectors of global and of local memory, in no order and with repetitions.
    global: Vec<u64>,
    local: Vec<u64>,
    /// Instructions and bytes of each space.
    counts: [(u64, u64); 3],
}

impl WarpAccess {
    fn clear(&mut self) {
        self.global.clear();
        self.local.clear();
        self.counts = Default::default();
    }

    fn add(&mut self, lane: usize, access: &Access) {
        let bytes = u64::from(access.bytes);
        let last = access.address + bytes.max(1) - 1;
        let counts = &mut self.counts[access.space as usize];
        counts.0 = 1;
        counts.1 += bytes;
        match access.space {
            Space::Global => {
                self.global.extend(access.address / SECTOR_BYTES..=last / SECTOR_BYTES);
            }
            // Word `w` of all 32 threads is one line.
            Space::Stack => {
                let sector = |word: u64| (word * LINE_BYTES + lane as u64 * 4) / SECTOR_BYTES;
                self.local.extend((access.address / 4..=last / 4).map(sector));
            }
            Space::Shared => {}
        }
    }

    /// Of global, of local and of shared memory.
    fn traffic(&mut self) -> [Traffic; 3] {
        let different = |sectors: &mut Vec<u64>| {
            sectors.sort_unstable();
            sectors.dedup();
            let line = |sector: &u64| sector * SECTOR_BYTES / LINE_BYTES;
            let lines = sectors.chunk_by(|a, b| line(a) == line(b)).count();
            (sectors.len() as u64, lines as u64)
        };
        let [global, local] = [&mut self.global, &mut self.local].map(different);
        let all = self.counts.iter().zip([global, local, (0, 0)]);
        let mut all = all.map(|((accesses, bytes), (sectors, lines))| Traffic {
            accesses: *accesses,
            bytes: *bytes,
            sectors,
            lines,
        });
        std::array::from_fn(|_| all.next().unwrap_or_default())
    }
}
