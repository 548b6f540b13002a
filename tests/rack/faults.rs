//! Each fault ends as designed: the job is done with the same bits, and the node and its other
//! device go on.

use crate::device::bench::wrong_sums;
use crate::rack::fixture::{PICTURE, Stand, on_cpu, with_fault};
use tessera_fake_cuda::{Config, Fault, FaultKind};

/// A node of two devices, both ready; the first meets the fault at the first thing that a job asks
/// of it.
fn struck(fault: Fault) -> Stand {
    let mut config = with_fault(fault);
    let mut stand = Stand::prepare(&config);
    if config.devices[0].faults[0].kind == FaultKind::Endless {
        // Far longer than a worker that works is ever silent, even on a machine with much else to
        // do.
        stand.watchdog_secs = 8;
    }
    let trigger = stand.rack.folder().join("now");
    config.devices[0].faults[0].trigger = trigger.clone();
    stand.rack.configure(&config).expect("a configuration");
    stand.add_node("rack", "cuda");
    stand.wait_until(0, "ready");
    stand.wait_until(1, "ready");
    std::fs::write(trigger, "").expect("a trigger");
    stand
}

/// Renders the picture, which must be right, and the fault must have struck.
fn survives(stand: &Stand) {
    assert_eq!(stand.render(&PICTURE), on_cpu(), "{}", stand.farm.logs());
    assert!(stand.rack.struck(0, 0) > 0, "the fault has not struck\n{}", stand.farm.logs());
    assert!(stand.rack.counts(1).launches > 1, "the other device did nothing");
    // The node is the one that was there before: it never left.
    assert_eq!(stand.node("rack")["state"], "ready", "{}", stand.node("rack"));
}

#[test]
fn out_of_memory_changes_the_plan_and_costs_nothing() {
    let stand = struck(Fault::new(FaultKind::OutOfMemory));
    let loads = stand.rack.counts(0).loads;
    survives(&stand);
    assert_eq!(stand.standing(0), "ready");
    assert_eq!(stand.rack.counts(0).loads, loads, "the worker was restarted");
}

#[test]
fn a_new_worker_continues_after_an_illegal_address() {
    let stand = struck(Fault::new(FaultKind::IllegalAddress));
    survives(&stand);
    stand.wait_until(0, "ready");
    assert_eq!(stand.rack.counts(0).loads, 2, "one worker died, one came");
}

// promise: P8
#[test]
fn a_crashing_driver_takes_only_its_worker_down() {
    let stand = struck(Fault::new(FaultKind::Crash));
    survives(&stand);
    stand.wait_until(0, "ready");
    assert_eq!(stand.rack.counts(0).loads, 2, "one worker died, one came");
}

// promise: P8
#[test]
fn a_kernel_that_never_ends_is_ended_by_the_watchdog() {
    let stand = struck(Fault::new(FaultKind::Endless));
    survives(&stand);
    stand.wait_until(0, "ready");
    assert!(stand.rack.counts(0).loads >= 2, "the worker that hung is the one that serves");
}

#[test]
fn a_device_off_the_bus_is_no_longer_used() {
    let stand = struck(Fault::new(FaultKind::OffTheBus));
    survives(&stand);
    stand.wait_until(0, "quarantined");
    assert!(stand.rack.counts(0).is_lost);
    let launches = stand.rack.counts(0).launches;
    assert_eq!(stand.render(&PICTURE), on_cpu(), "the node goes on without it");
    assert_eq!(stand.rack.counts(0).launches, launches);
}

#[test]
fn a_device_whose_memory_fails_is_drained() {
    let stand = struck(Fault::new(FaultKind::Ecc));
    survives(&stand);
    stand.wait_until(0, "quarantined");
}

/// A node whose first device is faulty from the start; it gets no work, and says why.
fn left_out(fault: Fault, reason: &str) {
    let stand = Stand::start(&with_fault(fault.times(0)));
    assert_eq!(stand.render(&PICTURE), on_cpu(), "{}", stand.farm.logs());
    stand.wait_until(0, "quarantined");
    let standing = stand.standing(0);
    assert!(standing.contains(reason), "{standing}");
    assert_eq!(stand.standing(1), "ready");
}

#[test]
fn a_device_that_refuses_the_kernels_is_left_out_with_a_reason() {
    left_out(Fault::new(FaultKind::UnsupportedPtx), "Unsupported .version");
}

// promise: P7
#[test]
fn a_device_that_computes_wrongly_never_gets_work() {
    left_out(wrong_sums(), "known answer");
}

// promise: P7
#[test]
fn a_device_that_begins_to_compute_wrongly_spoils_no_picture() {
    let stand = struck(wrong_sums());
    survives(&stand);
    stand.wait_until(0, "quarantined: it does not give the known answer");
    assert_eq!(stand.render(&PICTURE), on_cpu(), "{}", stand.farm.logs());
}

#[test]
fn a_device_with_little_memory_does_what_fits() {
    let mut config = Config::of(2, crate::rack::fixture::device());
    // The context and the scene, and room for the smallest of plans.
    config.devices[0].memory = config.devices[0].context_bytes + (1 << 20);
    let stand = Stand::start(&config);
    (0..2).for_each(|index| stand.wait_until(index, "ready"));
    assert_eq!(stand.render(&PICTURE), on_cpu(), "{}", stand.farm.logs());
    assert_eq!([stand.standing(0), stand.standing(1)], ["ready", "ready"]);
}
