//! What a command asks of its own process before it opens anything: how many files it may have
//! open, and who can read the files of a data folder.

use crate::args::Command;
use crate::error::{CliError, Status};
use rustix::fs::Mode;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit, umask};

/// Most files that are asked for. More are never open at a time, and programs that are started
/// close all of them one by one.
const FILES_MAX: u64 = 65_536;
/// Least number of files with which a coordinator or a node works. Each has about 30 open at rest,
/// and a local farm is both in one process.
const FARM_FILES_MIN: u64 = 96;
/// Rights that files of a data folder do not get: those of the group and of others.
const PRIVATE: Mode = Mode::RWXG.union(Mode::RWXO);

/// Raises the limits of the process as far as the system allows, and refuses a command that they
/// would stop in the middle.
pub(crate) fn prepare(command: &Command) -> Result<(), CliError> {
    if has_private_folder(command) {
        umask(PRIVATE);
    }
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.unwrap_or(FILES_MAX).min(FILES_MAX);
    let mut current = limit.current.unwrap_or(u64::MAX);
    if current < wanted {
        let raised = Rlimit { current: Some(wanted), maximum: limit.maximum };
        if setrlimit(Resource::Nofile, raised).is_ok() {
            current = wanted;
        }
    }
    check(current, has_farm(command))
}

fn check(files: u64, farm: bool) -> Result<(), CliError> {
    if !farm || files >= FARM_FILES_MIN {
        return Ok(());
    }
    let text = format!(
        "this process may have {files} files open, and a coordinator or node needs \
         {FARM_FILES_MIN} at least"
    );
    let hint = "`ulimit -n 4096`, or LimitNOFILE=4096 in the unit";
    Err(CliError::new(Status::Failure, text).hint(hint))
}

/// Returns whether the command runs a coordinator or a node.
fn has_farm(command: &Command) -> bool {
    match command {
        Command::Coordinator(args) => !args.audit && args.export.is_none(),
        Command::Node(_) | Command::Render(_) | Command::Compute(_) | Command::Bench(_) => true,
        _ => false,
    }
}

/// Returns whether the command makes files in a data folder, or others that have keys.
fn has_private_folder(command: &Command) -> bool {
    matches!(
        command,
        Command::Coordinator(_) | Command::Node(_) | Command::Restore(_) | Command::Backup(_)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few_files_are_refused_with_the_number_needed() {
        assert!(check(24, false).is_ok() && check(4096, true).is_ok());
        let text = check(24, true).unwrap_err().for_people();
        assert!(text.contains("24 files") && text.contains("96"), "{text}");
        assert!(text.contains("ulimit -n"), "{text}");
    }
}
