//! Where traps are sprung: a folder for the scene, a canary outside of it that tells when somebody
//! opens it, the real binary with little memory and a deadline.

use crate::hostile::traps::{Expected, Trap};
use rustix::fs::{CWD, Mode, inotify, mkfifoat};
use rustix::process::{Pid, Signal, kill_process};
use std::cell::Cell;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Memory that reading a scene may take here.
pub(crate) const MEMORY_BYTES: u64 = 512 << 20;
/// Longest that any file may take, far more than any does: a hang is a failure and never a hang.
const PATIENCE: Duration = Duration::from_secs(120);
/// Bytes that any command may print about a file.
const WORDS_BYTES_MAX: usize = 256 << 10;
/// Stands in the canary, and nowhere else.
const SONG: &str = "tessera-canary-5ecret";

/// What came of a trap.
pub(crate) enum Verdict {
    Well,
    Wrong(String),
}

/// A folder with a scene's folder and a canary in it.
pub(crate) struct Lab {
    folder: tempfile::TempDir,
    watch: std::fs::File,
    /// Memory of the largest process so far.
    peak_bytes: Cell<u64>,
}

/// A command's end: its status (None: a signal), and all it said.
struct Outcome {
    status: Option<i32>,
    words: String,
    in_time: bool,
}

impl Lab {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::create_dir(folder.path().join("secret")).expect("a folder");
        // Also three corners of a triangle, for whoever reads it as a buffer.
        let mut canary = SONG.as_bytes().to_vec();
        canary.resize(64, b'!');
        std::fs::write(folder.path().join("secret/canary.bin"), canary).expect("a canary");
        let watch = watch(&folder.path().join("secret"));
        Self { folder, watch, peak_bytes: Cell::new(0) }
    }

    /// Memory of the largest process that has been waited for here, importers that have refused a
    /// scene included.
    pub(crate) fn peak_bytes(&self) -> u64 {
        self.peak_bytes.get()
    }

    fn scene_folder(&self) -> PathBuf {
        self.folder.path().join("scene")
    }

    /// Lays the trap out and shows it to `inspect`.
    pub(crate) fn inspect(&self, trap: &Trap) -> Verdict {
        let folder = self.scene_folder();
        // The last one's.
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(folder.join("sub")).expect("a folder");
        std::fs::write(folder.join(trap.main), &trap.bytes).expect("the scene's file");
        self.ways_out();
        for (name, bytes) in &trap.beside {
            std::fs::write(folder.join(name), bytes).expect("a file beside it");
        }
        let main = folder.join(trap.main);
        let mut arguments = vec!["inspect", main.to_str().expect("a UTF-8 path")];
        let env = trap.env.map(|env| folder.join(env).display().to_string());
        arguments.extend(env.iter().flat_map(|env| ["--env", env.as_str()]));
        self.judge(&self.run(&arguments), &trap.expected)
    }

    /// Compares a picture with a good one.
    pub(crate) fn diff(&self, picture: &[u8], good: &[u8]) -> Verdict {
        let folder = self.folder.path();
        let [a, b] = ["a.exr", "b.exr"].map(|name| folder.join(name).display().to_string());
        std::fs::write(&a, picture).expect("a picture");
        std::fs::write(&b, good).expect("a picture");
        self.judge(&self.run(&["diff", &a, &b]), &Expected::Either)
    }

    /// Runs a command line that must end by itself; its status and words.
    pub(crate) fn say(&self, arguments: &[&str]) -> Result<(i32, String), String> {
        let outcome = self.run(arguments);
        match self.judge(&outcome, &Expected::Either) {
            Verdict::Well => Ok((outcome.status.unwrap_or(-1), outcome.words)),
            Verdict::Wrong(finding) => Err(finding),
        }
    }

    /// The folder of the lab, in which commands run.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Links out of the scene's folder, a pipe that nobody writes, and a link to a device.
    fn ways_out(&self) {
        let folder = self.scene_folder();
        let link = |name: &str, target: &str| {
            std::os::unix::fs::symlink(target, folder.join(name)).expect("a link");
        };
        link("link.bin", "../secret/canary.bin");
        link("away", "../secret");
        link("zero.bin", "/dev/zero");
        link("loop.bin", "loop.bin");
        let mode = Mode::RUSR | Mode::WUSR;
        mkfifoat(CWD, folder.join("pipe.bin"), mode).expect("a pipe");
    }

    fn run(&self, arguments: &[&str]) -> Outcome {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tessera"));
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("TESSERA_")) {
            command.env_remove(name);
        }
        let said = self.folder.path().join("said");
        let file = std::fs::File::create(&said).expect("a file for what it says");
        let both = file.try_clone().expect("another handle");
        command
            .args(arguments)
            .env("XDG_CONFIG_HOME", self.folder.path().join("config"))
            .env("TESSERA_SCENE_MEMORY", (MEMORY_BYTES >> 20).to_string())
            .env("TESSERA_SCENE_TIME", "60")
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(both);
        let child = command.spawn().expect("the binary starts").id().cast_signed();
        let until = Instant::now() + PATIENCE;
        let mut in_time = true;
        let status = loop {
            if let Some((status, bytes)) = ended(child) {
                self.peak_bytes.set(self.peak_bytes.get().max(bytes));
                break status;
            }
            if in_time && Instant::now() > until {
                in_time = false;
                let process = Pid::from_raw(child).expect("a number");
                kill_process(process, Signal::KILL).expect("it has not been waited for");
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        let words =
            String::from_utf8_lossy(&std::fs::read(&said).expect("what it said")).into_owned();
        Outcome { status: status.code(), words, in_time }
    }

    fn judge(&self, outcome: &Outcome, expected: &Expected) -> Verdict {
        let wrong = |text: &str| Verdict::Wrong(format!("{text}: {}", shown(&outcome.words)));
        if !outcome.in_time {
            return wrong("it does not end");
        }
        let Some(status) = outcome.status else { return wrong("ended by a signal") };
        for bad in [
            "panicked",
            "importer ended",
            "importer failed",
            "importer sent an invalid message",
            "overflowed",
        ] {
            if outcome.words.contains(bad) {
                return wrong("a crash");
            }
        }
        if outcome.words.contains(SONG) {
            return wrong("it shows what lies outside of the scene's folder");
        }
        if self.was_opened() {
            return wrong("it opened what lies outside of the scene's folder");
        }
        if outcome.words.contains(|c: char| c.is_control() && !matches!(c, '\n' | '\t')) {
            return wrong("control characters reach the terminal");
        }
        if outcome.words.len() > WORDS_BYTES_MAX {
            return wrong("it says too much");
        }
        if status != 0 && !outcome.words.contains("error: ") {
            return wrong("no error is told");
        }
        match expected {
            Expected::Scene if status != 0 => wrong("it should be read"),
            Expected::Refused(_) if status == 0 => wrong("it should be refused"),
            Expected::Refused(text) if !outcome.words.contains(text) => {
                wrong(&format!("the error does not say {text:?}"))
            }
            _ => Verdict::Well,
        }
    }

    /// Somebody has opened something in the canary's folder since the last look.
    fn was_opened(&self) -> bool {
        let mut events = [0u8; 4096];
        let mut watch = &self.watch;
        matches!(watch.read(&mut events), Ok(1..))
    }
}

