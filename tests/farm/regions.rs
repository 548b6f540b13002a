//! A farm of one region that is restored in another: its state on a PostgreSQL and its files in a
//! bucket there, its backup brought to a second PostgreSQL and a second bucket.

use super::store::utf8;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use tessera_support::farm::{Farm, Process, library, pixels_sha256};
use tessera_support::ports;
use tessera_support::postgres::Postgres;
use tessera_support::seaweed::{KEY, SECRET, Seaweed};

/// A job of a second or two on one thread, in 48 units.
const OPTIONS: [&str; 8] = ["--size", "256x192", "--spp", "48", "--tile", "32", "--format", "exr"];
const FARM_KEY: &str = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=";

/// What a region has.
struct Region {
    postgres: Postgres,
    bucket: Seaweed,
    data: PathBuf,
    listen: String,
}

impl Region {
    fn start(what: &str, data: PathBuf, listen: String) -> Option<Self> {
        let (postgres, bucket) = (Postgres::start(what)?, Seaweed::start(what)?);
        Some(Self { postgres, bucket, data, listen })
    }

    fn store(&self) -> String {
        format!("{}?term=3", self.postgres.address())
    }

    /// A command about its places.
    fn command(&self, farm: &Farm, arguments: &[&str], data: &Path) -> Command {
        let mut command = farm.command(arguments);
        command.args(["--data", utf8(data), "--store", &self.store()]);
        command.args(["--blobs", &self.bucket.address("farm")]);
        command.env("AWS_ACCESS_KEY_ID", KEY).env("AWS_SECRET_ACCESS_KEY", SECRET);
        command
    }

    fn lead(&self, farm: &Farm, (data, log): (&Path, &str)) -> Process {
        let arguments = ["coordinator", "--listen", &self.listen, "--stand-by"];
        let mut command = self.command(farm, &arguments, data);
        command.args(["--check-first", "0"]).env("TESSERA_FARM_KEY", FARM_KEY);
        let process = farm.spawn(command, log);
        let path = farm.folder().join(format!("{log}.log"));
        farm.wait_for("it to lead", |_| {
            std::fs::read_to_string(&path).is_ok_and(|said| said.contains("coordinator listens"))
        });
        process
    }

    /// Asks its coordinator, as the farm's admin.
    fn text(&self, farm: &Farm, arguments: &[&str]) -> String {
        let output = self.asked(farm, arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {said}\n{}", farm.logs());
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    fn asked(&self, farm: &Farm, arguments: &[&str]) -> std::process::Output {
        let mut command = farm.command(arguments);
        command.env("TESSERA_COORDINATOR", &self.listen).output().expect("it runs")
    }

    fn committed(&self, farm: &Farm, job: &str) -> u64 {
        let job = self.text(farm, &["job", job, "--json"]);
        let job: serde_json::Value = serde_json::from_str(&job).expect("JSON");
        job["summary"]["units_committed"].as_u64().expect("a count")
    }

    /// The pixels of a job's frame, as this region's coordinator gives them.
    fn hash(&self, farm: &Farm, job: &str) -> String {
        self.text(farm, &["wait", job]);
        let folder = farm.folder().join(format!("{job}-{}", self.postgres.port()));
        self.text(farm, &["fetch", job, "-o", utf8(&folder)]);
        let mut files = std::fs::read_dir(&folder).expect("a folder").flatten();
        let frame = files.find(|file| file.path().extension().is_some_and(|kind| kind == "exr"));
        pixels_sha256(&frame.expect("a frame").path())
    }

    fn is_clean(&self, farm: &Farm, data: &Path) {
        let output = self.command(farm, &["fsck", "--json"], data).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let report: serde_json::Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {said}"));
        assert_eq!((&report["clean"], &report["units_committed_twice"]), (&true.into(), &0.into()));
    }
}

// promise: P1, P3
#[test]
fn a_backup_of_one_region_is_restored_in_another() {
    let mut farm = Farm::prepare();
    let what = "a_backup_of_one_region_is_restored_in_another";
    let there = ports::udp(Ipv4Addr::LOCALHOST.into()).to_string();
    let Some(old) = Region::start(what, farm.data(), farm.address()) else { return };
    let Some(new) = Region::start(what, farm.folder().join("new"), there) else { return };
    let scene = library("cornell-box.gltf");
    let mut first = old.lead(&farm, (&old.data, "coordinator"));
    let both = format!("{},{}", old.listen, new.listen);
    let environment =
        vec![("TESSERA_DEVICE".into(), "cpu".into()), ("TESSERA_COORDINATOR".into(), both.into())];
    farm.add_node_with("node-0", &["--threads", "1"], environment);
    let done = farm.submit(&scene, &OPTIONS);
    let want = old.hash(&farm, &done);
    let open = farm.submit(&scene, &OPTIONS);
    farm.wait_for("some commits", |farm| old.committed(farm, &open) >= 5);
    let file = farm.folder().join("farm.backup");
    let backup = ["backup", "-o", utf8(&file), "--data", utf8(&old.data)];
    old.text(&farm, &backup);
    first.kill();

    let restore = |region: &Region, data: &Path| {
        let mut command = region.command(&farm, &["restore", utf8(&file)], data);
        command.output().expect("it runs")
    };
    let restored = restore(&new, &new.data);
    let said = String::from_utf8_lossy(&restored.stderr).into_owned();
    assert!(restored.status.success() && said.contains("--store ADDRESS"), "{said}");
    assert!(!new.data.join("former").exists() && !new.data.join("sled/db").exists());
    new.is_clean(&farm, &new.data);
    // Neither what is in use there nor what the old region has is overwritten.
    for region in [&new, &old] {
        let refused = restore(region, &farm.folder().join(region.postgres.port().to_string()));
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && said.contains("is restored in the folder"), "{said}");
    }

    let mut second = new.lead(&farm, (&new.data, "second"));
    assert_eq!(new.hash(&farm, &done), want, "a finished frame is there");
    assert_eq!(new.hash(&farm, &open), want, "the job goes on\n{}", farm.logs());
    let audit = new.text(&farm, &["audit", "--json"]);
    assert!(audit.contains("farm restored from a backup"), "{audit}");
    // The old region comes back: whoever has seen the new one believes it no more.
    let mut back = old.lead(&farm, (&old.data, "back"));
    let log = farm.folder().join("node-0.log");
    assert!(second.terminate());
    farm.wait_for("the node to refuse the old one", |_| {
        std::fs::read_to_string(&log).is_ok_and(|said| said.contains("was seen before"))
    });
    let refused = old.asked(&farm, &["jobs"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("was seen before"), "{said}");
    assert!(back.terminate());
    // Another machine of the new region needs nothing of the first one.
    let empty = farm.folder().join("empty");
    let mut third = new.lead(&farm, (&empty, "third"));
    let again = new.text(&farm, &[&["submit", utf8(&scene)], &OPTIONS[..]].concat());
    assert_eq!(new.hash(&farm, &again), want, "{}", farm.logs());
    assert!(third.terminate());
    new.is_clean(&farm, &empty);
}
