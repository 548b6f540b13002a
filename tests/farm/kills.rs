//! Nothing lost: SIGKILL to nodes, to the coordinator and to both, while a frame renders.

use crate::harness::{Farm, library};
use std::time::Duration;

/// A small generator, so that a failing run can be repeated by its seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

const OPTIONS: [&str; 10] =
    ["--size", "320x240", "--spp", "512", "--tile", "32", "--unit-samples", "64", "--format", "exr,png"];

#[test]
fn twenty_kills_change_no_bit_and_lose_nothing() {
    let seed: u64 =
        std::env::var("TESSERA_KILL_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(20_261);
    let rounds: u32 = std::env::var("TESSERA_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(20);
    println!("TESSERA_KILL_SEED={seed} TESSERA_KILLS={rounds}");
    let mut chance = Chance(seed);
    let mut farm = Farm::start(2, 1);
    let scene = library("cornell-box.gltf");
    let undisturbed = farm.submit(&scene, &OPTIONS);
    let want = farm.hashes(&undisturbed);

    let mut jobs = vec![farm.submit(&scene, &OPTIONS)];
    for round in 0..rounds {
        std::thread::sleep(Duration::from_millis(50 + chance.below(900)));
        let victim = chance.below(4);
        println!(
            "round {round}: {}",
            ["node 0", "node 1", "the coordinator", "the coordinator and both nodes"][victim as usize]
        );
        if victim >= 2 {
            farm.kill_coordinator();
        }
        for index in 0..2 {
            if victim == index || victim == 3 {
                farm.kill_node(index as usize);
                farm.start_node(index as usize);
            }
        }
        if victim >= 2 {
            farm.start_coordinator();
        }
        let open = farm.text(&["job", jobs.last().expect("a job"), "--json"]);
        if open.contains("\"state\":\"done\"") || open.contains("\"state\": \"done\"") {
            jobs.push(farm.submit(&scene, &OPTIONS));
        }
    }
    for job in &jobs {
        assert_eq!(farm.hashes(job), want, "job {job}\n{}", farm.logs());
    }
    let listed = farm.text(&["jobs", "--json"]);
    assert!(
        jobs.iter().chain([&undisturbed]).all(|job| listed.contains(job.as_str())),
        "a job is missing:\n{listed}"
    );
    assert!(farm.stop_coordinator(), "the coordinator did not end by itself\n{}", farm.logs());
    let data = farm.data();
    let audit =
        farm.text(&["coordinator", "--data", data.to_str().expect("a UTF-8 path"), "--audit", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&audit).expect("the audit is JSON");
    assert_eq!(report["units_committed_twice"], 0, "{audit}");
    assert_eq!(report["problems"].as_array().map(Vec::len), Some(0), "{audit}");
}

#[test]
fn a_terminated_node_drains_and_leaves() {
    let mut farm = Farm::start(2, 1);
    let job = farm.submit(&library("cornell-box.gltf"), &OPTIONS);
    farm.wait_for("the first commit", |farm| {
        let job = farm.text(&["job", &job, "--json"]);
        !job.contains("\"units_committed\":0")
    });
    assert!(farm.drain_node(0), "the node did not end by itself\n{}", farm.logs());
    assert_eq!(farm.hashes(&job).len(), 1);
}
