//! A farm that outlives its machine: the state on a real PostgreSQL, the files on a real S3 server,
//! and coordinators that have nothing but their addresses and the farm's key.

use super::store::utf8;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tessera_support::farm::{Farm, Process, library, pixels_sha256};
use tessera_support::ports;
use tessera_support::postgres::Postgres;
use tessera_support::seaweed::{KEY, SECRET, Seaweed};

/// A job of a second or two on one thread, in 48 units.
const OPTIONS: [&str; 8] = ["--size", "256x192", "--spp", "48", "--tile", "32", "--format", "exr"];
/// A key for the farm's files, and one of another farm.
const FARM_KEY: &str = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=";
const OTHER_KEY: &str = "YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXphYmNkZWY=";

/// Places of a farm that are not the coordinators' own.
pub(super) struct Elsewhere {
    pub(super) postgres: Postgres,
    pub(super) bucket: Seaweed,
    /// Where coordinators listen, in order.
    places: [String; 2],
    /// Seconds of a leader's term.
    pub(super) term: u32,
}

impl Elsewhere {
    pub(super) fn start(what: &str, farm: &Farm) -> Option<Self> {
        let (postgres, bucket) = (Postgres::start(what)?, Seaweed::start(what)?);
        let places = [farm.address(), ports::udp(Ipv4Addr::LOCALHOST.into()).to_string()];
        Some(Self { postgres, bucket, places, term: 3 })
    }

    pub(super) fn store(&self) -> String {
        format!("{}?term={}", self.postgres.address(), self.term)
    }

    /// A coordinator's command, with a folder of its own.
    pub(super) fn coordinator(&self, farm: &Farm, (data, place): (&Path, usize)) -> Command {
        let listen = self.places[place].as_str();
        let mut command = farm.command(&["coordinator", "--data", utf8(data), "--listen", listen]);
        command.args(["--store", &self.store(), "--blobs", &self.bucket.address("farm")]);
        command.args(["--stand-by", "--check-first", "0"]);
        command.env("AWS_ACCESS_KEY_ID", KEY).env("AWS_SECRET_ACCESS_KEY", SECRET);
        command.env("TESSERA_FARM_KEY", FARM_KEY);
        command
    }

    /// Starts a coordinator that stands by.
    pub(super) fn stand_by(&self, farm: &Farm, at: (&Path, usize), log: &str) -> Process {
        let standing = farm.spawn(self.coordinator(farm, at), log);
        farm.wait_for("it to stand by", |farm| said_in(farm, log).contains("stands by"));
        standing
    }

    /// Both places, as nodes and commands name them.
    pub(super) fn both(&self) -> String {
        self.places.join(",")
    }
}

/// What a process has said.
pub(super) fn said_in(farm: &Farm, log: &str) -> String {
    std::fs::read_to_string(farm.folder().join(format!("{log}.log"))).unwrap_or_default()
}

/// A user who knows both places.
pub(super) struct User<'a> {
    pub(super) farm: &'a Farm,
    pub(super) identity: String,
    pub(super) both: String,
}

impl User<'_> {
    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = self.farm.command(arguments);
        command.env("TESSERA_IDENTITY", &self.identity).env("TESSERA_COORDINATOR", &self.both);
        command.output().expect("it runs")
    }

    pub(super) fn text(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {said}\n{}", self.farm.logs());
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    pub(super) fn json(&self, arguments: &[&str]) -> serde_json::Value {
        serde_json::from_str(&self.text(&[arguments, &["--json"]].concat())).expect("JSON")
    }

    pub(super) fn submit(&self, scene: &Path) -> String {
        self.text(&[&["submit", utf8(scene)], &OPTIONS[..]].concat())
    }

    pub(super) fn committed(&self, job: &str) -> u64 {
        self.json(&["job", job])["summary"]["units_committed"].as_u64().expect("a count")
    }

    pub(super) fn hash(&self, job: &str) -> String {
        self.text(&["wait", job]);
        let folder = self.farm.folder().join(format!("{job}-{}", self.both.len()));
        self.text(&["fetch", job, "-o", utf8(&folder)]);
        let files = std::fs::read_dir(&folder).expect("a folder");
        let mut files = files.map(|file| file.expect("a file").path());
        let frame: PathBuf = files
            .find(|path| path.extension().is_some_and(|extension| extension == "exr"))
            .expect("a frame");
        pixels_sha256(&frame)
    }
}

