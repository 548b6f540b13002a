//! Every fault gives the error that CUDA documents for it, and leaves the process as CUDA would.

use crate::fixture::{on, on_and_see, text};
use cudarc::driver::sys::{self, CUjit_option, CUresult};
use cudarc::driver::{CudaContext, DriverError};
use std::ffi::{CString, c_void};
use tessera_fake_cuda::{Config, Device, Fault, FaultKind};
use tessera_kernels::cuda::Queue;
use tessera_support::gpu::Gpu;

/// Writes 5 to the address that it is given.
const FIVE: &str = ".version 7.0\n.target sm_75\n.address_size 64\n\
    .visible .entry five(.param .u64 out)\n{\n.reg .b32 %r<2>;\n.reg .b64 %rd<3>;\n\
    ld.param.u64 %rd1, [out];\ncvta.to.global.u64 %rd2, %rd1;\nmov.u32 %r1, 5;\nst.global.u32 \
    [%rd2], %r1;\nret;\n}\n";

fn with(fault: Fault) -> Config {
    Config::of(1, Device { faults: vec![fault], ..Device::default() })
}

/// Launches `five` and reads its word; on an own allocation.
fn five(gpu: &mut Gpu) -> Result<u32, DriverError> {
    let address = gpu.allocate(4)?;
    gpu.start("five", 1, 1, &address.to_le_bytes())?;
    let mut bytes = [0; 4];
    gpu.download(address, &mut bytes)?;
    gpu.release(address);
    Ok(u32::from_le_bytes(bytes))
}

fn error(code: CUresult) -> Result<u32, DriverError> {
    Err(DriverError(code))
}

#[test]
fn a_missing_device_is_reported() {
    on("faults::a_missing_device_is_reported", &Config::default(), || {
        assert_eq!(CudaContext::device_count(), Err(DriverError(CUresult::CUDA_ERROR_NO_DEVICE)));
        let told = DriverError(CUresult::CUDA_ERROR_NO_DEVICE).to_string();
        assert!(told.contains("no CUDA-capable device is detected"), "{told}");
    });
}

#[test]
fn out_of_memory_is_only_an_error_code() {
    let config = with(Fault::new(FaultKind::OutOfMemory).after(1));
    on("faults::out_of_memory_is_only_an_error_code", &config, || {
        let mut gpu = Gpu::open(0, FIVE).expect("a device");
        assert_eq!(five(&mut gpu), Ok(5));
        assert_eq!(five(&mut gpu), error(CUresult::CUDA_ERROR_OUT_OF_MEMORY));
        assert_eq!(five(&mut gpu), Ok(5), "one refusal is not the end");
    });
}

#[test]
fn device_memory_is_limited() {
    let config =
        Config::of(1, Device { memory: 8 << 20, context_bytes: 1 << 20, ..Device::default() });
    let rack = on("faults::device_memory_is_limited", &config, || {
        let mut gpu = Gpu::open(0, FIVE).expect("a device");
        assert_eq!(gpu.context.mem_get_info(), Ok((7 << 20, 8 << 20)));
        let large = gpu.allocate(6 << 20).expect("it fits");
        assert_eq!(gpu.allocate(2 << 20), Err(DriverError(CUresult::CUDA_ERROR_OUT_OF_MEMORY)));
        gpu.release(large);
        assert_eq!(gpu.context.mem_get_info(), Ok((7 << 20, 8 << 20)));
        assert_eq!(five(&mut gpu), Ok(5));
    });
    assert!(
        rack.is_none_or(
            |rack| rack.counts(0).peak_bytes == 7 << 20 && rack.counts(0).used_bytes == 0
        )
    );
}

#[test]
fn an_illegal_address_ends_the_process() {
    let config = with(Fault::new(FaultKind::IllegalAddress).after(1));
    on("faults::an_illegal_address_ends_the_process", &config, sticky_illegal_address);
}

#[test]
fn a_kernel_that_writes_astray_is_an_illegal_address() {
    let config = Config::of(1, Device::default());
    let test = "faults::a_kernel_that_writes_astray_is_an_illegal_address";
    let seen = on_and_see(test, &config, &[], || {
        let mut gpu = Gpu::open(0, FIVE).expect("a device");
        gpu.start("five", 1, 1, &0x10_u64.to_le_bytes()).expect("a launch");
        assert_eq!(
            gpu.stream.synchronize(),
            Err(DriverError(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS))
        );
        assert_eq!(five(&mut gpu), error(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS));
    });
    if let Some((_, output)) = seen {
        assert!(
            output.status.success() && text(&output).contains("kernel `five`"),
            "{}",
            text(&output)
        );
    }
}

