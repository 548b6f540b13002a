//! Frames that are sampled to a noise: one hash, whatever the farm looks like and whatever happens
//! to it.

use crate::farm::kills::{Chance, is_clean, strike};
use std::time::Duration;
use tessera_support::farm::{Farm, library, rendered};

const OPTIONS: [&str; 8] = ["--size", "136x104", "--depth", "4", "--noise", "0.03", "--spp", "512"];

fn rendered_with(more: &[&str]) -> String {
    rendered(&library("cornell-box.gltf"), &[&OPTIONS[..], more].concat())
}

// promise: P5
#[test]
fn a_frame_sampled_to_a_noise_has_one_hash_through_kills() {
    let scene = library("cornell-box.gltf");
    let want = rendered_with(&["--threads", "1"]);
    assert_eq!(rendered_with(&["--threads", "2", "--nodes", "2"]), want);
    let one = Farm::start(1, 2);
    let job = one.submit(&scene, &OPTIONS);
    assert_eq!(one.hashes(&job), std::slice::from_ref(&want), "one node\n{}", one.logs());

    let mut three = Farm::start(3, 1);
    let job = three.submit(&scene, &OPTIONS);
    let mut chance = Chance::new(7);
    for round in 0..5 {
        std::thread::sleep(Duration::from_millis(300 + chance.below(900)));
        strike(&mut three, round, &mut chance);
    }
    assert_eq!(three.hashes(&job), [want], "three nodes\n{}", three.logs());
    assert!(three.stop_coordinator(), "the coordinator did not end by itself\n{}", three.logs());
    is_clean(&three);
}

#[test]
fn a_denoised_frame_sampled_to_a_noise_has_one_hash() {
    let farm = Farm::start(2, 1);
    let want = rendered_with(&["--denoise", "--threads", "1"]);
    let options = [&OPTIONS[..], &["--denoise"]].concat();
    let job = farm.submit(&library("cornell-box.gltf"), &options);
    assert_eq!(farm.hashes(&job), [want], "{}", farm.logs());
}
