//! URIs of a glTF file: data, or a path that stays in the scene's folder. Owns no reading of files.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};

/// Longest path of a file within its scene, in bytes.
const PATH_BYTES_MAX: usize = 1024;
/// Most characters of a URI that an error shows.
const SHOWN_CHARS: usize = 80;

/// Content of a URI.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Uri {
    /// The bytes themselves.
    Data(Vec<u8>),
    /// A file: its path relative to the file that names it.
    File(String),
}

/// Reads a URI that glTF allows: `data:`, or a relative path, percent-encoded. The error says what
/// is wrong with it.
pub(crate) fn parse(uri: &str) -> Result<Uri, String> {
    if let Some(rest) = strip_prefix_ignoring_case(uri, "data:") {
        return data(rest).map(Uri::Data);
    }
    if let Some(scheme) = scheme_of(uri) {
        return Err(match scheme.to_ascii_lowercase().as_str() {
            "http" | "https" => {
                "is on the network; download the file into the scene's folder and name it there"
                    .into()
            }
            "file" => "is absolute; move the file into the scene's folder and name it there".into(),
            _ => format!("has the scheme `{scheme}`; only `data:` and relative paths are read"),
        });
    }
    let path = percent_decode(uri)?;
    confine(&path).map(Uri::File)
}

/// Removes `./` parts from a path, if it stays inside its folder.
pub(crate) fn confine(path: &str) -> Result<String, String> {
    if path.starts_with('/') {
        return Err("is absolute; move the file into the scene's folder and name it there".into());
    }
    if let Some(bad) = path.chars().find(|c| c.is_control() || *c == '\\' || *c == ':') {
        return Err(format!("holds the character {bad:?}, which no path in a scene may"));
    }
    let parts: Vec<&str> = path.split('/').filter(|part| *part != ".").collect();
    if parts.contains(&"..") {
        return Err("leaves the scene's folder by `..`; move the file into the folder".into());
    }
    if parts.iter().any(|part| part.is_empty()) {
        return Err("has an empty part; name a file".into());
    }
    let confined = parts.join("/");
    if confined.is_empty() || confined.len() > PATH_BYTES_MAX {
        return Err(format!("has a path of {} bytes, not 1 to {PATH_BYTES_MAX}", confined.len()));
    }
    Ok(confined)
}

/// Shortens a URI for an error.
pub(crate) fn shown(uri: &str) -> String {
    let mut text: String = uri.chars().take(SHOWN_CHARS).collect();
    if text.len() < uri.len() {
        text.push('…');
    }
    text
}

fn strip_prefix_ignoring_case<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let head = text.get(..prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then(|| &text[prefix.len()..])
}

/// The scheme of an absolute URI (RFC 3986, §3.1).
fn scheme_of(uri: &str) -> Option<&str> {
    let (scheme, _) = uri.split_once(':')?;
    let mut chars = scheme.chars();
    let starts = chars.next().is_some_and(|c| c.is_ascii_alphabetic());
    (starts && chars.all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.')))
        .then_some(scheme)
}

/// The bytes of a data URI, after its `data:` (RFC 2397).
fn data(rest: &str) -> Result<Vec<u8>, String> {
    let (media, payload) =
        rest.split_once(',').ok_or("is a data URI without a comma; write it again")?;
    if !media.to_ascii_lowercase().ends_with(";base64") {
        return percent_decode_bytes(payload);
    }
    let clean: String;
    let payload = if payload.contains(['%', '\n', '\r', ' ']) {
        clean = percent_decode(payload)?.chars().filter(|c| !c.is_ascii_whitespace()).collect();
        &clean
    } else {
        payload
    };
    let engine = if payload.ends_with('=') { &STANDARD } else { &STANDARD_NO_PAD };
    engine.decode(payload).map_err(|error| format!("is not valid base64 ({error}); write it again"))
}

fn percent_decode(text: &str) -> Result<String, String> {
    String::from_utf8(percent_decode_bytes(text)?)
        .map_err(|_| "is not UTF-8 after percent-decoding; encode it as UTF-8".into())
}

fn percent_decode_bytes(text: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        if first != b'%' {
            bytes.push(first);
            rest = tail;
            continue;
        }
        let digit = |at: usize| tail.get(at).and_then(|c| char::from(*c).to_digit(16));
        let (Some(high), Some(low)) = (digit(0), digit(1)) else {
            return Err(
                "has a `%` without two hexadecimal digits; write `%25` for a percent sign".into()
            );
        };
        bytes.push((high * 16 + low) as u8);
        rest = &tail[2..];
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_decoded_and_confined() {
        assert_eq!(parse("checker%20tile.png"), Ok(Uri::File("checker tile.png".into())));
        assert_eq!(parse("./a/./b c.bin"), Ok(Uri::File("a/b c.bin".into())));
        assert_eq!(parse("caf%C3%A9.png"), Ok(Uri::File("café.png".into())));
        for bad in [
            "../x.bin",
            "a/../../x",
            "%2e%2e/x",
            "/etc/passwd",
            "a//b",
            "",
            ".",
            "a%00b",
            "a\\b",
            "%zz",
            "%f",
        ] {
            assert!(parse(bad).is_err(), "{bad:?} must be refused");
        }
    }

    #[test]
    fn schemes_are_refused_by_name() {
        assert!(parse("https://example.org/a.bin").unwrap_err().contains("download"));
        assert!(parse("HTTP://example.org/a.bin").unwrap_err().contains("download"));
        assert!(parse("file:///etc/passwd").unwrap_err().contains("absolute"));
        assert!(parse("c:/a.bin").unwrap_err().contains("scheme"));
    }

    #[test]
    fn data_uris_give_their_bytes() {
        assert_eq!(
            parse("data:application/octet-stream;base64,AAEC"),
            Ok(Uri::Data(vec![0, 1, 2]))
        );
        assert_eq!(parse("DATA:;BASE64,AAE="), Ok(Uri::Data(vec![0, 1])));
        assert_eq!(parse("data:;base64,AAE"), Ok(Uri::Data(vec![0, 1])));
        assert_eq!(parse("data:,a%20b"), Ok(Uri::Data(b"a b".to_vec())));
        assert!(parse("data:;base64,****").is_err());
        assert!(parse("data:nothing").is_err());
    }
}
