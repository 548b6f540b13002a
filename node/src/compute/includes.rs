//! `#include` lines of users' kernels: which file each one means. Reads no file.
//!
//! Headers have names as in one folder: `mine.h`, `lib/mine.h`. In quotes, a name is looked for
//! beside the file that has the line, then from the top. In angle brackets, only from the top.
//! NVRTC finds a header in memory only by exactly the name in the line, so the lines are rewritten.

use std::ops::Range;
use tessera_kernels::compute::{HEADER_NAME, STANDARD_HEADERS};

/// An `#include` line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Include {
    /// Number of the line, from 1.
    pub line: usize,
    /// The name between the quotes or brackets.
    pub name: String,
    /// Whether the name is in quotes.
    pub quoted: bool,
    /// Where the name is in the text, with its quotes or brackets.
    range: Range<usize>,
}

/// An `#include` of a file outside of the folders that a kernel may read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{file}({line}): error: `#include \"{name}\"` {problem}; a kernel includes files of its own \
        folder and of --include"
)]
pub struct BadInclude {
    file: String,
    line: usize,
    name: String,
    problem: &'static str,
}

impl Include {
    /// Returns the names of headers that the line of a file `includer` can mean, in order.
    ///
    /// # Errors
    /// The name is an absolute path, or climbs out of the top folder.
    pub fn candidates(&self, includer: &str) -> Result<Vec<String>, BadInclude> {
        let bad = |problem| BadInclude {
            file: includer.to_owned(),
            line: self.line,
            name: self.name.clone(),
            problem,
        };
        if self.name.starts_with('/') {
            return Err(bad("is an absolute path"));
        }
        let folder = includer.rsplit_once('/').map_or("", |(folder, _)| folder);
        let beside = joined(folder, &self.name).filter(|_| self.quoted);
        let from_top = joined("", &self.name);
        if beside.is_none() && from_top.is_none() {
            return Err(bad("leaves its folder"));
        }
        let mut names: Vec<String> = beside.into_iter().chain(from_top).collect();
        names.dedup();
        Ok(names)
    }

    /// Returns whether Tessera brings the header of this line.
    pub fn is_standard(&self) -> bool {
        is_standard(&self.name)
    }
}

fn is_standard(name: &str) -> bool {
    name == HEADER_NAME || STANDARD_HEADERS.iter().any(|(standard, _)| *standard == name)
}

/// Resolves `.` and `..`; None above the top.
fn joined(folder: &str, name: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in folder.split('/').chain(name.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            _ => parts.push(part),
        }
    }
    (!parts.is_empty()).then(|| parts.join("/"))
}

/// Lists the `#include` lines of a text, except in comments. A name that a macro makes is not
/// known.
pub fn includes(text: &str) -> Vec<Include> {
    let mut found = Vec::new();
    let (mut start, mut in_comment) = (0, false);
    for (index, line) in text.split_inclusive('\n').enumerate() {
        if !in_comment && let Some((name, quoted, place)) = include(line) {
            let range = start + place.start..start + place.end;
            found.push(Include { line: index + 1, name: name.to_owned(), quoted, range });
        }
        in_comment = ends_in_comment(line, in_comment);
        start += line.len();
    }
    found
}

/// Returns the name of an `#include` line, whether it is quoted, and its place in the line.
fn include(line: &str) -> Option<(&str, bool, Range<usize>)> {
    let rest = line.trim_start().strip_prefix('#')?.trim_start().strip_prefix("include")?;
    let rest = rest.trim_start();
    let (quoted, close) = match rest.chars().next()? {
        '"' => (true, '"'),
        '<' => (false, '>'),
        _ => return None,
    };
    let length = rest[1..].find(close)?;
    let from = line.len() - rest.len();
    Some((&rest[1..1 + length], quoted, from..from + length + 2))
}

/// Returns whether the text after a line is in a `/* */` comment.
fn ends_in_comment(line: &str, mut in_comment: bool) -> bool {
    let bytes = line.as_bytes();
    let mut quote = None;
    let mut at = 0;
    while at < bytes.len() {
        let two = bytes.get(at..at + 2).unwrap_or_default();
        at += match (in_comment, quote) {
            (true, _) if two == b"*/" => {
                in_comment = false;
                2
            }
            (true, _) => 1,
            (false, Some(_)) if bytes[at] == b'\\' => 2,
            (false, Some(open)) => {
                quote = quote.filter(|_| bytes[at] != open);
                1
            }
            (false, None) if two == b"//" => return false,
            (false, None) if two == b"/*" => {
                in_comment = true;
                2
            }
            (false, None) => {
                quote = matches!(bytes[at], b'"' | b'\'').then_some(bytes[at]);
                1
            }
        };
    }
    in_comment
}

