//! `fetch` destroys nothing: files of people and of other jobs stay, also when several processes
//! fetch at once.

use crate::farm::preload::{Disk, Preload};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tessera_support::farm::{Farm, library, tessera};

const FRAMES: usize = 3;

/// A small job of three frames; another `spp` gives other bytes.
fn job(farm: &Farm, spp: &str) -> String {
    let options = ["--size", "16x16", "--frames", "1-3", "--spp", spp];
    let job = farm.submit(&library("cornell-box.gltf"), &options);
    farm.text(&["wait", &job]);
    job
}

/// Status and standard error of a command.
fn said(farm: &Farm, arguments: &[&str]) -> (Option<i32>, String) {
    let output = farm.run(arguments);
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Bytes of the job's frames, fetched to a folder of their own.
fn frames(farm: &Farm, job: &str) -> Vec<Vec<u8>> {
    let folder = format!("reference/{job}");
    farm.text(&["fetch", job, "-o", &folder]);
    bytes_in(&farm.folder().join(folder))
}

/// Bytes of the frames in a folder, by number.
fn bytes_in(folder: &Path) -> Vec<Vec<u8>> {
    (1..=FRAMES).map(|frame| std::fs::read(frame_in(folder, frame)).expect("a frame")).collect()
}

fn frame_in(folder: &Path, frame: usize) -> PathBuf {
    folder.join(format!("cornell-box.{frame:04}.exr"))
}

/// Names of the files and folders in a folder.
fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let name = |entry: std::fs::DirEntry| entry.file_name().into_string().expect("a UTF-8 name");
    let mut names: Vec<String> = entries.map(|entry| name(entry.expect("an entry"))).collect();
    names.sort();
    names
}

/// A fetch under a umask that has been started.
fn start(farm: &Farm, (job, output, umask): (&str, &str, &str)) -> Child {
    let fetch = farm.command(&["fetch", job, "-o", output]);
    let mut command = Command::new("sh");
    command.args(["-c", "umask \"$0\" && exec \"$@\"", umask, tessera()]).args(fetch.get_args());
    for (name, value) in fetch.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.current_dir(farm.folder()).stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(Stdio::piped()).spawn().expect("a shell")
}

/// Waits for a process that must succeed; its standard error.
fn ended(child: Child) -> String {
    let output = child.wait_with_output().expect("it ends");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{}: {error}", output.status);
    error
}

#[test]
fn two_jobs_of_one_name_both_end_up_whole() {
    let farm = Farm::start(1, 2);
    let jobs = [job(&farm, "1"), job(&farm, "2")];
    let want = jobs.each_ref().map(|job| frames(&farm, job));
    assert_ne!(want[0], want[1]);
    for round in 0..8 {
        let folder = format!("out-{round}");
        // At once, or the second after the first.
        let mut started = Vec::new();
        for job in &jobs {
            let child = start(&farm, (job, &folder, "022"));
            if round % 4 == 0 { drop(ended(child)) } else { started.push(child) }
        }
        started.into_iter().for_each(|child| drop(ended(child)));
        let folder = farm.folder().join(folder);
        let plain = bytes_in(&folder);
        let (first, second) = if plain == want[0] { (0, 1) } else { (1, 0) };
        let own = folder.join(format!("cornell-box-{}", jobs[second]));
        assert!(plain == want[first] && bytes_in(&own) == want[second], "round {round}");
        // Again: each finds its own.
        let (status, error) =
            said(&farm, &["fetch", &jobs[second], "-o", folder.to_str().unwrap()]);
        assert!(status == Some(0) && error.contains("has frames of job"), "{error}");
        farm.text(&["fetch", &jobs[first], "-o", folder.to_str().unwrap()]);
        assert_eq!(names_in(&folder).len(), FRAMES + 2, "{:?}", names_in(&folder));
        assert_eq!(names_in(&own).len(), FRAMES);
    }
    // The names are free again once their frames are gone.
    for frame in 1..=FRAMES {
        std::fs::remove_file(frame_in(&farm.folder().join("out-0"), frame)).expect("a frame");
    }
    farm.text(&["fetch", &jobs[1], "-o", "out-0"]);
    assert_eq!(bytes_in(&farm.folder().join("out-0")), want[1]);
}

