//! NVML: what a node asks about its devices, and how it hears that one is gone.

use crate::fixture::{on, on_and_see, text};
use cudarc::driver::sys::CUresult;
use cudarc::driver::{CudaContext, DriverError};
use nvml_wrapper::Nvml;
use nvml_wrapper::bitmasks::event::EventTypes;
use nvml_wrapper::enum_wrappers::device::{Clock, EccCounter, MemoryError, TemperatureSensor};
use nvml_wrapper::enums::event::XidError;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::struct_wrappers::event::EventData;
use tessera_fake_cuda::{Config, Device, Fault, FaultKind, Slice};
use tessera_kernels::cuda::Queue;
use tessera_support::gpu::Gpu;

const NOTHING: &str =
    ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry nothing()\n{\nret;\n}\n";

#[test]
fn nvml_and_cuda_speak_of_the_same_devices() {
    let mut config = Config::of(2, Device { temperature: 67, ecc: [3, 1], ..Device::default() });
    config.devices[1].uuid = "GPU-12345678-9abc-def0-1122-334455667788".to_owned();
    config.devices[1].throttle_reasons = 0x40;
    on("health::nvml_and_cuda_speak_of_the_same_devices", &config, || {
        let nvml = Nvml::init().expect("NVML");
        assert_eq!(nvml.device_count().ok(), Some(2));
        assert_eq!(nvml.sys_driver_version().expect("a version"), "570.86.15");
        assert_eq!(nvml.sys_cuda_driver_version().ok(), Some(12_080));
        let device =
            nvml.device_by_uuid("GPU-12345678-9abc-def0-1122-334455667788").expect("a device");
        assert_eq!(device.index().ok(), Some(1));
        assert_eq!(device.name().expect("a name"), "Fake RTX 4000");
        assert_eq!(device.temperature(TemperatureSensor::Gpu).ok(), Some(67));
        assert_eq!(device.power_usage().ok(), Some(70_000));
        assert_eq!(device.clock_info(Clock::SM).ok(), Some(1_410));
        assert_eq!(device.current_throttle_reasons().expect("reasons").bits(), 0x40);
        assert_eq!(
            device.total_ecc_errors(MemoryError::Uncorrected, EccCounter::Volatile).ok(),
            Some(1)
        );
        assert_eq!(device.pci_info().expect("a place").bus_id, "00000000:02:00.0");
        assert_eq!(device.current_pcie_link_width().ok(), Some(16));
        let capability = device.cuda_compute_capability().expect("a capability");
        assert_eq!((capability.major, capability.minor), (8, 6));

        let mut gpu = Gpu::open(1, NOTHING).expect("a device");
        let uuid = gpu.context.uuid().expect("an identity").bytes.map(|byte| byte.cast_unsigned());
        assert_eq!(uuid[..4], [0x12, 0x34, 0x56, 0x78]);
        let before = device.memory_info().expect("memory");
        gpu.allocate(1 << 20).expect("memory");
        let after = device.memory_info().expect("memory");
        assert_eq!((after.total, after.used), (1 << 30, before.used + (1 << 20)));
    });
}

#[test]
fn a_device_off_the_bus_is_gone_for_every_library() {
    let mut config = Config::of(2, Device::default());
    config.devices[1].faults = vec![Fault::new(FaultKind::OffTheBus)];
    let test = "health::a_device_off_the_bus_is_gone_for_every_library";
    let rack = on(test, &config, || {
        let nvml = Nvml::init().expect("NVML");
        let device = nvml.device_by_index(1).expect("a device");
        let set = nvml.create_event_set().expect("an event set");
        let set = device.register_events(EventTypes::CRITICAL_XID_ERROR, set).expect("Xid events");
        assert!(matches!(set.wait(1), Err(NvmlError::Timeout)));
        let gone = DriverError(CUresult::CUDA_ERROR_UNKNOWN);
        let gpu = Gpu::open(1, NOTHING).expect("a device");
        gpu.start("nothing", 1, 1, &[]).expect("a launch");
        assert_eq!(gpu.stream.synchronize(), Err(gone));
        assert_eq!(gpu.context.mem_get_info(), Err(gone));
        let EventData { event_data, .. } = set.wait(1000).expect("an event");
        assert!(matches!(event_data, Some(XidError::Value(79))), "{event_data:?}");
        assert!(matches!(set.wait(1), Err(NvmlError::GpuLost)));
        assert!(matches!(device.temperature(TemperatureSensor::Gpu), Err(NvmlError::GpuLost)));
        assert!(matches!(nvml.device_by_index(1), Err(NvmlError::GpuLost)));
        let neighbour = Gpu::open(0, NOTHING).expect("the other device goes on");
        neighbour.start("nothing", 1, 1, &[]).expect("a launch");
        assert_eq!(neighbour.stream.synchronize(), Ok(()));
    });
    assert!(rack.is_none_or(|rack| rack.counts(1).is_lost && !rack.counts(0).is_lost));
}

fn sliced() -> Config {
    let slice = Slice { profile: "1g.5gb".to_owned(), memory: 64 << 20, multiprocessors: 1 };
    Config::of(
        1,
        Device {
            name: "Fake A100".to_owned(),
            slices: vec![slice.clone(), slice],
            ..Device::default()
        },
    )
}

#[test]
fn slices_have_memory_and_identities_of_their_own() {
    on("health::slices_have_memory_and_identities_of_their_own", &sliced(), || {
        let nvml = Nvml::init().expect("NVML");
        let device = nvml.device_by_index(0).expect("a device");
        assert_eq!(device.mig_mode().expect("a mode").current, 1);
        assert_eq!(device.mig_device_count().ok(), Some(2));
        let slice = device.mig_device_by_index(1).expect("a slice");
        assert!(slice.uuid().expect("an identity").starts_with("MIG-"));
        assert_eq!(slice.memory_info().expect("memory").total, 64 << 20);
        assert!(matches!(slice.temperature(TemperatureSensor::Gpu), Err(NvmlError::NotSupported)));
        assert_eq!(slice.mig_parent_device().expect("its device").index().ok(), Some(0));
        // CUDA shows a process one slice: the first, unless it is told another.
        assert_eq!(CudaContext::device_count(), Ok(1));
        let context = CudaContext::new(0).expect("the slice");
        assert_eq!(context.name().expect("a name"), "Fake A100 MIG 1g.5gb");
        assert_eq!(context.total_mem(), Ok(64 << 20));
    });
}

#[test]
fn a_broken_configuration_is_reported() {
    let test = "health::a_broken_configuration_is_reported";
    let seen = on_and_see(
        test,
        &Config::default(),
        &[("TESSERA_FAKE_CUDA", "/nowhere/rack.toml")],
        || {
            assert_eq!(CudaContext::device_count(), Err(DriverError(CUresult::CUDA_ERROR_UNKNOWN)));
        },
    );
    if let Some((_, output)) = seen {
        assert!(output.status.success(), "{}", text(&output));
        assert!(text(&output).contains("`/nowhere/rack.toml` cannot be read"), "{}", text(&output));
    }
}
