//! Circles of files: in a crate, a file that needs another one should not be needed by it.

use crate::{files, root};
use std::collections::{BTreeMap, BTreeSet};

/// Files of a crate by their module path, and the module paths that each of them names.
type Graph = BTreeMap<String, BTreeSet<String>>;

/// The module path of a file below `src`: `quic/mod.rs` is `quic`, `lib.rs` is empty.
fn module_of(file: &str) -> String {
    let file = file.strip_suffix(".rs").unwrap_or(file);
    let file = file.strip_suffix("/mod").unwrap_or(file);
    if file == "lib" { String::new() } else { file.replace('/', "::") }
}

/// A file's code: no comments, no tests, no re-exports.
fn code(text: &str) -> String {
    let product = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let lines = product.lines().map(|line| line.split("//").next().unwrap_or_default());
    let text = lines.collect::<Vec<_>>().join("\n");
    let statements = text.split_inclusive(';').filter(|statement| {
        let trimmed = statement.trim_start();
        let is_use =
            trimmed.contains(" use ") || (trimmed.contains("use ") && !trimmed.contains('{'));
        !(trimmed.starts_with("pub") && is_use)
    });
    statements.collect()
}

/// Paths such as `crate::a::b` in a code, with the names of one pair of braces written out.
fn paths(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    for start in ["crate::", "super::"] {
        for (at, _) in code.match_indices(start) {
            let before = code[..at].chars().next_back().unwrap_or(' ');
            if before.is_alphanumeric() || before == '_' || before == ':' {
                continue;
            }
            let rest = &code[at..];
            let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
            let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            let head = &rest[..end];
            if let (true, Some(list)) = (head.ends_with("::"), rest[end..].strip_prefix('{')) {
                let names = list.split('}').next().unwrap_or_default().split([',', '{']);
                found.extend(names.map(|name| {
                    format!("{head}{}", name.split_whitespace().next().unwrap_or_default())
                }));
            } else {
                found.push(head.to_owned());
            }
        }
    }
    found
}

/// Which files of a crate's `src` name which others.
fn graph(source: &str) -> Graph {
    let folder = root().join(source);
    let mut texts = BTreeMap::new();
    for path in files(&["rs"]) {
        if let Ok(file) = path.strip_prefix(&folder) {
            let text = std::fs::read_to_string(&path).expect("a source file is UTF-8");
            texts.insert(module_of(&file.to_string_lossy()), code(&text));
        }
    }
    let target = |from: &str, path: &str| -> Option<String> {
        let mut at: Vec<&str> = if from.is_empty() { vec![] } else { from.split("::").collect() };
        let mut parts = path.split("::").peekable();
        if parts.next_if_eq(&"crate").is_some() {
            at.clear();
        }
        while parts.next_if_eq(&"super").is_some() {
            at.pop();
        }
        at.extend(parts);
        // The longest beginning that is a file; the crate's own root is no file of the circle.
        (1..=at.len()).rev().map(|n| at[..n].join("::")).find(|module| texts.contains_key(module))
    };
    let names = |from: &String| -> BTreeSet<String> {
        let found = paths(&texts[from]).into_iter().filter_map(|path| target(from, &path));
        found.filter(|to| to != from).collect()
    };
    texts.keys().filter(|from| !from.is_empty()).map(|from| (from.clone(), names(from))).collect()
}

/// Everything that can be reached from a file.
fn reached(graph: &Graph, from: &str) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    let mut next = vec![from.to_owned()];
    while let Some(file) = next.pop() {
        for to in graph.get(&file).into_iter().flatten() {
            if seen.insert(to.clone()) {
                next.push(to.clone());
            }
        }
    }
    seen
}

/// Files that can be reached from themselves.
fn in_circles(graph: &Graph) -> Vec<&str> {
    let is_in = |file: &&String| reached(graph, file).contains(*file);
    graph.keys().filter(is_in).map(String::as_str).collect()
}

/// Crates, and how many of their files lie in circles at most. A bound only ever falls.
const BOUNDS: [(&str, usize); 5] = [
    ("coordinator/core/src", 0),
    ("coordinator/src", 0),
    ("node/src", 0),
    ("scenes/src", 0),
    ("transport/src", 0),
];

#[test]
fn files_form_no_more_circles_than_they_did() {
    for (source, most) in BOUNDS {
        let graph = graph(source);
        assert!(graph.len() > 20, "{source} has {} files", graph.len());
        let circle = in_circles(&graph);
        assert!(
            circle.len() <= most,
            "{source}: {} files lie in circles, {most} may:\n  {}",
            circle.len(),
            circle.join("\n  ")
        );
    }
}

#[test]
fn circles_are_found() {
    let link = |to: &[&str]| to.iter().map(|name| (*name).to_owned()).collect();
    let graph: Graph = BTreeMap::from([
        ("a".into(), link(&["b"])),
        ("b".into(), link(&["c"])),
        ("c".into(), link(&["b"])),
    ]);
    assert_eq!(in_circles(&graph), ["b", "c"]);
    let code = code("use crate::a::{B, C};\n// crate::d::E\npub(crate) use f::G;\nsuper::h::i();");
    assert_eq!(paths(&code), ["crate::a::B", "crate::a::C", "super::h::i"]);
}
