//! Prints JSON on standard output, with hashes in hexadecimal.

use crate::error::CliError;
use serde::Serialize;
use serde_json::Value;
use std::io::Write;
use tessera_protocol::names::is_control;

/// Fields that are bytes on the wire and hexadecimal digits for people.
const HASHES: [&str; 3] = ["hash", "fingerprint", "pixels_sha256"];

/// A value as JSON, with its hashes in hexadecimal.
pub(crate) fn value(of: &impl Serialize) -> Result<Value, CliError> {
    let mut value = serde_json::to_value(of).map_err(std::io::Error::from)?;
    write_hashes(&mut value);
    Ok(value)
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

fn write_hashes(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(write_hashes),
        Value::Object(fields) => {
            for (name, field) in fields {
                match hexadecimal(field).filter(|_| HASHES.contains(&name.as_str())) {
                    Some(text) => *field = Value::String(text),
                    None => write_hashes(field),
                }
            }
        }
        _ => {}
    }
}

fn hexadecimal(value: &Value) -> Option<String> {
    let bytes = value.as_array().filter(|bytes| bytes.len() == 32)?;
    bytes
        .iter()
        .map(|byte| byte.as_u64().filter(|byte| *byte < 256).map(|byte| format!("{byte:02x}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tessera_protocol::BlobHash;
    use tessera_protocol::status::FrameFile;

    #[test]
    fn control_characters_are_escaped_and_read_back() {
        let value = serde_json::json!({ "a": "x\u{202e}y\u{9b}\u{7f}\n\u{1b}é" });
        let text = escaped(&value.to_string());
        assert_eq!(text, r#"{"a":"x\u202ey\u009b\u007f\n\u001bé"}"#);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }

    #[test]
    fn hashes_are_hexadecimal() {
        let file = FrameFile {
            format: "exr".into(),
            hash: BlobHash([0xab; 32]),
            length: 7,
            pixels_sha256: [1; 32],
        };
        let value = value(&vec![file]).unwrap();
        assert_eq!(value[0]["hash"], "ab".repeat(32));
        assert_eq!(value[0]["pixels_sha256"], "01".repeat(32));
        assert_eq!(value[0]["length"], 7);
    }
}
