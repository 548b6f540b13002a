//! A farm that is updated to another build while it works, and one where everything ends at once
//! and starts again. With a real PostgreSQL and a real S3 server.

use super::takeover::{Elsewhere, User, said_in};
use std::path::{Path, PathBuf};
use tessera_support::farm::{Farm, Process, library, tessera};

/// Text from which a build's fingerprint is derived (`node/src/lib.rs`), and the same of a build
/// whose bits may differ.
const CONTEXT: &[u8] = b"tessera fingerprint 1";
const OTHER_CONTEXT: &[u8] = b"tessera fingerprint 2";
/// Samples of a job of a second or two, and of one that lasts over a change of coordinators.
const SHORT: &str = "48";
const LONG: &str = "240";
/// Of one in which everything ends.
const MIDDLING: &str = "96";
/// Nodes of one CPU thread.
const ONE_THREAD: [&str; 2] = ["--threads", "1"];

/// Writes another build: the same program with another fingerprint.
fn other_build(folder: &Path) -> PathBuf {
    let mut program = std::fs::read(tessera()).expect("the program");
    let mut found = 0;
    let mut at = 0;
    while let Some(next) = program[at..].windows(CONTEXT.len()).position(|part| part == CONTEXT) {
        at += next;
        program[at..at + CONTEXT.len()].copy_from_slice(OTHER_CONTEXT);
        found += 1;
    }
    assert!(found > 0, "the fingerprint is derived from another text now");
    let path = folder.join("tessera-next");
    std::fs::write(&path, program).expect("a file");
    let mode = std::fs::metadata(tessera()).expect("the program's mode").permissions();
    std::fs::set_permissions(&path, mode).expect("its mode");
    path
}

/// A farm of two coordinators elsewhere and two nodes.
struct Updated {
    farm: Farm,
    elsewhere: Elsewhere,
    /// Folders of the coordinators.
    folders: [PathBuf; 2],
    ada: String,
}

impl Updated {
    /// The first coordinator leads. The process is the other one, which stands by.
    fn start(what: &str) -> Option<(Self, Process)> {
        let mut farm = Farm::prepare();
        let elsewhere = Elsewhere::start(what, &farm)?;
        let folders = [farm.data(), farm.folder().join("second")];
        farm.run_coordinator(elsewhere.coordinator(&farm, (&folders[0], 0)));
        for name in ["node-0", "node-1"] {
            let places = vec![
                ("TESSERA_DEVICE".into(), "cpu".into()),
                ("TESSERA_COORDINATOR".into(), elsewhere.both().into()),
            ];
            farm.add_node_with(name, &ONE_THREAD, places);
        }
        let ada = farm.enrol("admin", "ada");
        let standby = elsewhere.stand_by(&farm, (&folders[1], 1), "second");
        Some((Self { farm, elsewhere, folders, ada }, standby))
    }

    fn ada(&self) -> User<'_> {
        let both = self.elsewhere.both();
        User { farm: &self.farm, identity: self.ada.clone(), both }
    }

    fn submit(&self, spp: &str) -> String {
        let scene = library("cornell-box.gltf");
        let scene = scene.to_str().expect("a UTF-8 path");
        let options = ["--size", "256x192", "--spp", spp, "--tile", "32", "--format", "exr"];
        self.ada().text(&[&["submit", scene], &options[..]].concat())
    }

    fn stand_by(&self, place: usize, log: &str) -> Process {
        self.elsewhere.stand_by(&self.farm, (&self.folders[place], place), log)
    }

    fn wait_for_lead(&self, log: &str) {
        self.farm.wait_for("it to lead", |farm| said_in(farm, log).contains("coordinator listens"));
    }

    /// Ends a node as an update does, and starts it as the program that is used now.
    fn update_node(&mut self, index: usize) {
        assert!(self.farm.drain_node(index), "{}", self.farm.logs());
        self.farm.start_node(index);
    }

    fn detail(&self, job: &str) -> serde_json::Value {
        self.ada().json(&["job", job])
    }
}

