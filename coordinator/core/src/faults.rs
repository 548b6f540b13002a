//! Faults: what cannot happen by the core's own reasoning, and happened nevertheless. The core
//! goes on, since one broken entry is no reason to stop a farm; but it says so.
//!
//! What a peer may send, or a late answer may say, is no fault: those are refused or ignored where
//! they arrive.

use crate::action::Action;
use crate::core::Core;
use crate::schedule::queue::Queue;
use crate::state::job::Place;
use std::collections::BTreeMap;
use tessera_protocol::ids::UnitKey;

/// How often each kind of fault has happened in this process.
#[derive(Debug, Default)]
pub(crate) struct Faults(BTreeMap<&'static str, u64>);

impl Faults {
    fn count(&mut self, what: &'static str) {
        let times = self.0.entry(what).or_default();
        *times = times.saturating_add(1);
    }

    /// No fault has happened. The error names the kinds and how often each happened.
    pub(crate) fn check(&self) -> Result<(), String> {
        let said: Vec<String> =
            self.0.iter().map(|(what, times)| format!("{what} ({times} times)")).collect();
        match said.is_empty() {
            true => Ok(()),
            false => Err(format!("faults of the core: {}", said.join("; "))),
        }
    }
}

impl Core {
    /// Counts what cannot happen and tells the shell. Panics in debug builds and unit tests.
    #[cold]
    pub(crate) fn fault(&mut self, what: &'static str) {
        self.faults.count(what);
        self.act(Action::Fault { what });
        if cfg!(any(test, debug_assertions)) {
            panic!("fault of the core: {what}");
        }
    }

    /// The place of a unit and the queue of its job, where the job must be open. A fault if not.
    pub(crate) fn open_unit(
        &mut self,
        unit: UnitKey,
        what: &'static str,
    ) -> Option<(Place, &mut Queue)> {
        let place = self.farm.job(unit.job).and_then(|job| job.place(unit));
        if place.is_none() || !self.queues.contains_key(&unit.job) {
            self.fault(what);
            return None;
        }
        place.zip(self.queues.get_mut(&unit.job))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;
    use crate::time::Moment;

    #[test]
    fn faults_are_counted_by_kind() {
        let mut faults = Faults::default();
        assert_eq!(faults.check(), Ok(()));
        ["a", "b", "a"].into_iter().for_each(|what| faults.count(what));
        let said = faults.check().unwrap_err();
        assert_eq!(said, "faults of the core: a (2 times); b (1 times)");
    }

    #[test]
    fn a_core_with_a_fault_fails_its_checks() {
        let mut core = Core::new(Settings::default(), Moment(0));
        assert_eq!(core.verify(), Ok(()));
        core.faults.count("a");
        assert!(core.verify().is_err());
    }

    #[test]
    #[should_panic(expected = "fault of the core: a")]
    fn a_fault_panics_in_tests() {
        Core::new(Settings::default(), Moment(0)).fault("a");
    }
}
