//! A place among the tokens of a module. Knows no grammar beyond numbers and lists.

use crate::ParseError;
use crate::text::{Token, TokenKind};

/// Walks over tokens.
pub(crate) struct Cursor<'a> {
    tokens: &'a [Token<'a>],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(tokens: &'a [Token<'a>]) -> Cursor<'a> {
        Cursor { tokens, at: 0 }
    }

    pub(crate) fn peek(&self) -> Option<&'a Token<'a>> {
        self.tokens.get(self.at)
    }

    pub(crate) fn peek_is(&self, text: &str) -> bool {
        self.peek().is_some_and(|token| token.is(text))
    }

    /// The token after the next one.
    pub(crate) fn second_is(&self, text: &str) -> bool {
        self.tokens.get(self.at + 1).is_some_and(|token| token.is(text))
    }

    pub(crate) fn next(&mut self) -> Option<&'a Token<'a>> {
        let token = self.tokens.get(self.at)?;
        self.at += 1;
        Some(token)
    }

    /// Takes the next token if it is this one.
    pub(crate) fn take(&mut self, text: &str) -> bool {
        let is = self.peek_is(text);
        self.at += usize::from(is);
        is
    }

    /// Line of the next token, or of the last.
    pub(crate) fn line(&self) -> u32 {
        self.peek().or(self.tokens.last()).map_or(1, |token| token.line)
    }

    pub(crate) fn wrong(&self, what: impl Into<String>) -> ParseError {
        ParseError::new(self.line(), what)
    }

    pub(crate) fn expect(&mut self, text: &str) -> Result<(), ParseError> {
        if self.take(text) {
            return Ok(());
        }
        let found = self.peek().map_or("the end", |token| token.text);
        Err(self.wrong(format!("`{text}` expected, found `{}`", shortened(found))))
    }

    pub(crate) fn word(&mut self) -> Result<&'a str, ParseError> {
        match self.peek() {
            Some(token) if token.kind == TokenKind::Word => {
                self.at += 1;
                Ok(token.text)
            }
            _ => Err(self.wrong("a name expected")),
        }
    }

    /// A number without sign that fits `max`.
    pub(crate) fn number(&mut self, max: u64) -> Result<u64, ParseError> {
        let found = self.peek().filter(|token| token.kind == TokenKind::Number);
        let value = found.and_then(|token| number(token.text)).filter(|value| *value <= max);
        let value = value.ok_or_else(|| self.wrong(format!("a number up to {max} expected")))?;
        self.at += 1;
        Ok(value)
    }

    /// Tokens up to, and then over, the next `end` outside all brackets.
    pub(crate) fn until(&mut self, end: &str) -> Result<&'a [Token<'a>], ParseError> {
        let start = self.at;
        let mut depth = 0usize;
        while let Some(token) = self.next() {
            if depth == 0 && token.is(end) {
                return Ok(&self.tokens[start..self.at - 1]);
            }
            if token.kind == TokenKind::Mark {
                match token.text {
                    "{" | "[" | "(" => depth += 1,
                    "}" | "]" | ")" => depth = depth.saturating_sub(1),
                    _ => {}
                }
            }
        }
        self.at = start;
        Err(self.wrong(format!("`{end}` is missing")))
    }

    /// Skips the rest of the line, for directives that end with it.
    pub(crate) fn skip_line(&mut self) {
        let line = self.line();
        while self.peek().is_some_and(|token| token.line == line) {
            self.at += 1;
        }
    }
}

/// Splits at the commas that stand outside all brackets. An empty slice has no parts.
pub(crate) fn split_commas<'a>(tokens: &'a [Token<'a>]) -> Vec<&'a [Token<'a>]> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0usize, 0);
    for (at, token) in tokens.iter().enumerate().filter(|(_, token)| token.kind == TokenKind::Mark)
    {
        match token.text {
            "{" | "[" | "(" => depth += 1,
            "}" | "]" | ")" => depth = depth.saturating_sub(1),
            "," if depth == 0 => {
                parts.push(&tokens[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if start < tokens.len() {
        parts.push(&tokens[start..]);
    }
    parts
}

/// The bits of a number: decimal, `0x`, `0b`, octal, `0f` (32 bits) or `0d` (64 bits).
pub(crate) fn number(text: &str) -> Option<u64> {
    let text = text.trim_end_matches('U');
    match text.get(..2) {
        Some("0x" | "0X") => u64::from_str_radix(&text[2..], 16).ok(),
        Some("0b" | "0B") => u64::from_str_radix(&text[2..], 2).ok(),
        Some("0f" | "0F") if text.len() == 10 => {
            u32::from_str_radix(&text[2..], 16).ok().map(u64::from)
        }
        Some("0d" | "0D") if text.len() == 18 => u64::from_str_radix(&text[2..], 16).ok(),
        _ if text.len() > 1 && text.starts_with('0') => u64::from_str_radix(text, 8).ok(),
        _ => text.parse().ok(),
    }
}

/// A name short enough for a message.
pub(crate) fn shortened(text: &str) -> &str {
    text.get(..60).unwrap_or(text)
}