#[test]
fn what_somebody_changed_stays_and_the_rest_is_fetched() {
    let farm = Farm::start(1, 2);
    let (first, second) = (job(&farm, "1"), job(&farm, "2"));
    let (want, out) = (frames(&farm, &first), farm.folder().join("out"));
    farm.text(&["fetch", &first, "-o", "out"]);
    std::fs::write(frame_in(&out, 2), "retouched").expect("a file");
    std::fs::remove_file(frame_in(&out, 3)).expect("a frame");
    let fetch = ["fetch", &first, "-o", "out"];
    let (status, error) = said(&farm, &fetch);
    assert_eq!(status, Some(9), "{error}");
    assert!(error.contains("1 file was not replaced; the other 2 are here"), "{error}");
    let changed =
        "`out/cornell-box.0002.exr` is not this job's: it was changed or made by somebody";
    assert!(error.contains(changed) && error.contains("--overwrite"), "{error}");
    assert_eq!(std::fs::read(frame_in(&out, 2)).expect("a file"), b"retouched");
    assert_eq!(std::fs::read(frame_in(&out, 3)).expect("a frame"), want[2]);

    let lines = farm.run(&["fetch", &first, "-o", "out", "--json"]).stdout;
    let lines = String::from_utf8(lines).expect("UTF-8");
    let line = lines.lines().find(|line| line.contains("0002.exr")).expect("a line of the file");
    assert!(line.contains("changed or made by") && line.contains("\"fetched\":false"), "{line}");

    // Another job, by a pattern that leads to the same names.
    let pattern = "out/cornell-box.####.exr";
    let (status, error) = said(&farm, &["fetch", &second, "-o", pattern]);
    let other = format!("`out/cornell-box.0001.exr` is frame 1 of job {first}");
    assert!(status == Some(9) && error.contains(&other), "{error}");
    assert!(error.contains("3 files were not replaced\n"), "{error}");
    assert_eq!(std::fs::read(frame_in(&out, 1)).expect("a frame"), want[0]);
    farm.text(&["fetch", &second, "-o", "out/{name}-{job}.####.exr"]);
    assert!(out.join(format!("cornell-box-{second}.0003.exr")).exists());

    farm.text(&["fetch", &first, "-o", "out", "--overwrite"]);
    assert_eq!(bytes_in(&out), want);
    std::fs::remove_file(frame_in(&out, 1)).expect("a frame");
    std::os::unix::fs::symlink("nowhere", frame_in(&out, 1)).expect("a link");
    std::fs::remove_file(frame_in(&out, 2)).expect("a frame");
    std::fs::create_dir(frame_in(&out, 2)).expect("a folder");
    let (status, error) = said(&farm, &fetch);
    assert!(status == Some(9) && error.contains("0001.exr` is a link to nothing"), "{error}");
    assert!(error.contains("0002.exr` is a folder"), "{error}");
    // The folder stays in any case, and the rest is replaced.
    let (status, error) = said(&farm, &["fetch", &first, "-o", "out", "--overwrite"]);
    assert!(status == Some(9) && error.contains("; the other 2 are here"), "{error}");
    assert!(frame_in(&out, 2).is_dir() && !frame_in(&out, 1).is_symlink());
}

#[test]
fn places_that_cannot_be_used_are_named() {
    let farm = Farm::start(1, 2);
    let job = job(&farm, "1");
    std::fs::write(farm.folder().join("file"), "mine").expect("a file");
    let (status, error) = said(&farm, &["fetch", &job, "-o", "file"]);
    assert!(status == Some(2) && error.contains("`file` is a file, not a folder"), "{error}");
    let (status, error) = said(&farm, &["fetch", &job, "-o", "file/a.####.exr"]);
    assert!(status == Some(1) && error.contains("cannot make the folder `file`"), "{error}");
    let (status, error) = said(&farm, &["fetch", &job, "-o", "/proc/{job}"]);
    assert!(status == Some(4) && error.contains("cannot make the folder `/proc/"), "{error}");
    assert_eq!(std::fs::read(farm.folder().join("file")).expect("a file"), b"mine");
}

