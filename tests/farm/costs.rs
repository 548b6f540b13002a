//! Device time, what it costs, and budgets, with real processes: nothing is counted twice or lost,
//! and nobody spends more than a budget and what was running.

use super::store::utf8;
use serde_json::Value;
use tessera_support::farm::{Farm, library, takes_minutes};

/// A second of any device costs 1.
const RULES: &str = "currency = 'EUR'\n[[price]]\nper_hour = 3600\n";
/// What each of three owners may spend.
const BUDGET: f64 = 1.5;

fn json(farm: &Farm, arguments: &[&str]) -> Value {
    serde_json::from_str(&farm.text(&[arguments, &["--json"]].concat())).expect("JSON")
}

/// Sets the rules, with these budgets; what was said.
fn set_rules(farm: &Farm, budgets: &str) -> String {
    let file = farm.folder().join("rules.toml");
    std::fs::write(&file, format!("{RULES}{budgets}")).expect("a file");
    let output = farm.run(&["cost", "rules", "--set", utf8(&file)]);
    assert!(output.status.success(), "{}", farm.logs());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Device time of all owners in milliseconds, by the ledger.
fn ledger_millis(farm: &Farm) -> u64 {
    let report = json(farm, &["cost"]);
    let owners = report["owners"].as_array().expect("owners").iter();
    let lines = owners.flat_map(|owner| owner["spent"].as_array().expect("lines"));
    lines.map(|line| line["millis"].as_u64().expect("milliseconds")).sum()
}

/// What the journal of the stopped coordinator has.
fn journal_millis(farm: &Farm) -> u64 {
    let report = json(farm, &["fsck", "--data", utf8(&farm.data())]);
    assert_eq!(report["clean"], Value::Bool(true), "{report}");
    report["device_millis"].as_u64().expect("milliseconds")
}

/// What jobs had in work at once, and what their units cost.
#[derive(Debug, Default)]
struct Load {
    leased: f64,
    unit: f64,
}

impl Load {
    fn note(&mut self, rows: &[Value]) {
        let of = |row: &Value, name: &str| row[name].as_f64().unwrap_or_default();
        self.leased = self.leased.max(rows.iter().map(|row| of(row, "units_leased")).sum());
        for row in rows {
            let units = of(row, "units_committed").max(1.0);
            self.unit = self.unit.max(of(row, "cost") / units);
        }
    }

    /// What was running may have cost. A tile takes at most some times as long as others.
    fn running(&self) -> f64 {
        (self.leased + 4.0) * 4.0 * self.unit
    }
}

#[test]
fn the_ledger_has_the_device_time_of_the_journal_over_restarts() {
    let mut farm = Farm::start(2, 1);
    set_rules(&farm, "");
    let options = ["--size", "128x96", "--spp", "32", "--tile", "16", "--frames", "1-3"];
    let job = farm.submit(&library("cornell-box.gltf"), &options);
    farm.wait_for("the first units", |farm| farm.units_committed(&job) > 20);
    farm.kill_coordinator();
    farm.start_coordinator();
    farm.text(&["wait", &job]);
    let detail = json(&farm, &["job", &job]);
    let millis = detail["summary"]["device_millis"].as_u64().expect("milliseconds");
    // A second costs 1.
    let cost = detail["summary"]["cost"].as_f64().expect("a cost");
    assert!((cost - millis as f64 / 1000.0).abs() <= 0.001, "{cost} for {millis} ms");
    assert_eq!(ledger_millis(&farm), millis);
    let said = farm.text(&["job", &job]);
    assert!(said.contains("time ") && said.contains(" EUR"), "{said}");
    let csv = farm.text(&["cost", "--csv"]);
    let seconds = format!(",{}.{:03},", millis / 1000, millis % 1000);
    assert!(csv.starts_with("month,owner,group,device,device_seconds,"), "{csv}");
    assert!(csv.contains(&seconds) && csv.lines().count() == 2, "{csv}");
    assert!(farm.text(&["cost", "--by", "job"]).contains(&job));

    // Of a job that is forgotten, its owner has spent it all the same.
    farm.text(&["forget", &job]);
    assert_eq!(ledger_millis(&farm), millis);
    assert!(farm.stop_coordinator(), "{}", farm.logs());
    assert_eq!(journal_millis(&farm), millis);
    farm.start_coordinator();
    assert_eq!(ledger_millis(&farm), millis);
}

#[test]
fn finished_frames_cost_for_as_long_as_they_are_kept() {
    let mut farm = Farm::start(1, 1);
    let job = farm.submit(&library("cornell-box.gltf"), &["--size", "64x64", "--spp", "1"]);
    farm.text(&["wait", &job]);
    // A price at which a kilobyte costs much in a second.
    let set = |farm: &Farm, price: &str| {
        let file = farm.folder().join("storage.toml");
        std::fs::write(&file, format!("currency = 'EUR'\nstorage_gb_month = {price}\n")).unwrap();
        assert!(farm.run(&["cost", "rules", "--set", utf8(&file)]).status.success());
    };
    set(&farm, "1000000000");
    assert!(farm.text(&["cost", "rules"]).contains("storage_gb_month = 1000000000"));
    farm.kill_coordinator();
    std::thread::sleep(std::time::Duration::from_secs(2));
    farm.start_coordinator();
    // New rules are for what comes: what was is counted before.
    set(&farm, "0");
    let stored = |farm: &Farm| json(farm, &["cost"])["owners"][0]["stored"].clone();
    let before = stored(&farm);
    let bytes: u64 = json(&farm, &["job", &job, "--frames"])["frames"][0]["state"]["done"]
        .as_array()
        .expect("files")
        .iter()
        .filter_map(|file| file["length"].as_u64())
        .sum();
    let cost = before["cost"].as_f64().expect("a cost");
    // 2 s at least of 30 days, at 1 for a byte.
    let least = bytes as f64 * 2.0 / 2_592_000.0;
    assert!((least..100.0 * least).contains(&cost), "{before}, at least {least}");
    let (said, all) = (farm.text(&["job", &job]), farm.text(&["cost"]));
    assert!(said.lines().any(|line| line.starts_with("storage ")), "{said}");
    assert!(all.contains("storage") && all.contains(" MB h"), "{all}");
    let csv = farm.text(&["cost", "--csv"]);
    let line = csv.lines().find(|line| line.contains(",storage,")).expect("a line");
    assert!(line.contains(",0.000,0.000,") && line.ends_with(",EUR"), "{csv}");
    std::thread::sleep(std::time::Duration::from_secs(1));
    farm.text(&["forget", &job]);
    assert_eq!(stored(&farm), before, "without a price nothing is counted");
}

#[test]
fn three_budgets_under_load_hold_and_go_on_when_they_are_raised() {
    // The nodes come when all jobs are there: later ones would be refused.
    let mut farm = Farm::prepare();
    farm.start_coordinator();
    let people = ["ada", "bob", "eve"].map(|name| (name, farm.enrol("artist", name)));
    let budgets = |amount: f64| {
        let of =
            |name: &str| format!("[[budget]]\nof = {{ owner = '{name}' }}\namount = {amount}\n");
        people.iter().map(|(name, _)| of(name)).collect::<String>()
    };
    assert!(set_rules(&farm, &budgets(BUDGET)).contains("1 price, 3 budgets"));
    let options = ["--size", "128x96", "--spp", "64", "--tile", "16", "--depth", "4"];
    let submit = |farm: &Farm, who: &str| {
        farm.submit(&library("cornell-box.gltf"), &[&options[..], &["--identity", who]].concat())
    };
    // Each has three jobs, which cost more together.
    let jobs: Vec<String> =
        (0..3).flat_map(|_| people.iter().map(|(_, who)| submit(&farm, who))).collect();
    let row = |farm: &Farm, job: &String| json(farm, &["job", job])["summary"].clone();
    ["node-0", "node-1"].into_iter().for_each(|name| farm.add_node(name, 1));
    let mut load = Load::default();
    farm.wait_for("budgets to be used up", |farm| {
        let rows: Vec<Value> = jobs.iter().map(|job| row(farm, job)).collect();
        load.note(&rows);
        let report = json(farm, &["cost"]);
        let mut budgets = report["budgets"].as_array().expect("budgets").iter();
        let idle = rows.iter().all(|row| row["units_leased"] == 0);
        idle && budgets.all(|budget| budget["reached"] == "pause")
    });
    let report = json(&farm, &["cost"]);
    let rows: Vec<Value> = jobs.iter().map(|job| row(&farm, job)).collect();
    assert!(rows.iter().any(|row| row["waits"] == "budget"), "the jobs are too cheap: {report}");
    for budget in report["budgets"].as_array().expect("budgets") {
        let spent = budget["spent"].as_f64().expect("an amount");
        println!("{spent} of {BUDGET} spent; {load:?}");
        assert!(spent <= BUDGET + load.running(), "{spent}, {load:?}: {report}");
    }
    // New jobs are refused, by name; the farm's others are not.
    let scene = library("cornell-box.gltf");
    let refused = farm.run(&["submit", utf8(&scene), "--identity", &people[0].1]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("budget of `ada` is used up"), "{said}");
    let why = farm.text(&[
        "explain",
        rows.iter()
            .position(|row| row["waits"] == "budget")
            .map(|at| jobs[at].as_str())
            .expect("one waits"),
    ]);
    assert!(why.contains("budget"), "{why}");
    // Each sees itself and its own budget.
    let own = json(&farm, &["cost", "--identity", &people[1].1]);
    let budgets_seen = own["budgets"].as_array().expect("budgets");
    assert_eq!((own["owners"].as_array().map(Vec::len), budgets_seen.len()), (Some(1), 1), "{own}");

    set_rules(&farm, &budgets(10_000.0));
    let alone = farm.hashes(&jobs[0]);
    for job in &jobs {
        assert_eq!(farm.hashes(job), alone, "{}", farm.logs());
    }
    let millis = ledger_millis(&farm);
    assert!(farm.stop_coordinator(), "{}", farm.logs());
    let journal = journal_millis(&farm);
    // Each of the three owners' sums is cut to whole milliseconds.
    assert!(millis <= journal && journal <= millis + 3, "{millis}, {journal}");
}

/// Scenes, with options that make them unlike each other.
const PREDICTED: [(&str, &[&str]); 10] = [
    ("cornell-box.gltf", &["--spp", "16"]),
    ("cornell-box.gltf", &["--spp", "16", "--depth", "3", "--crop", "32,24,128x96"]),
    ("cornell-box.gltf", &["--spp", "8", "--denoise"]),
    ("cornell-box.gltf", &["--spp", "8", "--frames", "1-4", "--aov", "albedo,normal"]),
    ("spinning-cube.gltf", &["--spp", "32"]),
    ("spinning-cube.gltf", &["--spp", "8", "--frames", "1-6"]),
    ("spinning-cube.gltf", &["--spp", "16", "--env", "1,1,1", "--overscan", "16"]),
    ("cornell-box.gltf", &["--spp", "32", "--depth", "1"]),
    ("cornell-box.gltf", &["--spp", "16", "--filter", "box", "--tile", "32"]),
    ("spinning-cube.gltf", &["--spp", "64", "--depth", "2"]),
];

/// By how much a job took more, or less, than was said of it: 0.1 is a tenth.
fn error_of(farm: &Farm, size: &str, (scene, options): &(&str, &[&str])) -> f64 {
    let scene = library(scene);
    let options = [&["--size", size], *options].concat();
    let asked = [&["submit", utf8(&scene), "--test-frame", "--dry-run"], &options[..]].concat();
    let predicted = json(farm, &asked)["prediction"]["device_millis"].as_f64().expect("a time");
    let job = farm.submit(&scene, &options);
    farm.text(&["wait", &job]);
    let took = json(farm, &["job", &job])["summary"]["device_millis"].as_f64().expect("a time");
    println!("{predicted} ms predicted, {took} taken: {scene:?} {options:?}");
    (predicted / took - 1.0).abs()
}

#[test]
fn a_test_frame_says_what_a_job_takes() {
    let farm = Farm::start(2, 1);
    set_rules(&farm, "");
    let (count, size) = match takes_minutes("ten predictions") {
        true => (PREDICTED.len(), "1280x720"),
        false => (2, "240x135"),
    };
    let jobs = PREDICTED[..count].iter();
    let mut errors: Vec<f64> = jobs.map(|job| error_of(&farm, size, job)).collect();
    errors.sort_by(f64::total_cmp);
    let median = (errors[count / 2] + errors[(count - 1) / 2]) / 2.0;
    println!("median error {median:.3} of {count}: {errors:.3?}");
    // On a machine under load, a unit takes twice as long as the same one a moment before.
    assert!(median < if count > 2 { 0.15 } else { 2.0 }, "{errors:?}");

    // It says so to people, and leaves no job of the test behind.
    let scene = library("cornell-box.gltf");
    let output =
        farm.run(&["submit", utf8(&scene), "--size", "64x48", "--spp", "4", "--test-frame"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("test frame: ") && said.contains(" EUR; about "), "{said}");
    let jobs = json(&farm, &["jobs"]);
    let names = jobs.as_array().expect("jobs").iter().map(|job| job["name"].clone());
    assert!(!names.clone().any(|name| name == "cornell-box-test"), "{jobs}");
}
