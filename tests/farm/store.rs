//! What a farm keeps, with real processes: checked, backed up while it renders, restored and
//! rendered on.

use std::path::{Path, PathBuf};
use tessera_support::farm::{Farm, library};

/// A job of a second or two on one thread, in 48 units.
const OPTIONS: [&str; 8] = ["--size", "256x192", "--spp", "48", "--tile", "32", "--format", "exr"];
pub(crate) const SMALL: [&str; 4] = ["--size", "32x32", "--spp", "4"];

pub(crate) fn utf8(path: &Path) -> &str {
    path.to_str().expect("a UTF-8 path")
}

/// What `fsck` says of the farm's data folder.
pub(crate) fn fsck(farm: &Farm) -> serde_json::Value {
    let output = farm.run(&["fsck", "--json", "--data", utf8(&farm.data())]);
    let text = String::from_utf8_lossy(&output.stdout);
    let report: serde_json::Value = serde_json::from_str(&text).unwrap_or_else(|error| {
        panic!("{error}: {text}{}", String::from_utf8_lossy(&output.stderr))
    });
    assert_eq!(report["clean"] == true, output.status.success(), "{report}");
    report
}

// promise: P1, P3
#[test]
fn results_of_a_lost_spool_are_rendered_again() {
    let mut farm = Farm::start(1, 1);
    let scene = library("cornell-box.gltf");
    let want = {
        let undisturbed = farm.submit(&scene, &OPTIONS);
        farm.hashes(&undisturbed)
    };
    let open = farm.submit(&scene, &OPTIONS);
    farm.wait_for("some commits", |farm| farm.units_committed(&open) >= 5);
    farm.kill_coordinator();
    let spool = farm.data().join("spool").join(&open);
    std::fs::remove_dir_all(spool).expect("the spool goes");
    assert_eq!(fsck(&farm)["clean"], false);
    farm.start_coordinator();
    assert!(farm.logs().contains("they are rendered again"), "{}", farm.logs());
    assert_eq!(farm.hashes(&open), want, "{}", farm.logs());
    assert!(farm.stop_coordinator(), "{}", farm.logs());
    assert_eq!(fsck(&farm)["clean"], true);
}

// promise: P1
#[test]
fn a_backup_made_while_rendering_is_restored_and_rendered_on() {
    let mut farm = Farm::start(1, 1);
    let scene = library("cornell-box.gltf");
    let finished = farm.submit(&scene, &SMALL);
    let small = farm.hashes(&finished);
    let want = {
        let undisturbed = farm.submit(&scene, &OPTIONS);
        farm.hashes(&undisturbed)
    };
    let open = farm.submit(&scene, &OPTIONS);
    farm.wait_for("some commits", |farm| farm.units_committed(&open) >= 5);
    let file = farm.folder().join("farm.backup");
    let busy = farm.run(&["fsck", "--data", utf8(&farm.data())]);
    let said = String::from_utf8_lossy(&busy.stderr).into_owned();
    assert!(
        !busy.status.success() && said.contains("in use") && said.contains("--audit"),
        "{said}"
    );
    assert!(!said.contains("of its own"), "the advice for a second coordinator: {said}");
    farm.text(&["backup", "-o", utf8(&file), "--data", utf8(&farm.data())]);
    let taken = farm.units_committed(&open);

    // The machine is gone; the node lives on, and may hold what the restored farm knows nothing of.
    farm.kill_coordinator();
    std::fs::remove_dir_all(farm.data()).expect("the folder goes");
    farm.text(&["restore", utf8(&file), "--data", utf8(&farm.data())]);
    let report = fsck(&farm);
    assert_eq!(report["clean"], true, "{report}");
    let restored = report["results"].as_u64().expect("a count");
    assert!((5..=taken).contains(&restored), "{restored} results of {taken} or fewer\n{report}");
    farm.start_coordinator();
    assert_eq!(farm.hashes(&open), want, "{}", farm.logs());
    assert_eq!(farm.hashes(&finished), small);
    let told = farm.text(&["audit"]);
    let backup = ["backup made", "all but the keys and the deny-list"];
    for act in ["job submitted", "farm restored from a backup"].into_iter().chain(backup) {
        assert!(told.contains(act), "no `{act}` in\n{told}");
    }

    // A user may not make one, and an admin gets one from afar, without keys.
    let token = farm.folder().join("user.token");
    std::fs::write(&token, farm.text(&["token", "create", "--role", "artist"]))
        .expect("a token file");
    let ada = farm.folder().join("ada").display().to_string();
    farm.text(&["enrol", "--token-file", utf8(&token), "--name", "ada", "--identity", &ada]);
    let other = farm.folder().join("other.backup");
    let refused = farm.run(&["backup", "-o", utf8(&other), "--identity", &ada]);
    assert_eq!(refused.status.code(), Some(5), "{}", String::from_utf8_lossy(&refused.stderr));
    assert!(!other.exists());
    let summary: serde_json::Value =
        serde_json::from_str(&farm.text(&["backup", "-o", utf8(&other), "--json"])).expect("JSON");
    assert_eq!(summary["keys"], 0, "{summary}");
}

