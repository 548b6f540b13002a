//! Pages: links to headings, and charts. Owns what documents must keep to besides their width.

use crate::{files, none, root, shown};
use std::process::Command;

/// The anchor that a heading gets: lower case, spaces as hyphens, punctuation gone.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    text.chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

/// Every anchor of a page.
fn anchors(text: &str) -> Vec<String> {
    let mut fenced = false;
    let mut found = Vec::new();
    for line in text.lines() {
        fenced ^= line.starts_with("```");
        if !fenced && line.starts_with('#') {
            found.push(anchor(line));
        }
    }
    found
}

#[test]
fn links_to_headings_lead_somewhere() {
    let mut findings = Vec::new();
    for path in files(&["md"]) {
        let text = std::fs::read_to_string(&path).expect("a document is UTF-8");
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let Some((file, wanted)) = target.split_once('#') else { continue };
            if file.contains("://") {
                continue;
            }
            let page = if file.is_empty() {
                path.clone()
            } else {
                path.parent().unwrap_or(root()).join(file)
            };
            let there = std::fs::read_to_string(&page).unwrap_or_default();
            if !anchors(&there).iter().any(|anchor| anchor == wanted) {
                findings.push(format!("{}: {target}", shown(&path)));
            }
        }
    }
    none("links to headings that are not there", findings);
}

#[test]
fn anchors_follow_their_headings() {
    let page = "# A page\n```\n# no heading\n```\n## What it costs, in `µs`\n";
    assert_eq!(anchors(page), ["a-page", "what-it-costs-in-µs"]);
}

#[test]
fn charts_show_their_tables() {
    let script = root().join("benches/chart.py");
    match Command::new("python3").arg(&script).arg("--check").output() {
        Ok(check) => {
            assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stderr));
        }
        Err(error) => println!("NOT RUN: charts_show_their_tables: python3: {error}"),
    }
}

/// Words of a page in backticks that are paths of the repository.
fn paths(text: &str) -> Vec<&str> {
    let quoted = text.split('`').skip(1).step_by(2);
    let is_path = |word: &&str| {
        word.contains('/') && word.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c))
    };
    quoted.filter(is_path).collect()
}

/// Pages that say where code is are wrong as soon as a file is moved without them.
#[test]
fn files_that_the_maps_name_exist() {
    let mut findings = Vec::new();
    for page in ["docs/extending.md", "docs/ARCHITECTURE.md"] {
        let text = std::fs::read_to_string(root().join(page)).expect("the page is there");
        let named = paths(&text);
        assert!(named.len() > 20, "{page} names {} files", named.len());
        let absent = named.into_iter().filter(|path| !root().join(path).exists());
        findings.extend(absent.map(|path| format!("{page}: {path}")));
    }
    none("files that a page names and that are not there", findings);
}
