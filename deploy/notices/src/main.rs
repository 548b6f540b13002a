//! Collects the licences of all crates that are linked into the program, in one text.
//!
//! `cargo run -p tessera-notices -- FILE` writes the text, `--check` only looks whether every crate
//! has one. Same lock file, same bytes.

mod error;
mod graph;
mod texts;

use error::NoticesError;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let argument = std::env::args().nth(1);
    let done = match argument.as_deref() {
        Some("--check") => notices(workspace())
            .map(|(_, crates)| format!("{crates} crates, all with a licence text")),
        Some(path) => write(path),
        None => {
            say("usage: cargo run -p tessera-notices -- FILE | --check");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(text) => {
            say(&text);
            ExitCode::SUCCESS
        }
        Err(error) => {
            say(&format!("error: {}", chain(&error)));
            ExitCode::FAILURE
        }
    }
}

/// The workspace that this program belongs to.
fn workspace() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn write(path: &str) -> Result<String, NoticesError> {
    let (text, crates) = notices(workspace())?;
    std::fs::write(path, text)
        .map_err(|source| NoticesError::Write { path: path.to_owned(), source })?;
    Ok(format!("{path}: licences of {crates} crates"))
}

/// The text, and for how many crates it is.
fn notices(workspace: &Path) -> Result<(String, usize), NoticesError> {
    let linked = graph::linked(workspace)?;
    Ok((texts::compose(&linked)?, linked.len()))
}

fn chain(error: &dyn std::error::Error) -> String {
    std::iter::successors(Some(error), |error| error.source())
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}

fn say(text: &str) {
    // Nobody to tell if standard error is closed.
    let _ = writeln!(std::io::stderr(), "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::process::Command;

    /// Crates of others that `cargo tree` finds in the program, as `name version`.
    fn tree() -> BTreeSet<String> {
        let output = Command::new(env!("CARGO"))
            .args(["tree", "-p", "tessera", "-e", "normal,no-proc-macro", "--prefix", "none"])
            .args(["--features", "otlp"])
            .args(["--locked", "--offline", "--target", graph::TARGET, "--format", "{p}"])
            .current_dir(workspace())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        // A crate of ours stands with its folder.
        let others = text.lines().filter(|line| !line.contains('/'));
        let named = others.filter_map(|line| line.split_once(" v"));
        named
            .map(|(name, rest)| format!("{name} {}", rest.split(' ').next().unwrap_or_default()))
            .collect()
    }

    #[test]
    fn notices_name_every_crate_of_the_program() {
        let (text, _) = notices(workspace()).unwrap();
        let listed: BTreeSet<String> = text
            .lines()
            .filter_map(|line| line.strip_prefix("- "))
            .filter_map(|line| Some(line.split_once(": ")?.0.to_owned()))
            .collect();
        let tree = tree();
        assert!(tree.len() > 100, "{tree:?}");
        let missing: Vec<_> = tree.difference(&listed).collect();
        assert!(missing.is_empty(), "without a notice: {missing:?}");
    }

    #[test]
    fn notices_are_the_same_every_time() {
        assert_eq!(notices(workspace()).unwrap(), notices(workspace()).unwrap());
    }
}
