//! The stage of a test: its own executable once more, with a rack in its environment.

use std::process::{Command, Output};
use tessera_fake_cuda::{Config, Rack};

/// Runs `body` in a process that has the rack, and gives the rack back. `None` in that process
/// itself: `body` has run.
pub(crate) fn on(test: &str, config: &Config, body: impl FnOnce()) -> Option<Rack> {
    let (rack, output) = on_and_see(test, config, &[], body)?;
    assert!(output.status.success(), "{test}: {}\n{}", output.status, text(&output));
    Some(rack)
}

/// As [`on`], with more environment, and whatever the process came to.
pub(crate) fn on_and_see(
    test: &str,
    config: &Config,
    environment: &[(&str, &str)],
    body: impl FnOnce(),
) -> Option<(Rack, Output)> {
    if std::env::var_os("TESSERA_FAKE_CUDA").is_some() {
        body();
        return None;
    }
    let rack = Rack::new(config).expect("a rack");
    let mut program = Command::new(std::env::current_exe().expect("the test's own path"));
    program.args([test, "--exact", "--nocapture"]);
    rack.lend_to(&mut program);
    program.envs(environment.iter().copied());
    let output = program.output().expect("the test's own executable runs");
    Some((rack, output))
}

/// What a process said.
pub(crate) fn text(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}
