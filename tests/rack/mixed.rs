//! Mixed company: devices of unlike speeds, and one frame by processors and GPUs together.

use crate::rack::fixture::{PICTURE, Stand, device, on_cpu, rendered_on_cpu};
use tessera_fake_cuda::Config;

/// Units of a node that are committed.
fn committed(stand: &Stand, name: &str) -> u64 {
    stand.node(name)["units_committed"].as_u64().unwrap_or(0)
}

#[test]
fn a_slow_device_does_its_share_and_no_more() {
    let mut config = Config::of(2, device());
    // By what the machine itself takes, so that a machine that is slow makes both slow.
    config.devices[1].stretch = 25.0;
    config.devices[1].pause_micros_per_launch *= 25;
    let stand = Stand::start(&config);
    (0..2).for_each(|index| stand.wait_until(index, "ready"));
    let steps = || [0, 1].map(|index| stand.rack.counts(index).steps);
    let before = steps();
    assert_eq!(stand.render(&PICTURE), on_cpu(), "{}", stand.farm.logs());
    let after = steps();
    let [fast, slow] = [0, 1].map(|index| after[index] - before[index]);
    assert!(fast > slow && slow > 0, "steps: fast {fast}, slow {slow}");
}

// promise: P5
#[test]
fn one_frame_by_processors_and_gpus_has_the_bits_of_either() {
    let mut config = Config::of(2, device());
    // They alone would take the better part of a minute: a processor, which is far quicker, comes
    // in time to do the rest.
    config.devices.iter_mut().for_each(|device| device.pause_micros_per_launch = 300_000);
    let mut stand = Stand::prepare(&config);
    stand.add_node("gpus", "cuda");
    let finer =
        ["--size", "64x48", "--spp", "4", "--depth", "3", "--tile", "8", "--unit-samples", "1"];
    let job = stand.farm.submit(&crate::rack::fixture::scene(), &finer);
    stand.farm.wait_for("the GPUs' first unit", |_| committed(&stand, "gpus") > 0);
    stand.add_node("cpus", "cpu");
    assert_eq!(stand.farm.hashes(&job), [on_cpu()], "{}", stand.farm.logs());
    for name in ["gpus", "cpus"] {
        assert!(committed(&stand, name) > 0, "{name} did nothing");
    }
}

// promise: P5
#[test]
fn frames_are_finished_alike_beside_processors_and_gpus() {
    let mut config = Config::of(2, device());
    config.devices.iter_mut().for_each(|device| device.pause_micros_per_launch = 20_000);
    let mut stand = Stand::prepare(&config);
    stand.add_node("gpus", "cuda");
    // Two bands a frame, and their assembly.
    let options = ["--size", "72x130", "--spp", "2", "--depth", "2", "--tile", "8", "--denoise"];
    let expected =
        ["1", "2", "3"].map(|frame| rendered_on_cpu(&[&options[..], &["--frame", frame]].concat()));
    let film = [&options[..], &["--frames", "1-3"]].concat();
    let job = stand.farm.submit(&crate::rack::fixture::scene(), &film);
    stand.farm.wait_for("the GPUs' first frame", |_| committed(&stand, "gpus") > 153);
    stand.add_node("cpus", "cpu");
    assert_eq!(stand.farm.hashes(&job), expected, "{}", stand.farm.logs());
    for name in ["gpus", "cpus"] {
        assert!(committed(&stand, name) > 0, "{name} did nothing");
    }
}
