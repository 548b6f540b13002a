//! Dependencies: each one of others' is named with a reason, and each is used where it is declared.

use crate::{none, root};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const PAGE: &str = "docs/decisions/0002-dependencies.md";

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Names that one section of a manifest declares.
fn declared(manifest: &str, wanted: &str) -> Vec<String> {
    let mut section = "";
    let mut names = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            section = line.trim_matches(['[', ']']);
        } else if section == wanted
            && line.starts_with(|c: char| c.is_ascii_alphanumeric())
            && let Some(name) = line.split(['.', ' ', '=']).next()
        {
            names.push(name.to_owned());
        }
    }
    names
}

/// Members of the workspace by their folder; the root's own package is the empty one.
pub(crate) fn members() -> Vec<String> {
    let manifest = read("Cargo.toml");
    let (_, list) = manifest.split_once("members = [").expect("a list of members");
    let (list, _) = list.split_once(']').expect("its end");
    let names = list.split(',').map(|name| name.trim().trim_matches('"'));
    names.filter(|name| !name.is_empty()).map(|name| name.trim_matches('.').to_owned()).collect()
}

/// Rust files of a folder, without those of tests.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.expect("the repository can be read").path();
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && stem != "tests" {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|end| end == "rs")
            && stem != "tests"
            && !stem.ends_with("_tests")
        {
            found.push(path);
        }
    }
    found
}

/// Whether product code of a member names a crate.
fn uses(member: &str, name: &str) -> bool {
    let folder = root().join(member).join("src");
    let folder = match member {
        "" => root().join("cli"),
        _ if folder.is_dir() => folder,
        _ => root().join(member),
    };
    let name = name.replace('-', "_");
    let starts = |line: &str, at: usize| {
        !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '.')
    };
    sources(&folder).iter().any(|path| {
        let text = std::fs::read_to_string(path).expect("a source file can be read");
        let product = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        product.lines().filter(|line| !line.trim_start().starts_with("//")).any(|line| {
            line.match_indices(&name).any(|(at, _)| {
                let rest = &line[at + name.len()..];
                starts(line, at)
                    && (rest.starts_with("::") || line.starts_with("use ") && rest == ";")
            })
        })
    })
}

#[test]
fn every_dependency_has_a_reason_in_the_decision() {
    let page = read(PAGE);
    let rows = page.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    let named: BTreeSet<&str> = rows.flat_map(|row| row.split(", ")).map(str::trim).collect();
    let mut all = declared(&read("Cargo.toml"), "workspace.dependencies");
    all.retain(|name| !name.starts_with("tessera-"));
    assert!(all.len() > 30, "dependencies are not found in Cargo.toml: {all:?}");
    let missing = all.into_iter().filter(|name| !named.contains(name.as_str()));
    none(&format!("dependencies without a reason in {PAGE}"), missing.collect());
}

#[test]
fn every_dependency_is_used_by_product_code() {
    let mut findings = Vec::new();
    for member in members() {
        let manifest = read(&Path::new(&member).join("Cargo.toml").display().to_string());
        for name in declared(&manifest, "dependencies") {
            if !uses(&member, &name) {
                findings.push(format!("{member}: {name}"));
            }
        }
    }
    none("dependencies that only tests use, or nothing", findings);
}

#[test]
fn declared_names_are_those_of_one_section() {
    let manifest =
        "[a]\none.workspace = true\n# two\n[b]\nthree = \"1\"\nfour = { path = \"x\" }\n";
    assert_eq!(declared(manifest, "a"), ["one"]);
    assert_eq!(declared(manifest, "b"), ["three", "four"]);
}