// promise: P1, P5
#[test]
fn a_farm_works_while_it_is_updated_to_another_build() {
    let what = "a_farm_works_while_it_is_updated_to_another_build";
    let Some((mut updated, mut second)) = Updated::start(what) else { return };
    let next = other_build(updated.farm.folder());
    let [short, long] = [SHORT, LONG].map(|spp| updated.submit(spp));
    let [want, want_long] = [&short, &long].map(|job| updated.ada().hash(job));
    let former = updated.detail(&short)["fingerprint"].clone();
    assert!(!former.is_null());
    // The coordinator that stands by, and then the one that leads.
    let open = updated.submit(LONG);
    updated.farm.wait_for("some commits", |_| updated.ada().committed(&open) >= 3);
    assert!(second.terminate(), "{}", said_in(&updated.farm, "second"));
    updated.farm.use_program(&next);
    let _second = updated.stand_by(1, "second-next");
    assert!(updated.farm.stop_coordinator(), "{}", updated.farm.logs());
    updated.wait_for_lead("second-next");
    let at_takeover = updated.ada().committed(&open);
    updated.farm.wait_for("more commits", |_| updated.ada().committed(&open) > at_takeover);
    updated.ada().text(&["pause", &open]);
    let _first = updated.stand_by(0, "first-next");
    // A node of the next build, and none of the former.
    updated.update_node(0);
    assert!(updated.farm.drain_node(1), "{}", updated.farm.logs());
    let newer = updated.submit(SHORT);
    assert_eq!(updated.ada().hash(&newer), want, "{}", updated.farm.logs());
    let pinned = updated.detail(&newer)["fingerprint"].clone();
    assert!(!pinned.is_null() && pinned != former, "{pinned}");
    let before = updated.ada().committed(&open);
    updated.ada().text(&["resume", &open]);
    updated.farm.wait_for("it to say why it waits", |_| {
        updated.detail(&open)["summary"]["waits"] == "fingerprint"
    });
    assert_eq!(updated.ada().committed(&open), before);
    // A node of the former build, and the frame is one of it alone.
    updated.farm.use_program(Path::new(tessera()));
    updated.farm.start_node(1);
    assert_eq!(updated.ada().hash(&open), want_long, "{}", updated.farm.logs());
    let ended = updated.detail(&open);
    assert_eq!(ended["fingerprint"], former, "{ended}");
    assert_eq!(ended["failures"], serde_json::json!([]), "{ended}");
    updated.farm.use_program(&next);
    updated.update_node(1);
    let last = updated.submit(SHORT);
    assert_eq!(updated.ada().hash(&last), want);
    assert_eq!(updated.detail(&last)["fingerprint"], pinned);
    let audit = updated.ada().json(&["audit"]);
    assert_eq!(audit["problems"], serde_json::json!([]), "{audit}");
}

// promise: P1, P5
#[test]
fn everything_ends_at_once_and_starts_again() {
    let what = "everything_ends_at_once_and_starts_again";
    let Some((mut all, mut second)) = Updated::start(what) else { return };
    let ended = all.submit(MIDDLING);
    let want = all.ada().hash(&ended);
    let open = all.submit(MIDDLING);
    let waiting = all.submit(MIDDLING);
    all.farm.wait_for("some commits", |_| all.ada().committed(&open) >= 5);
    let before = all.ada().committed(&open);
    all.farm.signal_coordinator("KILL");
    second.kill();
    all.farm.kill_node(0);
    all.farm.kill_node(1);
    all.elsewhere.postgres.kill();
    all.elsewhere.bucket.kill();
    all.farm.kill_coordinator();
    // The services first, and the rest in any order: nodes find nobody yet.
    all.elsewhere.postgres.crash_and_restart();
    all.elsewhere.bucket.restart();
    all.farm.start_node(1);
    let folders = all.folders.clone();
    let second = all.farm.spawn(all.elsewhere.coordinator(&all.farm, (&folders[1], 1)), "again-1");
    let first = all.farm.spawn(all.elsewhere.coordinator(&all.farm, (&folders[0], 0)), "again-0");
    all.farm.start_node(0);
    let leads = |farm: &Farm, log: &str| said_in(farm, log).contains("coordinator listens");
    all.farm.wait_for("one to lead", |farm| leads(farm, "again-0") || leads(farm, "again-1"));
    assert!(all.ada().committed(&open) >= before, "{}", all.farm.logs());
    for job in [&ended, &open, &waiting] {
        assert_eq!(all.ada().hash(job), want, "{}", all.farm.logs());
    }
    let audit = all.ada().json(&["audit"]);
    assert_eq!(audit["problems"], serde_json::json!([]), "{audit}");
    drop((first, second));
}
