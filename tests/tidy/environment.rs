//! Environment variables: each `TESSERA_*` name in the sources is in docs/environment.md, and the
//! other way round. So is each `OTEL_*` name, of which a library reads more than the sources name.

use crate::{files, none, root, shown};
use std::collections::{BTreeMap, BTreeSet};

const PAGE: &str = "docs/environment.md";
const PREFIX: &str = "TESSERA_";
const OPEN_TELEMETRY: &str = "OTEL_";
/// What kernels of users include. Its macros are no variables of the environment.
const HEADER: &str = "kernels/source/compute/tessera.cuh";

/// The `TESSERA_*` names in a text.
fn names(text: &str) -> impl Iterator<Item = &str> {
    names_of(text, PREFIX)
}

/// The names in a text that begin like this.
fn names_of<'a>(text: &'a str, prefix: &'static str) -> impl Iterator<Item = &'a str> {
    text.match_indices(prefix).filter_map(move |(at, _)| {
        let rest = &text[at..];
        let is_name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        let name = &rest[..rest.find(|c| !is_name(c)).unwrap_or(rest.len())];
        let is_whole = name.len() > prefix.len() && !text[..at].ends_with(is_name);
        is_whole.then_some(name)
    })
}

#[test]
fn every_environment_variable_is_in_the_table() {
    let page = std::fs::read_to_string(root().join(PAGE)).expect("the page can be read");
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    let cells: Vec<&str> = rows.filter_map(|row| row.split(" | ").next()).collect();
    let listed: BTreeSet<&str> = cells.iter().copied().flat_map(names).collect();
    let of_library: BTreeSet<&str> =
        cells.iter().flat_map(|cell| names_of(cell, OPEN_TELEMETRY)).collect();
    let mut unlisted: BTreeSet<String> = BTreeSet::new();
    let mut used: BTreeMap<String, String> = BTreeMap::new();
    for path in files(&["rs", "sh", "py", "service", "toml"]) {
        // Their TESSERA_* are macros of the C++ preprocessor.
        if shown(&path).starts_with("kernels/source/") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("sources are text");
        let others = names_of(&text, OPEN_TELEMETRY).filter(|name| !of_library.contains(name));
        unlisted.extend(others.map(|name| format!("{name} is not in {PAGE}")));
        for name in names(&text) {
            used.entry(name.to_owned()).or_insert_with(|| shown(&path));
        }
    }
    let header = std::fs::read_to_string(root().join(HEADER)).expect("the header can be read");
    let defined = header.lines().filter_map(|line| line.strip_prefix("#define "));
    let macros: BTreeSet<&str> = defined.filter_map(|rest| names(rest).next()).collect();
    let missing = used
        .iter()
        .filter(|(name, _)| !listed.contains(name.as_str()) && !macros.contains(name.as_str()))
        .map(|(name, place)| format!("{name} ({place}) is not in {PAGE}"));
    let unused = listed
        .iter()
        .filter(|name| !used.contains_key(**name))
        .map(|name| format!("{name} is in {PAGE}, and no source has it"));
    none("environment variables", missing.chain(unused).chain(unlisted).collect());
}

#[test]
fn names_are_found_whole() {
    let text = "env('?A_B') $?C1: ? NOT_?D".replace('?', PREFIX);
    let expected = ["A_B", "C1"].map(|name| format!("{PREFIX}{name}"));
    assert_eq!(names(&text).collect::<Vec<_>>(), expected);
}
