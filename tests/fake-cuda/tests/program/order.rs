//! Order: what the driver promises about streams and events holds, and what it does not promise
//! does not.

use crate::fixture::on;
use cudarc::driver::sys::{self, CUevent_flags};
use cudarc::driver::{CudaContext, result};
use std::time::Instant;
use tessera_fake_cuda::{Config, Device};
use tessera_support::gpu::Gpu;

/// Adds 1 to a word, `turns` times, one after the other.
const COUNT: &str = ".version 7.0\n.target sm_75\n.address_size 64\n\
    .visible .entry count(.param .align 8 .b8 p[16])\n{\n\
    .reg .pred %p<2>;\n.reg .b32 %r<4>;\n.reg .b64 %rd<3>;\n\
    ld.param.u64 %rd1, [p];\nld.param.u32 %r1, [p+8];\n\
    cvta.to.global.u64 %rd2, %rd1;\nmov.u32 %r2, 0;\n\
    $again:\nld.global.u32 %r3, [%rd2];\nadd.s32 %r3, %r3, 1;\nst.global.u32 [%rd2], %r3;\n\
    add.s32 %r2, %r2, 1;\nsetp.lt.u32 %p1, %r2, %r1;\n@%p1 bra $again;\nret;\n}\n";

fn params(address: u64, turns: u32) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&address.to_le_bytes());
    bytes[8..12].copy_from_slice(&turns.to_le_bytes());
    bytes
}

fn pinned(gpu: &Gpu, bytes: usize) -> *mut u8 {
    gpu.context.bind_to_thread().expect("a context");
    // SAFETY: the memory lives as long as the process, and is not read before it is written.
    unsafe { result::malloc_host(bytes, sys::CU_MEMHOSTALLOC_PORTABLE) }
        .expect("pinned memory")
        .cast()
}

fn slow_copies() -> Config {
    Config::of(1, Device { pause_micros_per_copy: 20_000, ..Device::default() })
}

#[test]
fn copies_of_pinned_memory_happen_when_the_stream_gets_there() {
    let test = "order::copies_of_pinned_memory_happen_when_the_stream_gets_there";
    on(test, &slow_copies(), || {
        let gpu = Gpu::open(0, COUNT).expect("a device");
        let mut word = gpu.stream.alloc_zeros::<u8>(1).expect("memory");
        gpu.stream.synchronize().expect("an idle stream");
        let host = pinned(&gpu, 2);
        // SAFETY: two bytes of pinned memory, which live on; the copy is in flight, as in a program
        // that is wrong.
        unsafe {
            host.write(1);
            let address = cudarc::driver::DevicePtrMut::device_ptr_mut(&mut word, &gpu.stream).0;
            let from = std::slice::from_raw_parts(host, 1);
            result::memcpy_htod_async(address, from, gpu.stream.cu_stream()).expect("an upload");
            // Too early: the upload has not read it yet.
            host.write_volatile(2);
            let to = std::slice::from_raw_parts_mut(host.add(1), 1);
            result::memcpy_dtoh_async(to, address, gpu.stream.cu_stream()).expect("a download");
            assert_eq!(
                host.add(1).read_volatile(),
                0xCD,
                "a download was there before its stream was waited for"
            );
            gpu.stream.synchronize().expect("the copies");
            assert_eq!(host.add(1).read_volatile(), 2);
        }
    });
}

#[test]
fn copies_of_other_memory_are_staged() {
    on("order::copies_of_other_memory_are_staged", &slow_copies(), || {
        let gpu = Gpu::open(0, COUNT).expect("a device");
        let mut bytes = vec![7_u8; 32];
        let on_device = gpu.stream.clone_htod(&bytes).expect("an upload");
        bytes.fill(9);
        assert_eq!(gpu.stream.clone_dtoh(&on_device).expect("a download"), [7; 32]);
    });
}

#[test]
fn new_memory_is_poisoned() {
    on("order::new_memory_is_poisoned", &Config::of(1, Device::default()), || {
        let gpu = Gpu::open(0, COUNT).expect("a device");
        // SAFETY: bytes have no invalid values.
        let fresh = unsafe { gpu.stream.alloc::<u8>(64) }.expect("memory");
        assert_eq!(gpu.stream.clone_dtoh(&fresh).expect("a download"), [0xCD; 64]);
    });
}