// promise: P1
#[test]
fn a_damaged_folder_is_refused_and_the_finding_says_what_to_do() {
    let mut farm = Farm::start(1, 1);
    let job = farm.submit(&library("cornell-box.gltf"), &SMALL);
    farm.hashes(&job);
    farm.kill_coordinator();
    assert_eq!(fsck(&farm)["clean"], true);
    // The newest part of the journal is lost, as behind a flipped bit.
    let journal = farm.data().join("sled/db");
    let bytes = std::fs::read(&journal).expect("the journal");
    let end = bytes.iter().rposition(|byte| *byte != 0).expect("a journal that is not empty");
    let mut damaged = bytes.clone();
    damaged[end / 2] ^= 0x10;
    std::fs::write(&journal, damaged).expect("the journal");
    let output = farm.run(&["fsck", "--data", utf8(&farm.data())]);
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stdout));
    let mut refused = farm.spawn(farm.coordinator_command(), "refused");
    assert_eq!(refused.wait(), Some(1), "a coordinator starts on a journal that has lost its end");
    let said = std::fs::read_to_string(farm.folder().join("refused.log")).expect("a log");
    assert!(said.contains("--export") || said.contains("cannot be used"), "{said}");
}

#[test]
fn a_refused_export_leaves_no_file() {
    let farm = Farm::start(0, 1);
    let out = farm.folder().join("journal.txt");
    let data = farm.data();
    let arguments = ["coordinator", "--data", utf8(&data), "--export", utf8(&out)];
    let refused = farm.run(&arguments);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && said.contains("stop the coordinator first"), "{said}");
    assert!(!out.exists(), "a second try needs the name");
}

#[test]
fn a_forgotten_job_is_gone_after_a_restart_too() {
    let mut farm = Farm::start(1, 1);
    let scene = library("cornell-box.gltf");
    let (gone, kept) =
        (farm.submit(&scene, &SMALL), farm.submit(&scene, &["--size", "32x32", "--spp", "8"]));
    let open = farm.submit(&scene, &["--size", "1024x1024", "--spp", "65536"]);
    let hashes = farm.hashes(&kept);
    farm.hashes(&gone);
    let refused = farm.run(&["forget", &open]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("has not ended"), "{refused:?}");
    farm.text(&["forget", &gone]);
    farm.text(&["cancel", &open]);
    farm.kill_coordinator();
    assert_eq!(fsck(&farm)["clean"], true);
    farm.start_coordinator();
    let listed = farm.text(&["jobs", "--json"]);
    assert!(!listed.contains(&gone) && listed.contains(&kept), "{listed}");
    assert_eq!(farm.run(&["job", &gone]).status.code(), Some(4));
    assert_eq!(farm.hashes(&kept), hashes);
}

#[test]
fn an_upload_that_no_job_names_is_noted_and_stays_for_its_grace() {
    let mut farm = Farm::start(1, 1);
    let scene = library("cornell-box.gltf");
    let job = farm.submit(&scene, &SMALL);
    let hashes = farm.hashes(&job);
    farm.kill_coordinator();
    // Left by a client that never submitted, two days ago.
    let hash = blake3::hash(b"unnamed").to_hex().to_string();
    let folder = farm.data().join("blobs").join(&hash[..2]);
    std::fs::create_dir_all(&folder).expect("a folder");
    let unnamed: PathBuf = folder.join(&hash);
    std::fs::write(&unnamed, "unnamed").expect("a blob");
    let report = fsck(&farm);
    assert_eq!(
        (&report["clean"], &report["findings"][0]["kind"]),
        (&true.into(), &"unnamed_blobs".into())
    );
    farm.start_coordinator();
    // It is marked by now or soon, and stays for its grace.
    assert_eq!(farm.hashes(&job), hashes);
    assert!(unnamed.exists());
}
