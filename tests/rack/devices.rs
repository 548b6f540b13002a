//! Any number of devices: none, unfit ones, one, two, eight; each told clearly, all with the same
//! bits.

use crate::rack::fixture::{PICTURE, Stand, device, on_cpu};
use tessera_fake_cuda::{Config, Device, Slice};

/// What a node says that was told to use CUDA and cannot.
fn refusal(config: &Config) -> String {
    let stand = Stand::prepare(config);
    let token = stand.farm.text(&["token", "create", "--role", "node"]);
    let path = stand.farm.folder().join("token");
    std::fs::write(&path, token).expect("a token file");
    let mut node =
        stand.farm.command(&["node", "--device", "cuda", "--name", "rack", "--data", "rack"]);
    node.arg("--token-file").arg(path).envs(stand.rack.environment());
    let output = node.output().expect("the binary runs");
    assert!(!output.status.success(), "a node without a fit device serves");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn without_a_device_a_node_says_so_or_takes_its_processor() {
    let none = Config::default();
    let told = refusal(&none);
    assert!(told.contains("the driver finds no device"), "{told}");
    let mut stand = Stand::prepare(&none);
    stand.add_node("rack", "auto");
    assert_eq!(stand.render(&PICTURE), on_cpu());
    assert_eq!(stand.node("rack")["devices"][0]["kind"], "cpu");
}

#[test]
fn a_driver_or_device_too_old_is_named_with_what_is_needed() {
    let old_driver = Config { driver: 10_020, ..Config::of(1, Device::default()) };
    let told = refusal(&old_driver);
    assert!(told.contains("CUDA 10.2") && told.contains("newer driver"), "{told}");
    let old_device = Config::of(1, Device { capability: [7, 0], ..Device::default() });
    let told = refusal(&old_device);
    assert!(told.contains("compute capability 7.0") && told.contains("7.5"), "{told}");
}

#[test]
fn one_and_two_devices_give_the_bits_of_the_processor() {
    for count in [1, 2] {
        let stand = Stand::start(&Config::of(count, device()));
        (0..count).for_each(|index| stand.wait_until(index, "ready"));
        assert_eq!(stand.render(&PICTURE), on_cpu(), "{count} devices\n{}", stand.farm.logs());
        for index in 0..count {
            assert_eq!(stand.standing(index), "ready");
            assert!(stand.rack.counts(index).launches > 0, "device {index} had nothing to do");
        }
    }
}

#[test]
fn eight_devices_have_eight_units_in_flight() {
    let stand = Stand::start(&Config::of(8, device()));
    (0..8).for_each(|index| stand.wait_until(index, "ready"));
    // Only what the job does counts, not the tests of the devices.
    stand.rack.reset_peak_in_flight();
    assert_eq!(stand.render(&PICTURE), on_cpu(), "{}", stand.farm.logs());
    assert_eq!(stand.rack.peak_in_flight(), 8);
    let node = stand.node("rack");
    assert_eq!(node["devices"].as_array().map(Vec::len), Some(8));
    assert_eq!(node["devices"][7]["slot"], "cuda:7");
    assert_eq!(node["devices"][7]["cuda"]["uuid"], "GPU-7e55e7a0-0000-4000-8000-000000000008");
}

#[test]
fn slices_are_devices_with_a_memory_of_their_own() {
    let slice = Slice { profile: "1g.5gb".to_owned(), memory: 256 << 20, multiprocessors: 2 };
    let config = Config::of(1, Device { slices: vec![slice.clone(), slice], ..device() });
    let stand = Stand::start(&config);
    (0..2).for_each(|index| stand.wait_until(index, "ready"));
    assert_eq!(stand.render(&PICTURE), on_cpu(), "{}", stand.farm.logs());
    let node = stand.node("rack");
    assert_eq!(node["devices"].as_array().map(Vec::len), Some(2), "{node}");
    assert_eq!(node["devices"][1]["memory_bytes"], 256 << 20);
    // The whole device is target 0; it had nothing to do.
    let launches = [0, 1, 2].map(|target| stand.rack.counts(target).launches);
    assert!(launches[0] == 0 && launches[1] > 0 && launches[2] > 0, "{launches:?}");
}

#[test]
fn a_node_works_with_the_first_device_that_is_ready() {
    let mut config = Config::of(2, device());
    // The second one's test takes minutes.
    config.devices[1].pause_micros_per_launch = 600_000_000;
    let stand = Stand::start(&config);
    assert_eq!(stand.render(&PICTURE), on_cpu(), "{}", stand.farm.logs());
    assert_eq!([stand.standing(0), stand.standing(1)], ["ready", "testing"]);
}
