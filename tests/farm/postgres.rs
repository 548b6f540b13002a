//! A farm whose state is on a real PostgreSQL: killed and started again, led by one coordinator at
//! a time, and migrated from sled and back.

use super::store::{SMALL, utf8};
use std::process::Command;
use tessera_support::farm::{Farm, library};
use tessera_support::postgres::Postgres;

/// A job of a second or two on one thread, in 48 units.
const OPTIONS: [&str; 8] = ["--size", "256x192", "--spp", "48", "--tile", "32", "--format", "exr"];

/// The store's address, with a short term.
fn address(postgres: &Postgres) -> String {
    with_term(postgres, 3)
}

fn with_term(postgres: &Postgres, secs: u32) -> String {
    format!("{}?term={secs}", postgres.address())
}

fn command(farm: &Farm, postgres: &Postgres) -> Command {
    let mut command = farm.coordinator_command();
    command.args(["--store", &address(postgres)]);
    command
}

fn start(farm: &mut Farm, postgres: &Postgres) {
    start_at(farm, &address(postgres));
}

fn start_at(farm: &mut Farm, store: &str) {
    let mut command = farm.coordinator_command();
    command.args(["--store", store, "--stand-by"]);
    farm.run_coordinator(command);
}

/// What `fsck` says of the farm on PostgreSQL.
fn fsck(farm: &Farm, postgres: &Postgres) -> serde_json::Value {
    let data = farm.data();
    let store = address(postgres);
    let output = farm.run(&["fsck", "--json", "--data", utf8(&data), "--store", &store]);
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

// promise: P1
#[test]
fn a_farm_on_postgresql_survives_kills_of_both() {
    let Some(mut postgres) = Postgres::start("a_farm_on_postgresql_survives_kills_of_both") else {
        return;
    };
    let scene = library("cornell-box.gltf");
    let mut farm = Farm::prepare();
    // A coordinator whose database is away for longer than its term ends. On a busy machine, one
    // takes seconds to start again.
    let store = with_term(&postgres, 15);
    start_at(&mut farm, &store);
    farm.add_node("node-0", 1);
    let want = {
        let undisturbed = farm.submit(&scene, &OPTIONS);
        farm.hashes(&undisturbed)
    };
    let open = farm.submit(&scene, &OPTIONS);
    farm.wait_for("some commits", |farm| farm.units_committed(&open) >= 5);
    farm.kill_coordinator();
    start_at(&mut farm, &store);
    let before = farm.units_committed(&open);
    assert!(before >= 5, "{before}");
    postgres.crash_and_restart();
    assert_eq!(farm.hashes(&open), want, "{}", farm.logs());
    assert!(farm.stop_coordinator(), "{}", farm.logs());
    let report = fsck(&farm, &postgres);
    assert_eq!((&report["clean"], &report["units_committed_twice"]), (&true.into(), &0.into()));
    // A clean stop gives the lead back, so nothing is waited for.
    let command = command(&farm, &postgres);
    farm.run_coordinator(command);
    assert_eq!(farm.hashes(&open), want);
    assert!(!farm.data().join("sled/db").exists(), "nothing of sled");
}

#[test]
fn a_second_coordinator_is_refused_by_name_or_stands_by() {
    let what = "a_second_coordinator_is_refused_by_name_or_stands_by";
    let Some(postgres) = Postgres::start(what) else { return };
    let mut farm = Farm::prepare();
    start(&mut farm, &postgres);
    // The same farm on another machine has a copy of the folder, and another port.
    let copy = farm.folder().join("copy");
    let copied = Command::new("cp").arg("-a").arg(farm.data()).arg(&copy).status();
    assert!(copied.expect("cp runs").success());
    let store = address(&postgres);
    let second = ["coordinator", "--listen", "127.0.0.1:0", "--data", utf8(&copy), "--store"];
    let second = [&second[..], &[store.as_str()]].concat();
    let refused = farm.run(&second);
    let said = String::from_utf8_lossy(&refused.stderr);
    let names = format!("process {}", farm.coordinator_process());
    assert!(!refused.status.success() && said.contains(&names), "{said}");
    assert!(said.contains("--stand-by") && !said.contains("term="), "{said}");
    // One that stands by ends when it is told to, and leads once the other has ended.
    let standing = || farm.spawn(farm.command(&[&second[..], &["--stand-by"]].concat()), "second");
    let log = || std::fs::read_to_string(farm.folder().join("second.log")).unwrap_or_default();
    let mut told = standing();
    farm.wait_for("it to stand by", |_| log().contains("stands by"));
    assert!(told.terminate(), "{}", log());
    let mut second = standing();
    farm.wait_for("it to stand by", |_| log().matches("stands by").count() == 2);
    farm.signal_coordinator("STOP");
    farm.wait_for("it to lead", |_| log().contains("coordinator listens"));
    // The first one goes on, and learns that it does not lead any more.
    farm.signal_coordinator("CONT");
    farm.wait_for("the first to end", |farm| farm.logs().contains("does not lead"));
    assert!(second.terminate(), "{}", log());
}

#[test]
fn a_farm_is_migrated_to_postgresql_and_back() {
    let Some(postgres) = Postgres::start("a_farm_is_migrated_to_postgresql_and_back") else {
        return;
    };
    let scene = library("cornell-box.gltf");
    let mut farm = Farm::start(1, 1);
    let finished = farm.submit(&scene, &SMALL);
    let small = farm.hashes(&finished);
    let open = farm.submit(&scene, &OPTIONS);
    farm.wait_for("some commits", |farm| farm.units_committed(&open) >= 3);
    farm.kill_coordinator();
    let data = farm.data();
    let here = format!("sled:{}", utf8(&data));
    let there = address(&postgres);
    let said = farm.text(&["store", "migrate", "--from", &here, "--to", &there]);
    assert!(said.contains("both stores have the hash"), "{said}");
    assert_eq!(fsck(&farm, &postgres)["clean"], true);
    let refused = farm.run(&["fsck", "--data", utf8(&data)]);
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && text.contains("give that address by --store"), "{text}");
    start(&mut farm, &postgres);
    assert_eq!(farm.hashes(&finished), small);
    farm.wait_for("more commits", |farm| farm.units_committed(&open) >= 6);
    assert!(farm.stop_coordinator(), "{}", farm.logs());
    farm.text(&["store", "migrate", "--from", &there, "--to", &here]);
    assert_eq!(super::store::fsck(&farm)["clean"], true);
    farm.start_coordinator();
    let hashes = farm.hashes(&open);
    assert_eq!(farm.hashes(&finished), small);
    let undisturbed = farm.submit(&scene, &OPTIONS);
    assert_eq!(farm.hashes(&undisturbed), hashes, "{}", farm.logs());
}

