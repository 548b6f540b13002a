//! The budget: no spills in any kernel for any architecture, a module that a driver compiles in
//! seconds, a small image.

use crate::{VARIABLE, is_every_image};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use tessera_kernels::compute::BUILTINS;
use tessera_kernels::cuda::{Kernel, KernelSet};
use tessera_nvrtc::{Nvrtc, NvrtcError, STRICT_OPTIONS, Target};
use tessera_support::images::{IMAGES, Image};

/// Every architecture that images are checked for, Turing to Blackwell.
const ARCHITECTURES: [u32; 7] = [75, 80, 86, 89, 90, 100, 120];
/// Those that the image for instances is checked for, whose kernels are the other's but for the
/// walk: the first and the last, and two that the four between them hardly differ from.
const FEWER: [u32; 4] = [75, 86, 90, 120];
/// The images are part of the binary.
const PTX_BYTES_MAX: usize = 3 << 20;

/// One kernel's line of the assembler's report.
#[derive(Debug, PartialEq, Eq)]
struct Usage {
    kernel: String,
    registers: u32,
    stack: u32,
    spills: u32,
}

#[test]
fn the_images_add_little_to_the_binary() {
    for set in KernelSet::ALL {
        let bytes = set.ptx().len();
        assert!(bytes <= PTX_BYTES_MAX, "{set:?}: {bytes} bytes");
        eprintln!("{set:?}: {bytes} bytes");
    }
}

#[test]
fn no_kernel_spills_on_any_architecture() {
    let compiler = match Nvrtc::find() {
        Ok(found) => found,
        Err(error) => return eprintln!("NOT RUN: no_kernel_spills_on_any_architecture: {error}"),
    };
    let of_paths: Vec<&str> = Kernel::ALL.iter().map(|kernel| kernel.name()).collect();
    let builtins: Vec<&str> = BUILTINS.iter().map(|builtin| builtin.name).collect();
    let is_all = is_every_image();
    let [most, fewer] =
        if is_all { [&ARCHITECTURES[..], &FEWER] } else { [&ARCHITECTURES[..1], &[]] };
    let images = [
        (&IMAGES[0], of_paths.clone(), most),
        (&IMAGES[1], of_paths, fewer),
        (&IMAGES[2], builtins, most),
    ];
    if !is_all {
        eprintln!("only sm_{}: {VARIABLE}=all checks every architecture", ARCHITECTURES[0]);
    }
    // Every architecture by itself, as many at a time as there are processors.
    let work: Vec<_> = images
        .iter()
        .flat_map(|(image, kernels, architectures)| {
            architectures.iter().map(move |sm| (image, kernels, *sm))
        })
        .collect();
    let next = AtomicUsize::new(0);
    let spilling = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some((image, kernels, sm)) =
                    work.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    let found = spilling_on(image, kernels, &compiler, *sm);
                    spilling.lock().unwrap().extend(found);
                }
            });
        }
    });
    let spilling = spilling.into_inner().unwrap();
    assert!(spilling.is_empty(), "{}", spilling.join("\n"));
}

/// The kernels of an image that spill on an architecture. All of them must be there.
fn spilling_on(image: &Image, kernels: &[&str], compiler: &Nvrtc, sm: u32) -> Vec<String> {
    let mut report = None;
    let seconds = cpu_seconds(|| {
        report = assembled(image, compiler, sm)?;
        Ok(())
    });
    let Some(report) = report else {
        eprintln!("NOT RUN: no_kernel_spills_on_any_architecture: sm_{sm}: unknown to this NVRTC");
        return Vec::new();
    };
    for kernel in kernels {
        assert!(report.iter().any(|usage| usage.kernel == *kernel), "no {kernel}: {report:?}");
    }
    let lines = report.iter().map(|Usage { kernel, registers, stack, .. }| {
        format!("\n  {kernel:24} {registers:3} registers, {stack:4} bytes of stack")
    });
    let lines: String = lines.collect();
    eprintln!(
        "{}: sm_{sm}: {seconds:.1} s of processor time from source to machine code{lines}",
        image.file
    );
    let over = report.iter().filter(|usage| usage.spills > 0);
    over.map(|usage| format!("{}: sm_{sm}: {usage:?}", image.file)).collect()
}

/// What the assembler says of an image's kernels; None where the compiler does not know the
/// architecture.
fn assembled(image: &Image, compiler: &Nvrtc, sm: u32) -> Result<Option<Vec<Usage>>, NvrtcError> {
    let options = [STRICT_OPTIONS, &["--ptxas-options=-v"]].concat();
    match image.compile(compiler, Target::Cubin { sm }, &options) {
        Ok(made) => Ok(Some(usages(&made.log))),
        Err(NvrtcError::Compile { log })
            if log.contains("invalid value for --gpu-architecture") =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Processor time of this thread, on which NVRTC works; a busy machine does not change it much.
fn cpu_seconds(work: impl FnOnce() -> Result<(), NvrtcError>) -> f64 {
    let now = || {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
    };
    let start = now();
    work().unwrap();
    now() - start
}

/// Reads the assembler's report: for each kernel a line with its name, one with stack and spills,
/// one with registers.
fn usages(log: &str) -> Vec<Usage> {
    let mut found: Vec<Usage> = Vec::new();
    for line in log.lines() {
        if let Some(rest) = line.split("Compiling entry function '").nth(1) {
            let kernel = rest.split('\'').next().unwrap_or_default().to_owned();
            found.push(Usage { kernel, registers: 0, stack: 0, spills: 0 });
        }
        let Some(last) = found.last_mut() else { continue };
        let before = |what: &str| -> Option<u32> {
            line.split(what)
                .next()
                .filter(|head| head.len() < line.len())?
                .split_whitespace()
                .last()?
                .parse()
                .ok()
        };
        last.stack = before(" bytes stack frame").unwrap_or(last.stack);
        last.spills +=
            before(" bytes spill stores").unwrap_or(0) + before(" bytes spill loads").unwrap_or(0);
        last.registers = before(" registers").unwrap_or(last.registers);
    }
    found
}

#[test]
fn the_report_is_read_right() {
    let log = "ptxas info : Compiling entry function 'one' for 'sm_86'\n\
               ptxas info : Function properties for one\n    \
               48 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads\nptxas info : Used \
               40 registers, used 0 barriers";
    let want = Usage { kernel: "one".to_owned(), registers: 40, stack: 48, spills: 12 };
    assert_eq!(usages(log), [want]);
}
