//! Jobs that begin at a time, with real processes: by the command line, over a kill of the
//! coordinator, and what is said meanwhile.

use serde_json::Value;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tessera_support::farm::{Farm, library};

const SMALL: [&str; 4] = ["--size", "16x16", "--spp", "1"];

fn detail(farm: &Farm, job: &str) -> Value {
    serde_json::from_str(&farm.text(&["job", job, "--json"])).expect("JSON")
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("a time after 1970").as_secs()
}

fn submit(farm: &Farm, options: &[&str]) -> String {
    farm.submit(&library("cornell-box.gltf"), &[&SMALL[..], options].concat())
}

#[test]
fn a_job_begins_at_its_time_over_a_kill_of_the_coordinator() {
    let mut farm = Farm::start(1, 1);
    let later = submit(&farm, &["--not-before", "+8s"]);
    let begins = detail(&farm, &later)["spec"]["not_before"].as_u64().expect("a time");
    let row = &detail(&farm, &later)["summary"];
    assert_eq!((&row["state"], &row["waits"]), (&"queued".into(), &"not_before".into()));
    let note = row["note"].as_str().expect("a note");
    assert!(note.starts_with("begins at 2") && note.ends_with("Z (--not-before)"), "{note}");
    let said = farm.text(&["explain", &later]);
    assert!(said.contains(&format!("tessera job set {later} --at-once")), "{said}");
    assert!(farm.text(&["job", &later]).contains("not before  2"), "{said}");
    // Others have the node meanwhile.
    let other = submit(&farm, &[]);
    farm.text(&["wait", &other]);
    farm.kill_coordinator();
    farm.start_coordinator();
    farm.text(&["wait", &later]);
    assert!(now() >= begins);
}

#[test]
fn a_time_is_changed_and_jobs_that_wait_for_it_wait_too() {
    let farm = Farm::start(1, 1);
    let first = submit(&farm, &["--not-before", "2999-12-01T20:00Z"]);
    let second = submit(&farm, &["--after", &first]);
    assert_eq!(detail(&farm, &first)["spec"]["not_before"], 32_501_073_600u64);
    let set = |options: &[&str]| {
        let output = farm.run(&[&["job", "set", first.as_str()], options].concat());
        (output.status.code(), String::from_utf8_lossy(&output.stderr).trim().to_owned())
    };
    let words = format!("{first}: not before 2999-12-01 21:30:00Z");
    assert_eq!(set(&["--not-before", "2999-12-01 21:30Z"]), (Some(0), words));
    let (status, said) = set(&["--not-before", "soon"]);
    assert!(status == Some(2) && said.contains("`soon` is no time; write 20:00"), "{said}");
    let (status, said) = set(&["--not-before", "+1h", "--at-once"]);
    assert!(status == Some(2) && said.contains("cannot be used with"), "{said}");
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(detail(&farm, &second)["summary"]["waits"], "after");
    assert_eq!(set(&["--at-once"]), (Some(0), format!("{first}: at once")));
    farm.text(&["wait", &second]);

    // It is said before anything is sent, and a local run has no such time.
    let scene = library("cornell-box.gltf");
    let dry = ["submit", scene.to_str().unwrap(), "--dry-run", "--not-before", "2999-12-01T20:00Z"];
    assert!(farm.text(&dry).contains("begins  not before 2999-12-01 20:00:00Z"));
}
