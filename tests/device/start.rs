//! How a device that cannot be used is told, and what `auto` makes of it.

use crate::device::bench::{Bench, chain, wrong_sums};
use tessera_fake_cuda::{Config, Device, Fault, FaultKind};
use tessera_node::device::cuda::probe;
use tessera_protocol::device::{DeviceKind, DeviceState};

fn says(text: &str, parts: &[&str]) {
    assert!(parts.iter().all(|part| text.contains(part)), "{text}");
}

#[test]
fn no_driver_no_device_and_an_old_driver_are_told_apart() {
    let mut bench = Bench::new(&Config::default(), "cuda");
    says(&bench.refusal(), &["`cuda` cannot be used", "finds no device"]);

    let old = Config { driver: 11_040, ..Config::of(1, Device::default()) };
    bench.rack.configure(&old).unwrap();
    says(&bench.refusal(), &["CUDA 11.4", "12.0 is the least", "newer driver"]);

    bench.rack.configure(&Config { init_error: 3, ..Config::of(1, Device::default()) }).unwrap();
    says(&bench.refusal(), &["cuInit", "CUDA_ERROR"]);

    // The libraries are not where they were said to be; this machine may have some of its own.
    for (name, value) in &mut bench.config.worker_environment {
        if name == "LD_LIBRARY_PATH" {
            *value = "/nowhere".into();
        }
    }
    match probe(&bench.config).unwrap().devices {
        Ok(_) => eprintln!("NOT RUN: no driver at all (this machine has one)"),
        Err(refusal) => {
            says(&refusal.to_string(), &["no NVIDIA driver is installed", "libcuda.so.1"])
        }
    }
}

#[test]
fn an_old_device_and_refused_kernels_say_what_is_wrong() {
    says(&Bench::with(|device| device.capability = [7, 0]).refusal(), &["`cuda:0`", "7.0", "7.5"]);
    let refused =
        Bench::with(|device| device.faults.push(Fault::new(FaultKind::UnsupportedPtx).times(0)));
    says(&refused.refusal(), &["refuses the kernels", "UNSUPPORTED_PTX_VERSION", ".version"]);
}

#[test]
fn a_device_that_computes_wrongly_is_not_opened() {
    let wrong = Bench::with(|device| device.faults.push(wrong_sums()));
    says(&wrong.refusal(), &["`cuda:0`", "known answer"]);
}

#[test]
fn one_wrong_word_of_staged_or_layered_kernels_is_found() {
    // Each of them computes in the answer that is named and in none before it.
    for (kernel, answer) in [
        ("tessera_finish", "the staged kernels for the room"),
        ("tessera_render_layered", "the compact kernels for the room with glass"),
        ("tessera_shadow_panes", "the staged kernels for the room with glass"),
    ] {
        let fault = Fault::new(FaultKind::WrongResult).times(0).at_kernel(kernel);
        let wrong = Bench::with(|device| device.faults.push(fault));
        let refusal = wrong.refusal();
        let end = format!("it does not give the known answer of {answer}");
        assert!(refusal.ends_with(&end), "{kernel}: {refusal}");
    }
}

#[test]
fn a_missing_device_is_named_by_its_number() {
    let mut bench = Bench::with(|_| {});
    bench.config.devices = vec!["cuda:7".parse().unwrap()];
    says(&bench.refusal(), &["`cuda:7` cannot be used", "no CUDA device 7"]);
    bench.config.devices = vec!["cuda".parse().unwrap(), "cuda:0".parse().unwrap()];
    says(&bench.refusal(), &["named twice"]);
}

#[test]
fn auto_takes_cuda_if_a_device_works_and_the_cpu_otherwise() {
    let kinds = |bench: &Bench| {
        let opened = bench.open();
        opened.devices.iter().map(|device| device.info().kind).collect::<Vec<_>>()
    };
    assert_eq!(
        kinds(&Bench::new(&Config::of(2, Device::default()), "auto")),
        [DeviceKind::Cuda; 2]
    );
    assert_eq!(kinds(&Bench::new(&Config::default(), "auto")), [DeviceKind::Cpu]);
    let both = Bench::new(&Config::of(1, Device::default()), "cuda:0,cpu");
    assert_eq!(kinds(&both), [DeviceKind::Cuda, DeviceKind::Cpu]);
}

#[test]
fn one_bad_device_is_quarantined_and_the_others_work() {
    let mut config = Config::of(3, Device::default());
    config.devices[1].faults.push(wrong_sums());
    let bench = Bench::new(&config, "auto");
    let opened = bench.open();
    let states: Vec<_> = opened.devices.iter().map(|device| device.info().state).collect();
    assert_eq!((&states[0], &states[2]), (&DeviceState::Ready, &DeviceState::Ready));
    match &states[1] {
        DeviceState::Quarantined { reason, remedy } => {
            says(reason, &["known answer"]);
            says(remedy, &["restart the node"]);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_malformed_event_table_keeps_the_node_from_starting() {
    let mut bench = Bench::with(|_| {});
    let table = bench.rack.folder().join("xid.toml");
    std::fs::write(&table, "[[xid]]\ncode = 31\n").unwrap();
    bench.config.xid_table = Some(table);
    let refusal = tessera_node::device::open(&bench.config).err().map(|error| chain(&error));
    says(&refusal.unwrap_or_default(), &["table of Xid events"]);
}
