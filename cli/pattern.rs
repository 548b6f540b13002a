//! Output patterns: paths with a place for the frame's number. Writes no file and knows no format.

use std::path::PathBuf;
use std::str::FromStr;
use tessera_protocol::frames::FrameSet;
use tessera_protocol::ids::FrameNumber;

/// Digits that a place may ask for at most; the largest frame number has seven.
const DIGITS_MAX: usize = 16;

/// A path in which any number of places stand for the frame's number, all of them for the same one.
///
/// | written | frame 7 |
/// |---|---|
/// | `####` (two or more) | `0007` |
/// | `%04d`, `{frame:04}` | `0007` |
/// | `%d`, `{frame}` | `7` |
/// | `%%`, `{{`, `}}` | `%`, `{`, `}` |
///
/// A number that is longer than its place is written whole. A lone `#` is an ordinary character.
/// [`Pattern::with_fields`] knows more places, for texts that are the same in every frame. What is
/// put in never has a `/`, so a pattern never leads to a folder that its author has not written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    source: String,
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    /// The frame's number, filled with zeros up to a number of digits.
    Frame {
        digits: usize,
    },
}

/// Why a text is no pattern, or not one for these frames.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// No text at all.
    #[error("the output path is empty")]
    Empty,
    /// `%` and something that is no place for a number.
    #[error(
        "output path `{pattern}`: `{found}` is not a place for a frame number; write `%04d`, or \
            `%%` for a percent sign"
    )]
    Percent {
        /// The whole pattern.
        pattern: String,
        /// The part that is wrong.
        found: String,
    },
    /// A `{` without a valid place for a number, or a single `}`.
    #[error(
        "output path `{pattern}`: `{found}` is not a place for a frame number; write \
            `{{frame:04}}`, or `{{{{` and `}}}}` for braces"
    )]
    Brace {
        /// The whole pattern.
        pattern: String,
        /// The part that is wrong.
        found: String,
    },
    /// A place of too many digits.
    #[error("output path `{pattern}`: a frame number has at most {DIGITS_MAX} digits")]
    Digits {
        /// The whole pattern.
        pattern: String,
    },
    /// Several frames, one name.
    #[error(
        "output path `{pattern}` gives {frames} frames the same name; put `####` where the frame \
            number goes"
    )]
    OneName {
        /// The whole pattern.
        pattern: String,
        /// How many frames there are.
        frames: u32,
    },
}

/// A place in braces and the text that goes there: `("{job}", "0189…")`.
pub type PatternField<'a> = (&'static str, &'a str);

impl Pattern {
    /// Reads a pattern in which these places stand for texts.
    pub fn with_fields(source: &str, fields: &[PatternField<'_>]) -> Result<Self, PatternError> {
        if source.is_empty() {
            return Err(PatternError::Empty);
        }
        let mut parts: Vec<Part> = Vec::new();
        let mut rest = source;
        while !rest.is_empty() {
            let (part, length) = match field(rest, fields) {
                Some((place, text)) => (Part::Text(text.replace('/', "_")), place.len()),
                None => next_part(source, rest)?,
            };
            match (parts.last_mut(), part) {
                (Some(Part::Text(text)), Part::Text(more)) => text.push_str(&more),
                (_, part) => parts.push(part),
            }
            rest = &rest[length..];
        }
        Ok(Self { source: source.to_owned(), parts })
    }

    /// Returns whether the pattern has a place for the frame's number.
    pub fn has_frame(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Frame { .. }))
    }

    /// Returns whether the frame's number is in the name of a folder, so that there is a folder for
    /// each frame.
    pub fn has_frame_folder(&self) -> bool {
        let mut parts = self.parts.iter().skip_while(|part| matches!(part, Part::Text(_)));
        parts.any(|part| matches!(part, Part::Text(text) if text.contains('/')))
    }

    /// The frame's file.
    pub fn path_for(&self, frame: FrameNumber) -> PathBuf {
        let mut path = String::with_capacity(self.source.len() + DIGITS_MAX);
        for part in &self.parts {
            match part {
                Part::Text(text) => path.push_str(text),
                Part::Frame { digits } => {
                    path.push_str(&format!("{:0width$}", frame.0, width = *digits))
                }
            }
        }
        path.into()
    }

    /// Fails where two of these frames would get the same name.
    pub fn check_frames(&self, frames: &FrameSet) -> Result<(), PatternError> {
        if frames.len() > 1 && !self.has_frame() {
            return Err(PatternError::OneName {
                pattern: self.source.clone(),
                frames: frames.len(),
            });
        }
        Ok(())
    }
}

