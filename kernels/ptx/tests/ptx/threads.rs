//! Threads, blocks, calls, shared memory, warps, atomics, variables.

use crate::{Rig, parameters};
use tessera_ptx::{Limits, Settings};

#[test]
fn calls_use_structures_local_arrays_and_variables() {
    let mut rig = Rig::new(Settings::default());
    let inputs: Vec<u32> = (0..100).map(|at| (at as f32 * 0.5).to_bits()).collect();
    let (from, to) = (rig.words(&inputs), rig.words(&[0; 100]));
    let (exposure, bytes) = rig.module.variable("exposure").expect("the module declares it");
    assert_eq!(bytes, 4);
    rig.machine.write(exposure, &2.0f32.to_le_bytes()).expect("it was allocated");
    let offsets = [1.0f32, 2.0, 3.0, 4.0];
    let mut block = parameters(&[(from, 8), (to, 8), (100, 4)]);
    block.extend(offsets.iter().flat_map(|offset| offset.to_le_bytes()));
    block.resize(40, 0);
    rig.run("calls", [2, 1, 1], [64, 1, 1], &block).expect("it runs");
    for (at, got) in rig.read(to, 100).into_iter().enumerate() {
        let (x, y) = (at as f32 * 0.5, offsets[at & 3]);
        let t: Vec<f32> = (0..4).map(|i| x * i as f32 + y + (i + 1) as f32).collect();
        let k = x as usize & 3;
        let want = if t[k] == 0.0 { 1.0 } else { t[k ^ 1] } * 2.0;
        assert_eq!(f32::from_bits(got), want, "{at}");
    }
}

#[test]
fn functions_call_themselves() {
    let mut rig = Rig::new(Settings::default());
    let to = rig.words(&[0; 8]);
    rig.run("recursion", [1, 1, 1], [4, 1, 1], &parameters(&[(to, 8), (9, 4)])).expect("it runs");
    let got: Vec<u64> =
        rig.read(to, 8).chunks(2).map(|w| u64::from(w[1]) << 32 | u64::from(w[0])).collect();
    assert_eq!(got, [362_880, 3_628_800, 39_916_800, 479_001_600]);
}

#[test]
fn threads_of_a_block_meet_at_barriers() {
    let mut rig = Rig::new(Settings::default());
    let inputs: Vec<u32> = (0..150).map(|at| (at as f32).to_bits()).collect();
    let (from, to) = (rig.words(&inputs), rig.words(&[0; 3]));
    rig.run("block_sum", [3, 1, 1], [64, 1, 1], &parameters(&[(from, 8), (to, 8), (150, 4)]))
        .expect("it runs");
    let got: Vec<f32> = rig.read(to, 3).into_iter().map(f32::from_bits).collect();
    assert_eq!(got, [2016.0, 6112.0, 3047.0]);
    let reversed = rig.words(&[0; 96]);
    let (grid, block, limits) = ([1, 1, 1], [96, 1, 1], Limits::default());
    rig.machine
        .launch(&rig.module, "reverse", grid, block, 96 * 4, &parameters(&[(reversed, 8)]), &limits)
        .expect("it runs");
    assert_eq!(rig.read(reversed, 96), (0..96).rev().collect::<Vec<u32>>());
}

#[test]
fn lanes_of_a_warp_exchange_and_vote() {
    let mut rig = Rig::new(Settings::default());
    let to = rig.words(&[0; 64 * 8]);
    rig.run("warp", [1, 1, 1], [64, 1, 1], &parameters(&[(to, 8)])).expect("it runs");
    let ballot = |warp: u32| {
        (0..32)
            .filter(|lane| (warp * 32 + lane).is_multiple_of(3))
            .fold(0u32, |votes, lane| votes | 1 << lane)
    };
    for (thread, got) in (0u32..).zip(rig.read(to, 64 * 8).chunks(8)) {
        let (warp, lane) = (thread / 32, thread % 32);
        let first = warp * 32;
        let votes = ballot(warp);
        let want = [
            (first + 5) * 3,
            if lane >= 2 { thread - 2 } else { thread },
            if lane % 16 + 3 < 16 { thread + 3 } else { thread },
            first + (lane ^ 7),
            votes,
            u32::from(warp == 1) * 2 + 1,
            warp * 10,
            (votes & ((1 << lane) - 1)).count_ones(),
        ];
        assert_eq!(got, want, "thread {thread}");
    }
}

#[test]
fn atomics_combine_integers() {
    let mut rig = Rig::new(Settings::default());
    let words = rig.words(&[0, 1000, 0, u32::MAX, 0, 0, 0, 0, 0, 0, 0]);
    let (signed, wide) = (rig.words(&[0, 0x8000_0000]), rig.words(&[0; 6]));
    rig.run("atomics", [1, 1, 1], [40, 1, 1], &parameters(&[(words, 8), (signed, 8), (wide, 8)]))
        .expect("it runs");
    let sum: u32 = (0..40).sum();
    let got = rig.read(words, 11);
    assert_eq!(got[..8], [sum, 0, 39, 0, u32::MAX, (0..40).fold(0, |x, t| x ^ t), 39, 40]);
    assert_eq!(got[8..], [0, 0, sum.wrapping_neg()]);
    assert_eq!(
        rig.read(signed, 2).into_iter().map(|word| word as i32).collect::<Vec<_>>(),
        [-39, 19]
    );
    assert_eq!(rig.read(wide, 6), [0, 80, 0, 39 << 8, 40, 0]);
}

#[test]
fn grids_and_blocks_have_three_axes() {
    let mut rig = Rig::new(Settings::default());
    let (grid, block) = ([3u32, 2, 2], [4u32, 3, 2]);
    let count = 12 * 24;
    let to = rig.words(&vec![0; count]);
    let stats = rig.run("grid", grid, block, &parameters(&[(to, 8)])).expect("it runs");
    assert_eq!(stats.threads, count as u64);
    for (at, got) in (0u32..).zip(rig.read(to, count)) {
        let (t, b) = (at % 24, at / 24);
        let thread = (t % 4) | ((t / 4 % 3) << 4) | ((t / 12) << 8);
        assert_eq!(got, thread | ((b % 3) << 12) | ((b / 3 % 2) << 16) | ((b / 6) << 20), "{at}");
    }
}

#[test]
fn a_thread_finds_nothing_of_the_one_before() {
    // What only the first thread writes, after a branch and under a guard.
    let text = "
        .version 7.0
        .target sm_75
        .address_size 64
        .visible .entry left(.param .u64 out) {
            .reg .pred %p<2>;
            .reg .b32 %r<4>;
            .reg .b64 %rd<4>;
            ld.param.u64 %rd1, [out];
            mov.u32 %r1, %tid.x;
            setp.ne.u32 %p1, %r1, 0;
            @%p1 bra SKIP;
            mov.u32 %r2, 7;
        SKIP:
            @!%p1 mov.u32 %r3, 8;
            mul.wide.u32 %rd2, %r1, 8;
            add.s64 %rd3, %rd1, %rd2;
            st.global.u32 [%rd3], %r2;
            st.global.u32 [%rd3+4], %r3;
            ret;
        }";
    let mut rig = Rig::of(text, Settings::default());
    let to = rig.words(&[0; 6]);
    rig.run("left", [1, 1, 1], [3, 1, 1], &parameters(&[(to, 8)])).expect("it runs");
    let nothing = 0xCDCD_CDCD;
    assert_eq!(rig.read(to, 6), [7, 8, nothing, nothing, nothing, nothing]);
}
