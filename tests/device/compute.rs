//! Compute units on a device: what they need is measured, held and given back, and a missing compiler is the node's trouble, not the job's.

use crate::bench::{Bench, wait_for};
use std::sync::Arc;
use std::sync::mpsc::channel;
use tessera_node::compute::{PreparedCompute, Source};
use tessera_node::device::{CancelToken, Device, DeviceError, DeviceUnit, UnitOutput, Work};
use tessera_protocol::compute::{ComputeFormat, ComputeSpec, Domain, Element, Program};
use tessera_protocol::job::AssetFile;
use tessera_protocol::{BlobHash, FrameNumber, FrameSet};

/// A frame over 8 × 8 indices without inputs.
fn frame(source: Source) -> Arc<PreparedCompute> {
    let file = |path: &str| AssetFile { path: path.into(), hash: BlobHash([2; 32]), length: 1 };
    let program = match &source {
        Source::Cuda(_) => Program::Cuda(file("one.cu")),
        _ => Program::Ptx(file("one.ptx")),
    };
    let spec = ComputeSpec {
        program,
        inputs: vec![],
        arguments: vec![],
        domain: Domain { width: 8, height: 8, depth: 1 },
        channels: 1,
        element: Element::U32,
        reduction: None,
        formats: vec![ComputeFormat::Npy],
        chunk: 0,
        frames: FrameSet::one(FrameNumber(1)),
        feed: None,
        seed: 0,
        time_limit_secs: 60,
    };
    Arc::new(PreparedCompute { id: 1, spec, frame: FrameNumber(1), source, arrays: vec![] })
}

fn run(device: &dyn Device, job: Arc<PreparedCompute>) -> Result<UnitOutput, DeviceError> {
    let (sender, end) = channel();
    let finish = Box::new(move |result| sender.send(result).expect("the test waits"));
    let work = Work::Compute { job, first: 0, count: 64 };
    device.submit(DeviceUnit { work, cancel: CancelToken::default(), finish });
    end.recv().expect("an end")
}

#[test]
fn a_chunk_says_what_it_needed_and_an_idle_worker_gives_it_back() {
    let bench = Bench::with(|_| {});
    let opened = bench.open();
    let device = &*opened.devices[0];
    let before = bench.rack.counts(0).used_bytes;
    let held = device.telemetry().memory_held.expect("the worker that renders has said it");
    let ptx = include_str!("../../examples/compute/mandelbrot.ptx");
    let output = run(device, frame(Source::Ptx(ptx.into()))).expect("a chunk");
    assert_eq!(output.device_bytes, 64 * 4);
    assert_eq!(output.chunk.expect("values").bytes.len(), 64 * 4);
    assert_eq!(device.telemetry().memory_held, Some(held + 64 * 4));
    assert!(bench.rack.counts(0).used_bytes > before);
    wait_for("the worker of compute jobs to end", || bench.rack.counts(0).used_bytes == before);
    wait_for("its memory to count as free", || device.telemetry().memory_held == Some(held));
}

#[test]
fn a_compiler_that_is_not_there_is_told_by_a_worker_and_fails_the_unit_alone() {
    let mut bench = Bench::with(|_| {});
    bench.config.worker_environment.push(("TESSERA_NVRTC".into(), "/nowhere/libnvrtc.so.13".into()));
    let opened = bench.open();
    assert_eq!(opened.compiler, None);
    match run(&*opened.devices[0], frame(Source::Cuda("".into()))) {
        Err(DeviceError::Worker(told)) => {
            assert!(
                told.contains("cannot compile kernel `one.cu` here") && told.contains("/nowhere"),
                "{told}"
            );
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn no_library_of_nvidias_is_opened_in_this_process() {
    let bench = Bench::with(|_| {});
    let opened = bench.open();
    if opened.compiler.is_none() {
        eprintln!("NOT RUN: the version of NVRTC (none is found)");
    }
    let mapped = std::fs::read_to_string("/proc/self/maps").expect("this process's memory");
    for library in ["libcuda", "libnvidia", "libnvrtc"] {
        assert!(!mapped.contains(library), "{library} is mapped");
    }
}