impl std::fmt::Display for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.source)
    }
}

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(source: &str) -> Result<Self, PatternError> {
        Self::with_fields(source, &[])
    }
}

/// Returns the field that `rest` begins with.
fn field<'a>(rest: &str, fields: &[PatternField<'a>]) -> Option<PatternField<'a>> {
    fields.iter().copied().find(|(place, _)| rest.starts_with(place))
}

/// Returns the first part of `rest` and its length in bytes.
fn next_part(pattern: &str, rest: &str) -> Result<(Part, usize), PatternError> {
    let text = |text: &str, length: usize| Ok((Part::Text(text.to_owned()), length));
    let hashes = rest.bytes().take_while(|byte| *byte == b'#').count();
    match rest.as_bytes() {
        [b'#', b'#', ..] => Ok((place(pattern, hashes)?, hashes)),
        [b'%', b'%', ..] => text("%", 2),
        [b'{', b'{', ..] => text("{", 2),
        [b'}', b'}', ..] => text("}", 2),
        [b'%', ..] => percent(pattern, rest),
        [b'{', ..] => brace(pattern, rest),
        [b'}', ..] => {
            Err(PatternError::Brace { pattern: pattern.to_owned(), found: "}".to_owned() })
        }
        _ => {
            let first = rest.chars().next().map_or(1, char::len_utf8);
            let length =
                rest[first..].find(['#', '%', '{', '}']).map_or(rest.len(), |next| first + next);
            text(&rest[..length], length)
        }
    }
}

/// `%d` or `%04d`.
fn percent(pattern: &str, rest: &str) -> Result<(Part, usize), PatternError> {
    let digits = rest[1..].bytes().take_while(u8::is_ascii_digit).count();
    let width = &rest[1..1 + digits];
    let end = rest[1 + digits..].chars().next();
    match (end, zero_padded(width)) {
        (Some('d'), Some(width)) => Ok((place(pattern, width)?, digits + 2)),
        _ => {
            let length = 1 + digits + end.map_or(0, char::len_utf8);
            Err(PatternError::Percent {
                pattern: pattern.to_owned(),
                found: rest[..length].to_owned(),
            })
        }
    }
}

/// `{frame}` or `{frame:04}`.
fn brace(pattern: &str, rest: &str) -> Result<(Part, usize), PatternError> {
    let length = rest.find('}').map_or(rest.len(), |end| end + 1);
    let found = &rest[..length];
    let inner = found.strip_prefix("{frame").and_then(|inner| inner.strip_suffix('}'));
    let width = match inner {
        Some("") => Some(0),
        // A colon promises a width.
        Some(inner) => {
            inner.strip_prefix(':').filter(|width| !width.is_empty()).and_then(zero_padded)
        }
        None => None,
    };
    match width {
        Some(width) => Ok((place(pattern, width)?, length)),
        None => Err(PatternError::Brace { pattern: pattern.to_owned(), found: found.to_owned() }),
    }
}

/// Returns the width of a text such as `04`; an empty text has no width. A width without a leading
/// zero would fill with spaces, and is refused.
fn zero_padded(width: &str) -> Option<usize> {
    if width.is_empty() {
        return Some(0);
    }
    let is_number = width.starts_with('0') && width.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| width.parse().unwrap_or(usize::MAX))
}