#[test]
fn a_password_is_never_shown() {
    let farm = Farm::prepare();
    let data = farm.data();
    // Nobody listens there, and the option is none.
    for address in [
        "postgres://ada:hush@127.0.0.1:1/farm?connect_timeout=1",
        "postgres://ada:hush@127.0.0.1:1/farm?sslmode=hush",
        "mysql://ada:hush@127.0.0.1:1/farm",
    ] {
        let arguments = ["coordinator", "--data", utf8(&data), "--store", address];
        let mut command = farm.command(&arguments);
        let output = command.env("TESSERA_LOG", "trace").output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && !said.contains("hush"), "{said}");
    }
    let mut help = farm.command(&["coordinator", "--help"]);
    let help = help.env("TESSERA_STORE", "postgres://ada:hush@h/farm").output().expect("it runs");
    assert!(!String::from_utf8_lossy(&help.stdout).contains("hush"));
}

#[test]
fn a_database_that_cannot_be_used_is_said_with_what_to_do() {
    let farm = Farm::prepare();
    let data = farm.data();
    let said = |address: &str| {
        let output = farm.run(&["coordinator", "--data", utf8(&data), "--store", address]);
        assert_eq!(output.status.code(), Some(1), "{address}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let nobody = said("postgres://ada@127.0.0.1:1/farm?connect_timeout=1");
    assert!(nobody.contains("Connection refused"), "{nobody}");
    assert!(nobody.contains("hint: is PostgreSQL running there"), "{nobody}");
    let what = "a_database_that_cannot_be_used_is_said_with_what_to_do";
    let Some(postgres) = Postgres::start(what) else { return };
    let address = postgres.address();
    let none = said(&format!("{}none", address.trim_end_matches("postgres")));
    assert!(none.contains("3D000") && none.contains("hint: make the database"), "{none}");
}

#[test]
fn standbys_that_may_lack_commits_are_said() {
    let what = "standbys_that_may_lack_commits_are_said";
    let Some(postgres) = Postgres::start(what) else { return };
    let mut farm = Farm::prepare();
    start(&mut farm, &postgres);
    assert!(!farm.logs().contains("asynchronous"), "there is none: {}", farm.logs());
    assert!(farm.stop_coordinator(), "{}", farm.logs());
    let _standby = postgres.standby(postgres.port());
    start(&mut farm, &postgres);
    assert!(farm.logs().contains("standbys are asynchronous"), "{}", farm.logs());
}
