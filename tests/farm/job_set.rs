//! `tessera job set`: what artists and operators may change of a job that was submitted, where the
//! change shows, and what a refusal says and exits with.

use serde_json::Value;
use tessera_support::farm::{Farm, library};

/// A farm without nodes, whose jobs all wait.
fn farm() -> Farm {
    let mut farm = Farm::prepare();
    farm.start_coordinator();
    farm
}

/// Submits a job of this name as somebody; its id.
fn submit(farm: &Farm, who: &str, name: &str) -> String {
    farm.submit(
        &library("cornell-box.gltf"),
        &["--name", name, "--size", "16x16", "--spp", "1", "--identity", who],
    )
}

/// Status and standard error of `job set`.
fn set(farm: &Farm, who: &str, job: &str, options: &[&str]) -> (Option<i32>, String) {
    let output = farm.run(&[&["job", "set", job, "--identity", who], options].concat());
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// The row of a job in `jobs --json`.
fn row(farm: &Farm, job: &str) -> Value {
    let rows: Vec<Value> =
        serde_json::from_str(&farm.text(&["jobs", job, "--json"])).expect("rows");
    rows.into_iter().next().expect("the job")
}

fn priority(farm: &Farm, job: &str) -> Option<u64> {
    row(farm, job)["priority"].as_u64()
}

#[test]
fn artists_lower_a_priority_and_operators_raise_it() {
    let farm = farm();
    let (ada, olga) = (farm.enrol("artist", "ada"), farm.enrol("operator", "olga"));
    let eve = farm.enrol("artist", "eve");
    let job = submit(&farm, &ada, "beauty");
    assert_eq!(priority(&farm, &job), Some(50));

    let (status, said) = set(&farm, &ada, "beauty", &["--priority", "20"]);
    assert_eq!((status, said.trim()), (Some(0), format!("{job}: priority 20").as_str()));
    assert_eq!(priority(&farm, &job), Some(20));

    let (status, said) = set(&farm, &ada, &job, &["--priority", "51"]);
    assert_eq!(status, Some(5), "{said}");
    assert!(said.contains("priority 51 is above 50, to which only operators"), "{said}");
    assert!(said.contains(&format!("`tessera job set {job} --priority 51`")), "{said}");
    let (status, said) = set(&farm, &eve, &job, &["--priority", "10"]);
    assert!(status == Some(5) && said.contains("belongs to `ada`"), "{said}");
    assert_eq!(priority(&farm, &job), Some(20), "what is refused changes nothing");
    let told = farm.logs();
    let mut told = told.lines().filter(|line| line.contains("job changed"));
    let line = told.next().unwrap_or_default();
    assert!(line.contains("by=\"ada\"") && line.contains("to=\"priority 20\""), "{line}");
    assert_eq!(told.next(), None, "what is refused is no change");

    let (status, said) = set(&farm, &olga, &job, &["--priority", "80"]);
    assert_eq!(status, Some(0), "{said}");
    assert_eq!(priority(&farm, &job), Some(80));
    // Its owner may lower what an operator has raised, and not raise it again.
    assert_eq!(set(&farm, &ada, &job, &["--priority", "70"]).0, Some(0));
    assert_eq!(set(&farm, &ada, &job, &["--priority", "80"]).0, Some(5));
    assert_eq!(priority(&farm, &job), Some(70));
}

#[test]
fn a_new_pool_name_and_bound_of_nodes_are_shown() {
    let farm = farm();
    let ada = farm.enrol("artist", "ada");
    let job = submit(&farm, &ada, "beauty");
    let options = ["--pool", "gpu", "--name", "take 2", "--max-nodes", "3"];
    let (status, said) = set(&farm, &ada, &job[..8], &options);
    let words = format!("{job}: pool gpu, at most 3 nodes, name \"take 2\"");
    assert_eq!((status, said.trim()), (Some(0), words.as_str()));

    let listed = row(&farm, "take 2");
    assert_eq!(listed["job"], job.as_str(), "it is found by its new name");
    assert_eq!(listed["pool"], "gpu");
    let shown = farm.text(&["job", &job]);
    for line in ["name        take 2", "pool        gpu", "nodes       at most 3 at a time"] {
        assert!(shown.lines().any(|shown| shown == line), "{line:?}: {shown}");
    }
    let detail = farm.text(&["job", &job, "--json"]);
    let detail: Value = serde_json::from_str(&detail).expect("JSON");
    assert_eq!(detail["spec"]["max_nodes"], 3);

    let (status, said) = set(&farm, &ada, &job, &["--any-pool", "--no-max-nodes"]);
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("any pool, any number of nodes"), "{said}");
    assert_eq!(row(&farm, &job)["pool"], Value::Null);
    assert!(!farm.text(&["job", &job]).contains("at a time"));
}

#[test]
fn ended_and_unknown_jobs_are_not_changed() {
    let farm = farm();
    let ada = farm.enrol("artist", "ada");
    let job = submit(&farm, &ada, "beauty");
    farm.text(&["cancel", &job]);
    let (status, said) = set(&farm, &ada, &job, &["--name", "take 2"]);
    assert_eq!(status, Some(1), "{said}");
    assert!(
        said.contains(&format!("job {job} has ended already, and cannot be changed")),
        "{said}"
    );
    assert_eq!(row(&farm, &job)["name"], "beauty");

    let unknown = "00000000-0000-4000-8000-000000000000";
    for text in ["nobody", unknown] {
        let (status, said) = set(&farm, &ada, text, &["--priority", "10"]);
        assert_eq!(status, Some(4), "{said}");
        assert!(said.contains("there is no job") && said.contains(text), "{said}");
    }
    for options in [&[][..], &["--priority", "101"], &["--max-nodes", "0"], &["--name", ""]] {
        let (status, said) = set(&farm, &ada, "nobody", options);
        assert_eq!(status, Some(2), "{options:?}: {said}");
    }
}