#[test]
fn events_order_streams_and_time_them() {
    let config = Config::of(1, Device { pause_micros_per_launch: 3_000, ..Device::default() });
    on("order::events_order_streams_and_time_them", &config, || {
        let gpu = Gpu::open(0, COUNT).expect("a device");
        let other = gpu.context.new_stream().expect("a second stream");
        let flags = Some(CUevent_flags::CU_EVENT_DEFAULT);
        let start = gpu.stream.record_event(flags).expect("an event");
        let mut word = gpu.stream.alloc_zeros::<u32>(1).expect("memory");
        let address = cudarc::driver::DevicePtrMut::device_ptr_mut(&mut word, &gpu.stream).0;
        for turn in 1..=6 {
            let (mine, yours) =
                if turn % 2 == 1 { (&gpu.stream, &other) } else { (&other, &gpu.stream) };
            gpu.start_on(mine, "count", 1, 1, &params(address, turn)).expect("a launch");
            yours.join(mine).expect("an order");
        }
        let end = gpu.stream.record_event(flags).expect("an event");
        assert!(
            !end.try_is_complete().expect("a device that works"),
            "18 ms of launches cannot be over"
        );
        end.synchronize().expect("the launches");
        assert!(end.try_is_complete().expect("a device that works"));
        let millis = start.elapsed_ms(&end).expect("two timed events");
        assert!((18.0..60_000.0).contains(&millis), "{millis} ms");
        assert_eq!(gpu.stream.clone_dtoh(&word).expect("a download"), [21]);
    });
}

#[test]
fn streams_without_events_are_unordered() {
    on("order::streams_without_events_are_unordered", &Config::of(1, Device::default()), || {
        let gpu = Gpu::open(0, COUNT).expect("a device");
        let other = gpu.context.new_stream().expect("a second stream");
        let host = pinned(&gpu, 2);
        let mut seen = [false; 2];
        for _ in 0..200 {
            // SAFETY: pinned bytes that live on; both streams are waited for before the bytes
            // are used again.
            unsafe {
                let address = result::malloc_sync(1).expect("memory");
                host.write(1);
                host.add(1).write(0);
                let (from, to) = (
                    std::slice::from_raw_parts(host, 1),
                    std::slice::from_raw_parts_mut(host.add(1), 1),
                );
                result::memcpy_htod_async(address, from, gpu.stream.cu_stream())
                    .expect("an upload");
                result::memcpy_dtoh_async(to, address, other.cu_stream()).expect("a download");
                gpu.context.synchronize().expect("both streams");
                seen[usize::from(host.add(1).read_volatile() == 1)] = true;
                result::free_sync(address).expect("memory that was had");
            }
        }
        assert_eq!(seen, [true; 2], "an order that nobody asked for was kept every time, or never");
    });
}

#[test]
fn a_launch_returns_before_it_is_done() {
    let config = Config::of(1, Device { pause_micros_per_launch: 300_000, ..Device::default() });
    let rack = on("order::a_launch_returns_before_it_is_done", &config, || {
        let gpu = Gpu::open(0, COUNT).expect("a device");
        let mut word = gpu.stream.alloc_zeros::<u32>(1).expect("memory");
        let address = cudarc::driver::DevicePtrMut::device_ptr_mut(&mut word, &gpu.stream).0;
        let began = Instant::now();
        gpu.start("count", 1, 1, &params(address, 3)).expect("a launch");
        let told = began.elapsed();
        gpu.stream.synchronize().expect("the launch");
        assert!(told < began.elapsed() && began.elapsed().as_millis() >= 300);
        assert_eq!(gpu.stream.clone_dtoh(&word).expect("a download"), [3]);
    });
    assert!(rack.is_none_or(|rack| rack.peak_in_flight() == 1));
}

#[test]
fn a_process_sees_only_its_visible_devices() {
    let config = Config::of(3, Device::default());
    let test = "order::a_process_sees_only_its_visible_devices";
    let visible = [("CUDA_VISIBLE_DEVICES", "2,0")];
    let seen = crate::fixture::on_and_see(test, &config, &visible, || {
        assert_eq!(CudaContext::device_count(), Ok(2));
        let uuid = CudaContext::new(0).expect("a device").uuid().expect("an identity");
        assert_eq!(uuid.bytes[15], 3);
    });
    if let Some((_, output)) = seen {
        assert!(output.status.success(), "{}", crate::fixture::text(&output));
    }
}
