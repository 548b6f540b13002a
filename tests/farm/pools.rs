//! Pools: a job for one is done by its nodes alone, and waits in words where there is none; a
//! certificate's pool and name are not a node's choice.

use tessera_support::farm::{Farm, library};

fn listed(farm: &Farm, what: &str) -> Vec<serde_json::Value> {
    serde_json::from_str(&farm.text(&[what, "--json"])).expect("a list as JSON")
}

/// Units that a node has committed, and its pool.
fn node(farm: &Farm, name: &str) -> (u64, Option<String>) {
    let nodes = listed(farm, "nodes");
    let node = nodes.iter().find(|node| node["name"] == name).expect("it has joined");
    let pool = node["pool"].as_str().map(str::to_owned);
    (node["units_committed"].as_u64().expect("a count"), pool)
}

/// Puts another token in the place of the one that a node was invited with.
fn give_token(farm: &Farm, name: &str, options: &[&str]) {
    let create = [&["token", "create", "--role", "node"], options].concat();
    std::fs::write(farm.folder().join(format!("{name}.token")), farm.text(&create))
        .expect("a token file");
}

#[test]
fn jobs_for_a_pool_are_done_only_by_its_nodes() {
    let mut farm = Farm::prepare();
    farm.start_coordinator();
    farm.invite("rig", 1);
    give_token(&farm, "rig", &["--pool", "gpu", "--name", "rig"]);
    farm.start_node(0);
    farm.add_node_with("desk", &["--device", "cpu", "--threads", "1", "--pool", "cpu"], Vec::new());
    farm.wait_for("both nodes", |farm| listed(farm, "nodes").len() == 2);
    assert_eq!(node(&farm, "rig"), (0, Some("gpu".to_owned())));
    assert_eq!(node(&farm, "desk"), (0, Some("cpu".to_owned())));

    let scene = library("spinning-cube.gltf");
    let small = ["--size", "96x96", "--spp", "4", "--tile", "32", "--frames", "1-3"];
    let anywhere = farm.hashes(&farm.submit(&scene, &small));
    let before = node(&farm, "rig").0;
    let job = farm.submit(&scene, &[&small[..], &["--pool", "cpu"]].concat());
    assert_eq!(farm.hashes(&job), anywhere, "{}", farm.logs());
    assert_eq!(node(&farm, "rig").0, before, "a node of another pool had units of it");
    assert!(farm.text(&["job", &job]).contains("cpu"), "the job shows its pool");

    // Nobody is of this pool: the job says so, and goes on when somebody comes.
    let job = farm.submit(&scene, &[&small[..], &["--pool", "late"]].concat());
    let row = |farm: &Farm| {
        let mut jobs = listed(farm, "jobs").into_iter();
        jobs.find(|row| row["job"] == job.as_str()).expect("the job is listed")
    };
    farm.wait_for("the job to say why it waits", |farm| row(farm)["waits"] == "pool");
    let note = row(&farm)["note"].to_string();
    assert!(note.contains("no node of pool `late` is connected"), "{note}");
    farm.add_node_with(
        "later",
        &["--device", "cpu", "--threads", "1", "--pool", "late"],
        Vec::new(),
    );
    assert_eq!(farm.hashes(&job), anywhere, "{}", farm.logs());
}

#[test]
fn a_token_fixes_the_pool_and_name_of_its_node() {
    let mut farm = Farm::prepare();
    farm.start_coordinator();
    // A token for another name.
    farm.invite("rig", 1);
    give_token(&farm, "rig", &["--pool", "gpu", "--name", "other"]);
    let refused = farm.node_command(0).output().expect("the binary runs");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("for the name `other`"), "{said}");
    assert!(farm.text(&["token", "list"]).contains("other"), "the token was not used up");

    give_token(&farm, "rig", &["--pool", "gpu"]);
    farm.start_node(0);
    farm.wait_for("the node", |farm| listed(farm, "nodes").len() == 1);
    assert!(farm.drain_node(0), "{}", farm.logs());
    let mut command = farm.node_command(0);
    let refused = command.args(["--pool", "cpu"]).output().expect("the binary runs");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("of pool `gpu`"), "{said}");

    let mut command = farm.node_command(0);
    let wrong = command.args(["--pool", "a b"]).output().expect("the binary runs");
    assert_eq!(wrong.status.code(), Some(2), "{}", String::from_utf8_lossy(&wrong.stderr));
    let scene = library("spinning-cube.gltf");
    let wrong = farm.run(&["submit", scene.to_str().expect("a UTF-8 path"), "--pool", "a b"]);
    let said = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(!wrong.status.success() && said.contains("pool"), "{said}");
}
