//! Faults: contradictions in the core's own state. The core continues, since one broken entry is no
//! reason to stop a farm, but it reports them.
//!
//! A message of a peer or a late answer is never a fault: it is refused or ignored where it
//! arrives.

use std::collections::BTreeMap;

/// How often each kind of fault has happened in this process.
#[derive(Debug, Default)]
pub(crate) struct Faults(BTreeMap<&'static str, u64>);

impl Faults {
    pub(crate) fn count(&mut self, what: &'static str) {
        let times = self.0.entry(what).or_default();
        *times = times.saturating_add(1);
    }

    /// Checks that no fault has happened. The error names each kind and its count.
    pub(crate) fn check(&self) -> Result<(), String> {
        let said: Vec<String> =
            self.0.iter().map(|(what, times)| format!("{what} ({times} times)")).collect();
        match said.is_empty() {
            true => Ok(()),
            false => Err(format!("faults of the core: {}", said.join("; "))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_counted_by_kind() {
        let mut faults = Faults::default();
        assert_eq!(faults.check(), Ok(()));
        ["a", "b", "a"].into_iter().for_each(|what| faults.count(what));
        let said = faults.check().unwrap_err();
        assert_eq!(said, "faults of the core: a (2 times); b (1 times)");
    }
}
