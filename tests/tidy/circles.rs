//! Circles of files: in a crate, a file that needs another one should not be needed by it.

use crate::dependencies::members;
use crate::module_paths::{Crate, Texts};
use crate::{files, root};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Files of a crate by their module path, and the files that each of them needs. The root, such as
/// `lib.rs`, has the empty path.
type Graph = BTreeMap<String, BTreeSet<String>>;

/// Crates, and how many of their files lie in circles at most. A bound only ever falls.
const BOUNDS: [(&str, usize); 23] = [
    ("cli", 0),
    ("coordinator", 0),
    ("coordinator/blobs-s3", 0),
    ("coordinator/core", 0),
    ("coordinator/events", 0),
    ("coordinator/http", 0),
    ("coordinator/store-postgres", 0),
    ("deploy/notices", 0),
    ("finishing", 0),
    // `checked_scene` and `compute::host` share their errors with what they call.
    ("kernels", 4),
    ("kernels/layout", 0),
    ("kernels/nvrtc", 0),
    // Decoders share `Decoded` with `decode`, and steps share `Core` with `run`.
    ("kernels/ptx", 18),
    // Workers share `Outlet` with `device::worker`, and nearly all share `scene::chain`.
    ("node", 41),
    ("protocol", 0),
    ("scenes", 0),
    ("telemetry", 0),
    // `driver` owns contexts, events and images, which find each other through it.
    ("tests/fake-cuda", 7),
    ("tests/history", 0),
    // Everything that happens is a method of `World`, wherever it is told.
    ("tests/sim", 25),
    ("tests/support", 0),
    ("tests/tidy", 0),
    ("transport", 0),
];

/// The module path of a file below the sources: `quic/mod.rs` is `quic`, `lib.rs` is empty.
fn module_of(file: &str) -> String {
    let file = file.strip_suffix(".rs").unwrap_or(file);
    let file = file.strip_suffix("/mod").unwrap_or(file);
    if file == "lib" { String::new() } else { file.replace('/', "::") }
}

/// The texts of a crate's sources, among all Rust files of the repository.
fn texts(folder: &str, rust: &[PathBuf]) -> Texts {
    let folder = root().join(folder);
    let source = if folder.join("src").is_dir() { folder.join("src") } else { folder };
    let mut texts = Texts::new();
    for path in rust {
        if let Ok(file) = path.strip_prefix(&source) {
            let text = std::fs::read_to_string(path).expect("a source file is UTF-8");
            texts.insert(module_of(&file.to_string_lossy()), text);
        }
    }
    if !texts.contains_key("") {
        let program = texts.remove("main").expect("a crate has a library or a program");
        texts.insert(String::new(), program);
    }
    texts
}

