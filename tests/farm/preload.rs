//! A wall clock that is set and a disk that fills, for real processes and without rights:
//! `preload.c` stands before their C library.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// What the disk of a process under test does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Disk {
    /// It takes what comes.
    Roomy = 0,
    /// It says that it has no room, and takes nothing more but what was being written when it began
    /// to say so.
    Full = 1,
    /// It says that it has room, and takes nothing more.
    Deceitful = 2,
}

/// The disk says that it has no room, and takes what comes.
const LAST_BYTES: i64 = 3;
/// How long the last bytes of a disk are enough: nothing that was begun on a roomy one is still
/// being written then.
const LAST_BYTES_FOR: Duration = Duration::from_secs(1);

/// The library, and the file by which it is told what holds.
pub(crate) struct Preload {
    library: PathBuf,
    state: PathBuf,
    told: File,
}

impl Preload {
    /// Compiles the library into a folder. The compiler is the one that the kernels need anyway.
    pub(crate) fn build(folder: &Path) -> Preload {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/farm/preload.c");
        let (library, state) = (folder.join("preload.so"), folder.join("preload.state"));
        let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
        let mut command = Command::new(&compiler);
        command.args(["-O1", "-shared", "-fPIC", "-o"]).arg(&library).arg(source).arg("-ldl");
        let output =
            command.output().unwrap_or_else(|error| panic!("{}: {error}", compiler.display()));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let told = File::create(&state).expect("a file for what holds");
        let preload = Preload { library, state, told };
        preload.set_clock(0);
        preload.set_disk(Disk::Roomy);
        preload
    }

    /// What a process needs to have in its environment. Its disk is everything below a folder.
    pub(crate) fn environment(&self, disk: &Path) -> Vec<(OsString, OsString)> {
        vec![
            ("LD_PRELOAD".into(), self.library.clone().into()),
            ("SHIM_STATE".into(), self.state.clone().into()),
            ("SHIM_DISK".into(), disk.into()),
        ]
    }

    /// From now on the wall clock is so many seconds ahead of the true time.
    pub(crate) fn set_clock(&self, ahead_secs: i64) {
        self.told.write_all_at(&ahead_secs.to_ne_bytes(), 0).expect("the clock is set");
    }

    /// From now on the disk is like this.
    pub(crate) fn set_disk(&self, disk: Disk) {
        if disk == Disk::Full {
            self.tell_disk(LAST_BYTES);
            std::thread::sleep(LAST_BYTES_FOR);
        }
        self.tell_disk(disk as i64);
    }

    fn tell_disk(&self, state: i64) {
        self.told.write_all_at(&state.to_ne_bytes(), 8).expect("the disk is told");
    }
}
