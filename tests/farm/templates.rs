//! Templates on a real farm: the jobs of one run in their order and are changed as one, hostile
//! ones send nothing, and a thousand values are a matter of moments.

use serde_json::Value;
use std::path::PathBuf;
use std::time::Instant;
use tessera_support::farm::{Farm, library};

/// A step of two frames that is over in a moment.
const LIGHT: &str = "size = '64x64'\nspp = 8\nframes = '1-2'\ntile = 16\n";

/// Writes a template into the farm's folder, with the library's box as `{scene}`.
fn template(farm: &Farm, name: &str, steps: &str) -> PathBuf {
    let scene = library("cornell-box.gltf");
    let head = format!(
        "tessera = 1\nname = '{name}'\n[parameters.scene]\ntype = 'file'\ndefault = '{}'\n\
         [parameters.seed]\ntype = 'integer'\ndefault = 7\n",
        scene.display()
    );
    let path = farm.folder().join(format!("{name}.toml"));
    std::fs::write(&path, head + steps).expect("a template");
    path
}

pub(super) fn json(farm: &Farm, arguments: &[&str]) -> Value {
    serde_json::from_str(&farm.text(arguments)).expect("an answer as JSON")
}

/// The states of the jobs of a batch.
fn states(farm: &Farm, batch: &str) -> Vec<String> {
    let jobs = farm.text(&["jobs", "--batch", batch, "--json"]);
    let rows: Value = serde_json::from_str(&jobs).expect("jobs as JSON");
    let rows = rows.as_array().expect("a list of jobs").clone();
    rows.iter().map(|row| row["state"].as_str().expect("a state").to_owned()).collect()
}

// promise: P4
#[test]
fn jobs_of_a_template_run_in_order_and_have_the_usual_bits() {
    let farm = Farm::start(2, 1);
    let steps = format!(
        "[[steps]]\nname = 'last'\nrender = '{{scene}}'\nafter = ['film:frames', 'look']\n{LIGHT}\
         [[steps]]\nname = 'look'\nrender = '{{scene}}'\neach = {{ seed = '1-3' }}\n\
         seed = '{{seed}}'\nsize = '32x32'\nspp = 4\n\
         [[steps]]\nname = 'film'\nrender = '{{scene}}'\nseed = '{{number}}'\n{LIGHT}"
    );
    let steps = format!("[parameters.number]\ntype = 'integer'\ndefault = 7\n{steps}");
    let path = template(&farm, "shot", &steps);
    let path = path.to_str().expect("a path");
    // A parameter and a variable of a sweep have different names.
    let refused = farm.run(&["submit", path, "--dry-run"]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("step `look`: each: `seed` is a parameter, too"), "{said}");
    let text = std::fs::read_to_string(path).expect("the template");
    let renamed = text.replace(
        "each = { seed = '1-3' }\nseed = '{seed}'",
        "each = { s = '1-3' }\n\
        seed = '{s}'",
    );
    std::fs::write(path, renamed).expect("the template");

    let told = farm.text(&["submit", path, "--dry-run"]);
    assert!(told.contains("jobs     5") && told.contains("shot.look.s=3"), "{told}");
    assert!(told.contains("shot.film:frames, shot.look.s=1, shot.look.s=2, and 1 more"), "{told}");
    let sent = json(&farm, &["submit", path, "--set", "number=11", "--json", "--wait"]);
    let batch = sent["batch"].as_str().expect("a batch");
    assert_eq!(states(&farm, batch), ["done"; 5]);
    let jobs = sent["jobs"].as_array().expect("the jobs");
    let id = |step: &str| {
        let job = jobs.iter().find(|job| job["step"] == step).expect("a job of the step");
        job["job"].as_str().expect("an id").to_owned()
    };
    let shown = farm.text(&["job", &id("last")]);
    assert!(shown.contains(&format!("batch       {batch}")), "{shown}");
    // The pixels are those of a job that was submitted by hand.
    let plain = ["--size", "64x64", "--spp", "8", "--frames", "1-2", "--seed", "11"];
    let alone = farm.submit(&library("cornell-box.gltf"), &plain);
    farm.text(&["wait", &alone]);
    assert_eq!(farm.hashes(&id("film")), farm.hashes(&alone));
    let ended = |id: &str| json(&farm, &["job", id, "--json"])["summary"]["ended_at"].as_u64();
    assert!(ended(&id("film")) <= ended(&id("last")));
    farm.text(&["forget", "--batch", batch]);
    assert!(states(&farm, batch).is_empty());
}

