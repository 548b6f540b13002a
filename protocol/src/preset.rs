//! Presets: templates that an admin publishes under a name, for all who submit.

use crate::job::is_label;
use crate::limits::{NAME_MAX, PRESET_BYTES_MAX};
use serde::{Deserialize, Serialize};

/// A template that was published.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preset {
    /// Its name: 1 to [`NAME_MAX`] letters, digits and `.`, `_`, `-`, `@`.
    pub name: String,
    /// The template, as TOML, 1 to [`PRESET_BYTES_MAX`] bytes.
    pub text: String,
    /// Name of the admin.
    pub by: String,
    /// When it was published, in seconds since the Unix epoch.
    pub at: u64,
}

/// A preset in a listing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PresetSummary {
    /// Its name.
    pub name: String,
    /// Bytes of the template.
    pub bytes: u32,
    /// Name of the admin.
    pub by: String,
    /// When it was published, in seconds since the Unix epoch.
    pub at: u64,
}

/// Checks a preset's name, and its text where it is published. The error says what is wrong.
pub fn check(name: &str, text: Option<&str>) -> Result<(), String> {
    if !is_label(name) {
        return Err(format!(
            "the name of a preset has 1 to {NAME_MAX} letters, digits and `.`, `_`, `-`, `@`"
        ));
    }
    match text.map(str::len) {
        Some(length) if length == 0 || length > PRESET_BYTES_MAX => {
            Err(format!("a preset has 1 to {PRESET_BYTES_MAX} bytes, and this one {length}"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_lengths_are_checked() {
        assert_eq!(check("final-4k", Some("x")), Ok(()));
        assert_eq!(check("final", None), Ok(()));
        for (name, text) in [
            ("", Some("x")),
            ("a b", None),
            ("a/b", Some("x")),
            ("a", Some("")),
            (&"a".repeat(200), None),
        ] {
            assert!(check(name, text).is_err(), "{name:?}");
        }
        let most = "x".repeat(PRESET_BYTES_MAX);
        assert_eq!(check("a", Some(&most)), Ok(()));
        assert!(check("a", Some(&format!("{most}x"))).is_err());
    }
}
