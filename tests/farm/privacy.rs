//! Who can read a farm's folders on its own machine: nobody but their owner, whatever the umask is.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use tessera_support::farm::{Farm, library};

/// The same command, with a umask that takes no right away.
fn open_to_all(plain: &Command) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", "umask 0; exec \"$0\" \"$@\""]).arg(plain.get_program());
    command.args(plain.get_args());
    for (name, value) in plain.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

/// Every file and folder that group or others can do something with.
fn readable(root: &Path, found: &mut Vec<(PathBuf, u32)>) -> usize {
    let mode = std::fs::metadata(root).expect("it is there").permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        found.push((root.to_owned(), mode));
    }
    if !root.is_dir() {
        return 1;
    }
    let entries = std::fs::read_dir(root).expect("a folder that can be read");
    entries.map(|entry| readable(&entry.expect("an entry").path(), found)).sum::<usize>() + 1
}

// promise: P8
#[test]
fn only_its_owner_can_read_a_farm_whatever_the_umask() {
    let mut farm = Farm::prepare();
    let command = open_to_all(&farm.coordinator_command());
    farm.run_coordinator(command);
    farm.invite("node-0", 1);
    let node = farm.spawn(open_to_all(&farm.node_command(0)), "node-0");
    let job = farm.submit(&library("cornell-box.gltf"), &["--size", "32x32", "--spp", "2"]);
    assert_eq!(farm.hashes(&job).len(), 1);
    let mut found = Vec::new();
    let seen =
        readable(&farm.data(), &mut found) + readable(&farm.folder().join("node-0"), &mut found);
    assert!(found.is_empty(), "{found:?}");
    assert!(seen > 30, "only {seen} files and folders were seen");
    drop(node);
    assert!(farm.stop_coordinator(), "{}", farm.logs());
}