fn sticky_illegal_address() {
    let mut gpu = Gpu::open(0, FIVE).expect("a device");
    assert_eq!(five(&mut gpu), Ok(5));
    let dead = CUresult::CUDA_ERROR_ILLEGAL_ADDRESS;
    assert_eq!(five(&mut gpu), error(dead));
    assert_eq!(five(&mut gpu), error(dead));
    assert_eq!(gpu.context.mem_get_info(), Err(DriverError(dead)));
    assert_eq!(gpu.context.new_stream().err(), Some(DriverError(dead)));
    // A new context of the same process is the same dead one.
    assert_eq!(CudaContext::new(0).err(), Some(DriverError(dead)));
    assert_eq!(CudaContext::device_count(), Ok(1));
}

#[test]
fn a_new_process_works_after_an_illegal_address() {
    let config = with(Fault::new(FaultKind::IllegalAddress).after(1));
    let test = "faults::a_new_process_works_after_an_illegal_address";
    let Some(rack) = on(test, &config, || {
        // The first process meets the fault; the one that is started after it does not.
        let mut gpu = Gpu::open(0, FIVE).expect("a device");
        let both = [five(&mut gpu), five(&mut gpu)];
        assert_eq!(both[0], Ok(5));
        assert_eq!(both[1].is_ok(), std::env::var_os("SECOND").is_some());
    }) else {
        return;
    };
    assert_eq!((rack.counts(0).used_bytes, rack.struck(0, 0)), (0, 1));
    let mut second =
        std::process::Command::new(std::env::current_exe().expect("the test's own path"));
    rack.lend_to(second.args([test, "--exact", "--nocapture"]).env("SECOND", "1"));
    let output = second.output().expect("the test's own executable runs");
    assert!(output.status.success(), "{}", text(&output));
}

#[test]
fn an_endless_kernel_ends_with_its_process() {
    let config = with(Fault::new(FaultKind::Endless));
    let rack = on("faults::an_endless_kernel_ends_with_its_process", &config, || {
        let mut gpu = Gpu::open(0, FIVE).expect("a device");
        let address = gpu.allocate(4).expect("memory");
        gpu.start("five", 1, 1, &address.to_le_bytes()).expect("a launch");
        let done = gpu.stream.record_event(None).expect("an event");
        std::thread::sleep(std::time::Duration::from_millis(200));
        assert_eq!(done.try_is_complete(), Ok(false));
        std::process::exit(0);
    });
    assert!(rack.is_none_or(|rack| rack.counts(0).used_bytes == 0 && rack.counts(0).launches == 1));
}

#[test]
fn a_launch_of_too_many_instructions_never_ends() {
    let config = Config::of(1, Device { steps_max: 10, ..Device::default() });
    on("faults::a_launch_of_too_many_instructions_never_ends", &config, || {
        let mut gpu = Gpu::open(0, FIVE).expect("a device");
        assert_eq!(five(&mut gpu), Ok(5));
        let address = gpu.allocate(4).expect("memory");
        gpu.start("five", 4, 1, &address.to_le_bytes()).expect("a launch");
        let done = gpu.stream.record_event(None).expect("an event");
        std::thread::sleep(std::time::Duration::from_millis(200));
        assert_eq!(done.try_is_complete(), Ok(false));
        std::process::exit(0);
    });
}

#[test]
fn a_planted_wrong_result_flips_one_bit_without_an_error() {
    let config = with(Fault::new(FaultKind::WrongResult).after(1));
    on("faults::a_planted_wrong_result_flips_one_bit_without_an_error", &config, || {
        let mut gpu = Gpu::open(0, FIVE).expect("a device");
        assert_eq!(five(&mut gpu), Ok(5));
        let wrong = five(&mut gpu).expect("no error");
        assert_eq!((wrong ^ 5).count_ones(), 1, "{wrong:#x}");
        assert_eq!(five(&mut gpu), Ok(5));
    });
}

#[test]
fn an_uncorrectable_error_ends_the_process() {
    let config = with(Fault::new(FaultKind::Ecc));
    on("faults::an_uncorrectable_error_ends_the_process", &config, || {
        let mut gpu = Gpu::open(0, FIVE).expect("a device");
        assert_eq!(five(&mut gpu), error(CUresult::CUDA_ERROR_ECC_UNCORRECTABLE));
        assert_eq!(five(&mut gpu), error(CUresult::CUDA_ERROR_ECC_UNCORRECTABLE));
    });
}