/// Tells of everything that is opened in a folder; reading never waits.
fn watch(folder: &Path) -> std::fs::File {
    use inotify::{CreateFlags, WatchFlags};
    let handle = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).expect("inotify");
    let events = WatchFlags::OPEN | WatchFlags::ACCESS;
    inotify::add_watch(&handle, folder, events).expect("a watch");
    handle.into()
}

/// How a child ended, and the memory of the largest process among it and those that it waited for;
/// None where it still runs.
fn ended(child: libc::pid_t) -> Option<(ExitStatus, u64)> {
    let mut status = 0;
    // rustix has no `wait4`.
    // SAFETY: the structure is plain numbers, and the call writes to both.
    let (found, usage) = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        (libc::wait4(child, &mut status, libc::WNOHANG, &mut usage), usage)
    };
    assert!(found >= 0, "a child to wait for");
    (found == child).then(|| (ExitStatus::from_raw(status), usage.ru_maxrss.unsigned_abs() << 10))
}

/// The most memory that this process has had.
pub(crate) fn own_peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("this process's status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("its peak");
    let kib = line.trim().strip_suffix(" kB").and_then(|kib| kib.parse::<u64>().ok());
    kib.expect("a number of KiB") << 10
}

fn shown(words: &str) -> String {
    words.chars().take(400).collect()
}

/// The watch works: without it, the other tests would see nothing.
#[test]
fn the_canary_tells_when_it_is_opened() {
    let lab = Lab::new();
    assert!(!lab.was_opened());
    std::fs::read(lab.folder().join("secret/canary.bin")).expect("the canary");
    assert!(lab.was_opened() && !lab.was_opened());
}
