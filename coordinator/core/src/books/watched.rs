//! Units that the step under way may have moved, with their states before it. Compares nothing.

use crate::unit_state::UnitState;
use std::collections::BTreeMap;
use tessera_protocol::ids::UnitKey;

/// Units that the step under way may have moved. Nothing is noted unless the units are watched.
#[derive(Debug, Default)]
pub(super) struct Watched {
    is_on: bool,
    /// Their states before the step.
    before: BTreeMap<UnitKey, UnitState>,
}

impl Watched {
    /// Begins anew, with nothing noted.
    pub(super) fn new(is_on: bool) -> Self {
        Self { is_on, ..Self::default() }
    }

    /// Returns whether the driver watches the units.
    pub(super) fn is_on(&self) -> bool {
        self.is_on
    }

    /// Returns whether the state of a unit before the step is noted.
    pub(super) fn has(&self, unit: UnitKey) -> bool {
        self.before.contains_key(&unit)
    }

    /// Notes the state of a unit before the step.
    pub(super) fn note(&mut self, unit: UnitKey, state: UnitState) {
        self.before.insert(unit, state);
    }

    /// Takes what is noted, in the order of the units.
    pub(super) fn take(&mut self) -> BTreeMap<UnitKey, UnitState> {
        std::mem::take(&mut self.before)
    }
}