#[test]
fn four_fetches_at_once_into_one_folder_all_end_well() {
    let farm = Farm::start(1, 2);
    let job = job(&farm, "1");
    let want = frames(&farm, &job);
    for round in 0..50 {
        let output = format!("out-{round}");
        let (umask, mode) = if round % 2 == 0 { ("022", 0o644) } else { ("027", 0o640) };
        let started: [Child; 4] = std::array::from_fn(|_| start(&farm, (&job, &output, umask)));
        started.into_iter().for_each(|child| drop(ended(child)));
        let folder = farm.folder().join(output);
        assert_eq!(bytes_in(&folder), want, "round {round}");
        for name in names_in(&folder) {
            let found = std::fs::metadata(folder.join(&name)).expect("a file").permissions().mode();
            assert_eq!(found & 0o777, mode, "round {round}: {name} has mode {found:o}");
        }
        // Frames and the record: no part is left.
        assert_eq!(names_in(&folder).len(), FRAMES + 1, "{:?}", names_in(&folder));
    }
}

#[test]
fn a_killed_fetch_is_continued_and_leaves_nothing() {
    let farm = Farm::start(1, 2);
    let options = ["--size", "512x512", "--frames", "1-3", "--spp", "1"];
    let job = farm.submit(&library("cornell-box.gltf"), &options);
    farm.text(&["wait", &job]);
    let want = frames(&farm, &job);
    for round in 0..12u64 {
        let output = format!("out-{round}");
        let mut child = start(&farm, (&job, &output, "022"));
        std::thread::sleep(std::time::Duration::from_millis(15 * round));
        child.kill().expect("a signal");
        child.wait().expect("it ends");
        farm.text(&["fetch", &job, "-o", &output]);
        let folder = farm.folder().join(output);
        assert_eq!(bytes_in(&folder), want, "round {round}");
        assert_eq!(names_in(&folder).len(), FRAMES + 1, "{:?}", names_in(&folder));
    }
}

#[test]
fn a_full_disk_is_named_and_the_fetch_continues_later() {
    let farm = Farm::start(1, 2);
    let job = job(&farm, "1");
    let want = frames(&farm, &job);
    let out = farm.folder().join("out");
    std::fs::create_dir(&out).expect("a folder");
    let preload = Preload::build(farm.folder());
    let fetch = || {
        let mut command = farm.command(&["fetch", &job, "-o", "out"]);
        let output = command.envs(preload.environment(&out)).output().expect("it runs");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    preload.set_disk(Disk::Full);
    let (status, error) = fetch();
    let named = "cannot write `out/cornell-box.0001.exr`: No space left";
    assert!(status == Some(1) && error.contains(named), "{status:?} {error}");
    assert!(!frame_in(&out, 1).exists());
    preload.set_disk(Disk::Roomy);
    let (status, error) = fetch();
    assert_eq!((status, bytes_in(&out)), (Some(0), want), "{error}");
    assert_eq!(names_in(&out).len(), FRAMES + 1, "{:?}", names_in(&out));
}

#[test]
fn bad_characters_of_names_reach_no_file_and_no_terminal() {
    let farm = Farm::start(0, 1);
    let scene = library("cornell-box.gltf");
    let submit = |scene: &Path, name: &str| {
        let name = format!("--name={name}");
        said(&farm, &["submit", scene.to_str().unwrap(), "--size", "16x16", &name])
    };
    for name in ["a\u{202e}gpj.exe", "a\u{1b}[2Jb", "-rf", "a.", " a", "CON", "lpt1.x", "../a"] {
        let (status, error) = submit(&scene, name);
        assert!(status == Some(2) && error.contains("name"), "{name:?}: {status:?} {error}");
        assert!(!error.contains(['\u{202e}', '\u{1b}']), "{error:?}");
    }
    let (status, error) = submit(&scene, "a\u{200f}b");
    assert!(status == Some(2) && error.contains("`a\\u{200f}b` holds"), "{error}");
    // A name that is made from a file's is made safe.
    let odd = farm.folder().join("-x\u{202e}y .gltf");
    std::fs::copy(&scene, &odd).expect("a scene");
    let job = farm.submit(&odd, &["--size", "16x16"]);
    let detail: serde_json::Value =
        serde_json::from_str(&farm.text(&["job", &job, "--json"])).expect("JSON");
    assert_eq!(detail["spec"]["name"], "x_y", "{detail}");
}
