//! The command line: statuses, words, files. What needs a farm of processes is in `tests/farm`.

mod attributes;
mod doctor;
mod far;
mod libraries;
mod local;
mod mistakes;
mod pictures;
mod sleep;
mod support_bundle;
mod units;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A scene of the project's own library.
fn library(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scenes/library").join(name)
}

/// `tessera` in a folder of its own, with nobody's settings.
fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tessera"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("TESSERA_")) {
        command.env_remove(name);
    }
    command.args(arguments).current_dir(folder).env("XDG_CONFIG_HOME", folder.join("config"));
    command
}

fn tessera(folder: &Path, arguments: &[&str]) -> Output {
    command(folder, arguments).output().expect("the binary runs")
}

/// Status, standard output and standard error.
fn told(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = tessera(folder, arguments);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().expect("it ended by itself"), text(&output.stdout), text(&output.stderr))
}
