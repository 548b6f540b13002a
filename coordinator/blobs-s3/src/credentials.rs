//! Credentials of a store: from a file, from the environment that the caller read, or those that
//! the machine itself has in a cloud.

use std::path::{Path, PathBuf};
use tessera_transport::files::read_secret;

/// Longest file in bytes.
const BYTES_MAX: u64 = 16 << 10;

/// Why there are no credentials.
#[derive(Debug, thiserror::Error)]
pub enum CredentialError {
    /// The file cannot be read.
    #[error("the credentials in `{path}` cannot be read")]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Error of the file system.
        #[source]
        source: std::io::Error,
    },
    /// The file lacks a line.
    #[error(
        "`{path}` has no credentials: it needs the lines `aws_access_key_id = ID` and \
         `aws_secret_access_key = KEY`, in the part [default] if it has parts"
    )]
    Missing {
        /// Path of the file.
        path: PathBuf,
    },
    /// One of two variables is not set.
    #[error("AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY belong together, and one is not set")]
    Half,
}

/// How the store knows who asks.
#[derive(Clone, Default)]
pub enum Credentials {
    /// A key.
    Key {
        /// Id of the key.
        id: String,
        /// The key itself.
        secret: String,
        /// Token of a session, for a key that ends.
        token: Option<String>,
    },
    /// What the machine has in a cloud: its role, by the cloud's service for that.
    #[default]
    Machine,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Key { .. } => "Credentials::Key",
            Self::Machine => "Credentials::Machine",
        })
    }
}

impl Credentials {
    /// Reads the part `default` of a file as other programs for S3 use it, which others must not be
    /// able to read.
    pub fn of_file(path: &Path) -> Result<Self, CredentialError> {
        let bytes = read_secret(path, BYTES_MAX)
            .map_err(|source| CredentialError::Io { path: path.to_path_buf(), source })?;
        let missing = || CredentialError::Missing { path: path.to_path_buf() };
        parse(&String::from_utf8_lossy(&bytes)).ok_or_else(missing)
    }

    /// Takes the values of AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN.
    pub fn of_variables(
        id: Option<String>,
        secret: Option<String>,
        token: Option<String>,
    ) -> Result<Self, CredentialError> {
        match (id, secret) {
            (Some(id), Some(secret)) => Ok(Self::Key { id, secret, token }),
            (None, None) => Ok(Self::Machine),
            _ => Err(CredentialError::Half),
        }
    }
}

/// Finds the key in the lines `NAME = VALUE` before the first part, or in the part `[default]`.
fn parse(text: &str) -> Option<Credentials> {
    let (mut id, mut secret, mut token) = (None, None, None);
    let mut counts = true;
    for line in text.lines().map(str::trim) {
        if let Some(part) = line.strip_prefix('[') {
            counts = part.trim_end_matches(']').trim() == "default";
            continue;
        }
        let Some((name, value)) = line.split_once('=').filter(|_| counts) else { continue };
        let value = Some(value.trim().to_owned()).filter(|value| !value.is_empty());
        match name.trim() {
            "aws_access_key_id" => id = value,
            "aws_secret_access_key" => secret = value,
            "aws_session_token" => token = value,
            _ => {}
        }
    }
    Some(Credentials::Key { id: id?, secret: secret?, token })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_key_is_read_from_the_default_part_of_a_private_file() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("credentials");
        let text = "[other]\naws_access_key_id = no\n[default]\naws_access_key_id = me\n\
            aws_secret_access_key= k=y\n[more]\naws_secret_access_key = no\n";
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        let Ok(Credentials::Key { id, secret, token }) = Credentials::of_file(&path) else {
            panic!("it is a key")
        };
        assert_eq!((id.as_str(), secret.as_str(), token), ("me", "k=y", None));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(Credentials::of_file(&path), Err(CredentialError::Io { .. })));
        assert!(parse("aws_access_key_id = me\n").is_none());
        assert!(parse("[x]\naws_access_key_id = me\naws_secret_access_key = k\n").is_none());
    }

    #[test]
    fn half_a_key_is_refused_and_no_key_is_the_machines() {
        let some = |text: &str| Some(text.to_owned());
        let half = Credentials::of_variables(some("me"), None, None);
        assert!(matches!(half, Err(CredentialError::Half)));
        let none = Credentials::of_variables(None, None, None);
        assert!(matches!(none, Ok(Credentials::Machine)));
        let key = Credentials::of_variables(some("me"), some("hush"), None).unwrap();
        assert!(!format!("{key:?}").contains("hush"));
    }
}
