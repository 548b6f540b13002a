//! Jobs by name, by the beginning of an id, and by what they are: what commands select, in how many
//! requests, and what they say and exit with.

use serde_json::Value;
use tessera_support::farm::{Farm, library};

/// A farm without nodes, whose jobs all wait.
fn farm() -> Farm {
    let mut farm = Farm::prepare();
    farm.start_coordinator();
    farm
}

/// Submits a job of this name; its id.
fn submit(farm: &Farm, name: &str) -> String {
    let scene = library("cornell-box.gltf").display().to_string();
    farm.text(&["submit", &scene, "--name", name, "--size", "16x16", "--spp", "1"])
}

/// Status, standard output and standard error of a command.
fn said(farm: &Farm, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = farm.run(arguments);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn listed(farm: &Farm, options: &[&str]) -> Vec<String> {
    let rows: Vec<Value> =
        serde_json::from_str(&farm.text(&[&["jobs", "--json"], options].concat())).expect("rows");
    rows.iter().map(|row| row["job"].as_str().expect("an id").to_owned()).collect()
}

/// Number of entries of the audit log.
fn entries(farm: &Farm) -> u64 {
    let (_, text, _) = said(farm, &["audit", "--json"]);
    let report: Value = serde_json::from_str(&text).expect("a report");
    report["entries"].as_u64().expect("a count")
}

#[test]
fn a_job_is_named_by_its_name_or_its_first_characters() {
    let farm = farm();
    let (one, two) = (submit(&farm, "beauty"), submit(&farm, "shadow"));
    assert_eq!(listed(&farm, &["beauty"]), [one.as_str()]);
    let table = farm.text(&["jobs"]);
    assert!(table.contains(&one[..8]) && !table.contains(&one), "short ids: {table}");
    for text in ["beauty", &one[..8], &one] {
        let (status, shown, error) = said(&farm, &["job", text]);
        assert!(status == Some(0) && shown.contains(&one), "{text}: {shown}{error}");
    }
    let (status, _, error) = said(&farm, &["wait", "shadow", "--timeout", "1s"]);
    assert!(status == Some(7) && error.contains(&two), "{error}");
    let (status, _, error) = said(&farm, &["cancel", "shadow", "--reason", "too dark"]);
    assert!(status == Some(0) && error.contains(&format!("cancelled {two};")), "{error}");
    assert!(farm.text(&["job", "shadow"]).contains("cancelled by `admin`: too dark"));
}

#[test]
fn an_ambiguous_name_lists_its_jobs_and_changes_none() {
    let farm = farm();
    let jobs = [submit(&farm, "beauty"), submit(&farm, "beauty")];
    for words in [&["job", "beauty"], &["cancel", "beauty"], &["fetch", "beauty"]] {
        let (status, _, error) = said(&farm, words);
        assert_eq!(status, Some(2), "{words:?}: {error}");
        assert!(error.contains("\"beauty\" means 2 jobs"), "{error}");
        assert!(jobs.iter().all(|job| error.contains(&job[..8])), "{error}");
    }
    let (status, _, error) = said(&farm, &["pause", "nobody", "beauty", &jobs[0][..8]]);
    assert!(status == Some(4) && error.contains("there is no job \"nobody\""), "{error}");
    assert!(error.contains(&format!("paused {}", jobs[0])), "the rest is done: {error}");
    assert_eq!(listed(&farm, &["--state", "paused"]), jobs[..1]);
    for words in [&["cancel"][..], &["forget", "--limit", "3"], &["forget", "--all", "beauty"]] {
        assert_eq!(said(&farm, words).0, Some(2), "{words:?}");
    }
}

#[test]
fn many_jobs_are_changed_by_one_request() {
    let farm = farm();
    let jobs: Vec<String> = (0..12).map(|number| submit(&farm, &format!("s_{number}"))).collect();
    assert_eq!(listed(&farm, &["--name", "s_1*"]), [&jobs[1..2], &jobs[10..]].concat());
    assert_eq!(listed(&farm, &["--limit", "2"]), jobs[10..], "the newest, and the newest last");
    assert_eq!(listed(&farm, &["--older-than", "1h"]), [""; 0]);
    let before = entries(&farm);
    let (_, table, error) = said(&farm, &["cancel", "--all", "--dry-run"]);
    assert!(error.contains("12 jobs would be cancelled") && table.contains("s_11"), "{error}");
    assert_eq!(listed(&farm, &["--state", "open"]).len(), 12);
    let (status, _, error) = said(&farm, &["cancel", "--owner", "admin", "--state", "queued"]);
    assert!(status == Some(0) && error.contains("cancelled 12 jobs;"), "{error}");
    let (status, text, _) = said(&farm, &["forget", "--state", "ended", "--json"]);
    let changed: Value = serde_json::from_str(&text).expect("JSON");
    let names = changed["jobs"].as_array().expect("jobs");
    assert_eq!((status, names.len()), (Some(0), 12), "{changed}");
    println!("12 jobs: {} entries of the audit log for two changes", entries(&farm) - before);
    assert_eq!(entries(&farm) - before, 2, "one request each");
    let (status, _, error) = said(&farm, &["forget", "--state", "ended"]);
    assert!(status == Some(0) && error.contains("no job is selected"), "{error}");
}
