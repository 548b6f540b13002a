//! The doctor and a coordinator that is there: the identity of a node that has joined, and the two
//! clocks.

use serde_json::Value;
use tessera_support::farm::Farm;

#[test]
fn the_doctor_compares_clocks_with_the_coordinator() {
    let farm = Farm::start(1, 1);
    farm.wait_for("the node", |farm| farm.text(&["nodes", "--json"]).contains("ready"));
    let there = farm.address();
    let output = farm.run(&[
        "doctor",
        "--device",
        "cpu",
        "--data",
        "node-0",
        "--coordinator",
        &there,
        "--json",
    ]);
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let findings = report["findings"].as_array().expect("findings");
    let of = |check: &str| findings.iter().find(|finding| finding["check"] == check);
    assert_eq!(of("identity").map(|finding| &finding["verdict"]), Some(&"ok".into()), "{report}");
    let skew = of("clock skew").unwrap_or_else(|| panic!("{report}"));
    // Both read the same clock.
    assert_eq!(skew["verdict"], "ok", "{report}");
    assert!(
        skew["text"].as_str().is_some_and(|text| text.contains("the coordinator's, to within")),
        "{skew}"
    );
    assert_eq!(of("nvrtc").map(|finding| finding["verdict"].is_string()), Some(true), "{report}");
}
