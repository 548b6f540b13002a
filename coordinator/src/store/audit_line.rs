//! An entry of the audit log as a store elsewhere keeps it, and the check of a chain of them.

use tessera_protocol::access::LogEntry;

/// Most entries that a store elsewhere keeps. The oldest are removed.
pub const AUDIT_ENTRIES_MAX: u64 = 1_000_000;
/// Longest problem list of a check.
const PROBLEMS_MAX: usize = 20;

/// An entry, with the hash of the one before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditLine {
    /// Hexadecimal hash of the entry before it.
    pub before: String,
    /// The entry as a line of JSON, without its end.
    pub line: String,
}

impl AuditLine {
    /// Returns its bytes: both, with an end of line between them.
    pub fn to_bytes(&self) -> Vec<u8> {
        format!("{}\n{}", self.before, self.line).into_bytes()
    }

    /// Reads it. The error describes the damage.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
        let (before, line) = text.split_once('\n').ok_or("it is one line")?;
        Ok(Self { before: before.to_owned(), line: line.to_owned() })
    }
}

/// Check of a chain that is read from its oldest entry on.
#[derive(Debug, Default)]
pub struct AuditChain {
    /// Number and hash of the newest entry so far.
    newest: Option<(u64, String)>,
    /// What is wrong, at most 20 texts.
    problems: Vec<String>,
}

impl AuditChain {
    /// Adds the next entry.
    pub fn take(&mut self, number: u64, bytes: &[u8]) {
        let entry = AuditLine::from_bytes(bytes).and_then(|line| {
            let entry: LogEntry =
                serde_json::from_str(&line.line).map_err(|error| error.to_string())?;
            Ok((line.before, entry))
        });
        let (before, entry) = match entry {
            Ok(read) => read,
            Err(error) => return self.problem(format!("entry {number} cannot be read: {error}")),
        };
        let follows =
            self.newest.as_ref().is_none_or(|(at, hash)| number == at + 1 && *hash == before);
        if entry.n != number || entry.hash != entry.chained_to(&before) {
            self.problem(format!("entry {number} was changed"));
        } else if !follows {
            self.problem(format!("before entry {number}, entries are gone or were changed"));
        }
        self.newest = Some((number, entry.hash));
    }

    /// Whether there was no entry.
    pub fn is_empty(&self) -> bool {
        self.newest.is_none()
    }

    /// Returns what is wrong, if the newest entry must be this one (number and hash).
    pub fn conclude(mut self, head: Option<(u64, &str)>) -> Vec<String> {
        let ends = self.newest.as_ref().map(|(number, hash)| (*number, hash.as_str()));
        if ends != head {
            let number = |of: Option<(u64, &str)>| of.map_or(0, |(number, _)| number);
            let text = format!(
                "it ends with entry {}, and the head is another entry {}",
                number(ends),
                number(head)
            );
            self.problem(text);
        }
        self.problems
    }

    fn problem(&mut self, text: String) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(count: u64) -> Vec<(u64, Vec<u8>, String)> {
        let mut before = "0".repeat(64);
        let of = |n| {
            let mut entry = LogEntry {
                n,
                at: 7,
                who: "admin ada".into(),
                what: "denied".into(),
                about: "user:eve".into(),
                hash: String::new(),
            };
            entry.hash = entry.chained_to(&before);
            let line = serde_json::to_string(&entry).unwrap();
            let bytes = AuditLine { before: before.clone(), line }.to_bytes();
            before.clone_from(&entry.hash);
            (n, bytes, entry.hash)
        };
        (1..=count).map(of).collect()
    }

    fn problems(of: &[(u64, Vec<u8>, String)], head: (u64, &str)) -> Vec<String> {
        let mut chain = AuditChain::default();
        of.iter().for_each(|(number, bytes, _)| chain.take(*number, bytes));
        chain.conclude(Some(head))
    }

    #[test]
    fn a_changed_a_missing_and_a_cut_entry_are_found() {
        let all = entries(4);
        let newest = (4, all[3].2.as_str());
        assert!(problems(&all, newest).is_empty());
        assert!(problems(&all[1..], newest).is_empty(), "the oldest may have been removed");
        assert_eq!(problems(&all[..3], newest).len(), 1, "the end is gone");
        let gap = [all[0].clone(), all[2].clone(), all[3].clone()];
        assert_eq!(problems(&gap, newest), ["before entry 3, entries are gone or were changed"]);
        let mut changed = all.clone();
        changed[1].1 =
            String::from_utf8(changed[1].1.clone()).unwrap().replace("eve", "bob").into();
        assert_eq!(problems(&changed, newest), ["entry 2 was changed"]);
        let mut torn = all.clone();
        torn[1].1.truncate(70);
        assert!(problems(&torn, newest)[0].starts_with("entry 2 cannot be read"));
    }
}
