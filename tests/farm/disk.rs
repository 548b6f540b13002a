//! A full disk: what it holds up is waited for, and nothing is lost.

use crate::harness::{Farm, library, skipped};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// A file system of its own in memory, unmounted when its owner goes.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// None where this process may not mount.
    fn mount(at: &Path, mebibytes: u32) -> Option<SmallDisk> {
        std::fs::create_dir_all(at).expect("a folder to mount at");
        let disk = SmallDisk(at.to_path_buf());
        disk.run("mount", &["-t", "tmpfs", "-o", &format!("size={mebibytes}m"), "tmpfs"]).then_some(disk)
    }

    fn grow(&self, mebibytes: u32) {
        assert!(self.run("mount", &["-o", &format!("remount,size={mebibytes}m")]), "the disk did not grow");
    }

    fn run(&self, program: &str, arguments: &[&str]) -> bool {
        let mut command = Command::new(program);
        command.args(arguments).arg(&self.0).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        self.run("umount", &["-l"]);
    }
}

const FILM: [&str; 8] = ["--size", "640x480", "--spp", "1", "--depth", "1", "--frames", "1-8"];

#[test]
fn frames_that_a_full_disk_holds_up_come_when_there_is_room() {
    let scene = library("spinning-cube.gltf");
    let mut farm = Farm::prepare();
    // 64 MiB are kept in reserve, so that the film's 40 MiB do not find room.
    let Some(disk) = SmallDisk::mount(&farm.data(), 76) else {
        skipped("this process may not mount a small disk");
        return;
    };
    farm.start_with(1, 2);
    let job = farm.submit(&scene, &FILM);
    farm.wait_for("a full disk", |farm| farm.logs().contains("disk is full"));
    std::thread::sleep(Duration::from_secs(1));
    let listed = farm.text(&["jobs"]);
    assert!(listed.contains("disk is full"), "{listed}");
    assert!(done(&farm, &job) < 8, "the film found room on a disk that was thought too small");
    disk.grow(400);
    let held_up = farm.hashes(&job);
    let undisturbed = farm.submit(&scene, &FILM);
    assert_eq!(farm.hashes(&undisturbed), held_up);
    assert!(farm.stop_coordinator(), "{}", farm.logs());
    let data = farm.data();
    farm.text(&["coordinator", "--audit", "--data", data.to_str().expect("a UTF-8 path")]);
}

fn done(farm: &Farm, job: &str) -> u64 {
    let detail: serde_json::Value = serde_json::from_str(&farm.text(&["job", job, "--json"])).expect("JSON");
    detail["summary"]["frames_done"].as_u64().expect("a number")
}
