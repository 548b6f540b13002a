//! What a kernel must not do ends its launch with its name, place and cause; the machine goes on.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::{Rig, parameters};
use tessera_ptx::{Cause, Fault, Limits, MemoryError, Settings};

fn cause(outcome: Result<tessera_ptx::Stats, Fault>) -> Cause {
    outcome.expect_err("a fault").cause().expect("a thread's fault")
}

#[test]
fn accesses_out_of_bounds_name_everything() {
    let mut rig = Rig::new(Settings::default());
    let at = rig.words(&[0; 10]);
    for index in [10u64, u64::MAX, 1 << 40] {
        let fault = rig
            .run("wild", [1, 1, 1], [1, 1, 1], &parameters(&[(at, 8), (index, 8)]))
            .expect_err("out of bounds");
        let address = at.wrapping_add(index.wrapping_mul(4));
        assert_eq!(fault.cause(), Some(Cause::OutOfBounds { address, bytes: 4 }));
        let text = fault.to_string();
        assert!(
            text.contains("`wild`")
                && text.contains("st.global.u32")
                && text.contains("thread (0, 0, 0)"),
            "{text}"
        );
    }
    assert!(rig.run("wild", [1, 1, 1], [1, 1, 1], &parameters(&[(at, 8), (9, 8)])).is_ok());
    rig.machine.free(at).expect("it was allocated");
    let late = rig.run("wild", [1, 1, 1], [1, 1, 1], &parameters(&[(at, 8), (0, 8)]));
    assert!(matches!(cause(late), Cause::OutOfBounds { .. }), "memory that was given back");
    let null = rig.run("wild", [1, 1, 1], [1, 1, 1], &parameters(&[(0, 8), (0, 8)]));
    assert_eq!(cause(null), Cause::OutOfBounds { address: 0, bytes: 4 });
}

#[test]
fn misaligned_accesses_fault() {
    let mut rig = Rig::new(Settings::default());
    let at = rig.words(&[0; 10]);
    let outcome = rig.run("crooked", [1, 1, 1], [1, 1, 1], &parameters(&[(at, 8)]));
    assert_eq!(cause(outcome), Cause::Misaligned { address: at + 2, bytes: 4 });
}

#[test]
fn launches_end_by_limit_and_by_cancelling() {
    let mut rig = Rig::new(Settings::default());
    let at = rig.words(&[0]);
    let limits = Limits { steps: 1_000_000, ..Limits::default() };
    let endless = |rig: &mut Rig, limits: &Limits<'_>| {
        cause(rig.machine.launch(
            &rig.module,
            "endless",
            [1, 1, 1],
            [1, 1, 1],
            0,
            &parameters(&[(at, 8)]),
            limits,
        ))
    };
    assert_eq!(endless(&mut rig, &limits), Cause::StepLimit(1_000_000));
    let cancel = AtomicBool::new(false);
    let limits = Limits { cancel: Some(&cancel), ..Limits::default() };
    std::thread::scope(|scope| {
        let running = scope.spawn(|| endless(&mut rig, &limits));
        cancel.store(true, Ordering::Relaxed);
        assert_eq!(running.join().expect("it ends"), Cause::Cancelled);
    });
}

#[test]
fn threads_that_wait_for_each_other_are_found() {
    let mut rig = Rig::new(Settings::default());
    let at = rig.words(&[0; 64]);
    assert_eq!(
        cause(rig.run("stuck", [1, 1, 1], [64, 1, 1], &parameters(&[(at, 8)]))),
        Cause::Deadlock
    );
}

#[test]
fn traps_and_refused_arithmetic_fault() {
    let mut rig = Rig::new(Settings::default());
    let at = rig.words(&[0; 64]);
    let traps = |rig: &mut Rig| rig.run("traps", [1, 1, 1], [1, 1, 1], &parameters(&[(at, 8)]));
    assert!(traps(&mut rig).is_ok());
    assert_eq!(cause(traps(&mut rig)), Cause::Trapped);
    assert_eq!(
        cause(rig.run("doubles", [1, 1, 1], [1, 1, 1], &parameters(&[(at, 8), (at, 8)]))),
        Cause::Unsupported
    );
    assert_eq!(
        cause(rig.run("approximate", [1, 1, 1], [1, 1, 1], &parameters(&[(at, 8), (0, 4)]))),
        Cause::Unsupported
    );
}

#[test]
fn launches_that_do_not_fit_are_refused() {
    let mut rig = Rig::new(Settings::default());
    assert_eq!(rig.run("nobody", [1, 1, 1], [1, 1, 1], &[]), Err(Fault::NoKernel("nobody".into())));
    let eight = parameters(&[(0, 8)]);
    let refused = [
        ([0, 1, 1], [1, 1, 1], &eight[..]),
        ([1, 1, 1], [1, 1, 65], &eight),
        ([1, 1, 1], [1025, 1, 1], &eight),
        ([1, 1, 1], [1, 1, 1], &eight[..4]),
    ];
    for (grid, block, bytes) in refused {
        assert!(
            matches!(rig.run("grid", grid, block, bytes), Err(Fault::Launch { .. })),
            "{grid:?} {block:?}"
        );
    }
    let block = rig.run("calls", [1, 1, 1], [65, 1, 1], &[0; 40]);
    assert!(
        matches!(block, Err(Fault::Launch { .. })),
        "more threads than the kernel was compiled for"
    );
}

#[test]
fn memory_is_bounded_poisoned_and_given_back() {
    let mut rig = Rig::new(Settings { memory_bytes: 1 << 20, ..Settings::default() });
    let free = rig.machine.free_bytes();
    let full = rig.machine.allocate(1 << 20).expect_err("more than is free");
    assert_eq!(full, MemoryError::Full { asked: 1 << 20, free });
    let at = rig.machine.allocate(256).expect("it fits");
    assert_eq!((at % 256, rig.read(at, 2)), (0, vec![0xCDCD_CDCD; 2]));
    assert_eq!(rig.machine.allocation(at + 255), Some((at, 256)));
    assert_eq!(
        rig.machine.write(at + 250, &[0; 7]),
        Err(MemoryError::OutOfBounds { address: at + 250, bytes: 7 })
    );
    assert!(rig.machine.free(at + 1).is_err());
    assert_eq!(
        (rig.machine.free(at), rig.machine.free(at)),
        (Ok(()), Err(MemoryError::NotAllocated(at)))
    );
    assert_eq!(rig.machine.free_bytes(), free);
}
