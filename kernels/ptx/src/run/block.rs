//! Blocks and grids: which thread runs when. Threads of a block without barriers run one after the
//! other to their ends.

use super::thread::{Position, Thread};
use super::{Core, Launch, Pause, warp};
use crate::Cause;
use crate::instruction::Op;
use crate::memory::POISON;

/// A thread that faulted.
pub(crate) struct Stopped {
    /// Its function and the number of its instruction, where it had any.
    pub(crate) place: Option<(u32, usize)>,
    pub(crate) position: Position,
    pub(crate) cause: Cause,
}

impl Stopped {
    fn new(thread: &Thread, cause: Cause) -> Box<Stopped> {
        Box::new(Stopped { place: thread.place(), position: thread.position, cause })
    }
}

/// What a thread of a block with barriers is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Ready,
    Waiting,
    Done,
}

/// Runs all blocks, one after the other.
pub(crate) fn grid(core: &mut Core<'_>, launch: &Launch<'_>) -> Result<(), Box<Stopped>> {
    let is_cooperative = launch.loaded.module.functions[launch.function as usize].is_cooperative;
    let count: u32 = launch.threads.iter().product();
    let kept = if is_cooperative { count } else { 1 };
    let mut threads: Vec<Thread> = (0..kept).map(|_| Thread::default()).collect();
    for z in 0..launch.blocks[2] {
        for y in 0..launch.blocks[1] {
            for step in 0..launch.blocks[0] {
                let at = u64::from(launch.first_block) + u64::from(step);
                let x = (at % u64::from(launch.blocks[0])) as u32;
                core.shared.clear();
                core.shared.resize(launch.shared_bytes, POISON);
                match is_cooperative {
                    true => together(core, launch, [x, y, z], &mut threads)?,
                    false => apart(core, launch, [x, y, z], &mut threads[0], count)?,
                }
            }
        }
    }
    Ok(())
}

fn position(launch: &Launch<'_>, block: [u32; 3], number: u32) -> Position {
    let [width, height, _] = launch.threads;
    let thread = [number % width, number / width % height, number / (width * height)];
    Position { block, thread, number }
}

/// Threads that never wait for each other.
fn apart(
    core: &mut Core<'_>,
    launch: &Launch<'_>,
    block: [u32; 3],
    thread: &mut Thread,
    count: u32,
) -> Result<(), Box<Stopped>> {
    for number in 0..count {
        thread.start(launch, position(launch, block, number));
        thread.run(core, launch).map_err(|cause| Stopped::new(thread, cause))?;
        if number % 32 == 31 || number + 1 == count {
            core.end_warp();
        }
    }
    Ok(())
}

/// Threads that wait for each other: each runs until it waits; a barrier or a warp's operation that
/// is complete lets its threads go on.
fn together(
    core: &mut Core<'_>,
    launch: &Launch<'_>,
    block: [u32; 3],
    threads: &mut [Thread],
) -> Result<(), Box<Stopped>> {
    for (number, thread) in (0..).zip(threads.iter_mut()) {
        thread.start(launch, position(launch, block, number));
    }
    let mut status = vec![Status::Ready; threads.len()];
    while status.iter().any(|status| *status != Status::Done) {
        let mut moved = false;
        for (lanes, status) in threads.chunks_mut(32).zip(status.chunks_mut(32)) {
            loop {
                moved |= run_ready(core, launch, lanes, status)?;
                core.end_warp();
                if !warp::operate(launch, lanes, status) {
                    break;
                }
                moved = true;
            }
        }
        moved |= release_barriers(launch, threads, &mut status);
        if !moved {
            let stuck = status.iter().position(|status| *status == Status::Waiting).unwrap_or(0);
            return Err(Stopped::new(&threads[stuck], Cause::Deadlock));
        }
    }
    Ok(())
}

fn run_ready(
    core: &mut Core<'_>,
    launch: &Launch<'_>,
    threads: &mut [Thread],
    status: &mut [Status],
) -> Result<bool, Box<Stopped>> {
    let mut moved = false;
    for (thread, status) in
        threads.iter_mut().zip(status).filter(|(_, status)| **status == Status::Ready)
    {
        moved = true;
        *status = match thread.run(core, launch).map_err(|cause| Stopped::new(thread, cause))? {
            Pause::Wait => Status::Waiting,
            _ => Status::Done,
        };
    }
    Ok(moved)
}

/// Which barrier a thread waits at, and for how many threads; 0 stands for all.
fn barrier_of(launch: &Launch<'_>, thread: &Thread) -> Option<(u64, u64)> {
    let (_, instruction) = thread.waiting_at(launch)?;
    (instruction.op == Op::Barrier).then(|| (thread.get(instruction.a), thread.get(instruction.b)))
}

/// Lets the threads of every complete barrier go on. Threads that have ended are not waited for.
fn release_barriers(launch: &Launch<'_>, threads: &[Thread], status: &mut [Status]) -> bool {
    let mut waiting: Vec<(usize, u64, u64)> = Vec::new();
    for (at, thread) in threads.iter().enumerate().filter(|(at, _)| status[*at] == Status::Waiting)
    {
        if let Some((barrier, count)) = barrier_of(launch, thread) {
            waiting.push((at, barrier, count));
        }
    }
    let alive = status.iter().filter(|status| **status != Status::Done).count() as u64;
    let mut released = false;
    for (at, barrier, count) in &waiting {
        let arrived = waiting.iter().filter(|(_, other, _)| other == barrier).count() as u64;
        let needed = if *count == 0 { alive } else { *count };
        if arrived >= needed {
            status[*at] = Status::Ready;
            released = true;
        }
    }
    released
}
