//! Counts of what warps do: threads that part and meet, and the memory that an instruction touches.

use crate::{Rig, parameters};
use tessera_ptx::Settings;
use tessera_ptx::profile::{Profile, Traffic};

/// Lanes below 8 take three instructions, the others one; then all store a word.
const PARTING: &str = r"
.version 7.0
.target sm_75
.address_size 64
.visible .entry parting(.param .u64 out)
{
    .reg .b32 %r<9>;
    .reg .b64 %rd<4>;
    .reg .pred %p<2>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    setp.lt.u32 %p1, %r1, 8;
    @%p1 bra FEW;
    mov.u32 %r2, 1;
    bra MEET;
FEW:
    mov.u32 %r2, 2;
    add.s32 %r2, %r2, 3;
    add.s32 %r2, %r2, 4;
MEET:
    mul.wide.u32 %rd2, %r1, STRIDE;
    add.s64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r2;
    ret;
}
";

/// As many turns as the lane's number and one more, each with a word of local memory.
const TURNS: &str = r"
.version 7.0
.target sm_75
.address_size 64
.visible .entry turns(.param .u64 out)
{
    .local .align 4 .b8 stack[16];
    .reg .b32 %r<9>;
    .reg .pred %p<2>;
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, 0;
AGAIN:
    st.local.u32 [stack], %r2;
    add.s32 %r2, %r2, 1;
    setp.le.u32 %p1, %r2, %r1;
    @%p1 bra AGAIN;
    ret;
}
";

fn profile(text: &str, kernel: &str, threads: u32) -> Profile {
    let mut rig = Rig::of(text, Settings { profile: true, ..Settings::default() });
    let out = rig.words(&vec![0; 32 * 64]);
    rig.run(kernel, [1, 1, 1], [threads, 1, 1], &parameters(&[(out, 8)])).expect("it runs");
    rig.machine.take_profile(&rig.module).remove(kernel).expect("it was launched")
}

#[test]
fn threads_that_part_meet_again() {
    let profile = profile(&PARTING.replace("STRIDE", "4"), "parting", 32);
    assert_eq!((profile.launches, profile.lines_touched), (1, 1));
    // Four for all, three for eight threads, two for the others, four for all.
    assert_eq!(profile.warp_instructions, 4 + 3 + 2 + 4);
    assert_eq!(profile.thread_instructions, 8 * 32 + 3 * 8 + 2 * 24);
    assert!((profile.live_lanes() - 328.0 / 13.0).abs() < 1e-9, "{}", profile.live_lanes());
    let issued: Vec<(u64, u64)> = profile
        .by_line
        .values()
        .map(|line| (line.warp_instructions, line.thread_instructions))
        .collect();
    let [all, few, many] = [(1, 32), (1, 8), (1, 24)];
    assert_eq!(issued, [all, all, all, all, many, many, few, few, few, all, all, all, all]);
}

#[test]
fn accesses_are_counted_by_sectors_and_lines() {
    let stored = |stride: &str, threads: u32| {
        profile(&PARTING.replace("STRIDE", stride), "parting", threads).global
    };
    let traffic = |sectors, lines| Traffic { accesses: 1, bytes: 128, sectors, lines };
    assert_eq!(stored("4", 32), traffic(4, 1));
    assert_eq!(stored("32", 32), traffic(32, 8));
    assert_eq!(stored("128", 32), traffic(32, 32));
    assert_eq!(stored("0", 32), traffic(1, 1));
    // Two warps, the second one of 8 threads.
    assert_eq!(stored("4", 40), Traffic { accesses: 2, bytes: 160, sectors: 5, lines: 2 });
}

#[test]
fn threads_leave_a_loop_one_by_one() {
    let profile = profile(TURNS, "turns", 32);
    // Each turn has one thread less than the last one.
    let turns: u64 = (1..=32).sum();
    assert_eq!(profile.warp_instructions, 2 + 4 * 32 + 1);
    assert_eq!(profile.thread_instructions, 32 * 3 + 4 * turns);
    // Words of neighbours are neighbours: of 32 threads a line, of the last one a sector.
    let sectors = (1..=32u64).map(|threads| threads.div_ceil(8)).sum();
    let local = Traffic { accesses: 32, bytes: 4 * turns, sectors, lines: 32 };
    assert_eq!((profile.local, profile.global), (local, Traffic::default()));
}

#[test]
fn nothing_is_counted_unasked() {
    let mut rig = Rig::of(TURNS, Settings::default());
    rig.run("turns", [1, 1, 1], [32, 1, 1], &parameters(&[(0, 8)])).expect("it runs");
    assert!(rig.machine.take_profile(&rig.module).is_empty());
}
