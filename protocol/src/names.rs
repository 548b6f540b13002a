//! Names of jobs, and names of files that are made from them. Everything that names a file after a
//! job uses [`file_name`]; everything that shows a text from elsewhere uses [`printable`].

use crate::limits::NAME_MAX;

/// Characters that no file name of common file systems can have, besides control characters.
const NEVER_IN_FILES: [char; 9] = ['/', '\\', '<', '>', ':', '"', '|', '?', '*'];
/// Names of devices on Windows, with any extension.
const DEVICES: [&str; 6] = ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"];
/// Beginnings of more of them; one digit follows.
const NUMBERED_DEVICES: [&str; 2] = ["COM", "LPT"];
/// Name of a file whose job's name has no usable character.
const NAMELESS: &str = "job";

/// Returns whether a character takes over a terminal, or changes the order in which a text is read:
/// a control character, a bidirectional one, or a separator of lines or paragraphs.
pub fn is_control(c: char) -> bool {
    let bidirectional = matches!(
        c,
        '\u{61c}'
            | '\u{200e}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}'
    );
    c.is_control() || bidirectional || matches!(c, '\u{2028}' | '\u{2029}')
}

/// Returns the text on one line, safe for a terminal or a log. Line ends and tabs become spaces;
/// other characters of [`is_control`] are shown by their number, as `\u{202e}`.
pub fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' | '\t' => shown.push(' '),
            c if is_control(c) => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    shown
}

/// Checks the name of a job. `Err` says what is wrong, without the characters at fault.
pub fn check(name: &str) -> Result<(), String> {
    if name.is_empty() || name.len() > NAME_MAX {
        return Err(format!("{} bytes is not in 1 to {NAME_MAX}", name.len()));
    }
    let problem = if name.chars().any(|c| is_control(c) || c == '/' || c == '\\') {
        "holds `/`, `\\`, control characters or marks of writing direction"
    } else if name.starts_with(is_bad_start) {
        "begins with a dot, a dash or a space"
    } else if name.ends_with(is_bad_end) {
        "ends with a dot or a space"
    } else if is_device(name) {
        "is a device on Windows, where its files could not be kept"
    } else {
        return Ok(());
    };
    Err(format!("`{}` {problem}", printable(name)))
}

/// Makes a name that every common file system takes as the beginning of a file's name, and that is
/// a valid name of a job. A name that is one already stays as it is, up to `< > : " | ? *`, which
/// become `_`.
pub fn file_name(name: &str) -> String {
    let replaced = |c: char| if is_control(c) || NEVER_IN_FILES.contains(&c) { '_' } else { c };
    let safe: String = name.trim_start_matches(is_bad_start).chars().map(replaced).collect();
    let mut end = safe.len().min(NAME_MAX);
    while !safe.is_char_boundary(end) {
        end -= 1;
    }
    let safe = safe[..end].trim_end_matches(is_bad_end);
    match safe {
        "" => NAMELESS.to_owned(),
        safe if is_device(safe) => format!("_{safe}"),
        safe => safe.to_owned(),
    }
}

/// Hidden on Unix, an option of a command, or invisible.
fn is_bad_start(c: char) -> bool {
    c == '.' || c == '-' || c.is_whitespace()
}

/// Windows drops these.
fn is_bad_end(c: char) -> bool {
    c == '.' || c.is_whitespace()
}

fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default().trim_end();
    let stem = stem.to_ascii_uppercase();
    let is_digit =
        |rest: &str| matches!(rest, "¹" | "²" | "³") || matches!(rest.as_bytes(), [b'0'..=b'9']);
    DEVICES.contains(&stem.as_str())
        || NUMBERED_DEVICES.iter().any(|device| stem.strip_prefix(device).is_some_and(is_digit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_safe_on_every_system() {
        for (name, want) in [
            ("Sponza", "Sponza"),
            ("shot 010_v3-final", "shot 010_v3-final"),
            ("über.v2", "über.v2"),
            ("../../etc/passwd", "_.._etc_passwd"),
            ("..\\x", "_x"),
            ("-rf", "rf"),
            (" . -x. .", "x"),
            ("a\u{1b}[31m\nb\0\u{7f}\u{9b}", "a_[31m_b___"),
            ("gpj\u{202e}exe", "gpj_exe"),
            ("\u{200e}\u{200f}\u{61c}\u{2066}\u{2069}\u{2028}", "______"),
            ("take: 2?", "take_ 2_"),
            ("CON", "_CON"),
            ("nul.v1", "_nul.v1"),
            ("Com1 .x", "_Com1 .x"),
            ("LPT²", "_LPT²"),
            ("CONSOLE", "CONSOLE"),
            ("COM10", "COM10"),
            ("", "job"),
            ("...", "job"),
            ("\u{3000}x\u{a0}", "x"),
        ] {
            assert_eq!(file_name(name), want, "{name:?}");
        }
        assert_eq!(file_name(&"é".repeat(200)), "é".repeat(NAME_MAX / 2));
        assert_eq!(file_name(&(" ".repeat(300) + "x")), "x");
        // The cut must not bring an end that is bad.
        assert_eq!(file_name(&("a".repeat(NAME_MAX - 1) + ".b")), "a".repeat(NAME_MAX - 1));
    }

    #[test]
    fn the_name_of_a_file_is_a_valid_name_of_a_job() {
        let pieces = ["", ".", "-", " ", "a", "CON", "\u{202e}", "\n", "/", "é", ".x", "\t"];
        for first in pieces {
            for second in pieces {
                for third in pieces {
                    let name = file_name(&format!("{first}{second}{third}"));
                    assert_eq!(check(&name), Ok(()), "{name:?}");
                    assert_eq!(file_name(&name), name);
                }
            }
        }
    }

    #[test]
    fn names_of_jobs_are_refused_with_their_fault() {
        for (name, words) in [
            ("", "0 bytes is not in 1 to 128"),
            ("a/b", "`a/b` holds `/`"),
            ("a\u{1b}b", "`a\\u{1b}b` holds"),
            ("a\u{202e}b", "`a\\u{202e}b` holds"),
            ("a\nb", "`a b` holds"),
            (".a", "begins with a dot"),
            ("-a", "begins with a dot, a dash"),
            (" a", "a dash or a space"),
            ("a.", "ends with a dot"),
            ("a ", "ends with a dot or a space"),
            ("con", "is a device"),
            ("LPT9.x", "is a device"),
        ] {
            let error = check(name).unwrap_err();
            assert!(error.contains(words), "{name:?}: {error}");
            assert!(!error.chars().any(is_control), "{name:?}: {error:?}");
        }
        assert!(check(&"a".repeat(NAME_MAX + 1)).unwrap_err().contains("129 bytes"));
        for name in ["a", "a b", "a:b", "日本語", "v1.2", "console", &"a".repeat(NAME_MAX)] {
            assert_eq!(check(name), Ok(()), "{name:?}");
        }
    }

    #[test]
    fn texts_are_shown_on_one_line_and_in_order() {
        let shown = printable("a\u{1b}[2Jb\nc\td\u{202e}e\u{9b}");
        assert_eq!(shown, "a\\u{1b}[2Jb c d\\u{202e}e\\u{9b}");
        assert_eq!(printable("naïve ✓ \u{200d}"), "naïve ✓ \u{200d}");
    }
}
