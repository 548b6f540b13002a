//! Compute units on a device: what they need is measured, held and given back, and a missing
//! compiler is the node's trouble, not the job's.

use crate::device::bench::{
    Bench, Pending, expected, frame as frame_of_a_room, submit, unit, wait_for,
};
use std::sync::Arc;
use std::sync::mpsc::channel;
use tessera_fake_cuda::Device;
use tessera_node::compute::{PreparedCompute, Source};
use tessera_node::device::{CancelToken, DeviceError, DeviceUnit, UnitOutput, Whose, Work};
use tessera_protocol::compute::{Block, ComputeSpec, Domain, Element, Program};
use tessera_protocol::job::AssetFile;
use tessera_protocol::{BlobHash, FrameNumber};

/// A frame over 8 × 8 indices without inputs.
fn frame(source: Source) -> Arc<PreparedCompute> {
    over(Domain { width: 8, height: 8, depth: 1 }, source)
}

fn over(domain: Domain, source: Source) -> Arc<PreparedCompute> {
    let file = |path: &str| AssetFile { path: path.into(), hash: BlobHash([2; 32]), length: 1 };
    let program = match &source {
        Source::Cuda(..) => Program::Cuda(file("one.cu")),
        _ => Program::Ptx(file("one.ptx")),
    };
    let spec = ComputeSpec { element: Element::U32, ..ComputeSpec::new(program, domain) };
    Arc::new(PreparedCompute { id: 1, spec, frame: FrameNumber(1), source, arrays: vec![] })
}

fn run(
    device: &dyn tessera_node::device::Device,
    job: Arc<PreparedCompute>,
) -> Result<UnitOutput, DeviceError> {
    run_chunk(device, job, 64)
}

fn run_chunk(
    device: &dyn tessera_node::device::Device,
    job: Arc<PreparedCompute>,
    count: u32,
) -> Result<UnitOutput, DeviceError> {
    run_for(device, job, count, 1)
}

