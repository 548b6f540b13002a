//! Where the password comes from: the address, a file, or what PostgreSQL's own clients read. Never
//! logs one.

use crate::address::StoreAddress;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// Longest file of passwords in bytes.
const BYTES_MAX: u64 = 1 << 20;

/// Why no password can be read.
#[derive(Debug, thiserror::Error)]
pub enum PasswordError {
    /// The file cannot be read.
    #[error("the file of the store's password, `{path}`, cannot be read")]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Error of the file system.
        #[source]
        source: io::Error,
    },
    /// Others can read the file.
    #[error("the file of the store's password, `{path}`, can be read by others: chmod 600 it")]
    Open {
        /// Path of the file.
        path: PathBuf,
    },
}

/// Places of passwords besides the address, in the order in which they are looked at.
#[derive(Clone, Default)]
pub struct Passwords {
    /// A file that has the password alone.
    pub file: Option<PathBuf>,
    /// The password itself (PGPASSWORD).
    pub given: Option<String>,
    /// A file in the form of `.pgpass` (PGPASSFILE).
    pub pgpass: Option<PathBuf>,
    /// Such a file at its usual place, which need not be there.
    pub usual: Option<PathBuf>,
}

impl std::fmt::Debug for Passwords {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Passwords({:?}, {:?}, {:?})", self.file, self.pgpass, self.usual)
    }
}

impl Passwords {
    /// Adds the password to an address that has none.
    pub fn add_to(&self, address: &mut StoreAddress) -> Result<(), PasswordError> {
        if address.has_password() {
            return Ok(());
        }
        if let Some(password) = self.find(address)? {
            address.config.password(password);
        }
        Ok(())
    }

    fn find(&self, address: &StoreAddress) -> Result<Option<String>, PasswordError> {
        if let Some(path) = &self.file {
            let text = read(path)?;
            return Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()));
        }
        if self.given.is_some() {
            return Ok(self.given.clone());
        }
        let text = match (&self.pgpass, &self.usual) {
            (Some(path), _) => read(path)?,
            (None, Some(path)) if path.is_file() => read(path)?,
            _ => return Ok(None),
        };
        let (user, database) = (address.user(), address.database());
        Ok(address.hosts().iter().find_map(|(host, port)| {
            let wanted = [host.as_str(), &port.to_string(), database, user];
            text.lines().find_map(|line| password_in(line, wanted))
        }))
    }
}

fn read(path: &PathBuf) -> Result<String, PasswordError> {
    let failed = |source| PasswordError::Read { path: path.clone(), source };
    let about = std::fs::metadata(path).map_err(failed)?;
    if about.is_file() && about.permissions().mode() & 0o077 != 0 {
        return Err(PasswordError::Open { path: path.clone() });
    }
    if about.len() > BYTES_MAX {
        return Err(failed(io::Error::other("it is too long")));
    }
    std::fs::read_to_string(path).map_err(failed)
}

/// Returns the password of a line `host:port:database:user:password`, if it is for these.
fn password_in(line: &str, wanted: [&str; 4]) -> Option<String> {
    if line.starts_with('#') {
        return None;
    }
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        let count = fields.len();
        match (character, fields.last_mut()) {
            ('\\', Some(field)) => field.extend(characters.next()),
            (':', _) if count < 5 => fields.push(String::new()),
            (character, Some(field)) => field.push(character),
            (_, None) => {}
        }
    }
    let (password, named) = fields.split_last().filter(|(_, named)| named.len() == 4)?;
    let fits = named.iter().zip(wanted).all(|(field, wanted)| field == "*" || field == wanted);
    fits.then(|| password.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn write(path: &Path, text: &str, mode: u32) {
        std::fs::write(path, text).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    fn password(passwords: &Passwords) -> Option<String> {
        let mut address = StoreAddress::parse("postgres://ada@h:5433/farm").unwrap();
        passwords.add_to(&mut address).unwrap();
        address.config.get_password().map(|bytes| String::from_utf8(bytes.to_vec()).unwrap())
    }

    #[test]
    fn the_line_of_the_database_has_the_password() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pgpass");
        let text = "# h:5433:farm:ada:comment\nh:5432:farm:ada:port\n*:*:farm:bob:user\n\
            h:*:farm:ada:a\\:b\\\\c:d\n*:*:*:*:last\n";
        write(&path, text, 0o600);
        let passwords = Passwords { pgpass: Some(path.clone()), ..Passwords::default() };
        assert_eq!(password(&passwords).as_deref(), Some("a:b\\c:d"));
        let given = Passwords { given: Some("given".into()), ..passwords.clone() };
        assert_eq!(password(&given).as_deref(), Some("given"));
        assert_eq!(password(&Passwords::default()), None);
    }

    #[test]
    fn a_file_that_others_can_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("password");
        let mut address = StoreAddress::parse("postgres://ada@h/farm").unwrap();
        let passwords = Passwords { file: Some(path.clone()), ..Passwords::default() };
        assert!(passwords.add_to(&mut address).is_err(), "it is not there");
        write(&path, "word\n", 0o640);
        let error = passwords.add_to(&mut address).unwrap_err().to_string();
        assert!(error.contains("chmod 600") && !error.contains("word\n"), "{error}");
        write(&path, "word\n", 0o600);
        assert_eq!(password(&passwords).as_deref(), Some("word"));
    }
}