#[test]
fn a_template_of_which_a_job_is_refused_sends_nothing() {
    let farm = Farm::start(0, 1);
    let step = "[[steps]]\nname = 'a'\nrender = '{scene}'\nsize = '16x16'\nspp = 1\n";
    for (wrong, told) in [
        ("[[steps]]\nname = 'b'\ncommand = 'rm -rf /'\n", "step `b`: needs either render"),
        ("[[steps]]\nname = 'b'\nrender = '{scene}'\nrun = 'x'\n", "step `b`: run: `tessera"),
        ("[[steps]]\nname = 'b'\nrender = '{scene}'\nspp = 0\n", "step `b`: invalid value '0'"),
        ("[[steps]]\nname = 'b'\nrender = 'none.gltf'\n", "step `b`: "),
        ("[[steps]]\nname = 'b'\nrender = '{scene}'\nafter = ['b']\n", "circle: b → b"),
        ("[[steps]]\nname = 'b'\nrender = '{scene}'\nout = '/etc/x'\n", "not an option of a job"),
        (
            "[[steps]]\nname = 'b'\nrender = '{scene}'\neach = { x = '1-4096', y = '1-4096' }\n",
            "more than 4096 jobs",
        ),
    ] {
        let path = template(&farm, "bad", &format!("{step}{wrong}"));
        let output = farm.run(&["submit", path.to_str().expect("a path")]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && output.stdout.is_empty(), "{wrong}");
        assert!(said.contains(told) && said.contains("bad.toml"), "{wrong}\n{said}");
    }
    // What only the farm can refuse: those that were accepted before are cancelled.
    let endless = "[[steps]]\nname = 'b'\nrender = '{scene}'\nafter = ['a']\npool = 'gpu'\n\
        frames = '1-3'\n[[steps]]\nname = 'c'\nrender = '{scene}'\nafter = ['b:frames']\n\
        frames = '2-4'\n";
    let path = template(&farm, "half", &format!("{step}{endless}"));
    let output = farm.run(&["submit", path.to_str().expect("a path")]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && output.stdout.is_empty(), "{said}");
    let told = said.contains("has no frame 4") && said.contains("2 jobs of it cancelled");
    assert!(told, "{said}");
    assert!(!farm.text(&["jobs", "--state", "open"]).contains("half"));
    let scene = library("cornell-box.gltf");
    let output = farm.run(&["submit", scene.to_str().expect("a path"), "--set", "a=1"]);
    assert_eq!(output.status.code(), Some(2));
    let path = path.to_str().expect("a path");
    let output = farm.run(&["submit", path, "--spp", "4"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && said.contains("--spp is not taken"), "{said}");
}

#[test]
fn twelve_steps_and_a_thousand_values_are_cancelled_as_one() {
    let farm = Farm::start(0, 1);
    let mut steps = "[[steps]]\nname = 's0'\nrender = '{scene}'\nsize = '16x16'\nspp = 1\n\
        [[steps]]\nname = 'wedge'\nrender = '{scene}'\nafter = ['s0']\nsize = '16x16'\nspp = 1\n\
        seed = '{v}'\neach = { v = '1-1000' }\n"
        .to_owned();
    for at in 1..11 {
        steps += &format!(
            "[[steps]]\nname = 's{at}'\nrender = '{{scene}}'\nafter = ['s{}']\nsize = '16x16'\n\
             spp = {at}\n",
            at - 1
        );
    }
    let path = template(&farm, "many", &steps);
    let path = path.to_str().expect("a path");
    let begun = Instant::now();
    let told = farm.text(&["submit", path, "--dry-run"]);
    let checked = begun.elapsed();
    assert!(told.contains("jobs     1011"), "{}", &told[..200]);
    let begun = Instant::now();
    let sent = json(&farm, &["submit", path, "--json"]);
    let submitted = begun.elapsed();
    println!("1,011 jobs: checked in {checked:.2?}, checked and submitted in {submitted:.2?}");
    let batch = sent["batch"].as_str().expect("a batch");
    assert_eq!(sent["jobs"].as_array().expect("the jobs").len(), 1011);
    let begun = Instant::now();
    farm.text(&["cancel", "--batch", batch]);
    println!("cancelled in {:.2?}", begun.elapsed());
    let states = states(&farm, batch);
    assert_eq!(states.len(), 1011);
    assert!(states.iter().all(|state| state == "cancelled"));
}

// promise: P8
#[test]
fn a_preset_is_published_by_an_admin_and_used_by_all() {
    let farm = Farm::start(1, 1);
    let steps =
        format!("[[steps]]\nname = 'look'\nrender = '{{scene}}'\nseed = '{{seed}}'\n{LIGHT}");
    let path = template(&farm, "look", &steps);
    let path = path.to_str().expect("a path");
    let ada = farm.enrol("artist", "ada");
    let as_ada = |arguments: &[&str]| {
        let mut command = farm.command(arguments);
        command.env("TESSERA_IDENTITY", &ada).output().expect("it runs")
    };
    let said = |output: &std::process::Output| {
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.success(), error)
    };
    let (well, error) = said(&as_ada(&["preset", "publish", "looks", path]));
    assert!(!well && error.contains("this needs the role admin"), "{error}");
    farm.text(&["preset", "publish", "looks", path]);
    assert!(farm.text(&["preset", "list"]).contains("looks"));
    let text = std::fs::read_to_string(path).expect("the template");
    assert_eq!(farm.text(&["preset", "show", "looks"]), text.trim());
    // One that is no template is not published.
    let broken = farm.folder().join("broken.toml");
    std::fs::write(&broken, "tessera = 1\n").expect("a file");
    let broken = broken.to_str().expect("a path");
    let (well, error) = said(&farm.run(&["preset", "publish", "looks", broken]));
    assert!(!well && error.contains("missing field `name`"), "{error}");
    // The jobs are those of the file, and outlive the preset and a restart.
    let used = ["submit", "preset:looks", "--set", "seed=3", "--json"];
    let output = as_ada(&used);
    let (well, error) = said(&output);
    assert!(well, "{error}");
    let sent: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let used = sent["jobs"][0]["job"].as_str().expect("an id").to_owned();
    let own = json(&farm, &["submit", path, "--set", "seed=3", "--json"]);
    let own = own["jobs"][0]["job"].as_str().expect("an id").to_owned();
    farm.text(&["preset", "remove", "looks"]);
    let (well, error) = said(&as_ada(&["submit", "preset:looks"]));
    assert!(!well && error.contains("no preset"), "{error}");
    assert_eq!(farm.hashes(&used), farm.hashes(&own));
    let log = farm.text(&["audit", "--json"]);
    assert!(log.contains("preset published") && log.contains("preset taken away"), "{log}");
}
