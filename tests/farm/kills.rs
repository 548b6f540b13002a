//! Nothing lost: SIGKILL to nodes, to the coordinator and to both while frames render; some stand
//! still for a while before. The folder is checked after each kill of the coordinator, and a client
//! holds what it was told against what it is told next.

use crate::farm::client_history::Witness;
use crate::farm::store::fsck;
use std::time::Duration;
use tessera_support::farm::{Farm, library};

/// A small generator, so that a failing run can be repeated by its seed.
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

const OPTIONS: [&str; 10] = [
    "--size",
    "320x240",
    "--spp",
    "64",
    "--tile",
    "32",
    "--unit-samples",
    "16",
    "--format",
    "exr,png",
];

// promise: P1, P2, P3
#[test]
fn kills_change_no_bit_and_lose_nothing() {
    let seed: u64 = std::env::var("TESSERA_KILL_SEED")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(20_261);
    let rounds: u32 =
        std::env::var("TESSERA_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(5);
    println!("TESSERA_KILL_SEED={seed} TESSERA_KILLS={rounds}");
    let mut chance = Chance::new(seed);
    let mut farm = Farm::start(2, 1);
    let scene = library("cornell-box.gltf");
    let undisturbed = farm.submit(&scene, &OPTIONS);
    let want = farm.hashes(&undisturbed);

    let mut client = Witness::default();
    let mut jobs = vec![undisturbed, farm.submit(&scene, &OPTIONS)];
    jobs.iter().for_each(|job| client.accepted(job, 0));
    for round in 0..rounds {
        std::thread::sleep(Duration::from_millis(50 + chance.below(900)));
        strike(&mut farm, round, &mut chance);
        client.look(&farm, || 0);
        let open = farm.text(&["job", jobs.last().expect("a job"), "--json"]);
        if open.contains("\"state\":\"done\"") || open.contains("\"state\": \"done\"") {
            jobs.push(farm.submit(&scene, &OPTIONS));
            client.accepted(jobs.last().expect("a job"), 0);
        }
    }
    for job in &jobs {
        assert_eq!(farm.hashes(job), want, "job {job}\n{}", farm.logs());
    }
    client.look(&farm, || 0);
    println!("{} jobs, {} answers, none of them taken back", jobs.len(), client.answers());
    assert!(farm.stop_coordinator(), "the coordinator did not end by itself\n{}", farm.logs());
    is_clean(&farm);
}

/// Kills a node, the coordinator, or all; now and then something also stands still for a while
/// before.
pub(crate) fn strike(farm: &mut Farm, round: u32, chance: &mut Chance) {
    let (victim, still) = (chance.below(4), chance.below(8));
    let names = ["node 0", "node 1", "the coordinator", "the coordinator and both nodes"];
    println!("round {round}: {}", names[victim as usize]);
    let pause = Duration::from_millis(200 + chance.below(1500));
    match still {
        0 => stand_still(pause, |signal| farm.signal_coordinator(signal)),
        1 => {
            let index = chance.below(2) as usize;
            stand_still(pause, |signal| farm.signal_node(index, signal));
        }
        _ => {}
    }
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
        is_clean(farm);
        farm.start_coordinator();
    }
}

/// SIGSTOP, and SIGCONT after a while.
fn stand_still(pause: Duration, mut signal: impl FnMut(&str)) {
    println!("  stands still for {} ms before", pause.as_millis());
    signal("STOP");
    std::thread::sleep(pause);
    signal("CONT");
}

pub(crate) fn is_clean(farm: &Farm) {
    let report = fsck(farm);
    assert_eq!(report["clean"], true, "{report}\n{}", farm.logs());
    assert_eq!(report["units_committed_twice"], 0, "{report}");
}

#[test]
fn a_terminated_node_drains_and_leaves() {
    let mut farm = Farm::start(2, 1);
    let short = OPTIONS.map(|option| if option == "64" { "32" } else { option });
    let job = farm.submit(&library("cornell-box.gltf"), &short);
    farm.wait_for("the first commit", |farm| {
        let job = farm.text(&["job", &job, "--json"]);
        !job.contains("\"units_committed\":0")
    });
    assert!(farm.drain_node(0), "the node did not end by itself\n{}", farm.logs());
    assert_eq!(farm.hashes(&job).len(), 1);
}
