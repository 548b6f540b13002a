//! What a device gives when all is well: the bits of the CPU, in order, without a leak.

use crate::device::bench::{
    Bench, another_frame, expected, expected_of, frame, instanced_frame, submit, unit, wait_for,
};
use tessera_fake_cuda::{Config, Device, Slice};
use tessera_node::device::DeviceError;
use tessera_protocol::device::{DeviceKind, DeviceState};

#[test]
fn units_have_the_bits_of_the_cpu_and_leave_memory_as_it_was() {
    let bench = Bench::with(|_| {});
    let opened = bench.open();
    let device = &opened.devices[0];
    let one_pass = |round: u32| {
        let units: Vec<_> = (0..24).map(|index| unit(index + 24 * round)).collect();
        let pending: Vec<_> =
            units.iter().map(|params| submit(&**device, &frame(), *params)).collect();
        for (params, pending) in units.iter().zip(pending) {
            let output = pending.end().expect("a unit");
            assert_eq!(output.sums.values, expected(params), "{params:?}");
            assert_eq!(output.sums.samples, 1);
            assert!(
                output.rays >= 64 && !output.device_time.is_zero() && output.device_bytes > 0,
                "{output:?}"
            );
        }
    };
    one_pass(0);
    let used = bench.rack.counts(0).used_bytes;
    (1..4).for_each(one_pass);
    // The other lane's workspace may have come into use since, 23 KiB once: far less than something
    // of every unit.
    let grown = bench.rack.counts(0).used_bytes.saturating_sub(used);
    assert!(grown < 64 << 10, "units have left {grown} bytes behind");
    assert!(!device.busy().is_zero());
    drop(opened);
    wait_for("the worker's end", || bench.rack.counts(0).used_bytes == 0);
}

#[test]
fn a_scene_with_instances_has_kernels_of_its_own() {
    let scene = instanced_frame(50);
    assert!(scene.scene.instances.len() > 1);
    let bench = Bench::with(|_| {});
    let opened = bench.open();
    let device = &*opened.devices[0];
    // Loaded when such a scene comes for the first time, and then kept beside the others.
    let plain = bench.rack.counts(0).loads;
    for (index, loads) in [(27, plain + 1), (28, plain + 1)] {
        let output = submit(device, &scene, unit(index)).end().expect("a unit");
        let wanted = expected_of(&scene, &unit(index));
        assert!(wanted.iter().any(|sum| *sum != 0), "unit {index} is black");
        assert_eq!(output.sums.values, wanted);
        assert_eq!(
            submit(device, &frame(), unit(index)).end().expect("a unit").sums.values,
            expected(&unit(index))
        );
        assert_eq!(bench.rack.counts(0).loads, loads);
    }
}

#[test]
fn small_units_of_a_frame_are_launched_together() {
    let launches = |apart: bool| {
        let bench = Bench::with(|device| device.pause_micros_per_launch = 2_000);
        let opened = bench.open();
        let device = &*opened.devices[0];
        let before = bench.rack.counts(0).launches;
        let units: Vec<_> = (0..96).map(unit).collect();
        if apart {
            for params in &units {
                submit(device, &frame(), *params).end().expect("a unit");
            }
        } else {
            let frames = [frame(), another_frame(7)];
            let given = |(index, params)| submit(device, &frames[index % 2], params);
            let pending: Vec<_> = units.iter().copied().enumerate().map(given).collect();
            for (params, pending) in units.iter().zip(pending) {
                let output = pending.end().expect("a unit");
                assert_eq!(output.sums.values, expected(params), "{params:?}");
                assert!(output.rays >= 64 && !output.device_time.is_zero(), "{output:?}");
            }
        }
        bench.rack.counts(0).launches - before
    };
    let (apart, together) = (launches(true), launches(false));
    println!("96 units of two frames: {apart} launches one by one, {together} together");
    assert!(together * 4 <= apart, "{together} of {apart} launches");
}

#[test]
fn a_device_reports_its_identity_and_health() {
    let bench = Bench::with(|device| device.temperature = 57);
    let opened = bench.open();
    let device = &opened.devices[0];
    let info = device.info();
    assert_eq!(
        (info.slot.as_str(), info.kind, &info.state),
        ("cuda:0", DeviceKind::Cuda, &DeviceState::Ready)
    );
    assert!(info.memory_bytes > 0 && info.parallelism == 4, "{info:?}");
    let cuda = info.cuda.expect("a CUDA device");
    assert!(cuda.uuid.starts_with("GPU-") && cuda.compute_capability == (8, 6), "{cuda:?}");
    wait_for("the monitor", || device.telemetry().temperature == Some(57));
    let telemetry = device.telemetry();
    assert!(
        telemetry.memory_free.is_some() && telemetry.power_milliwatts.is_some(),
        "{telemetry:?}"
    );
    let cuda = device.info().cuda.expect("a CUDA device");
    assert_eq!(cuda.driver, "570.86.15");
}

#[test]
fn slices_are_devices_of_their_own() {
    let mut config = Config::of(2, Device::default());
    let slice =
        |profile: &str| Slice { profile: profile.into(), memory: 256 << 20, multiprocessors: 2 };
    config.devices[1].slices = vec![slice("1g.5gb"), slice("2g.10gb")];
    let bench = Bench::new(&config, "cuda");
    let opened = bench.open();
    let infos: Vec<_> = opened.devices.iter().map(|device| device.info()).collect();
    assert_eq!(infos.len(), 3, "{infos:?}");
    let mig = |index: usize| infos[index].cuda.as_ref().and_then(|cuda| cuda.mig.clone());
    assert_eq!(mig(0), None);
    assert!(mig(1).is_some() && mig(2).is_some(), "{infos:?}");
    for (index, device) in opened.devices.iter().enumerate() {
        let params = unit(index as u32 * 9);
        let output = submit(&**device, &frame(), params).end().expect("a unit");
        assert_eq!(output.sums.values, expected(&params), "{:?}", device.info());
    }
    assert!(
        bench.rack.counts(2).launches > 0 && bench.rack.counts(3).launches > 0,
        "each slice did its own"
    );
}

#[test]
fn scenes_that_are_not_used_make_room() {
    // Enough for the context, a workspace and a scene or two.
    let bench = Bench::with(|device| device.memory = device.context_bytes + (24 << 20));
    let opened = bench.open();
    let frames: Vec<_> = (100..140).map(another_frame).collect();
    for frame in &frames {
        let output = submit(&*opened.devices[0], frame, unit(3)).end().expect("a unit");
        assert_eq!(output.sums.values, expected(&unit(3)));
    }
    assert_eq!(bench.rack.counts(0).loads, 1, "the worker was restarted");
}

#[test]
fn a_cancelled_unit_ends_and_later_ones_continue() {
    let bench = Bench::with(|device| device.pause_micros_per_launch = 20_000);
    let opened = bench.open();
    let device = &*opened.devices[0];
    let pending: Vec<_> = (0..200).map(|index| submit(device, &frame(), unit(index))).collect();
    // The last are still in the node, and are never begun.
    assert!(pending[199].cancel.withdraw());
    pending[5].cancel.cancel();
    for (index, pending) in pending.into_iter().enumerate() {
        match (index, pending.end()) {
            (199, result) => assert_eq!(result, Err(DeviceError::Cancelled)),
            // It may have been done already.
            (5, Err(error)) => assert_eq!(error, DeviceError::Cancelled),
            (_, result) => {
                assert_eq!(result.expect("a unit").sums.values, expected(&unit(index as u32)))
            }
        }
    }
}
