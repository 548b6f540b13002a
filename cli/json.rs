//! Prints JSON on standard output, with hashes in hexadecimal.

use crate::error::CliError;
use serde::Serialize;
use serde_json::Value;
use std::io::Write;
use tessera_protocol::names::is_control;

/// A value as JSON, with its hashes in hexadecimal.
pub(crate) fn value(of: &impl Serialize) -> Result<Value, CliError> {
    Ok(tessera_coordinator::api::json::value(of).map_err(std::io::Error::from)?)
}

/// Prints a value in one line.
pub(crate) fn print(of: &impl Serialize) -> Result<(), CliError> {
    print_value(&value(of)?)
}

/// Prints a value as it is in one line.
pub(crate) fn print_value(value: &Value) -> Result<(), CliError> {
    line(&escaped(&value.to_string()))
}

/// JSON in which characters that take over a terminal are written by their number. They occur only
/// within strings, where both forms mean the same.
fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        match is_control(c) {
            // All of them are below U+10000.
            true => text += &format!("\\u{:04x}", u32::from(c)),
            false => text.push(c),
        }
    }
    text
}

/// Prints one line on standard output.
pub(crate) fn line(text: &str) -> Result<(), CliError> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}")?;
    Ok(out.flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_and_read_back() {
        let value = serde_json::json!({ "a": "x\u{202e}y\u{9b}\u{7f}\n\u{1b}é" });
        let text = escaped(&value.to_string());
        assert_eq!(text, r#"{"a":"x\u202ey\u009b\u007f\n\u001bé"}"#);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }
}
