//! Devices in trouble: what became of the unit, of the units behind it, and of the device.

use crate::device::bench::{
    Bench, Pending, expected, frame, instanced_frame, submit, unit, wait_for,
};
use std::sync::Arc;
use std::time::Duration;
use tessera_fake_cuda::{Fault, FaultKind};
use tessera_node::device::{Device, DeviceError, Devices, PreparedFrame};
use tessera_protocol::device::DeviceState;

/// A device that meets the fault when told so, well until then.
fn struck(fault: Fault, change: impl FnOnce(&mut Bench)) -> (Bench, Devices) {
    let mut bench = Bench::with(|_| {});
    change(&mut bench);
    let trigger = bench.rack.folder().join("now");
    let mut config = tessera_fake_cuda::Config::of(1, tessera_fake_cuda::Device::default());
    config.devices[0].faults.push(fault.when(trigger.clone()));
    bench.rack.configure(&config).expect("the rack takes its configuration");
    let opened = bench.open();
    std::fs::write(trigger, "").expect("the trigger can be written");
    (bench, opened)
}

fn is_ready(device: &dyn Device) -> bool {
    device.info().state == DeviceState::Ready
}

/// Of some units, one has failed and some behind it were given back; then the device is well again
/// and does them.
fn one_fails_and_the_rest_is_done_later(
    device: &dyn Device,
    failed: impl Fn(&DeviceError) -> bool,
) {
    let pending: Vec<Pending> = (0..6).map(|index| submit(device, &frame(), unit(index))).collect();
    let results: Vec<_> = pending.into_iter().map(Pending::end).collect();
    let errors: Vec<_> = results.iter().filter_map(|result| result.as_ref().err()).collect();
    let bad: Vec<_> = errors.iter().filter(|error| ***error != DeviceError::Cancelled).collect();
    assert!(bad.len() == 1 && failed(bad[0]), "{errors:?}");
    wait_for("another worker", || is_ready(device));
    for index in 0..6 {
        let output = submit(device, &frame(), unit(index)).end().expect("a unit");
        assert_eq!(output.sums.values, expected(&unit(index)));
    }
}

#[test]
fn an_illegal_address_fails_one_unit_and_restarts_the_worker() {
    let (bench, opened) = struck(Fault::new(FaultKind::IllegalAddress), |_| {});
    let device = &*opened.devices[0];
    one_fails_and_the_rest_is_done_later(
        device,
        |error| matches!(error, DeviceError::Failed(reason) if reason.contains("ILLEGAL_ADDRESS")),
    );
    assert_eq!(bench.rack.counts(0).loads, 2);
    wait_for("the driver's event", || device.telemetry().xid.is_some_and(|xid| xid.code == 31));
    assert!(is_ready(device));
}

#[test]
fn a_crashing_driver_ends_only_its_worker() {
    let (bench, opened) = struck(Fault::new(FaultKind::Crash), |_| {});
    one_fails_and_the_rest_is_done_later(
        &*opened.devices[0],
        |error| matches!(error, DeviceError::Worker(reason) if reason.contains("signal")),
    );
    assert_eq!(bench.rack.counts(0).loads, 2);
}

#[test]
fn a_kernel_that_never_ends_is_ended() {
    // Far above what a unit of this test takes, on a busy machine too: in the interpreter some
    // milliseconds.
    let (bench, opened) = struck(Fault::new(FaultKind::Endless), |bench| {
        bench.config.watchdog.floor = Duration::from_secs(8)
    });
    one_fails_and_the_rest_is_done_later(
        &*opened.devices[0],
        |error| matches!(error, DeviceError::TimedOut(reason) if reason.contains("no progress")),
    );
    assert_eq!(bench.rack.counts(0).loads, 2);
}

#[test]
fn a_device_off_the_bus_is_quarantined_and_frees_its_units() {
    let (_bench, opened) = struck(Fault::new(FaultKind::OffTheBus), |_| {});
    let device = &*opened.devices[0];
    let pending: Vec<Pending> = (0..6).map(|index| submit(device, &frame(), unit(index))).collect();
    let results: Vec<_> = pending.into_iter().map(Pending::end).collect();
    assert!(results.iter().all(Result::is_err), "{results:?}");
    wait_for("quarantine", || matches!(device.info().state, DeviceState::Quarantined { .. }));
    assert_eq!(submit(device, &frame(), unit(0)).end(), Err(DeviceError::Cancelled));
}

