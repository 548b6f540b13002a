//! Promises: which test shows which promise of docs/promises.md. A comment `// promise: P1, P3`
//! above a test says so; the page docs/measurements/promise-tests.md is made of these comments.

use crate::{files, root, shown};
use std::collections::BTreeMap;
use std::fmt::Write as _;

const PAGE: &str = "docs/measurements/promise-tests.md";
/// In two parts, so that this file does not find itself.
const TAG: [&str; 2] = ["// prom", "ise: "];
const HEAD: &str = "# Tests of the promises

For developers. Generated from the comments above tests (`TESSERA_BLESS=1 cargo test --release -p
tessera-tidy promises`); do not edit. [promises.md](../promises.md) says what each promise means.
";

/// A promise, and its tests as (file, name).
type Tests = BTreeMap<String, Vec<(String, String)>>;

/// Adds the tagged tests of one source file.
fn collect(file: &str, text: &str, tests: &mut Tests) {
    let lines: Vec<&str> = text.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        let Some(promises) = line.trim_start().strip_prefix(&TAG.concat()) else { continue };
        let name = lines[at..].iter().take(6).find_map(|line| {
            let after = line.split_once("fn ")?.1;
            after.split_once('(').map(|(name, _)| name.to_owned())
        });
        let name = name.unwrap_or_else(|| panic!("{file}:{}: no test follows", at + 1));
        for promise in promises.split(", ") {
            tests.entry(promise.to_owned()).or_default().push((file.to_owned(), name.clone()));
        }
    }
}

#[test]
fn the_page_of_promises_names_the_tagged_tests() {
    let mut tests = Tests::new();
    for path in files(&["rs"]) {
        let text = std::fs::read_to_string(&path).expect("a source file is UTF-8");
        collect(&shown(&path), &text, &mut tests);
    }
    let promised: Vec<String> = (1..=8).map(|number| format!("P{number}")).collect();
    assert!(tests.keys().eq(&promised), "promises with tests: {:?}", tests.keys());
    let mut page = HEAD.to_owned();
    for (promise, named) in &tests {
        let _ = write!(page, "\n## {promise}\n\n| file | test |\n|---|---|\n");
        for (file, name) in named {
            let _ = writeln!(page, "| `{file}` | `{name}` |");
        }
    }
    let place = root().join(PAGE);
    if std::env::var_os("TESSERA_BLESS").is_some() {
        std::fs::write(&place, &page).expect("the page can be written");
    }
    let written = std::fs::read_to_string(&place).expect("the page is there");
    assert!(written == page, "{PAGE} is not what the tests say: TESSERA_BLESS=1 writes it");
}

#[test]
fn a_tag_belongs_to_the_test_below_it() {
    let text = format!("{}P1, P4\n#[test]\nfn a_test() {{}}\n", TAG.concat());
    let mut tests = Tests::new();
    collect("a.rs", &text, &mut tests);
    assert_eq!(tests["P1"], [("a.rs".to_owned(), "a_test".to_owned())]);
    assert_eq!(tests["P4"], tests["P1"]);
}