fn graph(texts: &Texts) -> Graph {
    let read = Crate::of(texts);
    read.modules().map(|module| (module.to_owned(), read.needs(module))).collect()
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

#[test]
fn files_form_no_more_circles_than_they_did() {
    let rust = files(&["rs"]);
    for (folder, most) in BOUNDS {
        let graph = graph(&texts(folder, &rust));
        assert!(graph.len() > 2, "{folder} has {} files", graph.len());
        let circle = in_circles(&graph);
        assert!(
            circle.len() <= most,
            "{folder}: {} files lie in circles, {most} may:\n  {}",
            circle.len(),
            circle.join("\n  ")
        );
    }
}

#[test]
fn every_crate_has_a_bound() {
    let bounded: Vec<&str> = BOUNDS.iter().map(|(folder, _)| *folder).collect();
    let mut members = members();
    // The root's package is one file.
    members.retain(|folder| !folder.is_empty());
    members.sort();
    assert_eq!(bounded, members);
}

/// What each file of a made-up crate needs, as `from > to`.
fn needs(files: &[(&str, &str)]) -> Vec<String> {
    let texts = files.iter().map(|(module, text)| ((*module).into(), (*text).into())).collect();
    let edges = graph(&texts).into_iter().flat_map(|(from, needed)| {
        needed.into_iter().map(move |to| format!("{from} > {to}")).collect::<Vec<_>>()
    });
    edges.collect()
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
}

#[test]
fn paths_to_children_are_followed() {
    let child = ("a::b", "pub fn f() {} pub struct B;");
    let uses = [
        "mod b; use b::B;",
        "mod b; use self::b::B;",
        "mod b; use crate::a::b::{self, B};",
        "mod b; fn g() { b::f() }",
        "mod b; fn g() -> self::b::B { h() }",
        "mod b; fn g() { m!(0..b::f(), 1) }",
        "mod b; pub(crate) struct A { b: &'static b::B }",
        "mod b; #[arg(value_parser = b::f)] struct A;",
    ];
    for text in uses {
        assert_eq!(needs(&[("", "mod a;"), ("a", text), child]), ["a > a::b"], "{text}");
    }
}

#[test]
fn declarations_of_children_are_no_need() {
    let parent = "pub mod b; pub use b::B; pub(super) use self::b::{B as C}; struct A;";
    let files = [("", "mod a;"), ("a", parent), ("a::b", "use super::A; pub struct B(A);")];
    assert_eq!(needs(&files), ["a::b > a"]);
    let files = [("", "mod a; use a::b;"), ("a", "pub mod b;"), ("a::b", "")];
    assert_eq!(needs(&files), [""; 0]);
}

#[test]
fn re_exports_lead_to_the_file_that_defines() {
    let root = ("", "mod a; mod d; pub use a::B;");
    let child = ("a::b", "pub struct B; pub struct F;");
    for parent in ["mod b; pub use b::B;", "mod b; pub(crate) use self::b::*;"] {
        for user in [
            "use crate::a::B;",
            "use super::a::{B as C};",
            "use crate::B;",
            "fn f(_: crate::a::B) {}",
        ] {
            let files = [root, ("a", parent), child, ("d", user)];
            assert_eq!(needs(&files), ["d > a::b"], "{parent} {user}");
        }
    }
    // Through two files, by another name, and with more after it.
    let files = [
        ("", "mod a; mod d;"),
        ("a", "mod b; pub use b::G;"),
        ("a::b", "mod c; pub use c::F as G; use super::super::d::D;"),
        ("a::b::c", "pub enum F { One }"),
        ("d", "use crate::a; pub struct D; fn f() { a::G::One; }"),
    ];
    assert_eq!(needs(&files), ["a::b > d", "d > a::b::c"]);
    // The parent's own code needs what it re-exports, if it names it.
    let parent = "mod b; pub use b::B; fn f(_: B) {}";
    assert_eq!(needs(&[root, ("a", parent), child, ("d", "")]), ["a > a::b"]);
    // What the parent defines itself is not its child's.
    let parent = "mod b; pub use b::*; pub struct B;";
    let files = [root, ("a", parent), child, ("d", "use crate::a::B;")];
    assert_eq!(needs(&files), ["d > a"]);
    // A module in braces is of its file.
    let parent = "pub mod b { pub struct B; }";
    let files = [root, ("a", parent), ("d", "use crate::a::b::B;")];
    assert_eq!(needs(&files), ["d > a"]);
}

#[test]
fn text_and_tests_name_nothing() {
    let texts = [
        "// crate::b::B\n/* super::b::B */",
        "/// [`super::b::B`]\nconst A: &str = \"crate::b::B\";",
        "#[cfg(test)]\nmod tests { use crate::b::B; }",
        "#[cfg(test)]\n#[path = \"a_tests.rs\"]\nmod tests;",
        "#[cfg(all(test, unix))]\nuse crate::b::{B};",
        "pub use crate::b::B; fn f<'B>(x: &'B X) { x.B(); other::B::new(); X::<u8>::B(); }",
    ];
    for text in texts {
        let files = [("", "mod a; mod b;"), ("a", text), ("b", "pub struct B;")];
        assert_eq!(needs(&files), [""; 0], "{text}");
        let text = format!("{text}\nuse crate::b::B;");
        let files = [files[0], ("a", text.as_str()), files[2]];
        assert_eq!(needs(&files), ["a > b"], "{text}");
    }
}