/// A text whose `#include` lines have the names that NVRTC gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Linked {
    pub(super) text: String,
    /// Whether a line means a header that is not in memory: one of CUDA's, or one that is missing.
    pub(super) needs_others: bool,
}

/// Rewrites the lines of a file `includer`, where `has` knows the job's headers.
pub(super) fn linked(
    includer: &str,
    text: &str,
    has: impl Fn(&str) -> bool,
) -> Result<Linked, BadInclude> {
    let mut linked = Linked { text: String::with_capacity(text.len()), needs_others: false };
    let mut from = 0;
    for include in includes(text) {
        let candidates = include.candidates(includer)?;
        let standard = include.is_standard() && !include.quoted;
        let own = candidates.iter().find(|name| !standard && has(name));
        linked.text.push_str(&text[from..include.range.start]);
        match own {
            Some(name) => linked.text.push_str(&format!("\"{}\"", name_in_memory(name))),
            // In quotes, NVRTC would look in the folder of this process.
            None => linked.text.push_str(&format!("<{}>", include.name)),
        }
        linked.needs_others |= own.is_none() && !include.is_standard();
        from = include.range.end;
    }
    linked.text.push_str(&text[from..]);
    Ok(linked)
}

/// Returns the name under which NVRTC gets a header of the job. A user's `math.h` must not stand in
/// the place of the standard's, and no name of a job has a colon.
pub(super) fn name_in_memory(name: &str) -> String {
    if is_standard(name) { format!("own:{name}") } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<(usize, String, bool)> {
        includes(text).into_iter().map(|found| (found.line, found.name, found.quoted)).collect()
    }

    #[test]
    fn include_lines_are_found_except_in_comments() {
        let text = "#include \"a.h\"\n  #  include<b/c.h> // x\n// #include \"no.h\"\n/* \n\
            #include \"no.h\"\n*/ #define X \"/*\"\n#include \"d.h\"\n#include X\n#include \"cut";
        let expected = [(1, "a.h", true), (2, "b/c.h", false), (7, "d.h", true)];
        assert_eq!(names(text), expected.map(|(line, name, quoted)| (line, name.into(), quoted)));
    }

    #[test]
    fn names_in_quotes_are_looked_for_beside_the_file_first() {
        let of = |line: &str, includer: &str| includes(line)[0].candidates(includer);
        assert_eq!(of("#include \"c.h\"", "a/b.h").unwrap(), ["a/c.h", "c.h"]);
        assert_eq!(of("#include \"../c.h\"", "a/b.h").unwrap(), ["c.h"]);
        assert_eq!(of("#include \"./c.h\"", "k.cu").unwrap(), ["c.h"]);
        assert_eq!(of("#include <c.h>", "a/b.h").unwrap(), ["c.h"]);
        for line in ["#include \"../../etc\"", "#include <../x>", "#include \"/etc/passwd\""] {
            let error = of(line, "k.cu").unwrap_err().to_string();
            assert!(error.starts_with("k.cu(1): error: `#include \""), "{error}");
        }
        assert!(of("#include \"../../c.h\"", "a/b.h").is_err());
    }

    #[test]
    fn lines_get_the_names_of_headers_in_memory() {
        let has = |name: &str| ["a/c.h", "c.h", "math.h"].contains(&name);
        let text = "#include \"../c.h\"\n#include \"c.h\"\n#include <c.h>\n#include <math.h>\n\
            int x;\n";
        let linked_text = linked("a/b.h", text, has).unwrap();
        let expected = "#include \"c.h\"\n#include \"a/c.h\"\n#include \"c.h\"\n\
            #include <math.h>\nint x;\n";
        assert_eq!((linked_text.text.as_str(), linked_text.needs_others), (expected, false));
        let own = linked("k.cu", "#include \"math.h\"\n#include \"cuda_fp16.h\"", has).unwrap();
        assert_eq!(own.text, "#include \"own:math.h\"\n#include <cuda_fp16.h>");
        assert!(own.needs_others);
    }
}
