//! Answers as JSON for people and programs, with hashes in hexadecimal: the command line and HTTP
//! say the same.

use serde::Serialize;
use serde_json::Value;

/// Fields that are bytes on the wire and hexadecimal digits for people.
const HASHES: [&str; 3] = ["hash", "fingerprint", "pixels_sha256"];

/// Returns a value as JSON, with its hashes in hexadecimal.
///
/// # Errors
/// The value has no form in JSON. Every answer has one.
pub fn value(of: &impl Serialize) -> Result<Value, serde_json::Error> {
    let mut value = serde_json::to_value(of)?;
    write_hashes(&mut value);
    Ok(value)
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
