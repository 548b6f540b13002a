//! Wall clocks that are set while a farm works, forwards and back, the coordinator's and a node's:
//! no lease ends for it, and no bit changes.

use crate::farm::preload::Preload;
use crate::farm::store::fsck;
use tessera_support::farm::{Farm, library, takes_minutes};

const FILM: [&str; 8] = ["--size", "320x240", "--spp", "4", "--tile", "32", "--frames", "1-2"];
/// Less than what is left of any certificate, and far more than any lease.
const HOURS: i64 = 3 * 3600;

#[test]
fn clocks_that_are_set_end_no_lease_and_change_no_bit() {
    if !takes_minutes("clocks that are set") {
        return;
    }
    let folders = [tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder")];
    let [coordinators, nodes] = folders.each_ref().map(|folder| Preload::build(folder.path()));
    let mut farm = Farm::prepare();
    let mut command = farm.coordinator_command();
    command.envs(coordinators.environment(&farm.data()));
    farm.run_coordinator(command);
    let data = farm.folder().join("node-0");
    farm.add_node_with("node-0", &["--device", "cpu", "--threads", "1"], nodes.environment(&data));
    farm.add_node("node-1", 1);
    let scene = library("spinning-cube.gltf");
    let want = farm.hashes(&farm.submit(&scene, &FILM));
    for (coordinator, node) in [(HOURS, 0), (HOURS, -HOURS), (-HOURS / 8, HOURS), (0, 0)] {
        let job = farm.submit(&scene, &FILM);
        farm.wait_for("some commits", |farm| farm.units_committed(&job) > 5);
        coordinators.set_clock(coordinator);
        nodes.set_clock(node);
        assert_eq!(farm.hashes(&job), want, "{}", farm.logs());
        let detail: serde_json::Value =
            serde_json::from_str(&farm.text(&["job", &job, "--json"])).expect("JSON");
        assert_eq!(
            detail["failures"].as_array().map(Vec::len),
            Some(0),
            "{detail}\n{}",
            farm.logs()
        );
    }
    assert!(farm.stop_coordinator(), "{}", farm.logs());
    assert_eq!(fsck(&farm)["clean"], true);
}

// promise: P8
#[test]
fn clocks_that_are_days_apart_are_named_with_the_days() {
    const DAY: i64 = 86_400;
    let folder = tempfile::tempdir().expect("a folder");
    let clock = Preload::build(folder.path());
    let farm = Farm::start(0, 1);
    for (ahead, said) in [(-5 * DAY, "days or more behind"), (500 * DAY, "days or more ahead of")] {
        clock.set_clock(ahead);
        let mut command = farm.command(&["jobs"]);
        command.envs(clock.environment(folder.path()));
        let output = command.output().expect("the binary runs");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && text.contains(said), "{text}");
        assert!(text.contains("hint: set the clock") && !text.contains("not this farm"), "{text}");
    }
    clock.set_clock(0);
    farm.text(&["jobs"]);
}
