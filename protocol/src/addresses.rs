//! Addresses of objects in one store, which have much in common: signed ones have 400 bytes, of
//! which an object's own are 150.

use serde::{Deserialize, Serialize};

/// Addresses for HTTP, which are secret, without what is the same in all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Addresses {
    /// What all paths begin with, the host included.
    path: String,
    /// What all queries begin with.
    query: String,
    /// What each path and each query ends with.
    ends: Vec<(String, String)>,
}

impl Addresses {
    /// Takes out what all have in common.
    pub fn new(all: &[String]) -> Self {
        let parted: Vec<(&str, &str)> =
            all.iter().map(|one| one.split_at(one.find('?').unwrap_or(one.len()))).collect();
        let path = shared_start(parted.iter().map(|(path, _)| *path));
        let query = shared_start(parted.iter().map(|(_, query)| *query));
        let end = |text: &str, start: &str| text.get(start.len()..).unwrap_or_default().to_owned();
        let ends = parted.iter().map(|(one, two)| (end(one, path), end(two, query))).collect();
        Self { path: path.to_owned(), query: query.to_owned(), ends }
    }

    /// Returns the number of addresses.
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    /// Returns an address by its position.
    pub fn get(&self, index: usize) -> Option<String> {
        let (path, query) = self.ends.get(index)?;
        Some(format!("{}{path}{}{query}", self.path, self.query))
    }
}

/// Returns what all texts begin with.
fn shared_start<'a>(mut texts: impl Iterator<Item = &'a str>) -> &'a str {
    let Some(first) = texts.next() else { return "" };
    texts.fold(first, |start, text| {
        let same = start.bytes().zip(text.bytes()).take_while(|(one, other)| one == other).count();
        // Within a character there is no end.
        (0..=same).rev().find_map(|length| start.get(..length)).unwrap_or_default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_same(all: &[&str]) -> Addresses {
        let all: Vec<String> = all.iter().map(|one| (*one).to_owned()).collect();
        let addresses = Addresses::new(&all);
        let found: Vec<_> = (0..all.len()).filter_map(|index| addresses.get(index)).collect();
        assert_eq!((&found, addresses.count(), addresses.get(all.len())), (&all, all.len(), None));
        addresses
    }

    #[test]
    fn what_is_shared_is_there_once() {
        let addresses =
            assert_same(&["https://x/a/1?key=k&sign=55", "https://x/a/2?key=k&sign=66"]);
        assert_eq!((&*addresses.path, &*addresses.query), ("https://x/a/", "?key=k&sign="));
        assert_eq!(addresses.ends[1], ("2".to_owned(), "66".to_owned()));
    }

    #[test]
    fn all_addresses_come_back() {
        assert_same(&[]);
        assert_same(&["https://x/a"]);
        assert_same(&["https://x/a", "https://x/a", "https://x/ab?", "ftp://y?z", ""]);
        assert_same(&["\u{e4}?\u{f6}", "\u{e5}?\u{f7}"]);
    }
}
