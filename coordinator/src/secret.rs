//! The coordinator's secret on disk. The first start makes it, and every other start reads it. The
//! core owns its use.

use crate::folder::{DataFolder, FolderError};
use std::io;
use std::path::PathBuf;
use tessera_core::Secret;
use tessera_transport::JoinToken;
use tessera_transport::files;
use tessera_transport::token::AuthorityPin;

/// Name of the file. A folder without the file gets a new secret, and then no lease of a former
/// process is known any more.
const NAME: &str = "secret";

/// Path of the secret in a data folder.
pub(crate) fn path(folder: &DataFolder) -> PathBuf {
    folder.root().join(NAME)
}

/// Reads the secret, or makes one.
pub(crate) fn open_or_create(folder: &DataFolder) -> Result<Secret, FolderError> {
    let path = path(folder);
    let failed = |source| FolderError::Io { path: path.clone(), source };
    match std::fs::read(&path) {
        Ok(bytes) => {
            let problem = || io::Error::other("it is not 32 bytes; remove it, and another is made");
            bytes.try_into().map(Secret).map_err(|_| failed(problem()))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // The secret of a token is 32 random bytes from the operating system. This token is
            // never registered, so it gives no access.
            let secret = JoinToken::generate(AuthorityPin([0; 32])).map_err(failed)?.hash();
            files::write_atomically(&path, &secret, files::Access::Secret).map_err(failed)?;
            Ok(Secret(secret))
        }
        Err(error) => Err(failed(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_secret_is_made_once_and_readable_only_by_its_owner() {
        let root = tempfile::tempdir().unwrap();
        let folder = DataFolder::open(root.path()).unwrap();
        let secret = open_or_create(&folder).unwrap();
        assert_eq!(open_or_create(&folder).unwrap(), secret);
        let path = root.path().join(NAME);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o077, 0);
        std::fs::write(&path, b"short").unwrap();
        assert!(open_or_create(&folder).is_err());
        std::fs::remove_file(&path).unwrap();
        assert_ne!(open_or_create(&folder).unwrap(), secret);
    }
}
