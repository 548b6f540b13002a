//! Functions of a C or C++ file, by its braces.

use super::function::Function;

/// What follows a literal in quotes, with which the text starts.
fn after_literal(text: &str) -> &str {
    let quote = text.chars().next();
    let mut is_escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        if !is_escaped && Some(character) == quote {
            return &text[at + 1..];
        }
        is_escaped = !is_escaped && character == '\\';
    }
    ""
}

/// The text without comments, literals and preprocessor lines; lines stay where they are.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    let (mut in_comment, mut in_directive) = (false, false);
    for line in text.lines() {
        in_directive |= line.trim_start().starts_with('#');
        let mut rest = if in_directive { "" } else { line };
        in_directive &= line.ends_with('\\');
        while let Some(next) = rest.chars().next() {
            // Between digits it separates them.
            let is_separator = next == '\'' && plain.ends_with(|c: char| c.is_alphanumeric());
            if in_comment {
                in_comment = !rest.contains("*/");
                rest = rest.split_once("*/").map_or("", |(_, after)| after);
            } else if rest.starts_with("//") {
                rest = "";
            } else if rest.starts_with("/*") {
                in_comment = true;
                rest = &rest[2..];
            } else if matches!(next, '"' | '\'') && !is_separator {
                rest = after_literal(rest);
            } else {
                plain.push(next);
                rest = &rest[next.len_utf8()..];
            }
        }
        plain.push('\n');
    }
    plain
}

/// A head without its `template <...>`, whose `class` makes no type.
fn without_templates(head: &str) -> String {
    let mut left = String::new();
    let mut rest = head;
    while let Some((before, after)) = rest.split_once("template") {
        left += before;
        let mut depth = 0;
        let end = after.char_indices().find(|(_, character)| {
            match character {
                '<' => depth += 1,
                '>' => depth -= 1,
                _ => return false,
            }
            depth == 0
        });
        rest = end.map_or(after, |(at, _)| &after[at + 1..]);
    }
    left + rest
}

/// A head without what its parentheses enclose.
fn without_parentheses(head: &str) -> String {
    let mut depth = 0_usize;
    let mut left = String::new();
    for character in head.chars() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ if depth == 0 => left.push(character),
            _ => {}
        }
    }
    left
}

/// The name of the function that a head declares; None for a type, a namespace or a value.
fn name(head: &str) -> Option<String> {
    let head = without_templates(head);
    let (before, _) = head.split_once('(')?;
    let types = ["struct", "class", "enum", "union", "namespace"];
    let has_type = without_parentheses(&head).split_whitespace().any(|word| types.contains(&word));
    let ends = [")", "const", "noexcept", "override"];
    // `struct S f(int x) {` is a function, `struct alignas(16) S {` is none.
    let is_value = head.trim_end().ends_with('=');
    if is_value || has_type && !ends.iter().any(|end| head.trim_end().ends_with(end)) {
        return None;
    }
    let name = before.split_whitespace().last().unwrap_or_default();
    Some(name.trim_start_matches(['*', '&']).to_owned())
}

/// Functions: a brace after a head with parentheses, outside of any function.
pub(super) fn functions(text: &str) -> Vec<Function> {
    let mut found = Vec::new();
    let (mut line, mut depth, mut head) = (1, 0_usize, String::new());
    let mut open: Option<(usize, usize, String)> = None;
    for character in plain(text).chars() {
        match character {
            '\n' => line += 1,
            '{' => {
                if open.is_none() {
                    let first = line - head.trim_start().matches('\n').count();
                    open = name(&head).map(|name| (depth, first, name));
                }
                depth += 1;
                head.clear();
            }
            '}' => {
                depth = depth.saturating_sub(1);
                if let Some((_, first, name)) = open.take_if(|(at, ..)| *at == depth) {
                    found.push(Function { line: first, name, length: line + 1 - first });
                }
                head.clear();
            }
            ';' => head.clear(),
            _ => {}
        }
        if !matches!(character, '{' | '}' | ';') {
            head.push(character);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::functions;

    /// Names and lengths.
    fn measured(text: &str) -> Vec<(String, usize)> {
        functions(text).into_iter().map(|f| (f.name, f.length)).collect()
    }

    fn is(text: &str, wanted: &[(&str, usize)]) {
        let wanted: Vec<_> = wanted.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect();
        assert_eq!(measured(text), wanted);
    }

    #[test]
    fn functions_are_found_in_types_and_not_in_comments() {
        is(
            "namespace n {\nstruct S {\n  int f() const { // {\n  }\n};\nstruct alignas(16) T {\n\
             int a;\n};\nTS_FN float g(\n  float x) {\n  if (x > 0) {\n  }\n}\n}\n",
            &[("f", 2), ("g", 5)],
        );
    }

    #[test]
    fn functions_behind_template_heads_are_measured() {
        is(
            "template <class F, class Word>\nTS_FN void f(const F& f) {\n}\n\
             template <template <class> class Q,\n  typename T = A<B<int>>>\nint g(T t) {\n}\n\
             template <class T>\nstruct S {\n  template <class U> U h() {\n  }\n};\n",
            &[("f", 3), ("g", 4), ("h", 2)],
        );
    }

    #[test]
    fn functions_of_c_are_measured() {
        is(
            "static struct dirent *f(int x) {\n}\nint g(struct stat *to) {\n}\n\
             static const int table[N(3)] = {\n1,\n};\n",
            &[("f", 2), ("g", 2)],
        );
    }

    #[test]
    fn braces_in_literals_do_not_count() {
        is(
            "int f() {\n  return '{' + \"\\\"{\"[0] + 1'000;\n}\nint g() {\n}\n",
            &[("f", 3), ("g", 2)],
        );
    }
}
