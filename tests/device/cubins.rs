//! Machine code of the kernels that is installed: used where it computes what it should, and else
//! as if it were not there.

use crate::device::bench::{
    Bench, expected, expected_of, frame, instanced_frame, submit, unit, wait_for, wrong_sums,
};
use std::path::Path;
use tessera_kernels::cuda::KernelSet;
use tessera_node::device::Devices;
use tessera_protocol::device::DeviceState;

/// A plain device of capability 8.6, and a folder for machine code.
fn bench() -> (Bench, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut bench = Bench::with(|_| {});
    bench.config.cubins = Some(folder.path().to_owned());
    (bench, folder)
}

/// Installs what the fake driver takes for machine code: of some PTX, for a target.
fn install(folder: &Path, set: KernelSet, capability: (u32, u32), (target, ptx): (&str, &str)) {
    let bytes = format!("\x7fELFtessera-fake {target}\n{ptx}");
    std::fs::write(folder.join(set.cubin_name(capability)), bytes).expect("a file");
}

/// The capability of the machine code that the first device has its kernels from.
fn cubin(opened: &Devices) -> Option<(u8, u8)> {
    opened.devices[0].info().cuda.expect("a CUDA device").cubin
}

fn renders(opened: &Devices) {
    assert_eq!(opened.devices[0].info().state, DeviceState::Ready);
    let output = submit(&*opened.devices[0], &frame(), unit(3)).end().expect("a unit");
    assert_eq!(output.sums.values, expected(&unit(3)));
}

#[test]
fn machine_code_that_computes_right_is_used_and_told() {
    let (bench, folder) = bench();
    for set in KernelSet::ALL {
        install(folder.path(), set, (8, 0), ("sm_80", set.ptx()));
    }
    let opened = bench.open();
    assert_eq!(cubin(&opened), Some((8, 0)));
    renders(&opened);
    let instanced = instanced_frame(7);
    let output = submit(&*opened.devices[0], &instanced, unit(3)).end().expect("a unit");
    assert_eq!(output.sums.values, expected_of(&instanced, &unit(3)));
    assert_eq!(bench.rack.counts(0).loads, 2, "each set is loaded once");
}

#[test]
fn machine_code_that_the_driver_refuses_is_passed_over() {
    let (bench, folder) = bench();
    let ptx = KernelSet::Plain.ptx();
    // For another GPU than its name says, damaged, and of another build.
    install(folder.path(), KernelSet::Plain, (8, 6), ("sm_90", ptx));
    let opened = bench.open();
    assert_eq!(cubin(&opened), None);
    renders(&opened);
    drop(opened);
    let name = KernelSet::Plain.cubin_name((8, 6));
    std::fs::write(folder.path().join(&name), "no code").expect("a file");
    renders(&bench.open());
    std::fs::rename(folder.path().join(name), folder.path().join("plain-0.sm_86.cubin"))
        .expect("it has another name");
    renders(&bench.open());
}

#[test]
fn machine_code_that_computes_wrongly_is_given_up() {
    let (bench, folder) = bench();
    let wrong = KernelSet::Plain.ptx().replace("sqrt.rn.f32", "abs.f32");
    install(folder.path(), KernelSet::Plain, (8, 6), ("sm_86", &wrong));
    let opened = bench.open();
    assert_eq!(cubin(&opened), None);
    renders(&opened);
    assert_eq!(bench.rack.counts(0).loads, 2, "the driver compiles for the second worker");
}

/// Renders a frame with instances, whose machine code is at fault: the unit that asks for them ends
/// with the worker, and the next worker does it.
fn faulty_for_instances(ptx: &str, id: u64) {
    let (bench, folder) = bench();
    install(folder.path(), KernelSet::Plain, (8, 6), ("sm_86", KernelSet::Plain.ptx()));
    install(folder.path(), KernelSet::Instances, (8, 6), ("sm_86", ptx));
    let opened = bench.open();
    assert_eq!(cubin(&opened), Some((8, 6)));
    let (device, instanced) = (&*opened.devices[0], instanced_frame(id));
    let first = submit(device, &instanced, unit(3)).end();
    assert!(first.is_err(), "the unit that asked for the kernels is given back");
    wait_for("another worker", || device.info().state == DeviceState::Ready);
    let output = submit(device, &instanced, unit(3)).end().expect("a unit");
    assert_eq!(output.sums.values, expected_of(&instanced, &unit(3)));
    assert_eq!((cubin(&opened), bench.rack.counts(0).loads), (None, 4), "two sets, twice");
}

#[test]
fn wrong_machine_code_for_instances_costs_no_device() {
    faulty_for_instances(&KernelSet::Instances.ptx().replace("sqrt.rn.f32", "abs.f32"), 8);
}

#[test]
fn machine_code_for_instances_that_ends_the_worker_is_given_up() {
    faulty_for_instances(&KernelSet::Instances.ptx().replace("ret;", "trap;"), 9);
}

#[test]
fn machine_code_is_no_excuse_for_a_device_that_computes_wrongly() {
    let (mut bench, folder) = (Bench::with(|device| device.faults.push(wrong_sums())), bench().1);
    install(folder.path(), KernelSet::Plain, (8, 6), ("sm_86", KernelSet::Plain.ptx()));
    bench.config.cubins = Some(folder.path().to_owned());
    let refusal = bench.refusal();
    assert!(refusal.contains("known answer"), "{refusal}");
}