fn run_for(
    device: &dyn tessera_node::device::Device,
    job: Arc<PreparedCompute>,
    count: u32,
    owner: u64,
) -> Result<UnitOutput, DeviceError> {
    let (sender, end) = channel();
    let finish = Box::new(move |result| sender.send(result).expect("the test waits"));
    let (whose, text) = (Whose::Owner(owner), Arc::new(|_| {}));
    let work = Work::Compute { job, whose, first: 0, count, text };
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
fn a_device_for_one_process_renders_and_runs_no_kernels() {
    let bench = Bench::with(|device| device.exclusive = true);
    let opened = bench.open();
    let device = &*opened.devices[0];
    let job = frame(Source::Ptx(include_str!("../../examples/compute/mandelbrot.ptx").into()));
    for _ in 0..2 {
        match run(device, job.clone()) {
            // No fault of the job or of the device: other nodes get the unit.
            Err(DeviceError::Unable(told)) => {
                assert!(told.contains("exclusive-process mode"), "{told}");
                assert!(told.contains("nvidia-smi -i 0 -c DEFAULT"), "{told}");
            }
            other => panic!("{other:?}"),
        }
    }
    let output =
        submit(device, &frame_of_a_room(), unit(3)).end().expect("it renders all the same");
    assert_eq!(output.sums.values, expected(&unit(3)));
}

// promise: P8
#[test]
fn no_owner_sees_what_another_owners_kernel_left() {
    let bench = Bench::with(|_| {});
    let opened = bench.open();
    let device = &*opened.devices[0];
    let job = frame(Source::Ptx(include_str!("../../examples/compute/mandelbrot.ptx").into()));
    let loads_for = |owner: u64| {
        let before = bench.rack.counts(0).loads;
        run_for(device, job.clone(), 64, owner).expect("a chunk");
        bench.rack.counts(0).loads - before
    };
    // A process loads the program once. Another owner's chunk gets another process, whose memory
    // the driver has cleared.
    assert_eq!((loads_for(1), loads_for(1)), (1, 0));
    assert_eq!((loads_for(2), loads_for(2), loads_for(1)), (1, 0, 1));
}

#[test]
fn a_missing_compiler_is_reported_and_costs_no_worker() {
    let mut bench = Bench::with(|_| {});
    bench
        .config
        .worker_environment
        .push(("TESSERA_NVRTC".into(), "/nowhere/libnvrtc.so.13".into()));
    let opened = bench.open();
    assert_eq!(opened.compiler, None);
    match run(&*opened.devices[0], frame(Source::Cuda("".into(), [].into()))) {
        Err(DeviceError::NoCompiler(told)) => {
            assert!(
                told.contains("cannot compile kernel `one.cu` here") && told.contains("/nowhere"),
                "{told}"
            );
        }
        other => panic!("{other:?}"),
    }
}

/// A kernel that writes nothing.
const IDLE: &str = "\
.version 7.0
.target sm_75
.address_size 64
.visible .entry compute(.param .align 8 .b8 chunk[56])
{ ret; }
";

#[test]
fn what_a_device_cannot_launch_is_refused_before_it_is() {
    let bench = Bench::with(|device| device.registers = 128);
    let opened = bench.open();
    let device = &*opened.devices[0];
    let refusal = |ptx: &str, block| {
        let job = frame(Source::Ptx(ptx.into()));
        let spec = ComputeSpec { block, ..job.spec.clone() };
        let job = PreparedCompute {
            id: 2,
            spec,
            frame: job.frame,
            source: job.source.clone(),
            arrays: vec![],
        };
        match run(device, Arc::new(job)) {
            Err(DeviceError::Program(told)) => told,
            other => panic!("{other:?}"),
        }
    };
    let told = refusal(IDLE, Some(Block { x: 32, y: 32, z: 1 }));
    assert!(
        told.contains("1024 threads is too large") && told.contains("takes 512 at most"),
        "{told}"
    );
    // The compiler says it where the text does not tell whose memory it is.
    let two = IDLE.replace(".visible", ".shared .align 4 .b8 s[65536];\n.visible")
        + ".visible .entry second()\n{ ret; }\n";
    let told = refusal(&two, None);
    assert!(told.contains("uses too much shared data (0x10000 bytes, 0xc000 max)"), "{told}");
}

#[test]
fn rendering_and_computing_make_room_for_each_other() {
    // What the renderer holds once it has done a unit, and what a context takes beside it.
    let roomy = Bench::with(|_| {});
    let opened = roomy.open();
    submit(&*opened.devices[0], &frame_of_a_room(), unit(3)).end().expect("a unit");
    let (held, context) = (roomy.rack.counts(0).used_bytes, Device::default().context_bytes);
    drop(opened);

    let count = 1 << 18;
    let bytes = u64::from(count) * 4;
    // A little less than all of that together: two small scenes and a small workspace have to go.
    // By more than a lane's workspace: the second lane has one too where a unit is told before the
    // first is back.
    let bench = Bench::with(|device| device.memory = held + context + bytes - (36 << 10));
    let opened = bench.open();
    let device = &*opened.devices[0];
    let film = |unit: Pending| unit.end().expect("a unit").sums.values;
    assert_eq!(film(submit(device, &frame_of_a_room(), unit(3))), expected(&unit(3)));
    let job = over(Domain { width: count, height: 1, depth: 1 }, Source::Ptx(IDLE.into()));
    let output = run_chunk(device, job, count).expect("a chunk");
    assert_eq!(
        (output.device_bytes, output.chunk.map(|chunk| chunk.bytes.len())),
        (bytes, Some(bytes as usize))
    );
    // One by the worker that renders, one by each of the two tries: nothing else was started.
    assert_eq!(bench.rack.counts(0).loads, 3);
    // The worker of compute jobs has that memory now, and lets it go for the unit.
    assert_eq!(film(submit(device, &frame_of_a_room(), unit(5))), expected(&unit(5)));
}

#[test]
fn no_library_of_nvidias_is_opened_in_this_process() {
    // Other tests of this program compile in it, so this one has a process of its own.
    const ALONE: &str = "ALONE_IN_ITS_PROCESS";
    if std::env::var_os(ALONE).is_none() {
        let mut again = std::process::Command::new(std::env::current_exe().expect("a program"));
        again.args(["--exact", "device::compute::no_library_of_nvidias_is_opened_in_this_process"]);
        let output = again.env(ALONE, "1").output().expect("a process");
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && told.contains("1 passed"), "{told}");
        return;
    }
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