#[test]
fn a_crash_ends_the_process() {
    let config = with(Fault::new(FaultKind::Crash));
    let seen = on_and_see("faults::a_crash_ends_the_process", &config, &[], || {
        let mut gpu = Gpu::open(0, FIVE).expect("a device");
        let _ = five(&mut gpu);
        unreachable!("the driver brought the process down");
    });
    if let Some((rack, output)) = seen {
        assert!(!output.status.success() && output.status.code().is_none(), "{}", output.status);
        assert_eq!(rack.counts(0).used_bytes, 0, "a dead process holds memory");
    }
}

/// Loads PTX with a log; the code and the log.
fn load(ptx: &str) -> (CUresult, String) {
    let context = CudaContext::new(0).expect("a device");
    context.bind_to_thread().expect("a context");
    let text = CString::new(ptx).expect("PTX has no zeros");
    let mut log = vec![0_u8; 512];
    let mut options =
        [CUjit_option::CU_JIT_ERROR_LOG_BUFFER, CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
    let mut values =
        [log.as_mut_ptr().cast::<c_void>(), std::ptr::without_provenance_mut(log.len())];
    let mut module = std::ptr::null_mut();
    // SAFETY: the text ends with a zero, and the options are two pairs whose buffer is as long as
    // it says.
    let code = unsafe {
        sys::cuModuleLoadDataEx(
            &mut module,
            text.as_ptr().cast(),
            2,
            options.as_mut_ptr(),
            values.as_mut_ptr(),
        )
    };
    let written = values[1].addr();
    (code, String::from_utf8_lossy(&log[..written.saturating_sub(1).min(log.len())]).into_owned())
}

#[test]
fn ptx_of_another_time_is_refused_with_a_log() {
    let config = Config {
        driver: 11_040,
        ..Config::of(1, Device { capability: [7, 5], ..Device::default() })
    };
    on("faults::ptx_of_another_time_is_refused_with_a_log", &config, || {
        assert_eq!(load(FIVE), (CUresult::CUDA_SUCCESS, String::new()));
        let (code, log) = load(&FIVE.replace("7.0", "8.7"));
        assert_eq!(code, CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
        assert!(log.contains("Unsupported .version 8.7; current version is '7.4'"), "{log}");
        let (code, log) = load(&FIVE.replace("sm_75", "sm_86"));
        assert_eq!(code, CUresult::CUDA_ERROR_INVALID_PTX);
        assert!(log.contains("SM version specified by .target"), "{log}");
        let (code, log) = load(&FIVE.replace("ret;", "what;?"));
        assert_eq!(code, CUresult::CUDA_ERROR_INVALID_PTX, "{log}");
        assert_eq!(load("\x7fELF rest").0, CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU);
        assert_eq!(load("nonsense").0, CUresult::CUDA_ERROR_INVALID_IMAGE);
    });
}

#[test]
fn unsupported_ptx_can_be_planned() {
    let config = with(Fault::new(FaultKind::UnsupportedPtx));
    on("faults::unsupported_ptx_can_be_planned", &config, || {
        let (code, log) = load(FIVE);
        assert_eq!(code, CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
        assert!(log.contains("Unsupported .version"), "{log}");
        assert_eq!(load(FIVE).0, CUresult::CUDA_SUCCESS);
    });
}

#[test]
fn wrong_launches_and_handles_are_refused_at_the_call() {
    on(
        "faults::wrong_launches_and_handles_are_refused_at_the_call",
        &Config::of(1, Device::default()),
        || {
            let mut gpu = Gpu::open(0, FIVE).expect("a device");
            let invalid = Err(DriverError(CUresult::CUDA_ERROR_INVALID_VALUE));
            assert_eq!(gpu.start("five", 1, 2048, &[0; 8]), invalid);
            assert_eq!(gpu.start("five", 0, 32, &[0; 8]), invalid);
            assert_eq!(
                gpu.start("six", 1, 32, &[0; 8]),
                Err(DriverError(CUresult::CUDA_ERROR_NOT_FOUND))
            );
            assert_eq!(gpu.zero(0x1234, 4), invalid);
            // SAFETY: a handle that is none, which is the point.
            let code =
                unsafe { sys::cuStreamSynchronize(std::ptr::without_provenance_mut(0x1230)) };
            assert_eq!(code, CUresult::CUDA_ERROR_INVALID_HANDLE);
            assert_eq!(five(&mut gpu), Ok(5), "a refusal harms nothing");
        },
    );
}