fn place(pattern: &str, digits: usize) -> Result<Part, PatternError> {
    if digits > DIGITS_MAX {
        return Err(PatternError::Digits { pattern: pattern.to_owned() });
    }
    Ok(Part::Frame { digits })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(pattern: &str, frame: u32) -> String {
        let pattern: Pattern = pattern.parse().unwrap();
        pattern.path_for(FrameNumber(frame)).to_str().unwrap().to_owned()
    }

    fn refused(pattern: &str) -> String {
        pattern.parse::<Pattern>().unwrap_err().to_string()
    }

    #[test]
    fn every_way_to_write_a_frame_number_gives_it() {
        for (pattern, want) in [
            ("out.####.exr", "out.0007.exr"),
            ("out.##.exr", "out.07.exr"),
            ("%04d.exr", "0007.exr"),
            ("%d.exr", "7.exr"),
            ("out/{frame:04}.png", "out/0007.png"),
            ("out/{frame}.png", "out/7.png"),
            ("{frame}/####/%02d.exr", "7/0007/07.exr"),
            ("ünïcödé ####", "ünïcödé 0007"),
        ] {
            assert_eq!(path(pattern, 7), want, "{pattern}");
        }
        assert_eq!(path("##.exr", 9_999_999), "9999999.exr");
    }

    #[test]
    fn fields_are_texts_whatever_they_hold() {
        let fields = [("{job}", "01a2"), ("{name}", "a####%d{frame}/b")];
        let pattern = Pattern::with_fields("{job}/{name}.{{job}}.##.exr", &fields).unwrap();
        let path = pattern.path_for(FrameNumber(7));
        assert_eq!(path.to_str(), Some("01a2/a####%d{frame}_b.{job}.07.exr"));
        assert!(!Pattern::with_fields("{name}.exr", &fields).unwrap().has_frame());
        assert!(refused("{job}.##.exr").contains("`{job}`"));
    }

    #[test]
    fn single_and_doubled_number_signs_are_text() {
        assert_eq!(path("C#/100%%/{{a}}.exr", 7), "C#/100%/{a}.exr");
        assert!(!"C#/100%%/{{frame}}.exr".parse::<Pattern>().unwrap().has_frame());
        assert!("%d".parse::<Pattern>().unwrap().has_frame());
    }

    #[test]
    fn folders_for_each_frame_are_told_from_files() {
        let has = |pattern: &str| pattern.parse::<Pattern>().unwrap().has_frame_folder();
        assert!(has("out.##/a.exr") && has("{frame}/####.exr"));
        assert!(!has("C#/out.##.exr") && !has("out/a.exr") && !has("##.exr"));
    }

    #[test]
    fn invalid_placeholders_are_refused_by_name() {
        assert!(refused("a%s.exr").contains("`%s`"));
        assert!(refused("a%4d.exr").contains("`%4d`"));
        assert!(refused("a%04").contains("`%04`"));
        assert!(refused("100%").contains("`%`"));
        assert!(refused("a%04ü").contains("`%04ü`"));
        assert!(refused("a{frme:04}.exr").contains("`{frme:04}`"));
        assert!(refused("a{frame:4}.exr").contains("`{frame:4}`"));
        assert!(refused("a{frame:}.exr").contains("`{frame:}`"));
        assert!(refused("a{frame").contains("`{frame`"));
        assert!(refused("a}.exr").contains("`}`"));
        assert!(refused("%017d").contains("16 digits"));
        assert!(refused("%099999999999999999999d").contains("16 digits"));
        assert!(refused(&"#".repeat(17)).contains("16 digits"));
        assert!(refused("").contains("empty"));
    }

    #[test]
    fn several_frames_need_a_place_for_their_number() {
        let frames: FrameSet = "1-100".parse().unwrap();
        let one: FrameSet = "5".parse().unwrap();
        let plain: Pattern = "out.exr".parse().unwrap();
        let error = plain.check_frames(&frames).unwrap_err().to_string();
        assert!(error.contains("100 frames") && error.contains("out.exr"), "{error}");
        plain.check_frames(&one).unwrap();
        "out.##.exr".parse::<Pattern>().unwrap().check_frames(&frames).unwrap();
    }
}
