//! What Prometheus's own checker says, where it is installed.

use super::node::Node;
use crate::farm::Farm;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const NEEDED: &str = "the package `prometheus` has it";

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/prometheus")
}

/// Runs `promtool` on an input. Returns whether it is there, and fails if it finds something.
fn promtool(test: &str, folder: &Path, arguments: &[&str], input: &str) -> bool {
    let mut command = Command::new("promtool");
    command.args(arguments).current_dir(folder).stdin(Stdio::piped());
    let Ok(mut child) = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn() else {
        eprintln!("SKIPPED: {test}: there is no promtool; {NEEDED}");
        return false;
    };
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(output.status.success(), "promtool {arguments:?}: {said}");
    true
}

#[tokio::test(flavor = "multi_thread")]
async fn promtool_finds_nothing_in_the_metrics() {
    let folder = tempfile::tempdir().unwrap();
    let farm = Farm::start_in(folder.path(), |_| {}).await;
    let token = farm.scraper().await;
    let mut node = Node::join(&farm, "rig").await;
    node.beat(Vec::new()).await;
    let has = |row: &str| row.starts_with("tessera_device_busy_ratio");
    let page = farm.until(&token, "a device", |page| page.values.keys().any(|row| has(row)));
    page.await;
    let text = farm.metrics(&token).await;
    let test = "promtool_finds_nothing_in_the_metrics";
    promtool(test, folder.path(), &["check", "metrics"], &text);
    farm.coordinator.shutdown().await.unwrap();
}

#[test]
fn promtool_takes_the_alerts_and_the_example() {
    let test = "promtool_takes_the_alerts_and_the_example";
    let folder = tempfile::tempdir().unwrap();
    for file in ["tessera.rules.yml", "tessera.rules.test.yml", "prometheus.yml"] {
        std::fs::copy(deploy().join(file), folder.path().join(file)).unwrap();
    }
    // The token that an operator makes.
    std::fs::write(folder.path().join("tessera.token"), "").unwrap();
    for arguments in [
        ["check", "rules", "tessera.rules.yml"],
        ["test", "rules", "tessera.rules.test.yml"],
        ["check", "config", "prometheus.yml"],
    ] {
        if !promtool(test, folder.path(), &arguments, "") {
            return;
        }
    }
}
