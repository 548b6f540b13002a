//! The meaning of Xid events and the action for each: the table, its file, and the look-up. Takes
//! no action itself.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Table of event codes that is part of the program.
const BUILT_IN: &str = include_str!("xid.toml");
/// Longest table file in bytes.
const TABLE_BYTES_MAX: u64 = 1 << 20;

/// Action of a node for an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum XidAction {
    /// Only log the event.
    Note,
    /// End the worker and start another.
    Restart,
    /// Finish the units that have begun, then give no more work.
    Drain,
    /// Give no more work from now on.
    Quarantine,
}

/// One row of the table, for one event code.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    code: u64,
    meaning: String,
    action: XidAction,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    xid: Vec<Row>,
}

/// Why a table cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum XidTableError {
    /// The file cannot be read.
    #[error("cannot read the table of Xid events `{path}`")]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        #[source]
        source: std::io::Error,
    },
    /// The text is malformed.
    #[error("the table of Xid events is malformed: {0}")]
    Malformed(String),
    /// A code occurs twice.
    #[error("the table of Xid events has code {0} twice")]
    Twice(u64),
}

/// The action for each code.
#[derive(Clone, Debug)]
pub struct XidTable {
    rows: BTreeMap<u64, Row>,
}

impl XidTable {
    /// The built-in table, with the rows of `path` over its own.
    ///
    /// # Errors
    /// The file cannot be read or makes no sense.
    pub fn load(path: Option<&Path>) -> Result<Self, XidTableError> {
        let mut table = Self::parse(BUILT_IN)?;
        if let Some(path) = path {
            let read = |source| XidTableError::Read { path: path.to_owned(), source };
            let mut text = String::new();
            // Read one byte more than allowed, to notice a file that is too long.
            let file = std::fs::File::open(path).map_err(read)?;
            file.take(TABLE_BYTES_MAX + 1).read_to_string(&mut text).map_err(read)?;
            if text.len() as u64 > TABLE_BYTES_MAX {
                return Err(XidTableError::Malformed(format!(
                    "it is longer than {TABLE_BYTES_MAX} bytes"
                )));
            }
            table.rows.extend(Self::parse(&text)?.rows);
        }
        Ok(table)
    }

    fn parse(text: &str) -> Result<Self, XidTableError> {
        let file: File =
            toml::from_str(text).map_err(|error| XidTableError::Malformed(error.to_string()))?;
        let mut rows = BTreeMap::new();
        for row in file.xid {
            let code = row.code;
            if rows.insert(code, row).is_some() {
                return Err(XidTableError::Twice(code));
            }
        }
        Ok(Self { rows })
    }

    /// Returns the action and the meaning of a code. An unknown code is only logged.
    pub fn look_up(&self, code: u64) -> (XidAction, &str) {
        match self.rows.get(&code) {
            Some(row) => (row.action, &row.meaning),
            None => (XidAction::Note, "not in this node's table"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_xid_table_covers_the_known_codes() {
        let table = XidTable::load(None).unwrap();
        assert!(table.rows.len() >= 25);
        let actions =
            |codes: &[u64]| codes.iter().map(|code| table.look_up(*code).0).collect::<Vec<_>>();
        assert_eq!(actions(&[13, 31, 43, 45, 63, 92]), [XidAction::Note; 6]);
        assert_eq!(actions(&[32, 69, 94, 109]), [XidAction::Restart; 4]);
        assert_eq!(actions(&[48, 74, 154]), [XidAction::Drain; 3]);
        assert_eq!(actions(&[46, 62, 64, 79, 95, 119, 120, 140]), [XidAction::Quarantine; 8]);
        assert_eq!(table.look_up(100_000).0, XidAction::Note);
        assert!(table.rows.values().all(|row| row.meaning.len() > 8));
    }

    #[test]
    fn a_file_replaces_rows_and_leaves_the_rest() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("xid.toml");
        std::fs::write(&path, "[[xid]]\ncode = 31\nmeaning = \"ours\"\naction = \"drain\"\n")
            .unwrap();
        let table = XidTable::load(Some(&path)).unwrap();
        assert_eq!(table.look_up(31), (XidAction::Drain, "ours"));
        assert_eq!(table.look_up(79).0, XidAction::Quarantine);
    }

    #[test]
    fn an_invalid_xid_table_is_refused() {
        let row = "[[xid]]\ncode = 1\nmeaning = \"m\"\naction = \"note\"\n";
        assert!(matches!(XidTable::parse(&row.repeat(2)), Err(XidTableError::Twice(1))));
        for text in [
            "[[xid]]\ncode = 1\n",
            &row.replace("note", "explode"),
            &format!("{row}more = 1\n"),
            "x",
        ] {
            assert!(matches!(XidTable::parse(text), Err(XidTableError::Malformed(_))), "{text}");
        }
        assert!(XidTable::load(Some(Path::new("/nowhere/at/all.toml"))).is_err());
    }
}
