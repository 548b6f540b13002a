//! Full disks. The coordinator's: what it holds up is waited for, nobody is told what is not
//! durable, and nothing is lost. A node's: it says so and gets no work, and goes on when there is
//! room.

use crate::farm::preload::{Disk, Preload};
use crate::farm::store::fsck;
use std::sync::OnceLock;
use std::time::Duration;
use tessera_support::farm::{Farm, library, takes_minutes};

const FILM: [&str; 8] = ["--size", "320x240", "--spp", "16", "--tile", "32", "--frames", "1-8"];

/// The film's frames on a farm with room for them.
fn undisturbed() -> Vec<String> {
    static FRAMES: OnceLock<Vec<String>> = OnceLock::new();
    let render = || {
        let farm = Farm::start(1, 2);
        farm.hashes(&farm.submit(&library("spinning-cube.gltf"), &FILM))
    };
    FRAMES.get_or_init(render).clone()
}

/// A farm whose coordinator runs behind the preload.
fn farm_on(folder: &std::path::Path) -> (Farm, Preload) {
    let preload = Preload::build(folder);
    let mut farm = Farm::prepare();
    std::fs::create_dir_all(farm.data()).expect("a data folder");
    let mut command = farm.coordinator_command();
    command.envs(preload.environment(&farm.data()));
    farm.run_coordinator(command);
    farm.add_node("node-0", 2);
    (farm, preload)
}

fn done(farm: &Farm, job: &str) -> u64 {
    let detail: serde_json::Value =
        serde_json::from_str(&farm.text(&["job", job, "--json"])).expect("JSON");
    detail["summary"]["frames_done"].as_u64().expect("a number")
}

/// Frames that clients are told of, where the coordinator answers.
fn told_of(farm: &Farm, job: &str) -> Option<u64> {
    let output = farm.run(&["job", job, "--json"]);
    let detail: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
    detail["summary"]["frames_done"].as_u64().filter(|_| output.status.success())
}

/// A film of which some is done when the coordinator's disk fills.
struct Film {
    farm: Farm,
    preload: Preload,
    job: String,
    want: Vec<String>,
}

/// A film whose first frame is done.
fn film_on(folder: &std::path::Path) -> Film {
    let (farm, preload) = farm_on(folder);
    let want = undisturbed();
    let job = farm.submit(&library("spinning-cube.gltf"), &FILM);
    farm.wait_for("the first frame", |farm| done(farm, &job) > 0);
    Film { farm, preload, job, want }
}

impl Film {
    /// Whoever was told of a frame finds it after the coordinator was killed, on a disk that has
    /// room again.
    fn goes_on_with(self, told: u64) {
        let Film { mut farm, preload, job, want } = self;
        farm.kill_coordinator();
        preload.set_disk(Disk::Roomy);
        let report = fsck(&farm);
        assert_eq!(report["clean"], true, "{report}");
        let mut command = farm.coordinator_command();
        command.envs(preload.environment(&farm.data()));
        farm.run_coordinator(command);
        let kept = done(&farm, &job);
        assert!(kept >= told, "{told} frames were told of, {kept} are there\n{}", farm.logs());
        assert_eq!(farm.hashes(&job), want, "{}", farm.logs());
        let detail: serde_json::Value =
            serde_json::from_str(&farm.text(&["job", &job, "--json"])).expect("JSON");
        assert_eq!(
            detail["failures"].as_array().map(Vec::len),
            Some(0),
            "{detail}\n{}",
            farm.logs()
        );
        assert!(farm.stop_coordinator(), "{}", farm.logs());
    }
}

#[test]
fn a_coordinator_on_a_full_disk_loses_nothing_acknowledged() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let film = film_on(folder.path());
    film.preload.set_disk(Disk::Full);
    film.farm.wait_for("a full disk", |farm| farm.logs().contains("disk is full"));
    let listed = film.farm.text(&["jobs"]);
    assert!(listed.contains("disk is full"), "{listed}");
    let scene = library("spinning-cube.gltf");
    let refused = film.farm.run(&["submit", scene.to_str().expect("a UTF-8 path"), "--spp", "1"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("disk is full"), "{said}");
    std::thread::sleep(Duration::from_secs(1));
    let told = done(&film.farm, &film.job);
    film.goes_on_with(told);
}

/// Where the results are the first to meet it, they wait. Where the journal is, the coordinator
/// says so and ends: sled goes on with nothing after a write that failed.
#[test]
fn a_disk_that_fills_silently_loses_nothing_acknowledged() {
    if !takes_minutes("a disk that fills silently") {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let film = film_on(folder.path());
    let mut told = 0;
    film.preload.set_disk(Disk::Deceitful);
    film.farm.wait_for("word of a full disk", |farm| {
        told = told.max(told_of(farm, &film.job).unwrap_or(0));
        let logs = farm.logs();
        logs.contains("disk is full")
            || logs.contains("start the coordinator again once its disk works again")
    });
    std::thread::sleep(Duration::from_secs(1));
    told = told.max(told_of(&film.farm, &film.job).unwrap_or(0));
    film.goes_on_with(told);
}

// promise: P1
#[test]
fn frames_delayed_by_a_full_disk_finish_once_there_is_room() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (mut farm, preload) = farm_on(folder.path());
    let want = undisturbed();
    let job = farm.submit(&library("spinning-cube.gltf"), &FILM);
    farm.wait_for("the first frame", |farm| done(farm, &job) > 0);
    preload.set_disk(Disk::Full);
    farm.wait_for("a full disk", |farm| farm.logs().contains("disk is full"));
    std::thread::sleep(Duration::from_secs(1));
    preload.set_disk(Disk::Roomy);
    assert_eq!(farm.hashes(&job), want, "{}", farm.logs());
    assert!(farm.stop_coordinator(), "{}", farm.logs());
    assert_eq!(fsck(&farm)["clean"], true);
}

