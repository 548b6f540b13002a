//! The deny-list: identities that are shut out, in one small file that is replaced as a whole.
//! Closes no connection; see [`super::Access`].

use crate::sync::lock;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Mutex;
use tessera_protocol::NodeId;
use tessera_protocol::access::{DENIED_MAX, DeniedIdentity};
use tessera_transport::PeerIdentity;
use tessera_transport::files::{self, Access};

/// Longest file that is read, in bytes. Names and reasons of entries have bounded lengths.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// The identity that an entry denies. A person's name stands for the person in every role.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Subject {
    /// Node, by its id.
    Node(NodeId),
    /// Person, by the name in the certificate.
    User(String),
}

impl Subject {
    /// Returns the identity of a peer.
    pub(crate) fn of(peer: &PeerIdentity) -> Self {
        match peer.node {
            Some(node) => Self::Node(node),
            None => Self::User(peer.name.clone()),
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node(node) => write!(f, "node:{node}"),
            Self::User(name) => write!(f, "user:{name}"),
        }
    }
}

impl FromStr for Subject {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        match text.split_once(':') {
            Some(("node", id)) => id.parse().map(Self::Node).map_err(|_| ()),
            Some(("user", name)) if tessera_transport::peer::is_name(name) => {
                Ok(Self::User(name.to_owned()))
            }
            _ => Err(()),
        }
    }
}

/// Why the list cannot be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum DeniedError {
    /// The file system returned an error.
    #[error("the deny-list `{}` cannot be used", path.display())]
    Io {
        /// Path of the list.
        path: PathBuf,
        /// Error of the file system.
        #[source]
        source: std::io::Error,
    },
    /// The file is damaged. It is never treated as an empty list.
    #[error("the deny-list `{}` is damaged: {problem}; restore it, or remove it to admit every \
        identity again", path.display())]
    Broken {
        /// Path of the list.
        path: PathBuf,
        /// Description of the damage.
        problem: String,
    },
    /// The list has no room for another entry.
    #[error("{DENIED_MAX} identities are denied already; allow some that no longer exist")]
    Full,
}

/// The deny-list, in memory and in its file.
#[derive(Debug)]
pub(crate) struct Denied {
    path: PathBuf,
    entries: Mutex<BTreeMap<Subject, DeniedIdentity>>,
}

impl Denied {
    /// Reads the list from a file. A missing file is an empty list.
    pub(crate) fn open(path: &Path) -> Result<Self, DeniedError> {
        let broken = |problem: String| DeniedError::Broken { path: path.to_owned(), problem };
        let bytes = match files::read_bounded(path, FILE_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => b"[]".to_vec(),
            Err(source) => return Err(DeniedError::Io { path: path.to_owned(), source }),
        };
        let list: Vec<DeniedIdentity> =
            serde_json::from_slice(&bytes).map_err(|error| broken(error.to_string()))?;
        let mut entries = BTreeMap::new();
        for entry in list {
            let subject = entry.identity.parse();
            let subject: Subject =
                subject.map_err(|()| broken(format!("{:?} is not an identity", entry.identity)))?;
            entries.insert(subject, entry);
        }
        Ok(Self { path: path.to_owned(), entries: Mutex::new(entries) })
    }

    /// Returns the entry of this identity.
    pub(crate) fn get(&self, subject: &Subject) -> Option<DeniedIdentity> {
        lock(&self.entries).get(subject).cloned()
    }

    /// Returns all entries of the deny-list.
    pub(crate) fn list(&self) -> Vec<DeniedIdentity> {
        lock(&self.entries).values().cloned().collect()
    }

    /// Adds or removes an entry, durably. Blocks.
    pub(crate) fn change(
        &self,
        subject: Subject,
        entry: Option<DeniedIdentity>,
    ) -> Result<(), DeniedError> {
        let mut entries = lock(&self.entries);
        let mut changed = entries.clone();
        match entry {
            Some(entry) => drop(changed.insert(subject, entry)),
            None => drop(changed.remove(&subject)),
        }
        if changed.len() > DENIED_MAX {
            return Err(DeniedError::Full);
        }
        let list: Vec<&DeniedIdentity> = changed.values().collect();
        let io = |source| DeniedError::Io { path: self.path.clone(), source };
        let text = serde_json::to_vec_pretty(&list).map_err(|error| io(error.into()))?;
        files::create_private_folder(files::folder_of(&self.path)).map_err(io)?;
        files::write_atomically(&self.path, &text, Access::Secret).map_err(io)?;
        *entries = changed;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_outlives_its_process_and_a_damaged_one_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access/denied.json");
        let list = Denied::open(&path).unwrap();
        let ada = Subject::User("ada".into());
        let entry = DeniedIdentity {
            identity: ada.to_string(),
            name: String::new(),
            by: "admin root".into(),
            at: 5,
            reason: "left".into(),
        };
        list.change(ada.clone(), Some(entry.clone())).unwrap();
        let again = Denied::open(&path).unwrap();
        assert_eq!(again.get(&ada), Some(entry));
        again.change(ada.clone(), None).unwrap();
        assert_eq!(Denied::open(&path).unwrap().get(&ada), None);
        for text in ["", "[", "{}", r#"[{"identity":"x","name":"","by":"","at":1,"reason":""}]"#] {
            std::fs::write(&path, text).unwrap();
            let error = Denied::open(&path).unwrap_err();
            assert!(matches!(error, DeniedError::Broken { .. }), "{text}: {error}");
        }
    }
}
