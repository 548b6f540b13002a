//! GPUs that denoise frames for the threads that finish them: the bits of the processor, whatever
//! becomes of a device.

use crate::rack::fixture::{Stand, device, rendered_on_cpu};
use tessera_fake_cuda::{Config, Device, Fault, FaultKind};

/// A frame large enough for nodes to finish it.
const PICTURE: [&str; 9] =
    ["--size", "72x58", "--spp", "4", "--depth", "2", "--tile", "16", "--denoise"];
/// Launches by which a device is tried: the picture and its second half.
const TRIAL: u64 = 2;
const USED: &str = "frames are denoised on this device";

/// A node with a device, which denoises whether it is fast or not.
fn stand(device: Device) -> Stand {
    let mut stand = Stand::prepare(&Config::of(1, device));
    stand.environment = vec![("TESSERA_DENOISE", "gpu")];
    stand.add_node("rack", "cuda");
    stand
}

fn with_fault(fault: Fault) -> Device {
    Device { faults: vec![Fault { kernel: "denoise".into(), ..fault }], ..device() }
}

#[test]
fn a_device_denoises_with_the_bits_of_the_processor() {
    let stand = stand(device());
    assert_eq!(stand.render(&PICTURE), rendered_on_cpu(&PICTURE), "{}", stand.farm.logs());
    assert!(stand.farm.logs().contains(USED), "{}", stand.farm.logs());
}

#[test]
fn a_device_that_denoises_wrongly_is_not_asked() {
    let stand = stand(with_fault(Fault::new(FaultKind::WrongResult).times(0)));
    assert_eq!(stand.render(&PICTURE), rendered_on_cpu(&PICTURE), "{}", stand.farm.logs());
    let logs = stand.farm.logs();
    assert!(logs.contains("it denoises a known picture wrongly") && !logs.contains(USED), "{logs}");
    stand.wait_until(0, "ready");
}

#[test]
fn the_processor_goes_on_where_a_device_fails() {
    // When it is tried, and at a pass of the frame.
    for (kind, after) in [(FaultKind::Crash, 0), (FaultKind::IllegalAddress, TRIAL + 1)] {
        let stand = stand(with_fault(Fault::new(kind).after(after)));
        let logs = || stand.farm.logs();
        assert_eq!(stand.render(&PICTURE), rendered_on_cpu(&PICTURE), "{}", logs());
        assert!(logs().contains("the processor denoises"), "{kind:?} {after}\n{}", logs());
        assert_eq!(logs().contains(USED), after > 0, "{}", logs());
    }
}

#[test]
fn a_device_slower_than_the_processor_is_left_alone() {
    let stand = Stand::start(&Config::of(1, device()));
    assert_eq!(stand.render(&PICTURE), rendered_on_cpu(&PICTURE), "{}", stand.farm.logs());
    let logs = stand.farm.logs();
    assert!(logs.contains("the processor denoises: it is faster"), "{logs}");
}
