//! `doctor` and `bench` as scripts meet them. Their figures are the machine's; their shapes and
//! statuses are ours.

use crate::cli::told;
use serde_json::Value;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn verdict<'a>(report: &'a Value, check: &str) -> Option<&'a str> {
    let findings = report["findings"].as_array().expect("findings");
    findings.iter().find(|finding| finding["check"] == check)?["verdict"].as_str()
}

#[test]
fn the_doctor_knows_the_answers_of_the_cpu() {
    let folder = tempfile::tempdir().expect("a folder");
    let line = ["doctor", "--device", "cpu", "--data", "node", "--burn", "1", "--json"];
    let (status, out, error) = told(folder.path(), &line);
    let report = json(&out);
    assert_eq!(
        (verdict(&report, "device"), verdict(&report, "burn")),
        (Some("ok"), Some("ok")),
        "{out}"
    );
    // What else there is to say of this machine is not ours to judge, but it decides the status.
    let fails =
        report["findings"].as_array().expect("findings").iter().any(|f| f["verdict"] == "fail");
    assert_eq!((status, report["verdict"] == "fail"), (i32::from(fails), fails), "{out}{error}");
    assert!(report["burn"][0]["frames"].as_u64() > Some(0), "{out}");
    assert!(!folder.path().join("node").exists(), "the doctor leaves nothing behind");
}

#[test]
fn the_doctor_fails_with_a_hint_where_no_coordinator_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let port = {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a free port");
        socket.local_addr().expect("an address").port().to_string()
    };
    let there = format!("127.0.0.1:{port}");
    let line = ["doctor", "--device", "cpu", "--data", "node", "--coordinator", &there];
    let (status, out, error) = told(folder.path(), &line);
    assert_eq!(status, 1, "{out}{error}");
    let fail =
        out.lines().position(|line| line.starts_with("fail  coordinator")).expect("a line for it");
    assert!(
        out.lines().nth(fail + 1).is_some_and(|line| line.trim().starts_with("hint: ")),
        "{out}"
    );
    assert!(error.starts_with("error: this machine cannot be a node"), "{error}");
}

#[test]
fn a_bench_is_saved_compared_and_fails_only_where_asked() {
    let folder = tempfile::tempdir().expect("a folder");
    let quick = ["bench", "--device", "cpu", "--spp", "1", "--rounds", "1"];
    let run = |more: &[&str]| told(folder.path(), &[&quick[..], more].concat());
    let (status, out, error) = run(&["--save", "first.json", "--json"]);
    assert_eq!(status, 0, "{error}");
    let first = json(&out);
    let results = first["results"].as_array().expect("results");
    assert_eq!(results.len(), 4);
    assert!(results.iter().all(|result| result["rays_per_second"].as_f64() > Some(0.0)), "{out}");

    let (status, out, error) = run(&["--baseline", "first.json"]);
    assert_eq!(status, 0, "{error}");
    assert!(out.lines().next().is_some_and(|head| head.ends_with("RATIO")), "{out}");
    let (status, _, error) = run(&["--baseline", "first.json", "--fail-below", "1000000"]);
    assert_eq!(status, 1, "{error}");
    assert!(error.contains("slower than --fail-below allows: cornell-box on cpu"), "{error}");

    std::fs::write(
        folder.path().join("other.json"),
        r#"{"version":9,"build":"","fingerprint":"","results":[]}"#,
    )
    .expect("a file");
    let (status, _, error) = run(&["--baseline", "other.json"]);
    assert_eq!(status, 1);
    assert!(error.contains("it is of form 9"), "{error}");
}
