//! What commands say about shares: who has what, a refusal, and a sweep.

use crate::farm::members::{Member, long_job, resident_kib};
use std::time::Instant;
use tessera_protocol::JobId;
use tessera_protocol::client::{Request, Response, Role};
use tessera_support::farm::{Farm, library};
use tessera_transport::FarmClient;

const SMALL: [&str; 4] = ["--size", "32x32", "--spp", "4"];

/// Status and standard error of a command.
fn said(farm: &Farm, arguments: &[&str]) -> (Option<i32>, String) {
    let output = farm.run(arguments);
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

fn usage(farm: &Farm) -> serde_json::Value {
    let rows: serde_json::Value =
        serde_json::from_str(&farm.text(&["usage", "--json"])).expect("JSON");
    let rows = rows.as_array().expect("rows").clone();
    rows.into_iter().find(|row| row["jobs"] != 0 || row["jobs_ended"] != 0).unwrap_or_default()
}

// promise: P8
#[test]
fn usage_refusals_and_sweeps_say_what_somebody_has() {
    let mut farm = Farm::prepare();
    let mut command = farm.coordinator_command();
    command.args(["--jobs-per-user", "3", "--frames-per-user", "100"]);
    farm.run_coordinator(command);
    let scene = library("cornell-box.gltf");
    let submit = |frames: &str| {
        let scene = scene.display().to_string();
        let mut arguments = vec!["submit", scene.as_str(), "--frames", frames];
        arguments.extend(SMALL);
        said(&farm, &arguments)
    };
    let (status, error) = submit("1-101");
    assert!(status != Some(0) && error.contains("--frames-per-user"), "{error}");
    for frames in ["1-2", "1-3", "1"] {
        let (status, error) = submit(frames);
        assert_eq!(status, Some(0), "{error}");
    }
    let (status, error) = submit("1");
    assert!(status != Some(0) && error.contains("has 3 open jobs"), "{error}");
    assert!(error.contains("--jobs-per-user"), "{error}");
    let row = usage(&farm);
    assert_eq!((&row["jobs"], &row["frames"]), (&3.into(), &6.into()), "{row}");
    let owner = row["owner"].as_str().expect("a name").to_owned();
    let table = farm.text(&["usage"]);
    assert!(table.starts_with("OWNER") && table.contains(&owner), "{table}");

    let (status, error) = said(&farm, &["cancel", "--owner", &owner]);
    assert!(status == Some(0) && error.contains("cancelled 3 jobs;"), "{error}");
    let (status, error) = said(&farm, &["sweep", "--owner", &owner, "--dry-run"]);
    assert!(status == Some(0) && error.contains("3 jobs of"), "{error}");
    assert!(error.contains("would be deleted (0 of them cancelled)"), "{error}");
    assert_eq!(usage(&farm)["jobs_ended"], 3, "a dry run deletes nothing");
    let (status, error) = said(&farm, &["sweep", "--owner", &owner]);
    assert!(status == Some(0) && error.contains("deleted"), "{error}");
    assert_eq!(usage(&farm), serde_json::Value::Null);
}

/// A coordinator that lets one user have as much as 400 films need.
fn wide(farm: &Farm) -> std::process::Command {
    let mut command = farm.coordinator_command();
    command.args(["--frames-per-user", "200000000", "--units-per-user", "2000000000"]);
    command
}

// promise: P8
#[test]
fn films_that_nobody_has_begun_cost_next_to_nothing() {
    let mut farm = Farm::prepare();
    farm.run_coordinator(wide(&farm));
    let before = resident_kib(farm.coordinator_process(), "VmRSS:");
    let (eve, _) = Member::new(&farm, Role::Artist, "eve");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let client = FarmClient::new(eve.link().await.expect("a connection"));
        for _ in 0..400 {
            let (job, spec) = (JobId::new(), Box::new(long_job().into()));
            let answer = client.request(&Request::Submit { job, spec }).await.expect("an answer");
            assert_eq!(answer, Response::Accepted(job));
        }
        client.close().await;
    });
    let after = resident_kib(farm.coordinator_process(), "VmRSS:");
    assert!(farm.stop_coordinator(), "{}", farm.logs());
    let begun = Instant::now();
    farm.run_coordinator(wide(&farm));
    let again = resident_kib(farm.coordinator_process(), "VmRSS:");
    println!(
        "400 jobs of 262,144 frames: {before} KiB without, {after} KiB with them, {again} KiB \
         after a start of {:?}",
        begun.elapsed()
    );
    let most = before + (16 << 10);
    assert!(after <= most && again <= most, "{before} KiB, then {after} and {again} KiB");
}
