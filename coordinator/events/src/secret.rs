//! A secret of the file of events. Nothing prints it.

use std::path::Path;
use tessera_transport::files;

/// Longest file with a secret, in bytes.
const BYTES_MAX: u64 = 4096;
/// Shortest secret that signs, in bytes: shorter ones can be guessed.
pub(crate) const SIGNING_MIN: usize = 16;

/// A secret.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

impl Secret {
    /// Reads the first line of a file that others cannot read, or a variable of the environment.
    /// None if neither is named. The error says what is wrong.
    pub(crate) fn read(
        key: &str,
        (file, variable): (Option<&Path>, Option<&str>),
    ) -> Result<Option<Self>, String> {
        let (text, from) = match (file, variable) {
            (Some(_), Some(_)) => return Err(format!("give {key}-file or {key}-env, not both")),
            (None, None) => return Ok(None),
            (Some(path), None) => {
                let shown = format!("{key}-file `{}`", path.display());
                let bytes = files::read_secret(path, BYTES_MAX);
                let bytes = bytes.map_err(|error| format!("{shown}: {error}"))?;
                (String::from_utf8(bytes).map_err(|_| format!("{shown} is no text"))?, shown)
            }
            (None, Some(name)) => {
                let shown = format!("{key}-env `{name}`");
                (std::env::var(name).map_err(|_| format!("{shown} is not set"))?, shown)
            }
        };
        let text = text.trim_end_matches(['\r', '\n']);
        match text.is_empty() || text.contains(char::is_control) {
            true => Err(format!("{from} has no secret: it has one line with it")),
            false => Ok(Some(Self(text.to_owned()))),
        }
    }

    /// Returns the text, for whoever signs or signs in with it.
    pub(crate) fn text(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
impl Secret {
    pub(crate) fn of(text: &str) -> Self {
        Self(text.to_owned())
    }
}
