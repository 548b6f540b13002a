//! What commands say about a farm: last lines, warnings and hints.

use tessera_support::farm::{Farm, library};

const SMALL: [&str; 6] = ["--size", "32x32", "--spp", "4", "--frames", "1-2"];

/// Status and standard error of a command.
fn said(farm: &Farm, arguments: &[&str]) -> (Option<i32>, String) {
    let output = farm.run(arguments);
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_job_that_is_done_is_told_in_a_last_line() {
    let farm = Farm::start(1, 1);
    let job = farm.submit(&library("cornell-box.gltf"), &SMALL);
    let (status, error) = said(&farm, &["watch", &job]);
    let last = format!("done: 2 of 2 frames; `tessera fetch {job}`");
    assert_eq!((status, error.lines().last()), (Some(0), Some(last.as_str())), "{error}");
}

#[test]
fn denying_a_name_that_nobody_holds_is_refused() {
    let farm = Farm::start(0, 1);
    let token = farm.folder().join("user.token");
    std::fs::write(&token, farm.text(&["token", "create", "--role", "artist"])).expect("a file");
    let (token, ada) = (token.display().to_string(), farm.folder().join("ada"));
    let ada = ada.display().to_string();
    farm.text(&["enrol", "--token-file", &token, "--name", "ada", "--identity", &ada]);
    let (status, error) = said(&farm, &["deny", "nix"]);
    assert!(status == Some(4) && error.contains("nobody holds the name \"nix\""), "{error}");
    let (status, error) = said(&farm, &["deny", "ada"]);
    assert!(status == Some(0) && error.contains("user:ada is denied"), "{error}");
}

#[test]
fn fetch_tells_a_cancelled_job_from_a_failed_one() {
    let farm = Farm::start(0, 1);
    let job = farm.submit(&library("cornell-box.gltf"), &SMALL);
    farm.text(&["cancel", &job]);
    let (status, error) = said(&farm, &["fetch", &job, "-o", "out"]);
    let cancelled = "0 of 2 frames finished: the job was cancelled";
    assert!(status == Some(8) && error.contains(cancelled), "{error}");
}