#[test]
fn memory_errors_drain_the_device() {
    let (_bench, opened) = struck(Fault::new(FaultKind::Ecc), |_| {});
    let device = &*opened.devices[0];
    let result = submit(device, &frame(), unit(0)).end();
    assert!(
        matches!(&result, Err(DeviceError::Failed(reason)) if reason.contains("ECC")),
        "{result:?}"
    );
    wait_for("quarantine", || match device.info().state {
        DeviceState::Quarantined { reason, .. } => reason.contains("Xid 48"),
        _ => false,
    });
}

#[test]
fn a_refused_allocation_changes_the_plan_and_costs_nothing() {
    let (bench, opened) = struck(Fault::new(FaultKind::OutOfMemory), |_| {});
    for index in 0..4 {
        let output = submit(&*opened.devices[0], &frame(), unit(index)).end().expect("a unit");
        assert_eq!(output.sums.values, expected(&unit(index)));
    }
    assert_eq!((bench.rack.struck(0, 0), bench.rack.counts(0).loads), (1, 1));
}

#[test]
fn a_unit_too_large_for_a_device_reports_both_sizes() {
    let bench = Bench::with(|device| device.memory = device.context_bytes + (16 << 20));
    let opened = bench.open();
    let device = &*opened.devices[0];
    // Sums of 512 × 512 pixels of 13 channels are 26 MiB.
    let large = tessera_layout::UnitParams {
        frame_width: 512,
        frame_height: 512,
        width: 512,
        height: 512,
        aovs: 15,
        ..unit(0)
    };
    match submit(device, &frame(), large).end() {
        Err(DeviceError::OutOfMemory { needed, available }) => {
            assert!(needed > 26 << 20 && available < 17 << 20, "{needed} {available}");
        }
        other => panic!("{other:?}"),
    }
    let output = submit(device, &frame(), unit(1)).end().expect("a unit");
    assert_eq!(output.sums.values, expected(&unit(1)));
    assert_eq!(bench.rack.counts(0).loads, 1, "the worker was restarted");
}

#[test]
fn results_of_a_wrong_device_are_returned() {
    let (_bench, opened) = struck(Fault::new(FaultKind::WrongResult).times(0), |_| {});
    let device = &*opened.devices[0];
    let pending: Vec<Pending> = (0..6).map(|index| submit(device, &frame(), unit(index))).collect();
    for end in pending.into_iter().map(Pending::end) {
        assert_eq!(
            end,
            Err(DeviceError::Cancelled),
            "nobody may hear of a result that is not right"
        );
    }
    // The restarted worker does not give the known answer either.
    wait_for("the quarantine", || matches!(device.info().state, DeviceState::Quarantined { .. }));
}

/// Waits until a device is quarantined because of this known answer.
fn quarantined_by(device: &dyn Device, answer: &str) {
    let end = format!("it does not give the known answer of {answer}");
    wait_for("the quarantine", || match device.info().state {
        DeviceState::Quarantined { reason, .. } => {
            assert!(reason.ends_with(&end), "{reason}");
            true
        }
        _ => false,
    });
}

#[test]
fn kernels_for_instances_are_tested_before_their_first_unit() {
    // The second module of a worker is the one with instances.
    let fault = Fault::new(FaultKind::WrongResult).times(0).at_module(2);
    let bench = Bench::with(|device| device.faults.push(fault));
    let opened = bench.open();
    let device = &*opened.devices[0];
    let plain = submit(device, &frame(), unit(27)).end().expect("a unit");
    assert_eq!(plain.sums.values, expected(&unit(27)));
    let scene = instanced_frame(60);
    // Two wrong answers end it; in between another worker serves scenes without instances.
    for _ in 0..2 {
        wait_for("a worker", || is_ready(device));
        let instanced = submit(device, &scene, unit(27)).end();
        assert_eq!(instanced, Err(DeviceError::Cancelled), "no unit begins on such kernels");
    }
    quarantined_by(device, "the compact kernels for the room with copies");
}

#[test]
fn results_of_wrong_layered_kernels_are_returned() {
    let fault = Fault::new(FaultKind::WrongResult).times(0).at_kernel("tessera_render_layered");
    let (_bench, opened) = struck(fault, |_| {});
    let device = &*opened.devices[0];
    let glass = Arc::new(PreparedFrame::new(tessera_support::panes::greenhouse(), 61));
    assert_eq!(submit(device, &glass, unit(27)).end(), Err(DeviceError::Cancelled));
    quarantined_by(device, "the compact kernels for the room with glass");
}
