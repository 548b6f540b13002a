//! Wakes machines of absent nodes, by a program that an operator owns, while units wait for nodes.
//! Knows no way to wake one itself.

use crate::error::{CliError, Status};
use crate::table::printable;
use crate::work_hours;
use futures_util::future::join_all;
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;
use tessera_coordinator::api::{Api, Missing};
use tessera_protocol::NodeId;
use tessera_protocol::status::NodeSummary;
use tokio::process::Command;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Time between two looks; units have to wait at two of them.
const LOOK: Duration = Duration::from_secs(5);
/// Least time until the same machine is woken again: it has to start, and to join.
const AGAIN: Duration = Duration::from_secs(600);
/// Longest run of the program.
const RUN_MAX: Duration = Duration::from_secs(60);
/// Most machines that are woken at a look. The next ones follow.
const AT_ONCE: usize = 16;
/// Lines of a program that failed.
const LINES_MAX: usize = 3;

/// Machines are woken as long as this is kept.
#[derive(Debug)]
pub(crate) struct Waking(JoinHandle<()>);

impl Drop for Waking {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Checks that there is such a program, which may be run.
pub(crate) fn check(program: Option<&Path>) -> Result<(), CliError> {
    let Some(program) = program else { return Ok(()) };
    let about = |text: String| {
        CliError::new(Status::Usage, format!("--wake `{}`: {text}", program.display()))
            .hint("name a program by its path; it gets the name of a node as its argument")
    };
    let found = std::fs::metadata(program).map_err(|error| about(error.to_string()))?;
    match found.is_file() && found.permissions().mode() & 0o111 != 0 {
        true => Ok(()),
        false => Err(about("it is no file that can be run".to_owned())),
    }
}

/// Begins to wake machines for a coordinator that leads.
pub(crate) fn begin(program: Option<PathBuf>, api: Api) -> Option<Waking> {
    let program = program?;
    Some(Waking(tokio::spawn(async move {
        let mut looks = tokio::time::interval(LOOK);
        let mut rules = Rules::default();
        loop {
            looks.tick().await;
            // The coordinator is ending.
            let Ok(missing) = api.missing_nodes().await else { continue };
            let due = rules.due(&missing, Instant::now());
            join_all(due.into_iter().map(|node| wake(&program, node))).await;
        }
    })))
}

/// Which machines are woken when.
#[derive(Debug, Default)]
struct Rules {
    /// Units waited at the look before.
    was_wanted: bool,
    /// When each was woken last.
    woken: BTreeMap<NodeId, Instant>,
}

impl Rules {
    /// The nodes whose machines are to be woken now.
    fn due<'a>(&mut self, missing: &'a Missing, now: Instant) -> Vec<&'a NodeSummary> {
        self.woken.retain(|_, at| now.duration_since(*at) < AGAIN);
        let before = std::mem::replace(&mut self.was_wanted, missing.is_wanted);
        if !before || !missing.is_wanted {
            return Vec::new();
        }
        // One that rests comes by itself.
        let may_come = |node: &&NodeSummary| !node.note.contains(work_hours::OVER);
        let all = missing.absent.iter().filter(may_come);
        let due: Vec<_> =
            all.filter(|node| !self.woken.contains_key(&node.node)).take(AT_ONCE).collect();
        self.woken.extend(due.iter().map(|node| (node.node, now)));
        due
    }
}

/// Runs the program for a node, and says what came of it.
async fn wake(program: &Path, node: &NodeSummary) {
    let ran = Command::new(program)
        .arg(&node.name)
        .env("TESSERA_POOL", node.pool.as_deref().unwrap_or_default())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let name = &node.name;
    match tokio::time::timeout(RUN_MAX, ran).await {
        Ok(Ok(output)) if output.status.success() => {
            tracing::info!(node = name, "units wait: its machine is woken (--wake)");
        }
        Ok(Ok(output)) => {
            let said = said(&output);
            let status = output.status;
            tracing::warn!(node = name, %status, said, "its machine was not woken: --wake failed");
        }
        Ok(Err(error)) => {
            tracing::warn!(node = name, %error, "its machine was not woken: --wake cannot be run");
        }
        Err(_) => {
            let secs = RUN_MAX.as_secs();
            tracing::warn!(node = name, secs, "--wake ran for too long, and was ended");
        }
    }
}

fn said(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    text.lines().take(LINES_MAX).map(printable).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tessera_protocol::status::NodeState;

    fn node(number: u8, note: &str) -> NodeSummary {
        NodeSummary {
            node: NodeId(uuid::Uuid::from_bytes([number; 16])),
            name: format!("rig-{number}"),
            identity: 0,
            state: NodeState::Left,
            devices: Vec::new(),
            telemetry: Vec::new(),
            units_leased: 0,
            units_committed: 0,
            samples_per_second: 0.0,
            silent_secs: 0,
            build: String::new(),
            note: note.to_owned(),
            pool: None,
            since: 0,
            drained: false,
            busy: None,
        }
    }

    #[test]
    fn a_machine_is_woken_when_units_wait_and_not_at_once_again() {
        let (mut rules, now) = (Rules::default(), Instant::now());
        let rests = format!("{}: it works 20:00-07:00", work_hours::OVER);
        let absent = vec![node(1, "no more work (--once)"), node(2, &rests)];
        let missing = Missing { is_wanted: true, absent };
        let names = |due: Vec<&NodeSummary>| -> Vec<String> {
            due.into_iter().map(|node| node.name.clone()).collect()
        };
        assert_eq!(names(rules.due(&missing, now)), [""; 0], "it may be for a moment");
        assert_eq!(names(rules.due(&missing, now + LOOK)), ["rig-1"]);
        assert_eq!(names(rules.due(&missing, now + LOOK * 2)), [""; 0], "it is starting");
        assert_eq!(names(rules.due(&missing, now + AGAIN + LOOK)), ["rig-1"]);
        let enough = Missing { is_wanted: false, ..missing.clone() };
        assert_eq!(names(rules.due(&enough, now + AGAIN * 3)), [""; 0]);
        assert_eq!(names(rules.due(&missing, now + AGAIN * 3)), [""; 0], "again, two looks");
    }

    #[test]
    fn many_machines_are_woken_one_after_the_other() {
        let (mut rules, now) = (Rules::default(), Instant::now());
        let absent = (0..40).map(|number| node(number, "")).collect();
        let missing = Missing { is_wanted: true, absent };
        let counts: Vec<usize> = (0..5).map(|_| rules.due(&missing, now).len()).collect();
        assert_eq!(counts, [0, 16, 16, 8, 0]);
    }

    #[test]
    fn a_program_that_cannot_be_run_is_refused_at_the_start() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("wake");
        assert_eq!(check(Some(&file)).unwrap_err().status(), Status::Usage);
        std::fs::write(&file, "#!/bin/sh\n").unwrap();
        assert!(check(Some(&file)).unwrap_err().to_string().contains("can be run"));
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).unwrap();
        assert!(check(Some(&file)).is_ok() && check(None).is_ok());
        assert!(check(Some(folder.path())).is_err());
    }
}
