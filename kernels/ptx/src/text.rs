//! Tokens of PTX text, with their lines. Knows no grammar.

use crate::ParseError;

/// Bytes of a module's text at most.
pub(crate) const SOURCE_BYTES_MAX: usize = 64 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// A name, an opcode's first part or a register.
    Word,
    /// A dot and what follows it: a directive, a type or a modifier.
    Dot,
    /// Begins with a digit.
    Number,
    /// Between quotation marks.
    Text,
    /// Any one other character.
    Mark,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) kind: TokenKind,
    pub(crate) text: &'a str,
    pub(crate) line: u32,
}

impl Token<'_> {
    pub(crate) fn is(&self, text: &str) -> bool {
        self.text == text && self.kind != TokenKind::Text
    }
}

/// Cuts text into tokens.
///
/// # Errors
/// [`ParseError`] where the text is too long, a comment or a string does not end, or a character
/// has no place in PTX.
pub(crate) fn tokens(source: &str) -> Result<Vec<Token<'_>>, ParseError> {
    if source.len() > SOURCE_BYTES_MAX {
        return Err(ParseError::new(1, format!("PTX above {SOURCE_BYTES_MAX} bytes is not read")));
    }
    let bytes = source.as_bytes();
    let mut tokens = Vec::with_capacity(source.len() / 4);
    let mut line = 1;
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let end = match byte {
            b'\n' => {
                line += 1;
                at += 1;
                continue;
            }
            b' ' | b'\t' | b'\r' | 0 => {
                at += 1;
                continue;
            }
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                at = find(bytes, at, b"\n").unwrap_or(bytes.len());
                continue;
            }
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                let end = find(bytes, at + 2, b"*/")
                    .ok_or(ParseError::new(line, "comment without end"))?;
                line += count_lines(&bytes[at..end]);
                at = end + 2;
                continue;
            }
            b'"' => {
                find(bytes, at + 1, b"\"").ok_or(ParseError::new(line, "string without end"))? + 1
            }
            b'.' => dotted(bytes, at + 1),
            _ if is_name(byte) => run(bytes, at),
            b'%' => run(bytes, at + 1),
            _ if byte.is_ascii_punctuation() => at + 1,
            _ => {
                return Err(ParseError::new(line, format!("byte {byte:#04x} has no place in PTX")));
            }
        };
        let kind = kind_of(byte);
        tokens.push(Token { kind, text: source.get(at..end).unwrap_or_default(), line });
        if kind == TokenKind::Text {
            line += count_lines(&bytes[at..end]);
        }
        at = end;
    }
    Ok(tokens)
}

fn kind_of(first: u8) -> TokenKind {
    match first {
        b'"' => TokenKind::Text,
        b'.' => TokenKind::Dot,
        b'0'..=b'9' => TokenKind::Number,
        b'%' => TokenKind::Word,
        _ if is_name(first) => TokenKind::Word,
        _ => TokenKind::Mark,
    }
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$'
}

/// End of the run of name characters from `at`.
fn run(bytes: &[u8], at: usize) -> usize {
    at + bytes[at..].iter().take_while(|byte| is_name(**byte)).count()
}

/// End of a modifier from `at`, with its `::` parts.
fn dotted(bytes: &[u8], at: usize) -> usize {
    let mut end = run(bytes, at);
    while bytes.get(end..end + 2) == Some(b"::") {
        end = run(bytes, end + 2);
    }
    end
}

fn find(bytes: &[u8], from: usize, what: &[u8]) -> Option<usize> {
    bytes
        .get(from..)?
        .windows(what.len())
        .position(|window| window == what)
        .map(|found| from + found)
}

fn count_lines(bytes: &[u8]) -> u32 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u32
}
