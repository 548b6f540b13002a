//! What nodes of a real farm say: with the job that it is about, for its owner, over a restart, and
//! shown with a failure.

use super::importer;
use crate::hostile::traps::Trap;
use serde_json::Value;
use tessera_support::farm::{Farm, library};

/// The lines of JSON that a command prints.
fn lines(farm: &Farm, arguments: &[&str]) -> Vec<Value> {
    let text = farm.text(&[&["logs"], arguments, &["--json"]].concat());
    text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

fn says(line: &Value, text: &str) -> bool {
    line["text"].as_str().is_some_and(|said| said.contains(text))
}

#[test]
fn a_broken_scene_is_told_of_in_the_log_of_its_job() {
    let mut farm = importer::farm("512", "60");
    // The head of a binary file, and nothing after it.
    let head = &b"glTF\x02\0\0\0\x0c\0\0\0"[..];
    let trap = Trap { main: "scene.glb", ..Trap::new("no chunk", head) };
    let [(state, note)] = &importer::send_all(&farm, &[trap])[..] else { panic!("one job") };
    assert_eq!(state.name(), "failed");
    let job = farm.text(&["jobs", "--json"]);
    let job: Value = serde_json::from_str(&job).expect("JSON");
    let job = job[0]["job"].as_str().or_else(|| job["jobs"][0]["job"].as_str()).expect("an id");
    // The only node tries twice, and the job has ended before the second line is there.
    farm.wait_for("the importer's words", |farm| {
        lines(farm, &[job, "--source", "importer"]).len() >= 2
    });
    let said = lines(&farm, &[job, "--source", "importer"]);
    assert!(said.iter().any(|line| says(line, "frame not prepared")), "{said:?}\n{note}");
    assert!(said.iter().all(|line| line["job"] == job && line["node"] == "node-0"), "{said:?}");

    let shown = farm.text(&["job", job]);
    assert!(shown.contains("said        ") && shown.contains("frame not prepared"), "{shown}");
    let place = format!("{job}/f0000");
    assert_eq!(lines(&farm, &[&place, "--source", "importer"]), said);
    assert!(lines(&farm, &[&format!("{job}/1")]).is_empty(), "of another frame");
    let errors = lines(&farm, &[job, "--level", "error", "--since", "1h"]);
    assert!(errors.iter().any(|line| says(line, "frame not prepared")), "{errors:?}");
    // It has ended, and so does who follows it.
    assert_eq!(lines(&farm, &[job, "--source", "importer", "--follow"]), said);

    let other = farm.enrol("artist", "bob");
    let refused = farm.run(&["logs", job, "--identity", &other]);
    assert_eq!(refused.status.code(), Some(5), "{}", String::from_utf8_lossy(&refused.stderr));
    let refused = farm.run(&["logs", "node-0", "--identity", &other]);
    assert_eq!(refused.status.code(), Some(5), "{}", String::from_utf8_lossy(&refused.stderr));
    let of_node = lines(&farm, &["node-0"]);
    assert!(of_node.iter().any(|line| says(line, "connected")), "{of_node:?}");
    assert!(of_node.iter().any(|line| line["job"] == job), "{of_node:?}");
    let unknown = farm.run(&["logs", "nobody"]);
    assert_eq!(unknown.status.code(), Some(4));

    farm.kill_coordinator();
    farm.start_coordinator();
    assert_eq!(lines(&farm, &[job, "--source", "importer"]), said, "they survive a restart");
    farm.wait_for("the node to say that it is back", |farm| {
        let back = lines(farm, &["node-0"]);
        back.iter().filter(|line| says(line, "connected")).count() > 1
    });
    farm.text(&["forget", job]);
    let folder = farm.data().join("logs/jobs");
    farm.wait_for("the lines to go with their job", |_| {
        std::fs::read_dir(&folder).expect("the folder").count() == 0
    });
}

#[test]
fn who_follows_a_job_gets_its_lines_until_it_ends() {
    let farm = Farm::start(1, 1);
    let scene = library("cornell-box.gltf");
    let job = farm.submit(&scene, &["--size", "32x32", "--spp", "1", "--frames", "1-3"]);
    farm.text(&["logs", &job, "-f"]);
    let detail = farm.text(&["job", &job, "--json"]);
    let detail: Value = serde_json::from_str(&detail).expect("JSON");
    assert_eq!(detail["summary"]["state"], "done");
    let wrong = farm.run(&["logs", &format!("{job}/x")]);
    assert_eq!(wrong.status.code(), Some(2));
}
