//! Events over a takeover, on a real PostgreSQL and a real S3 server: one that stands by tells
//! nothing, and one that leads next tells what follows. Who watches all jobs goes on.

use super::event_receiver::{Manner, Receiver};
use super::events::{url, webhook, write};
use super::takeover::{Elsewhere, said_in};
use serde_json::Value;
use std::process::Stdio;
use std::time::Duration;
use tessera_support::farm::{Farm, library};

/// Runs a command that knows both places and must succeed.
fn text(farm: &Farm, elsewhere: &Elsewhere, arguments: &[&str]) -> String {
    let mut command = farm.command(arguments);
    let output = command.env("TESSERA_COORDINATOR", elsewhere.both()).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A job that is over in a moment, once it has ended.
fn ended(farm: &Farm, elsewhere: &Elsewhere) -> String {
    let scene = library("cornell-box.gltf");
    let scene = scene.to_str().expect("a path");
    let light = ["submit", scene, "--size", "32x32", "--spp", "2", "--frames", "1"];
    let job = text(farm, elsewhere, &light);
    text(farm, elsewhere, &["wait", &job]);
    job
}

#[test]
fn only_the_leader_tells_and_the_next_one_goes_on() {
    let mut farm = Farm::prepare();
    let Some(elsewhere) = Elsewhere::start("events over a takeover", &farm) else { return };
    let receiver = Receiver::start(Manner::Takes);
    let file = format!("allow = ['{}']\n", receiver.address());
    write(farm.folder(), &(file + &webhook("studio", &url(&receiver), "events = ['done']")));
    let coordinator = |farm: &Farm, data: &std::path::Path, place| {
        let mut command = elsewhere.coordinator(farm, (data, place));
        command.args(["--events", "events.toml"]);
        command
    };
    let leads = coordinator(&farm, &farm.data(), 0);
    farm.run_coordinator(leads);
    let second = farm.folder().join("second");
    let _standby = farm.spawn(coordinator(&farm, &second, 1), "second");
    farm.wait_for("it to stand by", |farm| said_in(farm, "second").contains("stands by"));
    let places = vec![
        ("TESSERA_DEVICE".into(), "cpu".into()),
        ("TESSERA_COORDINATOR".into(), elsewhere.both().into()),
    ];
    farm.add_node_with("node-0", &["--threads", "1"], places);
    let watched = farm.folder().join("watched");
    let mut watch = farm.command(&["watch", "--all", "--json"]);
    watch.env("TESSERA_COORDINATOR", elsewhere.both()).stderr(Stdio::null());
    watch.stdout(std::fs::File::create(&watched).expect("a file"));
    let mut watch = watch.spawn().expect("the binary starts");

    let before = ended(&farm, &elsewhere);
    farm.wait_for("the first event", |_| !receiver.events().is_empty());
    // Long enough for the one that stands by to have seen it, too.
    std::thread::sleep(Duration::from_secs(4));
    assert_eq!(receiver.kinds_of(&before), ["done"], "once");
    farm.kill_coordinator();
    farm.wait_for("another one to lead", |farm| {
        let mut jobs = farm.command(&["jobs"]);
        jobs.env("TESSERA_COORDINATOR", elsewhere.both());
        jobs.output().is_ok_and(|output| output.status.success())
    });
    let after = ended(&farm, &elsewhere);
    farm.wait_for("the second event", |_| receiver.kinds_of(&after) == ["done"]);
    // Nothing on this machine says what the other one told: the same event comes again.
    let events = receiver.events();
    let ids = events.iter().filter(|event| event["job"]["id"] == before).map(|event| &event["id"]);
    let ids: Vec<&Value> = ids.collect();
    assert!(ids.len() == 2 && ids[0] == ids[1], "{ids:?}");
    farm.wait_for("the watcher to know", |_| {
        let text = std::fs::read_to_string(&watched).unwrap_or_default();
        let rows = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut of_after = rows.filter(|row| row["job"]["job"] == after);
        of_after.any(|row| row["job"]["state"] == "done")
    });
    let _ = watch.kill();
    let _ = watch.wait();
}