// promise: P1, P5
#[test]
fn a_coordinator_with_an_empty_folder_takes_over() {
    let mut farm = Farm::prepare();
    let what = "a_coordinator_with_an_empty_folder_takes_over";
    let Some(elsewhere) = Elsewhere::start(what, &farm) else { return };
    let (first, scene) = (farm.data(), library("cornell-box.gltf"));
    let command = elsewhere.coordinator(&farm, (&first, 0));
    farm.run_coordinator(command);
    let places = vec![
        ("TESSERA_DEVICE".into(), "cpu".into()),
        ("TESSERA_COORDINATOR".into(), elsewhere.both().into()),
    ];
    farm.add_node_with("node-0", &["--threads", "1"], places);
    let identities = ["ada", "bob"].map(|name| farm.enrol("admin", name));
    let [ada, bob] =
        identities.map(|identity| User { farm: &farm, identity, both: elsewhere.both() });
    let want = ada.hash(&ada.submit(&scene));
    ada.text(&["deny", "user:bob", "--reason", "left"]);
    let entries = ada.json(&["audit"])["entries"].as_u64().expect("a count");
    let open = ada.submit(&scene);
    let second = farm.folder().join("second");
    let mut second = elsewhere.stand_by(&farm, (&second, 1), "second");
    farm.wait_for("some commits", |_| ada.committed(&open) >= 5);
    // The first machine is gone with its disk.
    let former = farm.folder().join("former");
    farm.signal_coordinator("KILL");
    std::fs::rename(&first, &former).expect("the folder is moved");
    farm.wait_for("it to lead", |farm| said_in(farm, "second").contains("coordinator listens"));
    assert_eq!(ada.hash(&open), want, "{}", said_in(&farm, "second"));
    // Its results are in the bucket, so that none was lost.
    let said = said_in(&farm, "second");
    assert!(!said.contains("rendered again"), "{said}");
    assert_eq!(ada.hash(&ada.submit(&scene)), want);
    // Who was shut out still is, and the account of it has no gap.
    let refused = bob.run(&["jobs"]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && said.contains("left"), "{said}");
    let audit = ada.json(&["audit"]);
    assert!(audit["entries"].as_u64() >= Some(entries), "{audit}");
    assert_eq!(audit["problems"], serde_json::json!([]), "{audit}");
    assert!(audit.to_string().contains("user:bob"), "{audit}");
    // The first one comes back with a disk that is no longer the newest.
    let open = ada.submit(&scene);
    farm.wait_for("some commits", |_| ada.committed(&open) >= 5);
    second.kill();
    let mut back = farm.spawn(elsewhere.coordinator(&farm, (&former, 0)), "back");
    farm.wait_for("it to lead", |farm| said_in(farm, "back").contains("coordinator listens"));
    assert_eq!(ada.hash(&open), want, "{}", said_in(&farm, "back"));
    let audit = ada.json(&["audit"]);
    assert_eq!(audit["problems"], serde_json::json!([]), "{audit}");
    let here = format!("sled:{}", utf8(&former));
    assert!(back.terminate(), "{}", said_in(&farm, "back"));
    let data = farm.folder().join("second");
    let there = elsewhere.store();
    let stale = format!("sled:{}", utf8(&data));
    let refused = farm.run(&["store", "migrate", "--from", &there, "--to", &stale]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && said.contains("led it last"), "{said}");
    farm.text(&["store", "migrate", "--from", &there, "--to", &here]);
    assert!(former.join("authority").exists() && former.join("sled/db").exists());
}

#[test]
fn a_key_of_another_farm_or_none_is_refused_by_name() {
    let mut farm = Farm::prepare();
    let what = "a_key_of_another_farm_or_none_is_refused_by_name";
    let Some(elsewhere) = Elsewhere::start(what, &farm) else { return };
    let first = farm.data();
    let command = elsewhere.coordinator(&farm, (&first, 0));
    farm.run_coordinator(command);
    assert!(farm.stop_coordinator(), "{}", farm.logs());
    let refused = |change: &dyn Fn(&mut Command), data: &Path| {
        let mut command = elsewhere.coordinator(&farm, (data, 1));
        change(&mut command);
        let output = command.output().expect("it runs");
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let empty = farm.folder().join("empty");
    let said = refused(&|command| _ = command.env_remove("TESSERA_FARM_KEY"), &empty);
    assert!(said.contains("--farm-key FILE") && said.contains("TESSERA_FARM_KEY"), "{said}");
    let said = refused(&|command| _ = command.env("TESSERA_FARM_KEY", OTHER_KEY), &empty);
    assert!(said.contains("`authority`") && said.contains("another key"), "{said}");
    let said = refused(&|command| _ = command.env("TESSERA_FARM_KEY", "hunter2"), &empty);
    assert!(said.contains("can be guessed") && !said.contains("hunter2"), "{said}");
    let alone = farm.folder().join("alone");
    let mut command = farm.command(&["coordinator", "--data", utf8(&alone)]);
    let output = command.env("TESSERA_FARM_KEY", FARM_KEY).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("--store") && said.contains("leave it out"), "{said}");
    // The key in a file, new, with the former one below it.
    let file = farm.folder().join("farm.key");
    std::fs::write(&file, format!("{OTHER_KEY}\n{FARM_KEY}\n")).expect("a file");
    let lax = refused(&|command| _ = command.args(["--farm-key", utf8(&file)]), &empty);
    assert!(lax.contains("farm.key"), "{lax}");
    private(&file);
    let mut command = elsewhere.coordinator(&farm, (&empty, 0));
    command.env_remove("TESSERA_FARM_KEY").args(["--farm-key", utf8(&file)]);
    let mut led = farm.spawn(command, "led");
    farm.wait_for("it to lead", |farm| said_in(farm, "led").contains("coordinator listens"));
    assert!(led.terminate(), "{}", said_in(&farm, "led"));
    let mut command = elsewhere.coordinator(&farm, (&farm.folder().join("third"), 0));
    command.env("TESSERA_FARM_KEY", OTHER_KEY);
    let mut led = farm.spawn(command, "third");
    farm.wait_for("it to lead", |farm| said_in(farm, "third").contains("coordinator listens"));
    assert!(led.terminate(), "{}", said_in(&farm, "third"));
}

/// Makes a file its owner's alone.
fn private(file: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(file, mode).expect("permissions");
}