// promise: P1
#[test]
fn a_start_on_a_full_disk_is_refused_and_the_next_opens() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (mut farm, preload) = farm_on(folder.path());
    let film = farm.submit(&library("spinning-cube.gltf"), &FILM);
    farm.kill_coordinator();
    let before = fsck(&farm)["records"].as_u64().expect("a count");
    for disk in [Disk::Full, Disk::Deceitful] {
        preload.set_disk(disk);
        let mut command = farm.coordinator_command();
        let output = command.envs(preload.environment(&farm.data())).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{disk:?}: {said}");
        assert!(said.contains("make room") && said.contains("coordinator"), "{disk:?}: {said}");
    }
    // fsck does not need that disk, and says what it needs of its own.
    let data = farm.data().display().to_string();
    let mut command = farm.command(&["fsck", "--quick", "--data", &data]);
    let output = command.envs(preload.environment(&farm.data())).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let output = command.env("TMPDIR", farm.data().join("tmp")).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("TMPDIR"), "{said}");

    preload.set_disk(Disk::Roomy);
    assert!(fsck(&farm)["records"].as_u64() >= Some(before));
    farm.start_coordinator();
    assert!(farm.text(&["jobs", "--json"]).contains(&film), "{}", farm.logs());
    assert!(farm.stop_coordinator(), "{}", farm.logs());
}

/// A node of a farm, as `tessera nodes` has it.
fn node(farm: &Farm, name: &str) -> serde_json::Value {
    let nodes: serde_json::Value =
        serde_json::from_str(&farm.text(&["nodes", "--json"])).expect("JSON");
    let mut nodes = nodes.as_array().expect("a list").iter();
    nodes.find(|node| node["name"] == name).expect("it has joined").clone()
}

fn add_node_on(farm: &mut Farm, preload: &Preload, name: &str) {
    let data = farm.folder().join(name);
    farm.add_node_with(name, &["--device", "cpu", "--threads", "1"], preload.environment(&data));
}

fn is_out(farm: &Farm, name: &str) -> bool {
    let node = node(farm, name);
    node["state"] == "unfit"
        && node["note"].as_str().is_some_and(|note| note.contains("no room for results"))
}

#[test]
fn a_node_with_a_full_disk_says_so_and_takes_no_work() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let preload = Preload::build(folder.path());
    let mut farm = Farm::prepare();
    farm.start_coordinator();
    add_node_on(&mut farm, &preload, "full");
    farm.add_node("roomy", 1);
    let scene = library("spinning-cube.gltf");
    let film = ["--size", "320x240", "--spp", "16", "--tile", "32", "--frames", "1-3"];
    let want = farm.hashes(&farm.submit(&scene, &film));
    preload.set_disk(Disk::Full);
    let job = farm.submit(&scene, &film);
    farm.wait_for("the node to say so", |farm| is_out(farm, "full"));
    assert_eq!(farm.hashes(&job), want, "{}", farm.logs());
    preload.set_disk(Disk::Roomy);
    farm.wait_for("the node to go on", |farm| node(farm, "full")["state"] == "ready");
    assert_eq!(farm.hashes(&farm.submit(&scene, &film)), want, "{}", farm.logs());
    assert!(farm.stop_coordinator(), "{}", farm.logs());
    assert_eq!(fsck(&farm)["clean"], true);
}

#[test]
fn a_job_waits_while_the_only_node_has_a_full_disk() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let preload = Preload::build(folder.path());
    let mut farm = Farm::prepare();
    farm.start_coordinator();
    add_node_on(&mut farm, &preload, "full");
    let scene = library("spinning-cube.gltf");
    let film = ["--size", "160x120", "--spp", "4", "--frames", "1"];
    let want = farm.hashes(&farm.submit(&scene, &film));
    preload.set_disk(Disk::Full);
    let job = farm.submit(&scene, &film);
    farm.wait_for("the job to say so", |farm| {
        let detail: serde_json::Value =
            serde_json::from_str(&farm.text(&["job", &job, "--json"])).expect("JSON");
        detail["summary"]["note"].as_str().is_some_and(|note| note.contains("no room for results"))
    });
    preload.set_disk(Disk::Roomy);
    assert_eq!(farm.hashes(&job), want, "{}", farm.logs());
    assert!(farm.stop_coordinator(), "{}", farm.logs());
}
