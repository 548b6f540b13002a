//! Functions of a Python file, by its indentation.

use super::function::Function;

/// What a line leaves open for the next one.
#[derive(Default)]
struct Open {
    /// Quotes that end the string.
    string: Option<&'static str>,
    brackets: usize,
    /// The line ended with a backslash.
    is_continued: bool,
}

impl Open {
    /// Whether a line that starts here belongs to the statement before it.
    fn is_inside(&self) -> bool {
        self.string.is_some() || self.brackets > 0 || self.is_continued
    }

    /// Reads a line up to its end.
    fn read(&mut self, line: &str) {
        let mut rest = line;
        self.is_continued = false;
        while let Some(next) = rest.chars().next() {
            let mut length = next.len_utf8();
            if let Some(quotes) = self.string {
                if next == '\\' {
                    length += rest[length..].chars().next().map_or(0, char::len_utf8);
                } else if rest.starts_with(quotes) {
                    length = quotes.len();
                    self.string = None;
                }
            } else {
                match next {
                    '#' => return,
                    '"' | '\'' => {
                        let quotes = ["\"\"\"", "'''", "\"", "'"];
                        self.string = quotes.into_iter().find(|quotes| rest.starts_with(quotes));
                        length = self.string.map_or(length, str::len);
                    }
                    '(' | '[' | '{' => self.brackets += 1,
                    ')' | ']' | '}' => self.brackets = self.brackets.saturating_sub(1),
                    _ => {}
                }
            }
            rest = &rest[length..];
        }
        self.is_continued = line.ends_with('\\');
        // A string in single quotes ends with its line.
        self.string = self.string.filter(|quotes| quotes.len() == 3 || self.is_continued);
    }
}

/// The name of the function that a line starts.
fn name(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let rest = line.strip_prefix("async ").unwrap_or(line).strip_prefix("def ")?;
    rest.split('(').next().map(str::trim)
}

/// Functions, inner ones too, from their `def` to the last line of their last statement.
pub(super) fn functions(text: &str) -> Vec<Function> {
    let mut found = Vec::new();
    // The innermost last: indentation, first line, name.
    let mut started: Vec<(usize, usize, &str)> = Vec::new();
    let (mut open, mut last) = (Open::default(), 0);
    for (index, line) in text.lines().chain(["end"]).enumerate() {
        let code = line.trim_start();
        let is_inside = open.is_inside();
        if !is_inside && (code.is_empty() || code.starts_with('#')) {
            continue;
        }
        if !is_inside {
            let indentation = line.len() - code.len();
            while let Some((_, first, name)) = started.pop_if(|(at, ..)| *at >= indentation) {
                found.push(Function {
                    line: first,
                    name: name.to_owned(),
                    length: last + 1 - first,
                });
            }
            started.extend(name(line).map(|name| (indentation, index + 1, name)));
        }
        last = index + 1;
        open.read(line);
    }
    found
}

#[test]
fn python_functions_of_every_kind_are_measured() {
    let text = r#"def plain():
    return 1

# A comment.
def signature(
    a,
) -> int:
    return {
'(': a,
}

class C:
    async def method(self):
        """Text.

def none():
"""

    def outer(self):
        def inner():  # it's )
            return '\'('

        return inner
    # The end.

x = 1
"#;
    let found = functions(text);
    let names: Vec<_> = found.iter().map(|f| (f.name.as_str(), f.line, f.length)).collect();
    let wanted = [
        ("plain", 1, 2),
        ("signature", 5, 6),
        ("method", 13, 5),
        ("inner", 20, 2),
        ("outer", 19, 5),
    ];
    assert_eq!(names, wanted);
}
